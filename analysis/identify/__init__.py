"""What another rule would have elected, as far as the ballots cast tell."""

from tutorsim.analysis.identify.panel_search import (
    NEVER,
    NO_BOUNDS,
    NOBODY,
    NOT_SETTLED,
    READINGS_OF_TIES,
    Identifier,
    Possible,
    TieReading,
    breakdown_point,
)

__all__ = [
    "NEVER",
    "NOBODY",
    "NOT_SETTLED",
    "NO_BOUNDS",
    "READINGS_OF_TIES",
    "Identifier",
    "Possible",
    "TieReading",
    "breakdown_point",
]
