"""What the user says of a file of ballots that the file itself does not say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

__all__ = ["EVERY_VOTE", "NO_HINTS", "Hints"]

EVERY_VOTE: Final = ""
"""Stands for all votes, where something may be said of each."""

_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Hints:
    """How to read ballots from elsewhere. Every field is optional."""

    columns: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """Column of the ballots table → name of that column in the file."""
    stages: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """`initial`, `final` or `tie` → name of that stage in the file."""
    protocol: str | None = None
    """Protocol of all ballots, in any of the names that `analysis.ballots.name_synonyms` knows."""
    candidates: tuple[str, ...] = ()
    """Who stands in every vote, and the order of the labels A, B, C, … that raw replies use. By
    default those stand whom the ballots of a vote, or its rows, name. One name that is a column of
    the file stands for it: its cells list who stands."""
    candidates_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Vote → who stands in it, where that differs from vote to vote."""
    own: str | None = None
    """Column that names the own candidate of the row's voter; by default the one of its name."""
    own_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Vote, or `EVERY_VOTE` → voter → the candidate that is its own."""
    budget: int | None = None
    """Points of a cumulative ballot; by default what most ballots sum to."""
    namesakes: bool = False
    """Whether several ballots under one name in one vote come from several voters."""
    scale: tuple[float, float] | None = None
    """The least and the largest score; by default the smallest and the largest seen."""
    spelling: str | None = None
    """Whether names that differ in case, blanks or coding alone are `one`, or stand `apart`."""
    separator: str | None = None
    """What parts the names in a cell."""
    fallback_order: tuple[str, ...] | None = None
    """The order that decides ties; `None`: no order does, and a tie stays a set."""


NO_HINTS = Hints()
"""The file says everything itself."""
