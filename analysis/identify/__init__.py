"""What another rule would have elected, as far as the ballots cast tell."""

from tutorsim.analysis.identify.possible_winners import (
    NEVER,
    NO_BOUNDS,
    NOT_SETTLED,
    READINGS_OF_TIES,
    PanelSearch,
    Possible,
    TieReading,
    breakdown_point,
    query_of,
)
from tutorsim.analysis.identify.win_conditions import NOBODY

__all__ = [
    "NEVER",
    "NOBODY",
    "NOT_SETTLED",
    "NO_BOUNDS",
    "READINGS_OF_TIES",
    "PanelSearch",
    "Possible",
    "TieReading",
    "breakdown_point",
    "query_of",
]
