"""Every voting turn with its ballots, its place in the study, and how it was decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from analysis.profiles import Place, TurnBallots, TurnKey, read_turns, standing_order
from analysis.sources import Source
from tutorsim.types import BALLOT_FORMATS, BallotFormat
from tutorsim.voting import Decision, decide, first_in_order, leaders, tally

__all__ = [
    "Cluster",
    "DecidedTurn",
    "by_protocol",
    "decided_turns",
    "place_of_episodes",
    "turn_orders",
]


Cluster = tuple[str | None, str]
"""What intervals resample: benchmark and task, or the episode where no task is named."""

Order = tuple[str, ...]


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

    The tie round counts where one was held. Turns with equal ballots are decided once. A vote
    that continuations of one episode share is one turn, under the first of them. Where a branch
    decided by another rule than the first vote was held under, that vote says nothing of it and
    is left out.
    """
    turns = read_turns(source.ballots, fallback_order=source.fallback_order)
    places = place_of_episodes(source.ballots)
    order_of = turn_orders(source, turns.order)
    known: dict[tuple[TurnBallots, TurnBallots | None, Order], Decision] = {}
    found = []
    for key, final in turns.final.items():
        tie, order = turns.tie.get(key), order_of(key)
        decision = known.get((final, tie, order))
        if decision is None:
            decision = known[final, tie, order] = _decide(order, final, tie)
        place = places[key.episode_id]
        initial = turns.initial.get(key)
        found.append(DecidedTurn(key, place, initial, final, tie, decision, order))
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


def turn_orders(source: Source, order: Order) -> Callable[[TurnKey], Order]:
    """The order of each turn: in a branch that changes it, the logged one before the change."""
    branch = source.run.study.branch if source.run else None
    if source.run is None or branch is None or branch.fallback_order is None:
        return lambda _: order
    logged = standing_order(source.ballots, source.run.study.fallback_order)
    cursors = {e.episode_id: e.branch.turn for e in source.episodes if e.branch}

    def order_of(key: TurnKey) -> Order:
        cursor = cursors.get(key.episode_id)
        return logged if cursor is None or key.turn < cursor else order

    return order_of


def _decide(order: Order, final: TurnBallots, tie: TurnBallots | None) -> Decision:
    return decide(
        final.cast(),
        final.candidates,
        order=order,
        tie_round=None if tie is None else tie.cast(),
    )
