"""Plain oracle, by turns, of `ballots` and of `turns_winner_step_and_first_to_final_shift`.

Rows become the ballots of each turn as plain objects; `decide` decides it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import polars as pl

from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    RICH,
    STAGES,
    TURN,
    Masses,
    Place,
    Profile,
    TurnKey,
    held_by_rich,
    rich_rules,
    standing_order,
)
from tutorsim.ballot_reading_and_decisions import Decision, decide, first_in_order, leaders, tally

__all__ = [
    "DecidedTurn", "RichProfile", "TurnBallots", "Turns", "decided_turns", "read_turns", "under",
    "vote_shift",
]  # fmt: skip

Order = tuple[str, ...]


class Rich(NamedTuple):
    """What a rich ballot holds, each in the profile's order of candidates."""

    points: Masses
    rank: Masses
    """From 1, the best."""
    approved: Masses

    def under(self, protocol):
        """The masses of its ballot under a protocol; its order where it holds none for that."""
        return {
            "simple": tuple(int(place == 1) for place in self.rank),
            "ranked": tuple(len(self.rank) - place for place in self.rank),
            "cumulative": self.points,
            "approval": self.approved,
        }[held_by_rich(protocol)]


@dataclass(frozen=True)
class RichProfile(Profile):
    """Rich ballots: their masses, of the protocol that counts, and what they hold besides."""

    rich: tuple[Rich | None, ...]


def under(profile, protocol):
    """The ballots that rich ones hold for a protocol; those of any other format as cast."""
    if not isinstance(profile, RichProfile):
        return profile
    form = held_by_rich(protocol)
    held = tuple(None if rich is None else rich.under(form) for rich in profile.rich)
    return Profile(form, profile.size, held)


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
    """Turns without a first vote are not in it, nor those whose rich ballots a branch counts
    under another protocol in the final vote."""
    tie: Mapping[TurnKey, TurnBallots] = field(repr=False)
    """Only turns that held a tie round."""


def read_turns(ballots, *, fallback_order=None):
    """Find the distinct profiles of a ballots table and map each turn to its own.

    Args:
        ballots: The long ballots table; `initial`, `final` and `tie` also name the stages.
        fallback_order: The fallback order; candidates outside it stand behind it
            by name.
    """
    order = standing_order(ballots, fallback_order)
    rows = _stage_rows(ballots, order)
    rules = rich_rules(ballots)
    shared: dict[Profile, Profile] = {}
    found: dict[str, dict[TurnKey, TurnBallots]] = {stage: {} for stage in STAGES.values()}
    for episode_id, turn, protocol, stage, voters, candidates, masses, *held in rows.iter_rows():
        m = len(candidates)
        cast = _ballots(masses, m)
        if protocol == "rich":
            parts = zip(*(_ballots(cells, m) for cells in held), strict=True)
            rich = tuple(None if None in part else Rich(*part) for part in parts)
            rule = rules[episode_id, turn, stage] or "cumulative"
            profile = RichProfile(rule, m, cast, rich)
        else:
            profile = Profile(protocol, m, cast)
        profile = shared.setdefault(profile, profile)
        key = TurnKey(episode_id, turn, protocol)
        found[stage][key] = TurnBallots(profile, tuple(candidates), tuple(voters))
    final = found["vote_final"]
    initial = {k: b for k, b in found["vote_initial"].items() if _alike(b, final.get(k))}
    return Turns(order, final, initial, found["tie_vote"])


def _alike(first, last):
    """Whether two votes of a turn count under one protocol."""
    return last is None or first.profile.protocol == last.profile.protocol


def _ballots(cells, m):
    """Cells voter by voter as ballots; one with a missing cell is an abstention."""
    found = [tuple(cells[i : i + m]) for i in range(0, len(cells), m)]
    return tuple(None if None in ballot else ballot for ballot in found)  # type: ignore[misc]


def _stage_rows(ballots, order):
    """One row per turn and stage: voters by name, candidates in order, masses voter by voter."""
    place = pl.col("candidate").replace_strict(
        {c: i for i, c in enumerate(order)}, return_dtype=pl.Int64
    )
    stage = pl.col("stage").replace(STAGES)
    by = [*TURN, "stage"]
    held = [name for name in RICH if name in ballots.columns]
    return (
        ballots.lazy()
        .select(
            *(*TURN, stage, "voter", "candidate"),
            *(pl.col(name).cast(pl.Int64) for name in ("mass", *held)),
            place=place,
        )
        .with_row_index("row")
        .sort("voter", "place")
        .group_by(by)
        .agg(
            pl.col("row").min(),
            voters=pl.col("voter").unique(maintain_order=True),
            candidates=pl.col("candidate").sort_by("place").unique(maintain_order=True),
            masses=pl.col("mass"),
            **{name: pl.col(name) for name in held},
        )
        .sort("row")
        .drop("row")
        .collect()
    )


@dataclass(frozen=True)
class DecidedTurn:
    """One turn: who won, by which step, and the ballots behind it."""

    key: TurnKey
    place: Place
    initial: TurnBallots | None
    """`None` where no first vote was held."""
    final: TurnBallots
    tie: TurnBallots | None
    decision: Decision
    order: tuple[str, ...]
    """The fallback order; for ballots from elsewhere the order of first appearance."""

    @property
    def cluster(self):
        """The turn's task; its episode where ballots from elsewhere do not name tasks."""
        return self.place.benchmark, self.place.task or self.key.episode_id

    @property
    def initial_leaders(self):
        """Who led after the first vote; all candidates where nobody voted."""
        if self.initial is None:
            return None
        return leaders(tally(self.initial.cast(), self.initial.candidates))

    @property
    def initial_leader(self):
        """The leader after the first vote, a tie going to the fallback order."""
        led = self.initial_leaders
        return None if led is None else first_in_order(led, self.order)


def decided_turns(source):
    """All voting turns of complete episodes, decided under their own rule and order.

    The tie round counts where one was held. Turns with equal ballots are decided once. A vote
    that continuations of one episode share is one turn, under the first of them. Where a branch
    decided by another rule than the first vote was held under, that vote says nothing of it and
    is left out.
    """
    turns = read_turns(source.ballots, fallback_order=source.fallback_order)
    places = place_of_episodes(source.ballots)
    known: dict[tuple[TurnBallots, TurnBallots | None, Order], Decision] = {}
    found = []
    for key, final in turns.final.items():
        tie, order = turns.tie.get(key), order_of(key, source, turns.order)
        decision = known.get((final, tie, order))
        if decision is None:
            decision = known[final, tie, order] = _decide(order, final, tie)
        place = places[key.episode_id]
        initial = turns.initial.get(key)
        found.append(DecidedTurn(key, place, initial, final, tie, decision, order))
    return tuple(found)


def order_of(key, source, order):
    """The order of a turn: in a branch that changes it, the logged one before the change."""
    branch = source.run.branch if source.run else None
    if branch is None or branch.fallback_order is None:
        return order
    [episode] = [e for e in source.episodes if e.episode_id == key.episode_id]
    if episode.branch is not None and key.turn >= episode.branch.turn:
        return order
    return standing_order(source.ballots, source.run.panel.fallback_order)


def place_of_episodes(ballots):
    """Episode → its place in the grid, as its first ballot states it."""
    columns = ["episode_id", *Place._fields]
    rows = ballots.select(columns).unique("episode_id", keep="first", maintain_order=True)
    return {row[0]: Place(*row[1:]) for row in rows.iter_rows()}


def _decide(order, final, tie):
    return decide(
        final.cast(), final.candidates, order=order, tie_round=None if tie is None else tie.cast()
    )


def vote_shift(initial, final):
    """Half the sum of absolute differences of vote shares; `None` where a total is 0."""
    candidates = tuple(dict.fromkeys((*initial.candidates, *final.candidates)))
    before = tally(initial.cast(), candidates)
    after = tally(final.cast(), candidates)
    a, b = sum(before.values()), sum(after.values())
    if a == 0 or b == 0:
        return None
    return Fraction(sum(abs(before[c] * b - after[c] * a) for c in candidates), 2 * a * b)
