"""From the long ballots table to profiles: one turn's ballots in one stage, as integers.

A *profile* forgets names: it keeps the protocol, and for each voter the masses of the candidates
in the role-priority order, or `None` for an abstention. Many turns share one profile, so each
is found once and counted once, and turns point at it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import polars as pl

from tutorsim.types import Protocol

__all__ = [
    "STAGES",
    "TURN",
    "Masses",
    "Profile",
    "TurnBallots",
    "TurnKey",
    "Turns",
    "read_turns",
    "standing_order",
]

Masses = tuple[int, ...]
"""Mass of each candidate, in the profile's order of candidates."""

TURN: Final = ("episode_id", "turn", "protocol")
STAGES: Final[Mapping[str, str]] = {
    "initial": "vote_initial",
    "final": "vote_final",
    "tie": "tie_vote",
}
"""Short stage names of ballots from elsewhere → the study's names."""


class TurnKey(NamedTuple):
    """What names a turn: an episode votes under one protocol, but other data need not."""

    episode_id: str
    turn: int
    protocol: Protocol


@dataclass(frozen=True)
class Profile:
    """The ballots of one stage, candidates by place in the order instead of by name."""

    protocol: Protocol
    size: int
    """Number of candidates."""
    ballots: tuple[Masses | None, ...]
    """One per voter, in the order of the voters' names; `None` for an abstention."""

    @property
    def cast(self) -> tuple[Masses, ...]:
        """The ballots without the abstentions."""
        return tuple(ballot for ballot in self.ballots if ballot is not None)


class TurnBallots(NamedTuple):
    """One stage of one turn."""

    profile: Profile
    """Shared between turns that voted alike."""
    candidates: tuple[str, ...]
    """In the order that the profile's masses have."""
    voters: tuple[str, ...]

    def named(self, ballot: Masses) -> dict[str, int]:
        """One ballot's masses by candidate."""
        return dict(zip(self.candidates, ballot, strict=True))

    def cast(self) -> list[dict[str, int]]:
        """The masses of all ballots cast, by candidate."""
        return [self.named(ballot) for ballot in self.profile.cast]


@dataclass(frozen=True)
class Turns:
    """All turns that have final ballots, in the order of the ballots table."""

    order: tuple[str, ...]
    """The order that candidates stand in, over all candidates of the source."""
    final: Mapping[TurnKey, TurnBallots] = field(repr=False)
    initial: Mapping[TurnKey, TurnBallots] = field(repr=False)
    """Turns without a first vote are not in it."""
    tie: Mapping[TurnKey, TurnBallots] = field(repr=False)
    """Only turns that held a tie round."""


def standing_order(
    ballots: pl.DataFrame, fallback_order: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Every candidate of the ballots once: those of the order first, then as they first appear."""
    seen = ballots.get_column("candidate").unique(maintain_order=True).to_list()
    named = tuple(fallback_order or ())
    return (*named, *(c for c in seen if c not in named))


def read_turns(ballots: pl.DataFrame, *, fallback_order: Sequence[str] | None = None) -> Turns:
    """Find the distinct profiles of a ballots table and map each turn to its own.

    Args:
        ballots: The long ballots table; `initial`, `final` and `tie` also name the stages.
        fallback_order: The role-priority order; candidates outside it stand behind it in the
            order of first appearance.
    """
    order = standing_order(ballots, fallback_order)
    rows = _stage_rows(ballots, order)
    shared: dict[Profile, Profile] = {}
    found: dict[str, dict[TurnKey, TurnBallots]] = {stage: {} for stage in STAGES.values()}
    for episode_id, turn, protocol, stage, voters, candidates, masses in rows.iter_rows():
        m = len(candidates)
        cells = [tuple(masses[i : i + m]) for i in range(0, len(masses), m)]
        cast = tuple(None if None in cell else cell for cell in cells)
        profile = Profile(protocol, m, cast)
        profile = shared.setdefault(profile, profile)
        key = TurnKey(episode_id, turn, protocol)
        found[stage][key] = TurnBallots(profile, tuple(candidates), tuple(voters))
    final = found["vote_final"]
    return Turns(order, final, found["vote_initial"], found["tie_vote"])


def _stage_rows(ballots: pl.DataFrame, order: Sequence[str]) -> pl.DataFrame:
    """One row per turn and stage: voters by name, candidates in order, masses voter by voter."""
    place = pl.col("candidate").replace_strict(
        {c: i for i, c in enumerate(order)}, return_dtype=pl.Int64
    )
    stage = pl.col("stage").replace(STAGES)
    by = [*TURN, "stage"]
    return (
        ballots.lazy()
        .select(*TURN, stage, "voter", "candidate", pl.col("mass").cast(pl.Int64), place=place)
        .with_row_index("row")
        .sort("voter", "place")
        .group_by(by)
        .agg(
            pl.col("row").min(),
            voters=pl.col("voter").unique(maintain_order=True),
            candidates=pl.col("candidate").sort_by("place").unique(maintain_order=True),
            masses=pl.col("mass"),
        )
        .sort("row")
        .drop("row")
        .collect()
    )
