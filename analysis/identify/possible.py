"""Possible and necessary winners of one profile under one target.

A *completion* gives every voter one ballot that agrees with the ballot it cast; up to k exempt
voters may have cast any ballot of the target's format. A completion has a set of tied
winners W. Two readings of a tie, never mixed:

* `fallback`: the winner is the first of W in the role-priority order. `c` is possible when some
  completion has `c` in W and no candidate before `c` in the order.
* `set`: a tie stays a tie, because nobody was asked to vote on it. `c` is possible when some
  completion has `c` in W.

The necessary winner is the only possible one. An abstaining voter casts nothing under any target,
unless it is exempt. A Condorcet winner need not exist; then "nobody" is an outcome of its own.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from analysis.identify.domains import domain_of
from analysis.identify.elimination import path_sets
from analysis.identify.problems import NOBODY, Problem, Question, counted, problems_of
from analysis.identify.runoff import runoff_sets
from analysis.identify.search import WORK_LIMIT, Purse
from analysis.profiles import Profile
from analysis.rules import Target, ballot_format

__all__ = ["NOBODY", "READINGS_OF_TIES", "Identifier", "Possible", "TieReading", "breakdown_point"]

TieReading = Literal["fallback", "set"]
"""What a tie under a target means: the order decides, or it stays a set."""

READINGS_OF_TIES: Final[tuple[TieReading, ...]] = ("set", "fallback")

Outcomes = tuple[int, ...]

_FULL: Final = 84_672
"""What a purse holds, times the limit of a question, for one voter and one candidate. It falls
with the square of voters times candidates: 48 for six candidates and seven voters, from 15
candidates and 14 voters on 2."""
_FEW: Final = 7
"""Voters up to which an instant runoff visits positions and not paths."""


class Possible(NamedTuple):
    """What is known of the winner; candidates by place in the role-priority order."""

    winners: Outcomes
    """Outcomes that are possible for certain, in order; `NOBODY` first."""
    settled: bool
    """Whether these are all. If not, at least one outcome was too costly to decide."""

    @property
    def necessary(self) -> int | None:
        """The only possible outcome, where there is exactly one."""
        return self.winners[0] if self.settled and len(self.winners) == 1 else None


class _Progress:
    """What is known of one outcome: from which number of exempt voters on it is possible.

    Args:
        problems: Searches of which one must succeed.
        limit: Work allowed for each search.
    """

    def __init__(self, problems: Sequence[Problem], limit: int) -> None:
        self._searches = [
            (problem, problem.sums.least_exempt(problem.test)) for problem in problems
        ]
        self._limit = limit
        self._refuted = min(least for _, least in self._searches)
        self._reached: int | None = None

    def possible(self, exempt: int, purse: Purse) -> bool | None:
        """Whether the outcome is possible with so many exempt voters."""
        while self._reached is None and self._refuted <= exempt:
            answer = self._search(self._refuted, purse)
            if answer is None:  # smaller numbers stay open: ask about this very one
                return None if self._refuted == exempt else self._search(exempt, purse)
            if answer:
                self._reached = self._refuted
            else:
                self._refuted += 1
        return self._reached is not None and self._reached <= exempt

    def _search(self, exempt: int, purse: Purse) -> bool | None:
        """Whether one of the searches succeeds; the first that does is enough."""
        answer: bool | None = False
        for problem, least in self._searches:
            found = (
                problem.sums.exists(problem.test, exempt=exempt, limit=self._limit, purse=purse)
                if least <= exempt
                else False
            )
            if found:
                return True
            answer = None if found is None else answer
        return answer


class Identifier:
    """Answers questions about profiles and remembers the answers.

    Args:
        budget: Points of a cumulative ballot.
        limit: Work allowed for one question; see `analysis.identify.search`.
    """

    def __init__(self, *, budget: int, limit: int = WORK_LIMIT) -> None:
        self.budget = budget
        self.limit = limit
        self._questions: dict[tuple[Profile, Target], Question] = {}
        self._possible: dict[tuple[Question, int, TieReading], Possible] = {}
        self._progress: dict[tuple[Question, int, int], _Progress] = {}
        self._runoffs: dict[tuple[Question, int], tuple[frozenset[frozenset[int]], bool]] = {}
        self._counted: dict[Question, frozenset[int] | None] = {}
        self._purses: dict[tuple[Question, str], Purse] = {}

    def possible(
        self, profile: Profile, target: Target, *, exempt: int, reading: TieReading
    ) -> Possible:
        """Possible winners with at most `exempt` exempt voters."""
        question = self._question(profile, target)
        key = (question, exempt, reading)
        if key not in self._possible:
            outcomes = _outcomes(question)
            purse = self._purse(question, "possible")
            answers = {o: self._reach(question, o, reading, exempt, purse) for o in outcomes}
            winners = tuple(o for o, answer in answers.items() if answer)
            self._possible[key] = Possible(winners, None not in answers.values())
        return self._possible[key]

    def contested(
        self,
        profile: Profile,
        target: Target,
        *,
        winner: int,
        exempt: int,
        reading: TieReading,
    ) -> bool | None:
        """Whether anything but `winner` is possible; `None` where that is not settled."""
        question = self._question(profile, target)
        purse = self._purse(question, "contested")
        answer: bool | None = False
        for outcome in _outcomes(question):
            found = outcome != winner and self._reach(question, outcome, reading, exempt, purse)
            if found:
                return True
            answer = None if found is None else answer
        return answer

    def _question(self, profile: Profile, target: Target) -> Question:
        key = (profile, target)
        if key not in self._questions:
            plain = profile.under(ballot_format(target))
            found = [domain_of(ballot, protocol=plain.rule, target=target) for ballot in plain.cast]
            nothing = [None] * (len(plain.ballots) - len(found))
            domains = (*nothing, *sorted(found))
            self._questions[key] = Question(target, profile.size, self.budget, domains)
        return self._questions[key]

    def _purse(self, q: Question, use: str) -> Purse:
        """What all questions of one use about a profile and target may compute together."""
        if (q, use) not in self._purses:
            cells = q.m * max(len(q.domains), 1)
            self._purses[q, use] = Purse(self.limit * max(2, _FULL // cells**2))
        return self._purses[q, use]

    def _count(self, q: Question) -> frozenset[int] | None:
        """The tied winners where every voter's ballot under the target is known."""
        if q not in self._counted:
            self._counted[q] = counted(q)
        return self._counted[q]

    def _reach(
        self, q: Question, outcome: int, reading: TieReading, exempt: int, purse: Purse
    ) -> bool | None:
        """Whether an outcome is possible.

        Winning ahead of everybody earlier in the order implies winning tied with them; in the
        reading `set` it is asked first, because the answer is wanted anyhow.
        """
        if q.m == 1:
            return outcome != NOBODY
        tied = self._count(q)
        if tied is not None and (_is_outcome(outcome, tied, reading) or not exempt):
            return _is_outcome(outcome, tied, reading)  # it stays possible with exempt voters
        ordered = q.target != "condorcet" and outcome > 0
        answer = self._answer(q, outcome, outcome if ordered else 0, exempt, purse)
        if ordered and reading == "set" and not answer:
            return self._answer(q, outcome, 0, exempt, purse)
        return answer

    def _answer(
        self, q: Question, outcome: int, ahead: int, exempt: int, purse: Purse
    ) -> bool | None:
        """Whether an outcome is possible without any of the first `ahead` candidates."""
        if q.target == "instant_runoff":
            return self._by_runoff(q, outcome, range(ahead), exempt, purse)
        if not ahead and outcome != NOBODY and q.target != "condorcet" and not any(q.domains):
            return True  # nobody voted, and everybody is tied
        key = (q, outcome, ahead)
        if key not in self._progress:
            problems = problems_of(q, outcome, range(ahead))
            self._progress[key] = _Progress(problems, self.limit)
        return self._progress[key].possible(exempt, purse)

    def _by_runoff(
        self, q: Question, c: int, ahead: Sequence[int], exempt: int, purse: Purse
    ) -> bool | None:
        if (q, exempt) not in self._runoffs:
            self._runoffs[q, exempt] = self._runoff(q, exempt, purse)
        sets, complete = self._runoffs[q, exempt]
        if any(c in tied and tied.isdisjoint(ahead) for tied in sets):
            return True
        return False if complete else None

    def _runoff(
        self, q: Question, exempt: int, purse: Purse
    ) -> tuple[frozenset[frozenset[int]], bool]:
        """Reachable winner sets; where rankings are known and voters many, by paths."""
        tied = self._count(q)
        if tied is None or len(q.domains) <= _FEW:
            return runoff_sets(q.domains, q.m, exempt=exempt, limit=self.limit, purse=purse)
        fewer = [k for k in range(exempt) if (q, k) in self._runoffs]
        known = self._runoffs[q, fewer[-1]][0] if fewer else frozenset({tied})
        orders = [d and tuple(c for (c,) in d.levels) for d in q.domains]
        return path_sets(orders, q.m, exempt=exempt, known=known, purse=purse, limit=self.limit)


def _is_outcome(outcome: int, tied: frozenset[int], reading: TieReading) -> bool:
    """Whether a set of tied winners has the outcome in it, or as its first."""
    if not tied:
        return outcome == NOBODY
    return outcome in tied if reading == "set" else outcome == min(tied)


def breakdown_point(contested: Callable[[int], bool | None], *, voters: int) -> int | None:
    """The fewest exempt voters with which a necessary winner is no longer the only one.

    Args:
        contested: Whether another outcome is possible with a number of exempt voters.
        voters: How many voters there are.

    Returns:
        `None` where no number of exempt voters loses it (a single candidate), or where that
        was too costly to settle.
    """
    for k in range(1, voters + 1):
        lost = contested(k)
        if lost is not False:
            return k if lost else None
    return None


def _outcomes(q: Question) -> range:
    return range(NOBODY if q.target == "condorcet" else 0, q.m)
