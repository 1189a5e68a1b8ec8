"""How many votes a panel is worth, who decides it, and by how much.

* *effective number of votes*: n / (1 + (n − 1) ρ), with ρ the mean correlation of two voters'
  final ballots. A ballot counts by its deviations from its own mean, since only differences
  between candidates decide; two voters are compared over all candidates of all turns in which
  both voted.
* *pivotality* of a voter: share of turns whose winner changes when its ballot is dropped, from
  the tie round too. Where the other ballots leave a tied set that no tie round was held on,
  `pivotal` takes the role-priority order's pick; `pivotal_set` counts only turns whose winner
  is not among the tied.
* *margin*: the fewest final ballots that must change, each to any other ballot of its protocol,
  so that the winner changes, ties going to the role-priority order; `margin_clear` asks that
  another candidate is clearly ahead. Where the final vote was tied, changing one ballot in
  favour of another tied candidate is enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import polars as pl

from analysis.metrics.turns import DecidedTurn, by_protocol, decided_turns
from analysis.sources import Source
from analysis.statistics import NotEstimable, to_json
from tutorsim.types import BallotFormat, Protocol

__all__ = [
    "MARGINS_SCHEMA",
    "PIVOTALITY_SCHEMA",
    "EffectiveVotes",
    "effective_votes",
    "margin",
    "margins",
    "pivotality",
]

PIVOTALITY_SCHEMA: Final = pl.Schema(
    {
        "protocol": pl.String(),
        "voter": pl.String(),
        "turns": pl.Int64(),  # with a ballot of this voter that has mass
        "pivotal": pl.Int64(),
        "pivotal_set": pl.Int64(),
    }
)
"""One row per protocol and voter."""

MARGINS_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "protocol": pl.String(),
        "winner": pl.String(),
        "margin": pl.Int64(),  # null where no ballot can change it
        "margin_clear": pl.Int64(),
        "ballots": pl.Int64(),  # cast in the final vote
    }
)
"""One row per voting turn."""


@dataclass(frozen=True)
class EffectiveVotes:
    """One protocol's panel."""

    protocol: BallotFormat
    voters: float
    """Mean number of voters of a turn."""
    correlation: float | NotEstimable
    """Mean over pairs of voters."""
    votes: float | NotEstimable

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def effective_votes(source: Source) -> list[EffectiveVotes]:
    """The effective number of votes of each protocol that has voting turns."""
    found = []
    for protocol, turns in by_protocol(decided_turns(source)).items():
        n = sum(len(turn.final.voters) for turn in turns) / len(turns)
        correlation = _mean_correlation(turns)
        votes: float | NotEstimable
        if isinstance(correlation, NotEstimable):
            votes = correlation
        elif 1 + (n - 1) * correlation <= 1e-12:
            votes = NotEstimable("the voters oppose each other more than any number of votes could")
        else:
            votes = n / (1 + (n - 1) * correlation)
        found.append(EffectiveVotes(protocol, n, correlation, votes))
    return found


def pivotality(source: Source) -> pl.DataFrame:
    """Turns that each voter decides: see `PIVOTALITY_SCHEMA`."""
    rows = []
    for protocol, turns in by_protocol(decided_turns(source)).items():
        counts: dict[str, list[int]] = {}
        for turn in turns:
            for i, voter in enumerate(turn.final.voters):
                if turn.final.profile.ballots[i] is not None:
                    count = counts.setdefault(voter, [0, 0, 0])
                    pivotal = _pivotal(turn, voter)
                    for place, hit in enumerate((True, *pivotal)):
                        count[place] += hit
        rows += [(protocol, voter, *counts[voter]) for voter in sorted(counts)]
    return pl.DataFrame(rows, schema=PIVOTALITY_SCHEMA, orient="row")


def margins(source: Source) -> pl.DataFrame:
    """How many ballots each turn hangs on: see `MARGINS_SCHEMA`."""
    rows = [
        (
            *turn.key,
            turn.decision.winner,
            margin(turn, budget=source.budget),
            margin(turn, budget=source.budget, clear=True),
            len(turn.final.profile.cast),
        )
        for turn in decided_turns(source)
    ]
    return pl.DataFrame(rows, schema=MARGINS_SCHEMA, orient="row")


def margin(turn: DecidedTurn, *, budget: int, clear: bool = False) -> int | None:
    """The fewest final ballots to change so that the winner changes.

    Exact: a changed ballot can put a rival as far before the winner as the protocol allows,
    each ballot on its own, so the ballots that gain most are changed first.

    Args:
        turn: A decided turn.
        budget: Points of a cumulative ballot.
        clear: The rival must be ahead; a tie that the order would give it is not enough.

    Returns:
        `None` where nobody else stands or no ballot was cast.
    """
    ballots, winner = turn.final.cast(), turn.decision.winner
    most = _widest(turn.final.profile.rule, len(turn.final.candidates), budget)
    first = turn.order.index(winner)
    needs = []
    for rival in turn.final.candidates:
        if rival == winner:
            continue
        leads = [ballot[winner] - ballot[rival] for ballot in ballots]
        ahead = int(clear or turn.order.index(rival) > first)
        needs.append(
            _fewest(
                sorted((most + lead for lead in leads), reverse=True), max(1, sum(leads) + ahead)
            )
        )
    return min((need for need in needs if need is not None), default=None)


def _fewest(gains: Sequence[int], needed: int) -> int | None:
    """How many of the largest gains reach what is needed."""
    reached = 0
    for count, gain in enumerate(gains, start=1):
        reached += gain
        if reached >= needed:
            return count
    return None


def _widest(protocol: Protocol, m: int, budget: int) -> int:
    """By how much one ballot can put a candidate before another."""
    widest: Mapping[Protocol, int] = {
        "simple": 1,
        "ranked": m - 1,
        "cumulative": budget,
        "approval": 1,
    }
    return widest[protocol]


def _pivotal(turn: DecidedTurn, voter: str) -> tuple[bool, bool]:
    """Whether the winner changes without one voter: by the order's pick, and for certain."""
    from analysis.recount.cases import Case, decided  # here: it brings every recount along

    outcome = decided(
        Case(turn.final, turn.initial, turn.tie),
        order=turn.order,
        change=lambda ballots: [(who, mass) for who, mass in ballots if who != voter],
    )
    winner = turn.decision.winner
    return outcome.winner != winner, winner not in outcome.standing


def _mean_correlation(turns: Sequence[DecidedTurn]) -> float | NotEstimable:
    cells: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for turn in turns:
        centred = {
            voter: np.array(ballot) - np.mean(ballot)
            for voter, ballot in zip(turn.final.voters, turn.final.profile.ballots, strict=True)
            if ballot is not None
        }
        for a, b in combinations(sorted(centred), 2):
            pairs = zip(centred[a].tolist(), centred[b].tolist(), strict=True)
            cells.setdefault((a, b), []).extend(pairs)
    found = [r for pairs in cells.values() if (r := _correlation(pairs)) is not None]
    if not found:
        return NotEstimable("no two voters whose ballots tell candidates apart voted together")
    return sum(found) / len(found)


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's correlation; ballots are centred already, each on its own mean."""
    x, y = np.array(pairs).T
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else None
