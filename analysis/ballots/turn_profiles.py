"""Profiles: one turn's ballots in one stage, as integers; and what names turns in a table.

A *profile* forgets names: it keeps the protocol, and for each voter the masses of the candidates
in the fallback order, or `None` for an abstention. A *rich* ballot holds one ballot of each
protocol; its masses are those under the protocol that its study counts, and `Profile.under`
gives the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import polars as pl

from tutorsim.vocabularies import PROTOCOLS, BallotFormat, Protocol

__all__ = [
    "LEFT_OUT",
    "RICH",
    "STAGES",
    "TURN",
    "Masses",
    "Place",
    "Profile",
    "Rich",
    "TurnKey",
    "rich_mass",
    "rich_rule",
    "rich_rules",
    "standing_order",
]

Masses = tuple[int, ...]
"""Mass of each candidate, in the profile's order of candidates; `LEFT_OUT` for one of whom the
ballot says nothing."""

LEFT_OUT: Final = -1
"""Stands for the mass of a candidate that an incomplete ballot leaves out."""

TURN: Final = ("episode_id", "turn", "protocol")
STAGES: Final[Mapping[str, str]] = {
    "initial": "vote_initial",
    "final": "vote_final",
    "tie": "tie_vote",
}
"""Short stage names of ballots from elsewhere → the study's names."""
RICH: Final = ("points", "rank", "approved")
"""Columns that only rich ballots fill."""


class Rich(NamedTuple):
    """What a rich ballot holds, each in the profile's order of candidates."""

    points: Masses
    rank: Masses
    """From 1, the best."""
    approved: Masses

    def under(self, protocol: Protocol) -> Masses:
        """The masses of its ballot under a protocol."""
        match protocol:
            case "simple":
                return tuple(int(place == 1) for place in self.rank)
            case "ranked":
                return tuple(len(self.rank) - place for place in self.rank)
            case "cumulative" | "score":
                return self.points
            case "approval":
                return self.approved


class Place(NamedTuple):
    """Where an episode stands in the grid; `None` where ballots from elsewhere do not say."""

    benchmark: str | None
    task: str | None
    persona: str | None
    condition: str | None


class TurnKey(NamedTuple):
    """What names a turn: an episode votes under one protocol, but other data need not."""

    episode_id: str
    turn: int
    protocol: BallotFormat


@dataclass(frozen=True)
class Profile:
    """The ballots of one stage, candidates by place in the order instead of by name."""

    protocol: BallotFormat
    size: int
    """Number of candidates."""
    ballots: tuple[Masses | None, ...]
    """One per voter, in the order of the voters' names; `None` for an abstention."""
    rich: tuple[Rich | None, ...] = ()
    """What the same voters' rich ballots hold; empty for every other format."""
    counted_as: Protocol | None = None
    """The protocol of the masses of rich ballots; `None` for every other format."""

    @property
    def rule(self) -> Protocol:
        """The protocol that the masses count under."""
        if self.protocol != "rich":
            return self.protocol
        return self.counted_as or "cumulative"

    def under(self, protocol: Protocol) -> "Profile":
        """The ballots that rich ones hold for a protocol; those of any other format as cast."""
        if self.protocol != "rich":
            return self
        form: Protocol = "ranked" if protocol == "score" else protocol
        held = tuple(None if rich is None else rich.under(form) for rich in self.rich)
        return Profile(form, self.size, held)

    @property
    def cast(self) -> tuple[Masses, ...]:
        """The ballots without the abstentions."""
        return tuple(ballot for ballot in self.ballots if ballot is not None)


def standing_order(
    ballots: pl.DataFrame, fallback_order: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Every candidate of the ballots once: those of the order first, then by name."""
    seen = ballots.get_column("candidate").unique().sort().to_list()
    named = tuple(fallback_order or ())
    return (*named, *(c for c in seen if c not in named))


def rich_rules(
    ballots: pl.DataFrame, rows: pl.DataFrame
) -> Mapping[tuple[str, int, str], Protocol | None]:
    """The protocol under which each vote in rich ballots counts.

    One for all, except in a branch under another rule. Then it is what the masses of the vote
    say; where several fit, one that fits some other vote alone.
    """
    vote = ["episode_id", "turn", "stage"]
    votes = rows.filter(pl.col("protocol") == "rich").select(vote)
    single = rich_rule(ballots)
    if single is not None or not votes.height:
        return dict.fromkeys(votes.iter_rows(), single)
    cast = ballots.with_columns(pl.col("stage").replace(STAGES)).filter(
        (pl.col("protocol") == "rich") & pl.col("mass").is_not_null()
    )
    fits = {key: _fitting(same) for key, same in cast.group_by(vote, maintain_order=True)}
    certain = {fit[0] for fit in fits.values() if len(fit) == 1}
    return {
        key: min(fits.get(key, []), key=lambda p: p not in certain, default=None)
        for key in votes.iter_rows()
    }


def rich_rule(ballots: pl.DataFrame) -> Protocol | None:
    """The protocol under which the masses of rich ballots are theirs; `None` without any.

    The first, where several give the same masses everywhere.
    """
    if not set(RICH) <= set(ballots.columns):
        return None
    cast = ballots.filter((pl.col("protocol") == "rich") & pl.col("mass").is_not_null())
    if not cast.height:
        return None
    return next(iter(_fitting(cast)), None)


def _fitting(cast: pl.DataFrame) -> list[Protocol]:
    """Protocols under which rich ballots have the masses that they count with."""
    fits = cast.select(rich_mass(p).eq(pl.col("mass")).all().alias(p) for p in PROTOCOLS).row(0)
    return [p for p, fit in zip(PROTOCOLS, fits, strict=True) if fit]


def rich_mass(protocol: Protocol) -> pl.Expr:
    """The mass that the columns of a rich ballot give its candidate under a protocol."""
    match protocol:
        case "simple":
            return (pl.col("rank") == 1).cast(pl.Int64)
        case "ranked":
            m = pl.len().over(*TURN, "stage", "voter").cast(pl.Int64)
            return m - pl.col("rank")
        case "cumulative" | "score":
            return pl.col("points")
        case "approval":
            return pl.col("approved").cast(pl.Int64)
