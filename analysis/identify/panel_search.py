"""Possible and necessary winners of one panel under one target, by search.

A *completion* gives every voter one ballot that agrees with the ballot it cast; up to k exempt
voters may have cast any ballot of the target's format. A completion has a set of tied
winners W. Two readings of a tie, never mixed:

* `fallback`: the winner is the first of W in the fallback order. `c` is possible when some
  completion has `c` in W and no candidate before `c` in the order.
* `set`: a tie stays a tie, because nobody was asked to vote on it. `c` is possible when some
  completion has `c` in W.

The necessary winner is the only possible one. An abstaining voter casts nothing under any target,
unless it is exempt. A Condorcet winner need not exist; then "nobody" is an outcome of its own.

Work is counted and bounded: what a panel does not settle within its budget is *not settled*, and
is never guessed.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final, Literal, NamedTuple

from tutorsim.analysis.ballots.turn_profiles import Profile
from tutorsim.analysis.counting.rule_definitions import Rule, ballot_format
from tutorsim.analysis.identify.consistent_ballots import domain_of, placements
from tutorsim.analysis.identify.reachable_vote_sums import WORK_LIMIT, WorkBudget
from tutorsim.analysis.identify.runoff_winners_strict_rankings import path_sets
from tutorsim.analysis.identify.runoff_winners_weak_orders import runoff_sets
from tutorsim.analysis.identify.win_conditions import (
    NOBODY,
    Feasibility,
    Query,
    counted,
    feasible,
    too_large,
)

__all__ = [
    "NEVER",
    "NOBODY",
    "NOT_SETTLED",
    "NO_BOUNDS",
    "READINGS_OF_TIES",
    "Identifier",
    "PanelSearch",
    "Possible",
    "TieReading",
    "breakdown_point",
    "query_of",
]

TieReading = Literal["fallback", "set"]
"""What a tie under a target means: the order decides, or it stays a set."""

READINGS_OF_TIES: Final[tuple[TieReading, ...]] = ("set", "fallback")

NEVER: Final = -1
"""The breakdown point of a winner that no number of exempt voters can lose."""
NOT_SETTLED: Final = -2
"""The breakdown point where finding it takes more work than is allowed."""
NO_BOUNDS: Final = -3
"""The breakdown point under a rule of which nothing is known but a point."""

_FOR_RULING_OUT: Final = 400
"""Units that bounds on one outcome take, for each voter."""


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

    Args:
        ways: Searches of which one must succeed.
    """

    def __init__(self, ways: Sequence[Feasibility]) -> None:
        self._searches = [(way, way.sums.least_exempt(way.condition)) for way in ways]
        self._refuted = min(least for _, least in self._searches)
        self._reached: int | None = None

    def possible(self, exempt: int, budget: WorkBudget) -> bool | None:
        """Whether the outcome is possible with so many exempt voters."""
        while self._reached is None and self._refuted <= exempt:
            answer = self._search(self._refuted, budget)
            if answer is None:  # smaller numbers stay open: ask about this very one
                answer = None if self._refuted == exempt else self._search(exempt, budget)
                if answer is False:  # what so many cannot reach, fewer cannot either
                    self._refuted = exempt + 1
                return answer
            if answer:
                self._reached = self._refuted
            else:
                self._refuted += 1
        return self._reached is not None and self._reached <= exempt

    def _search(self, exempt: int, budget: WorkBudget) -> bool | None:
        """Whether one of the searches succeeds; the first that does is enough."""
        answer: bool | None = False
        for way, least in self._searches:
            if least > exempt:
                continue
            exists = way.sums.exists(way.condition, exempt=exempt, budget=budget)
            if exists:
                return True
            answer = None if exists is None else answer
        return answer


class PanelSearch:
    """Answers every question about one panel under one target.

    Args:
        query: The target, and what the voters may have cast.
        limit: Units of work for the possible winners, and again for breakdown points.
    """

    def __init__(self, query: Query, *, limit: int = WORK_LIMIT) -> None:
        self._query = query
        self._budgets = {use: WorkBudget(limit) for use in ("possible", "breakdown")}
        self._outcomes = range(NOBODY if query.target == "condorcet" else 0, query.m)
        self._counted = counted(query)
        self._progress: dict[tuple[int, int], _Progress] = {}
        self._runoffs: dict[int, tuple[frozenset[frozenset[int]], bool]] = {}

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

    def breakdown(self, *, winner: int, reading: TieReading) -> int:
        """The fewest exempt voters with which `winner` is not the only one; see `NEVER`."""
        return breakdown_point(
            lambda k: self.contested(winner=winner, exempt=k, reading=reading),
            voters=len(self._query.domains),
        )

    def _reach(
        self, outcome: int, reading: TieReading, exempt: int, budget: WorkBudget
    ) -> bool | None:
        """Whether an outcome is possible.

        Winning ahead of everybody earlier in the order implies winning tied with them; in the
        reading `set` it is asked first, because the answer is wanted anyhow.
        """
        q = self._query
        if q.m == 1:
            return outcome != NOBODY
        tied = self._counted
        if tied is not None and (_is_outcome(outcome, tied, reading) or not exempt):
            return _is_outcome(outcome, tied, reading)  # it stays possible with exempt voters
        ordered = q.target != "condorcet" and outcome > 0
        answer = self._answer(outcome, outcome if ordered else 0, exempt, budget)
        if ordered and reading == "set" and not answer:
            return self._answer(outcome, 0, exempt, budget)
        return answer

    def _answer(self, outcome: int, ahead: int, exempt: int, budget: WorkBudget) -> bool | None:
        """Whether an outcome is possible without any of the first `ahead` candidates."""
        q = self._query
        if q.target == "instant_runoff":
            return self._by_runoff(outcome, range(ahead), exempt, budget)
        if not ahead and outcome != NOBODY and q.target != "condorcet" and not any(q.domains):
            return True  # nobody voted, and everybody is tied
        if (outcome, ahead) not in self._progress:
            if budget.empty or too_large(q):
                return None
            ways = feasible(q, outcome, range(ahead))
            budget.spend(sum(way.sums.size + _FOR_RULING_OUT * len(q.domains) for way in ways))
            self._progress[outcome, ahead] = _Progress(ways)
        return self._progress[outcome, ahead].possible(exempt, budget)

    def _by_runoff(
        self, c: int, ahead: Sequence[int], exempt: int, budget: WorkBudget
    ) -> bool | None:
        if exempt not in self._runoffs:
            self._runoffs[exempt] = self._runoff(exempt, budget)
        sets, complete = self._runoffs[exempt]
        if any(c in tied and tied.isdisjoint(ahead) for tied in sets):
            return True
        return False if complete else None

    def _runoff(self, exempt: int, budget: WorkBudget) -> tuple[frozenset[frozenset[int]], bool]:
        """Reachable winner sets: by paths if rankings are known, else by positions."""
        q = self._query
        fewer = [k for k in self._runoffs if k < exempt]
        known = self._runoffs[max(fewer)][0] if fewer else frozenset[frozenset[int]]()
        if self._counted is None:
            return self._runoff_of_orders(exempt, known, budget)
        orders = [d and tuple(c for (c,) in d.levels) for d in q.domains]
        known |= {self._counted}
        return path_sets(orders, q.m, exempt=exempt, known=known, budget=budget)

    def _runoff_of_orders(
        self, exempt: int, known: frozenset[frozenset[int]], budget: WorkBudget
    ) -> tuple[frozenset[frozenset[int]], bool]:
        """Of ballots that leave open who stands where: over every choice of where they stand."""
        q, complete = self._query, True
        ways = [placements(d) if d and d.kind == "open" else (d,) for d in q.domains]
        for chosen in dict.fromkeys(tuple(sorted(one, key=str)) for one in product(*ways)):
            if budget.empty:
                return known, False
            known, whole = runoff_sets(chosen, q.m, exempt=exempt, known=known, budget=budget)
            complete = complete and whole
        return known, complete


class Identifier:
    """Answers questions about profiles by search and remembers the answers.

    Args:
        budget: Points of a cumulative ballot.
        limit: Units of work for the possible winners of one profile under one target.
    """

    def __init__(self, *, budget: int, limit: int = WORK_LIMIT) -> None:
        self.budget = budget
        self.limit = limit
        self._searches: dict[Query, PanelSearch] = {}
        self._possible: dict[tuple[Query, int, TieReading], Possible] = {}

    def possible(
        self, profile: Profile, target: Rule, *, exempt: int, reading: TieReading
    ) -> Possible:
        """Possible winners with at most `exempt` exempt voters."""
        query = query_of(profile, target, self.budget)
        key = (query, exempt, reading)
        if key not in self._possible:
            found = self._search(query).possible(exempt=exempt, reading=reading)
            self._possible[key] = found
        return self._possible[key]

    def contested(
        self, profile: Profile, target: Rule, *, winner: int, exempt: int, reading: TieReading
    ) -> bool | None:
        """Whether anything but `winner` is possible; `None` if that is not settled."""
        search = self._search(query_of(profile, target, self.budget))
        return search.contested(winner=winner, exempt=exempt, reading=reading)

    def _search(self, query: Query) -> PanelSearch:
        if query not in self._searches:
            self._searches[query] = PanelSearch(query, limit=self.limit)
        return self._searches[query]


def query_of(profile: Profile, target: Rule, budget: int) -> Query:
    """What the voters of a profile may have cast; voters of equal ballots are alike."""
    plain = profile.under(ballot_format(target))
    cast = sorted(domain_of(ballot, protocol=plain.rule, target=target) for ballot in plain.cast)
    nothing = [None] * (len(plain.ballots) - len(cast))
    return Query(target, profile.size, budget, (*nothing, *cast))


def _is_outcome(outcome: int, tied: frozenset[int], reading: TieReading) -> bool:
    """Whether a set of tied winners has the outcome in it, or as its first."""
    if not tied:
        return outcome == NOBODY
    return outcome in tied if reading == "set" else outcome == min(tied)


def breakdown_point(contested: Callable[[int], bool | None], *, voters: int) -> int:
    """The fewest exempt voters with which a necessary winner is no longer the only one.

    Args:
        contested: Whether another outcome is possible with a number of exempt voters.
        voters: How many voters there are.

    Returns:
        `NEVER` if no number of exempt voters loses it (a single candidate), and `NOT_SETTLED` if
        that was too costly to find.
    """
    for k in range(1, voters + 1):
        lost = contested(k)
        if lost is not False:
            return k if lost else NOT_SETTLED
    return NEVER
