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
from analysis.identify.problems import NOBODY, Problem, Question, problems_of
from analysis.identify.runoff import runoff_sets
from analysis.identify.search import WORK_LIMIT
from analysis.profiles import Profile
from analysis.rules import Target

__all__ = ["NOBODY", "READINGS_OF_TIES", "Identifier", "Possible", "TieReading", "breakdown_point"]

TieReading = Literal["fallback", "set"]
"""What a tie under a target means: the order decides, or it stays a set."""

READINGS_OF_TIES: Final[tuple[TieReading, ...]] = ("set", "fallback")

Outcomes = tuple[int, ...]


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

    def possible(self, exempt: int) -> bool | None:
        """Whether the outcome is possible with so many exempt voters."""
        while self._reached is None and self._refuted <= exempt:
            answer = self._search(self._refuted)
            if answer is None:  # smaller numbers stay open: ask about this very one
                return self._search(exempt)
            if answer:
                self._reached = self._refuted
            else:
                self._refuted += 1
        return self._reached is not None and self._reached <= exempt

    def _search(self, exempt: int) -> bool | None:
        """Whether one of the searches succeeds; the first that does is enough."""
        answer: bool | None = False
        for problem, least in self._searches:
            found = (
                problem.sums.exists(problem.test, exempt=exempt, limit=self._limit)
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

    def possible(
        self, profile: Profile, target: Target, *, exempt: int, reading: TieReading
    ) -> Possible:
        """Possible winners with at most `exempt` exempt voters."""
        question = self._question(profile, target)
        key = (question, exempt, reading)
        if key not in self._possible:
            outcomes = _outcomes(question)
            answers = {o: self._reach(question, o, reading, exempt) for o in outcomes}
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
        answer: bool | None = False
        for outcome in _outcomes(question):
            found = outcome != winner and self._reach(question, outcome, reading, exempt)
            if found:
                return True
            answer = None if found is None else answer
        return answer

    def _question(self, profile: Profile, target: Target) -> Question:
        key = (profile, target)
        if key not in self._questions:
            found = [
                domain_of(ballot, protocol=profile.protocol, target=target)
                for ballot in profile.cast
            ]
            nothing = [None] * (len(profile.ballots) - len(found))
            domains = (*nothing, *sorted(found))
            self._questions[key] = Question(target, profile.size, self.budget, domains)
        return self._questions[key]

    def _reach(self, q: Question, outcome: int, reading: TieReading, exempt: int) -> bool | None:
        """Whether an outcome is possible.

        Winning ahead of everybody earlier in the order implies winning tied with them; in the
        reading `set` it is asked first, because the answer is wanted anyhow.
        """
        if q.m == 1:
            return outcome != NOBODY
        ordered = q.target != "condorcet" and outcome > 0
        answer = self._answer(q, outcome, outcome if ordered else 0, exempt)
        if ordered and reading == "set" and not answer:
            return self._answer(q, outcome, 0, exempt)
        return answer

    def _answer(self, q: Question, outcome: int, ahead: int, exempt: int) -> bool | None:
        """Whether an outcome is possible without any of the first `ahead` candidates."""
        if q.target == "instant_runoff":
            return self._by_runoff(q, outcome, range(ahead), exempt)
        if not ahead and outcome != NOBODY and q.target != "condorcet" and not any(q.domains):
            return True  # nobody voted, and everybody is tied
        key = (q, outcome, ahead)
        if key not in self._progress:
            problems = problems_of(q, outcome, range(ahead))
            self._progress[key] = _Progress(problems, self.limit)
        return self._progress[key].possible(exempt)

    def _by_runoff(self, q: Question, c: int, ahead: Sequence[int], exempt: int) -> bool | None:
        if (q, exempt) not in self._runoffs:
            self._runoffs[q, exempt] = runoff_sets(
                q.domains, q.m, exempt=exempt, limit=self.limit // 200
            )
        sets, complete = self._runoffs[q, exempt]
        if any(c in tied and tied.isdisjoint(ahead) for tied in sets):
            return True
        return False if complete else None


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
