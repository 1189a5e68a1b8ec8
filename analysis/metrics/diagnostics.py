"""Coordination diagnostics per protocol; the turn is the unit.

Definitions:

* *vote shift*: ½ Σ |p_init(c) − p_final(c)| over candidates, p being mass over total mass, of the
  first final vote (not the tie round); undefined where either total is 0.
* *winner flip*: the leader after the first vote differs from the delivered winner. Where the
  first vote was tied, `flip` takes the leader that the role-priority order picks, and `flip_set`
  counts only winners outside the set of leaders.
* *tie rate*: turns whose final vote was tied. *fallback rate*: turns that the role-priority
  order decided. The published "fallback" can be read either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import polars as pl

from analysis.metrics.turns import DecidedTurn, by_protocol, decided_turns
from analysis.profiles import TurnBallots
from analysis.sources import Source
from analysis.statistics import Estimate, NotEstimable, cluster_bootstrap, to_json, wilson
from tutorsim.types import DECIDED_BY, BallotFormat
from tutorsim.voting import tally

__all__ = [
    "TURN_DIAGNOSTICS_SCHEMA",
    "WINNING_ROLES_SCHEMA",
    "Diagnostics",
    "diagnostics",
    "turn_diagnostics",
    "vote_shift",
    "winning_roles",
]

TURN_DIAGNOSTICS_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "protocol": pl.String(),
        "benchmark": pl.String(),
        "task": pl.String(),
        "persona": pl.String(),
        "condition": pl.String(),
        "initial_leaders": pl.List(pl.String()),  # null without a first vote
        "initial_leader": pl.String(),  # a tie goes to the role-priority order
        "winner": pl.String(),
        "decided_by": pl.String(),
        "tied_set": pl.List(pl.String()),  # the last tie; empty when one led alone
        "undecided": pl.List(pl.String()),
        "shift": pl.Float64(),  # null where either total mass is 0, or without a first vote
        "flip": pl.Boolean(),
        "flip_set": pl.Boolean(),
        "tied": pl.Boolean(),
        "fallback": pl.Boolean(),
        "abstained": pl.Int64(),  # ballots of the final vote
    }
)
"""One row per voting turn."""

WINNING_ROLES_SCHEMA: Final = pl.Schema(
    {
        "protocol": pl.String(),
        "role": pl.String(),
        "wins": pl.Int64(),  # sum of the next three; over roles the sum is the turns
        "by_vote": pl.Int64(),
        "by_tie_round": pl.Int64(),
        "by_fallback": pl.Int64(),
    }
)
"""One row per protocol and candidate, in the role-priority order."""


@dataclass(frozen=True)
class Diagnostics:
    """One protocol's row of the coordination table."""

    protocol: BallotFormat
    turns: int
    episodes: int
    shift: Estimate | NotEstimable
    flip: Estimate | NotEstimable
    """A tied first vote is led by the role-priority order's pick."""
    flip_set: Estimate | NotEstimable
    """A flip only when the winner is outside the set of first leaders."""
    tie_rate: Estimate | NotEstimable
    fallback_rate: Estimate | NotEstimable
    decided_by: dict[str, int]
    """`vote`, `tie_round`, `fallback` → turns."""
    abstentions: int
    """Ballots of the final votes without mass."""
    ballots: int
    """Ballots of the final votes."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def diagnostics(source: Source, *, seed: int = 0) -> list[Diagnostics]:
    """The coordination diagnostics of each protocol that has voting turns.

    Rates have Wilson intervals, the mean shift a bootstrap over tasks (over episodes where
    ballots from elsewhere do not name tasks).
    """
    return [
        _of(protocol, turns, seed) for protocol, turns in by_protocol(decided_turns(source)).items()
    ]


def turn_diagnostics(source: Source) -> pl.DataFrame:
    """What the diagnostics rest on, turn by turn: see `TURN_DIAGNOSTICS_SCHEMA`."""
    rows = [_row(turn) for turn in decided_turns(source)]
    return pl.DataFrame(rows, schema=TURN_DIAGNOSTICS_SCHEMA, orient="row")


def winning_roles(source: Source) -> pl.DataFrame:
    """Wins per protocol and role, and by the step that decided: see `WINNING_ROLES_SCHEMA`."""
    rows: list[tuple[str | int, ...]] = []
    for protocol, turns in by_protocol(decided_turns(source)).items():
        standing = {c for turn in turns for c in turn.final.candidates}
        for role in (c for c in turns[0].order if c in standing):
            won = [t.decision.decided_by for t in turns if t.decision.winner == role]
            rows.append((protocol, role, len(won), *(won.count(step) for step in DECIDED_BY)))
    return pl.DataFrame(rows, schema=WINNING_ROLES_SCHEMA, orient="row")


def vote_shift(initial: TurnBallots, final: TurnBallots) -> Fraction | None:
    """Half the sum of absolute differences of vote shares; `None` where a total is 0."""
    candidates = tuple(dict.fromkeys((*initial.candidates, *final.candidates)))
    before = tally(initial.cast(), candidates)
    after = tally(final.cast(), candidates)
    a, b = sum(before.values()), sum(after.values())
    if a == 0 or b == 0:
        return None
    return Fraction(sum(abs(before[c] * b - after[c] * a) for c in candidates), 2 * a * b)


def _row(turn: DecidedTurn) -> tuple[object, ...]:
    decision, led = turn.decision, turn.initial_leaders
    flips: tuple[bool | None, bool | None] = (None, None)
    if led is not None:
        flips = (decision.winner != turn.initial_leader, decision.winner not in led)
    return (
        *turn.key,
        *turn.place,
        led,
        turn.initial_leader,
        decision.winner,
        decision.decided_by,
        decision.tied_set,
        decision.undecided,
        _shift(turn),
        *flips,
        bool(decision.tied_set),
        decision.decided_by == "fallback",
        sum(ballot is None for ballot in turn.final.profile.ballots),
    )


def _shift(turn: DecidedTurn) -> float | None:
    exact = vote_shift(turn.initial, turn.final) if turn.initial else None
    return None if exact is None else float(exact)


def _of(protocol: BallotFormat, turns: Sequence[DecidedTurn], seed: int) -> Diagnostics:
    shifts = [(s, t) for t in turns if (s := _shift(t)) is not None]
    voted = [t for t in turns if t.initial is not None]
    by = [t.decision.decided_by for t in turns]
    ballots = [ballot for t in turns for ballot in t.final.profile.ballots]
    return Diagnostics(
        protocol=protocol,
        turns=len(turns),
        episodes=len({t.key.episode_id for t in turns}),
        shift=cluster_bootstrap([s for s, _ in shifts], [t.cluster for _, t in shifts], seed=seed),
        flip=wilson(sum(t.decision.winner != t.initial_leader for t in voted), len(voted)),
        flip_set=wilson(
            sum(t.decision.winner not in (t.initial_leaders or ()) for t in voted), len(voted)
        ),
        tie_rate=wilson(sum(bool(t.decision.tied_set) for t in turns), len(turns)),
        fallback_rate=wilson(by.count("fallback"), len(turns)),
        decided_by={step: by.count(step) for step in DECIDED_BY},
        abstentions=ballots.count(None),
        ballots=len(ballots),
    )
