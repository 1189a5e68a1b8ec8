"""Possible winners of many panels: by table if they are small, by search if not, in one shape.

Each of the different panels is asked about once; turns then look their answers up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.distinct_panels import DistinctPanels
from tutorsim.analysis.ballots.turn_profiles import LEFT_OUT
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints
from tutorsim.analysis.counting.rule_definitions import Rule
from tutorsim.analysis.identify.consistent_ballots import domain_of
from tutorsim.analysis.identify.panel_search import (
    NEVER,
    NOT_SETTLED,
    READINGS_OF_TIES,
    PanelSearch,
    TieReading,
)
from tutorsim.analysis.identify.possible_point_winners import point_ends, points_tabled
from tutorsim.analysis.identify.reachable_vote_sums import WORK_LIMIT
from tutorsim.analysis.identify.small_panel_winners import Ends, labels_of, panel_ends, tabled
from tutorsim.analysis.identify.win_conditions import Query

__all__ = ["PanelAnswers", "PanelWinners", "answer_panels", "table_ends"]

_SET: Final = READINGS_OF_TIES.index("set")


class PanelWinners(NamedTuple):
    """A winner of some panels whose breakdown point is asked for."""

    panel: Ints
    winner: Ints
    """The candidate's position."""


@dataclass(frozen=True, eq=False)
class PanelAnswers:
    """What panels may end in under one target; the first axis is that of `READINGS_OF_TIES`."""

    possible: Bools = field(repr=False)
    """Shape (2, numbers of exempt voters, panels, m + 1): certainly possible outcomes; the first
    of the last axis is nobody."""
    settled: Bools = field(repr=False)
    """Shape (2, numbers of exempt voters, panels): whether these are all."""
    breakdown: Ints = field(repr=False)
    """Shape (2, winners asked for): the breakdown point of each winner."""


def answer_panels(
    panels: DistinctPanels,
    target: Rule,
    *,
    exempt: Sequence[int],
    budget: int,
    limit: int = WORK_LIMIT,
    ends: Ends | None = None,
    winners: PanelWinners | None = None,
    breakdown: bool = True,
) -> PanelAnswers:
    """Possible winners of panels, and the breakdown points of winners.

    Args:
        panels: With ballots of one format.
        target: The rule.
        exempt: Numbers of exempt voters.
        budget: Points of a cumulative ballot; under any other target the end of the scale of
            scores.
        limit: Units of work that a search may take for each panel.
        ends: From `table_ends`; `None` if the panels have no table.
        winners: Whose breakdown points are asked for; by default the necessary winner of each
            panel without exempt voters, and 0 for a panel without one.
        breakdown: Whether breakdown points are asked for.
    """
    n = panels.panels.shape[1]
    at = [min(k, n) for k in exempt]
    if ends is not None:
        possible = _outcomes(ends[at], panels.m)
        points = _first_loss(ends, winners) if breakdown else _nothing()
        return PanelAnswers(possible, np.ones(possible.shape[:3], dtype=np.bool_), points)
    return _searched(panels, target, at, budget, limit, winners if breakdown else _no_winners())


def table_ends(panels: DistinctPanels, targets: Sequence[Rule], *, budget: int) -> dict[Rule, Ends]:
    """Target → what panels may end in, shape (voters + 1, panels), where they have a table.

    Args:
        panels: With ballots of one format.
        targets: Rules over ballots of one format.
        budget: Points of a cumulative ballot.
    """
    rows, ballots, protocol, m, _ = panels
    if protocol == "score" and any(LEFT_OUT in ballot for ballot in ballots):
        return {}
    n = rows.shape[1]
    if "cumulative" in targets:
        fits = points_tabled(ballots, protocol, m, n, budget=budget)
        return (
            {"cumulative": point_ends(rows, ballots, protocol, m=m, budget=budget)} if fits else {}
        )
    fit = [target for target in targets if n and tabled(target, m, n)]
    if not fit:
        return {}
    labels = labels_of(ballots, protocol, fit[0], m)
    ends = panel_ends(np.append(labels.of, -1)[rows], labels, fit, m)
    return {target: np.ascontiguousarray(ends[:, :, i]) for i, target in enumerate(fit)}


def _halves(ends: Ends) -> Ends:
    """Shape (2, …): what panels may end in under each reading of ties, as bits."""
    return np.stack([ends >> 8 if i == _SET else ends & 255 for i in range(2)])


def _outcomes(ends: Ends, m: int) -> Bools:
    """Shape (2, voters, panels, m + 1): both bytes of ends, bit by bit."""
    return np.asarray((_halves(ends)[..., None] >> np.arange(m + 1, dtype=np.uint16)) & 1 > 0)


def _first_loss(ends: Ends, winners: PanelWinners | None) -> Ints:
    """Shape (2, winners): the first number of exempt voters with which somebody else may win."""
    every = _halves(ends)
    if winners is None:
        start = every[:, :1]
        lost: Bools = (every & ~start) > 0
        several = np.bitwise_count(start[:, 0]) > 1
        return np.where(several, 0, np.where(lost.any(axis=1), lost.argmax(axis=1), NEVER))
    others = every[:, :, winners.panel] & ~(1 << (winners.winner + 1)).astype(np.uint16)
    lost = others > 0
    lost[:, 0] = False
    return np.where(lost.any(axis=1), lost.argmax(axis=1), NEVER)


def _searched(
    panels: DistinctPanels,
    target: Rule,
    exempt: Sequence[int],
    budget: int,
    limit: int,
    winners: PanelWinners | None,
) -> PanelAnswers:
    """The same by search, panel by panel; panels that leave the same possible are one."""
    found = _Searched(target, panels.m, exempt, limit)
    queries = list(_queries(panels, target, budget))
    wanted: list[tuple[Query, int | None]] = [(query, None) for query in queries]
    if winners is not None:
        rows = zip(winners.panel.tolist(), winners.winner.tolist(), strict=True)
        wanted = [(queries[panel], winner) for panel, winner in rows]
    asked: dict[Query, list[int | None]] = {query: [] for query in queries}
    for query, who in dict.fromkeys(wanted):
        asked[query].append(who)
    for query, several in asked.items():
        found.ask(query, several)
    shape = (2, len(exempt), len(queries))
    possible = np.zeros((*shape, panels.m + 1), dtype=np.bool_)
    settled = np.zeros(shape, dtype=np.bool_)
    for i, query in enumerate(queries):
        possible[:, :, i], settled[:, :, i] = found.possible[query], found.settled[query]
    points = np.array([found.points[one] for one in wanted], dtype=np.int64).reshape(-1, 2).T
    return PanelAnswers(possible, settled, points)


def _queries(panels: DistinctPanels, target: Rule, budget: int) -> Iterable[Query]:
    domains = [domain_of(b, protocol=panels.protocol, target=target) for b in panels.ballots]
    for row in panels.panels.tolist():
        cast = sorted(domains[i] for i in row if i >= 0)
        yield Query(target, panels.m, budget, (*[None] * (len(row) - len(cast)), *cast))


class _Searched:
    """Answers of single panels."""

    def __init__(self, target: Rule, m: int, exempt: Sequence[int], limit: int) -> None:
        self.possible: dict[Query, Bools] = {}
        self.settled: dict[Query, Bools] = {}
        self.points: dict[tuple[Query, int | None], tuple[int, int]] = {}
        self._m, self._exempt, self._limit = m, exempt, limit

    def ask(self, query: Query, winners: Iterable[int | None]) -> None:
        """Ask everything about one panel, and forget the search.

        Args:
            query: The target and the panel.
            winners: Whose breakdown points are asked for; `None` for that of the necessary winner.
        """
        search = PanelSearch(query, limit=self._limit)
        shape = (2, len(self._exempt))
        possible = np.zeros((*shape, self._m + 1), dtype=np.bool_)
        settled = np.zeros(shape, dtype=np.bool_)
        for r, reading in enumerate(READINGS_OF_TIES):
            for j, k in enumerate(self._exempt):
                answer = search.possible(exempt=k, reading=reading)
                possible[r, j, [c + 1 for c in answer.winners]] = True
                settled[r, j] = answer.settled
        self.possible[query], self.settled[query] = possible, settled
        for winner in winners:
            one, other = (_breakdown(search, winner, reading) for reading in READINGS_OF_TIES)
            self.points[query, winner] = one, other


def _breakdown(search: PanelSearch, winner: int | None, reading: TieReading) -> int:
    """The breakdown point of a winner, or of the necessary one; 0 if there is none."""
    if winner is None:
        start = search.possible(exempt=0, reading=reading)
        if start.necessary is None:
            return 0 if len(start.winners) > 1 else NOT_SETTLED
        winner = start.necessary
    return search.breakdown(winner=winner, reading=reading)


def _no_winners() -> PanelWinners:
    none = np.zeros(0, dtype=np.int64)
    return PanelWinners(none, none)


def _nothing() -> Ints:
    return np.zeros((2, 0), dtype=np.int64)
