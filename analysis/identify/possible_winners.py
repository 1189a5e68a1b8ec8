"""Who may win and who must: of one panel by search, of many by table if they are small.

    profile = Profile("simple", 3, ((1, 0, 0), (1, 0, 0), (0, 1, 0)))
    search = PanelSearch(query_of(profile, "ranked", 25))
    search.possible(exempt=0, reading="fallback")   # Possible(winners=(0,), settled=True)
    search.breakdown(winner=0, reading="fallback")  # 1: one exempt voter may change the winner

A search begins with elections that agree with the ballots cast: most outcomes that are possible are
shown by one, and only the others are searched.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, DistinctPanels, Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    ANY_NUMBER,
    Approvals,
    Rule,
    approvals_of,
    ballot_format,
    rank_scores,
)
from tutorsim.analysis.counting.voting_rules_in_arrays import CountedPanels, whole
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    Domain,
    domain_of,
    placements,
)
from tutorsim.analysis.identify.runoff_winners import path_sets, runoff_sets
from tutorsim.analysis.identify.search_for_votes_that_meet_a_win_condition import WorkBudget
from tutorsim.analysis.identify.small_panel_winners import (
    labels_of,
    panel_ends,
    sums_ends,
    sums_tabled,
    tabled,
)
from tutorsim.analysis.identify.win_conditions import (
    NOBODY,
    Domains,
    Feasibility,
    Query,
    Sets,
    Sums,
    feasible,
    sums_of,
    too_large,
)
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Bools, Ints, OutcomeBits

# --- Panel search --------------------------------------------------------------------------------

TieReading = Literal["fallback", "set"]
"""What a tie under a target means: the order decides, or it stays a set."""

READINGS_OF_TIES: Final[tuple[TieReading, ...]] = ("set", "fallback")

WORK_LIMIT: Final = 40_000_000
"""Units of work that all questions about one panel and target may take together, before the rest
counts as not settled. A unit is about ten nanoseconds on a machine of 2026: the work is counted,
never timed, so that answers do not depend on the machine."""

NEVER: Final = -1
"""The breakdown point of a winner that no number of exempt voters can lose."""
NOT_SETTLED: Final = -2
"""The breakdown point where finding it takes more work than is allowed."""
NO_BOUNDS: Final = -3
"""The breakdown point under a rule of which nothing is known but a point."""

_FOR_RULING_OUT: Final = 400
"""Units that bounds on one outcome take, for each voter."""
_PLACED: Final = 1_500
"""Units that one way to place candidates without a score takes."""


class Possible(NamedTuple):
    """What is known of the winner; candidates by place in the fallback order."""

    winners: tuple[int, ...]
    """Outcomes that are possible for certain, in order; `NOBODY` first."""
    settled: bool
    """Whether these are all. If not, at least one outcome was too costly to decide."""

    @property
    def necessary(self) -> int | None:
        """The only possible outcome, if there is exactly one."""
        return self.winners[0] if self.settled and len(self.winners) == 1 else None


class _Progress:
    """What is known of one outcome: from which number of exempt voters on it is possible.

    A few options of each voter are tried first: they often suffice, and bounds on all come with
    them. All are listed only where they do not.

    `ahead`: candidates that must not be tied with it. `listing`: units that listing a few took;
    all take no less.
    """

    def __init__(
        self, query: Query, outcome: int, ahead: int, sums: Sums, budget: WorkBudget
    ) -> None:
        self._asked = query, outcome, range(ahead), sums
        self._voters = len(query.domains)
        before = budget.left
        self._few = self._listed(budget, few=True)
        self.listing = before - budget.left
        self._all: list[tuple[Feasibility, int]] | None = None
        self._open: dict[tuple[bool, int, int], int] = {}
        self._refuted = min(least for _, least in self._few)
        self._reached: int | None = None

    def _listed(self, budget: WorkBudget, *, few: bool) -> list[tuple[Feasibility, int]]:
        """Searches of which one must succeed, and with how many exempt voters it can."""
        ways = feasible(*self._asked, few=few)
        budget.spend(sum(way.sums.size + _FOR_RULING_OUT * self._voters for way in ways))
        return [(way, way.sums.least_exempt(way.condition)) for way in ways]

    def open(self, exempt: int) -> bool:
        """Whether a search must tell if the outcome is possible with so many exempt voters."""
        return self._reached is None and self._refuted <= exempt

    def possible(self, exempt: int, budget: WorkBudget) -> bool | None:
        """Whether the outcome is possible with so many exempt voters."""
        while self.open(exempt):
            asked = self._refuted
            answer = self._search(asked, budget)
            if answer is None and asked < exempt:  # it stays open: ask about this very number
                asked, answer = exempt, self._search(exempt, budget)
            if answer is False:  # what so many cannot reach, fewer cannot either
                self._refuted = asked + 1
            elif answer and asked == self._refuted:
                self._reached = asked
            else:
                return answer
        return self._reached is not None and self._reached <= exempt

    def _search(self, exempt: int, budget: WorkBudget) -> bool | None:
        """Whether one of the searches succeeds; the first that does is enough."""
        answer = self._one_exists(self._few, exempt, budget, quick=True)
        if answer is not None or budget.empty:
            return answer
        if self._all is None:
            if budget.left <= self.listing:
                return None
            self._all = self._listed(budget, few=False)
        return self._one_exists(self._all, exempt, budget, quick=False)

    def _one_exists(
        self,
        searches: Sequence[tuple[Feasibility, int]],
        exempt: int,
        budget: WorkBudget,
        *,
        quick: bool,
    ) -> bool | None:
        """Whether one of some searches succeeds with so many exempt voters.

        A search that stayed open is not asked again with no more work than it was given.
        """
        answer: bool | None = False
        for i, (way, least) in enumerate(searches):
            if least > exempt:
                continue
            given, asked = budget.share, (quick, i, exempt)
            if self._open.get(asked, -1) >= given:
                answer = None
                continue
            exists = way.sums.exists(way.condition, exempt=exempt, budget=budget, quick=quick)
            if exists:
                return True
            if exists is None:
                self._open[asked] = given
                answer = None
        return answer


class PanelSearch:
    """Answers every question about one panel under one target.

    `limit`: units of work for the possible winners, and again for breakdown points. `readings`:
    what a tie may mean in the questions to come.
    """

    def __init__(
        self,
        query: Query,
        *,
        limit: int = WORK_LIMIT,
        readings: Sequence[TieReading] = READINGS_OF_TIES,
    ) -> None:
        self._query, self._sums = query, sums_of(query)
        self._ordered = "fallback" in readings
        self._budgets = {use: WorkBudget(limit) for use in ("possible", "breakdown")}
        self._outcomes = range(NOBODY if query.target == "condorcet" else 0, query.m)
        self._counted = _counted(query)
        self._elected: dict[int, Sets] = {}
        self._progress: dict[tuple[int, int], _Progress] = {}
        self._runoffs: dict[int, tuple[Sets, bool]] = {}

    def possible(self, *, exempt: int, reading: TieReading) -> Possible:
        """Possible winners with at most `exempt` exempt voters."""
        budget = self._budgets["possible"]
        answers = {o: self._reach(o, reading, exempt, budget) for o in self._outcomes}
        winners = tuple(o for o, answer in answers.items() if answer)
        return Possible(winners, None not in answers.values())

    def contested(self, *, winner: int, exempt: int, reading: TieReading) -> bool | None:
        """Whether anything but `winner` is possible; `None` if that is not settled."""
        answer: bool | None = False
        for outcome in self._outcomes:
            if outcome == winner:
                continue
            reached = self._reach(outcome, reading, exempt, self._budgets["breakdown"])
            if reached:
                return True
            answer = None if reached is None else answer
        return answer

    def breakdown(self, *, winner: int | None, reading: TieReading) -> int:
        """The fewest exempt voters with which `winner` is not the only one; see `NEVER`.

        `winner`: `None` for the necessary winner; 0 if there is none.
        """
        if winner is None:
            start = self.possible(exempt=0, reading=reading)
            if start.necessary is None:
                return 0 if len(start.winners) > 1 else NOT_SETTLED
            winner = start.necessary
        return breakdown_point(
            lambda k: self.contested(winner=winner, exempt=k, reading=reading),
            voters=len(self._query.domains),
        )

    def _reach(
        self, outcome: int, reading: TieReading, exempt: int, budget: WorkBudget
    ) -> bool | None:
        """Whether an outcome is possible.

        Winning ahead of everybody earlier in the order implies winning tied with them; in the
        reading `set` it is asked first, where that answer is wanted anyhow.
        """
        q = self._query
        if q.m == 1:
            return outcome != NOBODY
        if self._counted is not None:
            first = _has(self._counted, outcome, outcome if reading == "fallback" else 0)
            if first or not exempt:
                return first  # it stays possible with exempt voters
        ordered = q.target != "condorcet" and outcome > 0 and self._ordered
        answer = self._answer(outcome, outcome if ordered else 0, exempt, budget)
        if ordered and reading == "set" and not answer:
            return self._answer(outcome, 0, exempt, budget)
        return answer

    def _answer(self, outcome: int, ahead: int, exempt: int, budget: WorkBudget) -> bool | None:
        """Whether an outcome is possible without any of the first `ahead` candidates."""
        q = self._query
        progress = self._progress.get((outcome, ahead))
        open_ = progress is None or progress.open(exempt)
        shown = self._some_elected(exempt, budget) if open_ else Sets()
        if any(_has(tied, outcome, ahead) for tied in shown):
            return True
        if q.target == "instant_runoff":
            if exempt not in self._runoffs:
                self._runoffs[exempt] = self._runoff(exempt, budget)
            sets, complete = self._runoffs[exempt]
            return any(_has(tied, outcome, ahead) for tied in sets) or (False if complete else None)
        if not ahead and outcome != NOBODY and q.target != "condorcet" and not any(q.domains):
            return True  # nobody voted, and everybody is tied
        if progress is None:
            dearest = max((one.listing for one in self._progress.values()), default=0)
            if budget.left <= dearest or too_large(q):
                return None
            progress = self._progress[outcome, ahead] = _Progress(
                q, outcome, ahead, self._sums, budget
            )
        return progress.possible(exempt, budget)

    def _some_elected(self, exempt: int, budget: WorkBudget) -> Sets:
        """Tied winners of elections that favour those whose winning no other election has shown."""
        if exempt in self._elected:
            return self._elected[exempt]
        q = self._query
        fewer = [k for k in self._elected if k < exempt]
        found = self._elected[max(fewer)] if fewer else Sets()
        for each in (False, True)[: 1 + (exempt > 0)]:
            ahead = [c if self._ordered else 0 for c in range(q.m)]
            lacking = [c for c in range(q.m) if not any(_has(t, c, ahead[c]) for t in found)]
            found |= elected(q, lacking, exempt, each=each, budget=budget)
        self._elected[exempt] = found
        return found

    def _runoff(self, exempt: int, budget: WorkBudget) -> tuple[Sets, bool]:
        """Reachable winner sets: by positions, and by paths if these are too many."""
        q = self._query
        fewer = [k for k in self._runoffs if k < exempt]
        known = self._runoffs[max(fewer)][0] if fewer else Sets()
        known |= self._some_elected(exempt, budget)
        if self._counted is None:
            return self._runoff_of_orders(exempt, known, budget)
        known |= {self._counted}
        known, complete = runoff_sets(q.domains, q.m, exempt=exempt, known=known, budget=budget)
        if complete:
            return known, True
        orders = [d and tuple(c for (c,) in d.levels) for d in q.domains]
        return path_sets(orders, q.m, exempt=exempt, known=known, budget=budget)

    def _runoff_of_orders(self, exempt: int, known: Sets, budget: WorkBudget) -> tuple[Sets, bool]:
        """Winners of the runoff over every choice of places that ballots leave open."""
        q, complete, seen = self._query, True, set[tuple[Domain | None, ...]]()
        open_ = [d for d in q.domains if d is not None and d.kind == "open"]
        if _PLACED * sum(len(d.levels) ** len(d.unscored) for d in open_) > budget.left:
            return known, False
        for one in product(*(placements(d) if d in open_ else (d,) for d in q.domains)):
            if len(set(map(min, known))) == q.m:
                return known, True
            if budget.empty:
                return known, False
            chosen = tuple(sorted(one, key=str))
            if chosen in seen:
                budget.spend(_PLACED)
                continue
            seen.add(chosen)
            known, whole = runoff_sets(chosen, q.m, exempt=exempt, known=known, budget=budget)
            complete = complete and whole
        return known, complete


def query_of(profile: Profile, target: Rule, budget: int) -> Query:
    """What the voters of a profile may have cast; voters of equal ballots are alike."""
    domains = [
        None if b is None else domain_of(b, protocol=profile.protocol, target=target)
        for b in profile.ballots
    ]
    return _query(target, profile.size, budget, domains)


def _query(target: Rule, m: int, budget: int, domains: Sequence[Domain | None]) -> Query:
    cast = sorted(domain for domain in domains if domain is not None)
    return Query(target, m, budget, (*[None] * (len(domains) - len(cast)), *cast))


def _has(tied: frozenset[int], outcome: int, ahead: int) -> bool:
    """Whether the outcome is among tied winners, without any of the first `ahead` candidates."""
    if not tied:
        return outcome == NOBODY
    return outcome in tied and tied.isdisjoint(range(ahead))


def breakdown_point(contested: Callable[[int], bool | None], *, voters: int) -> int:
    """The fewest exempt voters with which a necessary winner is no longer the only one.

    Returns `NEVER` if no number of exempt voters loses it (a single candidate), and `NOT_SETTLED`
    if that was too costly to find.
    """
    for k in range(1, voters + 1):
        lost = contested(k)
        if lost is not False:
            return k if lost else NOT_SETTLED
    return NEVER


# --- Possible winners ----------------------------------------------------------------------------


class PanelWinners(NamedTuple):
    """A winner of some panels whose breakdown point is asked for."""

    panel: Ints
    """Shape (winners,): numbers of panels."""
    winner: Ints
    """Shape (winners,): positions of candidates."""


class PanelAnswers(NamedTuple):
    """What panels may end in under one target; the first axis is that of `READINGS_OF_TIES`."""

    possible: Bools
    """Shape (2, numbers of exempt voters, panels, m + 1): certainly possible outcomes; the first
    of the last axis is nobody."""
    settled: Bools
    """Shape (2, numbers of exempt voters, panels): whether these are all."""
    breakdown: Ints
    """Shape (2, winners asked for): the breakdown point of each winner; 0 if none is asked for."""


def answer_panels(
    panels: DistinctPanels,
    target: Rule,
    *,
    exempt: Sequence[int],
    budget: int,
    limit: int = WORK_LIMIT,
    ends: OutcomeBits | None = None,
    winners: PanelWinners | None = None,
    breakdown: bool = True,
    readings: Sequence[TieReading] = READINGS_OF_TIES,
) -> PanelAnswers:
    """Possible winners of panels of one ballot format, and the breakdown points of winners.

    `budget`: points of a cumulative ballot; under any other target the end of the scale of scores.
    `limit`: units of work that a search may take for each panel. `ends`: from `table_ends`; `None`
    if the panels have no table. `winners`: whose breakdown points are asked for; by default the
    necessary winner of each panel without exempt voters, and 0 for a panel without one. `readings`:
    what a tie may mean; of the others nothing is searched, and nothing is settled.
    """
    n = panels.panels.shape[1]
    at = [min(k, n) for k in exempt]
    rows = len(panels.panels if winners is None else winners.panel)
    points = np.full((2, rows), NOT_SETTLED if breakdown else 0)
    if ends is not None:
        possible = _outcomes(ends[at], panels.m)
        points = _first_loss(ends, winners) if breakdown else points
        return PanelAnswers(possible, np.ones(possible.shape[:3], dtype=np.bool_), points)
    domains = [domain_of(b, protocol=panels.protocol, target=target) for b in panels.ballots]
    queries = [
        _query(target, panels.m, budget, [domains[i] if i >= 0 else None for i in row])
        for row in panels.panels.tolist()
    ]
    wanted: list[tuple[int, int | None]] = [(panel, None) for panel in range(len(queries))]
    if winners is not None:
        wanted = list(zip(winners.panel.tolist(), winners.winner.tolist(), strict=True))
    shape = (2, len(at), len(queries))
    possible = np.zeros((*shape, panels.m + 1), dtype=np.bool_)
    settled = np.zeros(shape, dtype=np.bool_)
    panels_of = by_key((query, i) for i, query in enumerate(queries))
    winners_of = by_key((queries[panel], (c, i)) for i, (panel, c) in enumerate(wanted))
    for query, same in panels_of.items():  # panels that leave the same possible are one
        search = PanelSearch(query, limit=limit, readings=readings)
        numbers = [(READINGS_OF_TIES.index(reading), reading) for reading in readings]
        for (r, reading), (j, k) in product(numbers, enumerate(at)):
            answer = search.possible(exempt=k, reading=reading)
            possible[r, j][np.ix_(same, [c + 1 for c in answer.winners])] = True
            settled[r, j, same] = answer.settled
        whose = by_key(winners_of.get(query, ())) if breakdown else {}
        for (winner, places), (r, reading) in product(whose.items(), numbers):
            points[r, places] = search.breakdown(winner=winner, reading=reading)
    return PanelAnswers(possible, settled, points)


def table_ends(
    panels: DistinctPanels, targets: Sequence[Rule], *, budget: int, exempt: int | None = None
) -> dict[Rule, OutcomeBits]:
    """Target → what panels may end in, shape (exempt + 1, panels), where they have a table.

    `budget`: points of a cumulative ballot; under any other target the end of the scale of scores.
    `exempt`: most exempt voters to answer for, by default all.
    """
    rows, ballots, protocol, m, _ = panels
    anywhere = FORMATS[protocol].left_out == "anywhere"
    if anywhere and any(LEFT_OUT in ballot for ballot in ballots):
        return {}
    n = rows.shape[1]
    exempt = n if exempt is None else min(exempt, n)
    found: dict[Rule, OutcomeBits] = {
        target: sums_ends(rows, ballots, protocol, target, m=m, budget=budget, exempt=exempt)
        for target in targets
        if sums_tabled(target, ballots, protocol, m, n, budget=budget)
    }
    held = [target for target in targets if n and tabled(target, m, n)]
    for alike in by_key((approvals_of(target), target) for target in held).values():
        labels = labels_of(ballots, protocol, alike[0], m)
        ends = panel_ends(np.append(labels.of, -1)[rows], labels, alike, m, exempt)
        found |= {target: np.ascontiguousarray(ends[:, :, i]) for i, target in enumerate(alike)}
    return found


def _halves(ends: OutcomeBits) -> OutcomeBits:
    """Shape (2, …): what panels may end in as a set and by the order, as bits."""
    return np.stack([ends >> 8, ends & 255])


def _outcomes(ends: OutcomeBits, m: int) -> Bools:
    """Shape (2, voters, panels, m + 1): both bytes of ends, bit by bit."""
    return np.asarray((_halves(ends)[..., None] >> np.arange(m + 1, dtype=np.uint16)) & 1 > 0)


def _first_loss(ends: OutcomeBits, winners: PanelWinners | None) -> Ints:
    """Shape (2, winners): the first number of exempt voters with which somebody else may win."""
    every = _halves(ends)
    kept = every[:, :1]
    if winners is not None:
        every = every[:, :, winners.panel]
        kept = (1 << (winners.winner + 1)).astype(np.uint16)
    lost: Bools = (every & ~kept) > 0
    lost[:, 0] = False
    first = np.where(lost.any(axis=1), lost.argmax(axis=1), NEVER)
    return first if winners else np.where(np.bitwise_count(kept[:, 0]) > 1, 0, first)


# --- Votes that are known -------------------------------------------------------------------------


def _counted(q: Query) -> frozenset[int] | None:
    """The tied winners where every voter's ballot under the target is known, else `None`.

    Known are ballots in the target's format, rankings where they are strict, and a vote where
    one candidate stands alone on top.
    """
    if not all(d is None or _known(q.target, d) for d in q.domains):
        return None
    voters = _voters(q.domains, q.m)
    if _by_numbers(q.target):
        cast = whole([d.data if d else (0,) * q.m for d in q.domains], q.m)  # type: ignore[misc]
    else:
        cast = _marks(q.target, voters.level)
    [found] = _tied(q.target, cast[None], voters.cast[None])
    return found


def _marks(target: Rule, place: Ints) -> Ints:
    """What rankings give under a rule of no numbers; as `place`, shape (…, m), 0 the first."""
    m = place.shape[-1]
    scores = rank_scores(target, m)
    if scores is not None:
        return np.asarray(whole([scores], m)[0][place])
    return np.asarray(1 * (place == 0) if target == "simple" else -place)


def _tied(target: Rule, cast: Ints, votes: Bools) -> Sets:
    """Sets of tied winners. `cast`: shape (panels, voters, m). `votes`: shape (panels, voters)."""
    led = CountedPanels.of_elections(cast, votes).leaders(target)
    rows = {tuple(row) for row in led.tolist()}
    return frozenset(frozenset(c for c, leads in enumerate(row) if leads) for row in rows)


def _by_numbers(target: Rule) -> bool:
    """Whether a rule counts the numbers of ballots."""
    return FORMATS[ballot_format(target)].numbers


def _known(target: Rule, domain: Domain) -> bool:
    if domain.kind == "open" or _by_numbers(target):
        return domain.kind == "exact" and LEFT_OUT not in domain.data
    return all(len(level) == 1 for level in domain.levels[: 1 if target == "simple" else None])


# --- Elections that favour a candidate -----------------------------------------------------------

_VOTER_COST: Final = 4_000
"""Units of work that one voter's rankings take, in however few elections."""


def elected(
    q: Query, candidates: Sequence[int], exempt: int, *, each: bool, budget: WorkBudget
) -> Sets:
    """The sets of tied winners of elections that agree with the ballots cast.

    Each favours one of some candidates, and the exempt voters are those from whom it gains most.
    Where rankings do not tell ballots under the target, or are more work than one search may
    take, there are none.

    `each`: for each candidate one without each different voter and, of the others, those.
    """
    voters = _voters(q.domains, q.m)
    work = len(q.domains) * _VOTER_COST
    work += len(q.domains) * len(candidates) * (len(voters.different) if each else 1) * q.m * q.m
    if not (candidates and q.domains and _tell(q)) or work > budget.share:
        return frozenset()
    budget.spend(work)
    of, freed = list[int](), list[tuple[int, ...]]()
    for c in candidates:
        most = voters.gain[c][:exempt]
        for first in voters.different if each else most[:1] or [0]:
            of.append(c)
            freed.append((first, *(v for v in most if v != first))[:exempt])
    place, votes = _favouring(q.domains, q.m, tuple(of), tuple(freed))
    number = approvals_of(q.target)
    if number is None:
        return _tied(q.target, _marks(q.target, place), votes)
    approved = _approved(q, np.array(of), np.array(freed), number)
    return _tied(q.target, 1 * (place < approved[:, :, None]), votes)


def _tell(q: Query) -> bool:
    """Whether rankings tell ballots under the target."""
    form = ballot_format(q.target)
    if too_large(q):
        return False
    if form == "approval" and any(d is not None and d.kind == "open" for d in q.domains):
        return False
    return form in ("simple", "ranked", "approval")


@lru_cache(maxsize=1 << 7)
def _favouring(
    domains: Domains, m: int, candidates: tuple[int, ...], exempt: tuple[tuple[int, ...], ...]
) -> tuple[Ints, Bools]:
    """Rankings that agree with the ballots cast, with a candidate first in its level.

    The place of each candidate, shape (elections, voters, m), 0 the first; and who votes.

    Voter by voter, whoever has most points of Borda's from all ballots stands last in its level,
    so that nobody gets far ahead; a ballot that is to come counts with the mean of its rankings.

    `candidates`, `exempt`: of each election.
    """
    own, freed = np.array(candidates), np.array(exempt, dtype=np.int64)
    every, voters = np.arange(len(own)), _voters(domains, m)
    votes = np.repeat(voters.cast[None], len(own), axis=0)
    level, above, equal = (
        np.repeat(one[None], len(own), axis=0) for one in (voters.level, voters.above, voters.equal)
    )
    votes[every[:, None], freed], equal[every[:, None], freed] = True, m
    level[every[:, None], freed], above[every[:, None], freed] = 0, 0
    beside_own = level == level[every, :, own][:, :, None]
    mean = 2 * above + equal - 1 + beside_own  # twice the mean place
    mean[every, :, own] = 2 * above[every, :, own]
    level = 2 * level
    level[every, :, own] -= 1
    points = -(mean * votes[:, :, None]).sum(axis=1)
    apart = 2 * m * (len(domains) + 1)
    place, line = np.empty_like(level), np.arange(m, dtype=level.dtype)[None]
    for v in range(len(domains)):
        order = np.argsort(level[:, v].astype(np.int64) * apart + points, axis=1, kind="stable")
        np.put_along_axis(place[:, v], order, line, axis=1)
        points += (mean[:, v] - 2 * place[:, v]) * votes[:, v, None]
    return place, votes


def _approved(q: Query, own: Ints, freed: Ints, number: Approvals) -> Ints:
    """Number of approvals of each voter, shape (elections, voters): few, and its favourite.

    `own`: the candidate of each election. `freed`: its exempt voters.
    """
    voters, (least, most) = _voters(q.domains, q.m), number.of(q.m)
    with_own = voters.above + 1
    few = np.where(with_own > most, least, np.maximum(with_own, least))
    for v, domain in enumerate(q.domains):
        if domain is not None and domain.kind == "exact":
            few[v] = sum(map(bool, domain.data))
        elif domain is not None and domain.kind == "order" and number == ANY_NUMBER:
            few[v] = voters.above[v] + voters.equal[v]
    found = few.T[own]
    if freed.size:
        found[np.arange(len(own))[:, None], freed] = least
    return found


class _Voters(NamedTuple):
    """What the ballots of some voters tell; the arrays have shape (voters, candidates).

    An open ballot has those without a score on its last level; an abstention has all on one.
    """

    cast: Bools
    """Shape (voters,): false for an abstention."""
    level: Ints
    """The level of each candidate, 0 the best."""
    above: Ints
    """How many stand above it."""
    equal: Ints
    """How many stand on its level."""
    gain: list[list[int]]
    """Candidate → voters, first those whose exemption adds most to its margins."""
    different: list[int]
    """One voter of each different ballot."""


@lru_cache(maxsize=1 << 7)
def _voters(domains: Domains, m: int) -> _Voters:
    cast = np.array([domain is not None for domain in domains])
    level = np.zeros((len(domains), m), dtype=np.int16)
    for row, domain in zip(level, domains, strict=True):
        if domain is not None:
            row[:] = max(len(domain.levels) - 1, 0)
            for i, names in enumerate(domain.levels):
                row[list(names)] = i
    voter = np.arange(len(domains))[:, None]
    sizes = np.bincount((level + m * voter).ravel(), minlength=level.size).reshape(level.shape)
    equal = sizes[voter, level].astype(np.int16)
    above = (sizes.cumsum(axis=1) - sizes)[voter, level].astype(np.int16)
    gain = np.where(cast[:, None], 2 * above, m - 1)
    most = np.argsort(-gain, axis=0, kind="stable").T.tolist()
    different = sorted({domain: v for v, domain in enumerate(domains)}.values())
    return _Voters(cast, level, above, equal, most, different)
