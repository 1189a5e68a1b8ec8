"""Format invariance: does a voter that sees the same proposals choose the same in two formats?

Recounts under another rule rest on it: what a voter may have cast under the other rule is read
off its ballot. Only ballots of one voter on the same final proposals in two formats can test it:
the diagnostic ballots of a run, or two runs whose voters saw the same proposals.

*Consistent*: the second ballot is one that the first leaves possible (`analysis.identify`), so
the direction matters where a ballot may be empty or have ties. A rich ballot determines one of
every format, so a plain ballot is consistent with it if it is that one. Pairs with an abstention
are counted and in no share. Beside it stand two askings of one format, which need not agree
either: the same ballot, and consistent, which means that some ranking agrees with both.
"""

from tutorsim.analysis.metrics.invariance.format_pairs import (
    format_invariance,
    format_invariance_across,
    format_invariance_of_two,
)
from tutorsim.analysis.metrics.invariance.invariance_captions import invariance_words
from tutorsim.analysis.metrics.invariance.result import (
    UNTESTED,
    FormatInvariance,
    FormatPair,
    OneFormat,
)

__all__ = [
    "UNTESTED",
    "FormatInvariance",
    "FormatPair",
    "OneFormat",
    "format_invariance",
    "format_invariance_across",
    "format_invariance_of_two",
    "invariance_words",
]
