"""What another rule would have elected, as far as the ballots cast tell."""

from analysis.identify.possible import (
    NOBODY,
    READINGS_OF_TIES,
    Identifier,
    Possible,
    TieReading,
    breakdown_point,
)
from analysis.identify.tabled import TabledIdentifier, possible_winners

__all__ = [
    "NOBODY",
    "READINGS_OF_TIES",
    "Identifier",
    "Possible",
    "TabledIdentifier",
    "TieReading",
    "breakdown_point",
    "possible_winners",
]
