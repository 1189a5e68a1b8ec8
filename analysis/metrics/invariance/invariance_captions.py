"""Format invariance in a sentence or two, for the caption of a recount."""

from tutorsim.analysis.metrics.invariance.result import FormatInvariance
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable

__all__ = ["invariance_words"]


def invariance_words(found: FormatInvariance | NotEstimable) -> str:
    """How far the ballots themselves bear out that preferences are the same in every format."""
    if isinstance(found, NotEstimable):
        return f"Recounts assume that preferences are the same in every format; {found.reason}."
    pairs = [f"{p.given} to {p.other} {_of(p.consistent)}" for p in found.pairs]
    said = (
        f"Voters' ballots in two formats were consistent in {_of(found.from_vote)} pairs from the "
        f"format voted in to another (over all ballots: {', '.join(pairs)})"
    )
    again = "how often two askings of one format agree is unknown, as none was asked again"
    if isinstance(found.again, Estimate):
        again = (
            f"two askings of one format were the same ballot in {_of(found.again)}, and "
            f"consistent in {_of(found.again_consistent)}"
        )
    return f"{said}; {again}."


def _of(found: Estimate | NotEstimable) -> str:
    if isinstance(found, NotEstimable):
        return "0 of 0"
    return f"{round(found.value * found.n):,} of {found.n:,}"
