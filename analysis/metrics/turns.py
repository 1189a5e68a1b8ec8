"""Every voting turn with its ballots, its place in the study, and how it was decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from analysis.profiles import TurnBallots, TurnKey, Turns, read_turns
from analysis.sources import Source
from tutorsim.types import BALLOT_FORMATS, BallotFormat
from tutorsim.voting import Decision, decide, first_in_order, leaders, tally

__all__ = ["Cluster", "DecidedTurn", "Place", "by_protocol", "decided_turns", "place_of_episodes"]


class Place(NamedTuple):
    """Where an episode stands in the grid; `None` where ballots from elsewhere do not say."""

    benchmark: str | None
    task: str | None
    persona: str | None
    condition: str | None


Cluster = tuple[str | None, str]
"""What intervals resample: benchmark and task, or the episode where no task is named."""


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
    """The role-priority order; for ballots from elsewhere the order of first appearance."""

    @property
    def cluster(self) -> Cluster:
        """The turn's task; its episode where ballots from elsewhere do not name tasks."""
        return self.place.benchmark, self.place.task or self.key.episode_id

    @property
    def initial_leaders(self) -> tuple[str, ...] | None:
        """Who led after the first vote; all candidates where nobody voted."""
        if self.initial is None:
            return None
        return leaders(tally(self.initial.cast(), self.initial.candidates))

    @property
    def initial_leader(self) -> str | None:
        """The leader after the first vote, a tie going to the role-priority order."""
        led = self.initial_leaders
        return None if led is None else first_in_order(led, self.order)


@lru_cache(maxsize=2)  # one run, or two side by side: every metric starts here
def decided_turns(source: Source) -> tuple[DecidedTurn, ...]:
    """All voting turns of complete episodes, decided under their own rule and order.

    The tie round counts where one was held. Turns with equal ballots are decided once.
    """
    turns = read_turns(source.ballots, fallback_order=source.fallback_order)
    places = place_of_episodes(source.ballots)
    known: dict[tuple[TurnBallots, TurnBallots | None], Decision] = {}
    found = []
    for key, final in turns.final.items():
        tie = turns.tie.get(key)
        decision = known.get((final, tie))
        if decision is None:
            decision = known[final, tie] = _decide(turns, final, tie)
        place = places[key.episode_id]
        initial = turns.initial.get(key)
        found.append(DecidedTurn(key, place, initial, final, tie, decision, turns.order))
    return tuple(found)


def by_protocol(turns: Sequence[DecidedTurn]) -> Mapping[BallotFormat, list[DecidedTurn]]:
    """Turns by the protocol of their ballots, formats in the order of `BALLOT_FORMATS`."""
    found: dict[BallotFormat, list[DecidedTurn]] = {form: [] for form in BALLOT_FORMATS}
    for turn in turns:
        found[turn.key.protocol].append(turn)
    return {protocol: cast for protocol, cast in found.items() if cast}


def place_of_episodes(ballots: pl.DataFrame) -> dict[str, Place]:
    """Episode → its place in the grid, as its first ballot states it."""
    columns = ["episode_id", *Place._fields]
    rows = ballots.select(columns).unique("episode_id", keep="first", maintain_order=True)
    return {row[0]: Place(*row[1:]) for row in rows.iter_rows()}


def _decide(turns: Turns, final: TurnBallots, tie: TurnBallots | None) -> Decision:
    return decide(
        final.cast(),
        final.candidates,
        order=turns.order,
        tie_round=None if tie is None else tie.cast(),
    )
