"""Plain oracle of `possible_winners_of_every_protocol_by_rule`: by search and by plain rules."""

from typing import NamedTuple

from tests.reference.cases import decided
from tests.reference.projection import projected_winners
from tests.reference.turns import under
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Profile, TurnKey
from tutorsim.analysis.counting.names_and_parameters_of_rules import Target, ballot_format
from tutorsim.analysis.identify.possible_winners import (
    NOT_SETTLED,
    Possible,
    TieReading,
    breakdown_point,
)
from tutorsim.analysis.identify.win_conditions import NOBODY

__all__ = ["Answer", "Named", "Projection", "Recounter", "Shape", "gather_named", "shape_of"]


class Projection(NamedTuple):
    """What the named projection says."""

    tied: tuple[int, ...]
    """The tied set under it; empty when one leads alone, or nobody."""
    outcome: tuple[int, ...]
    """The point winner, or the tie that stays one."""
    impossible: bool
    """The projected outcome is not possible."""

    @property
    def winner(self) -> int | None:
        """The point winner; `None` for a tie that stays one."""
        return self.outcome[0] if len(self.outcome) == 1 else None


class Answer(NamedTuple):
    """What is said of one case under one target, reading and number of exempt voters."""

    possible: Possible
    projected: Projection
    breakdown: int
    """`NEVER` and `NOT_SETTLED` stand for what is no number."""


class Shape(NamedTuple):
    """What decides the answers about a turn; names of voters and candidates play no part."""

    final: Profile
    initial: Profile | None
    """`None` where no first vote was held."""
    own: Projection
    """What the logged ballots and their tie round give."""


class Named(NamedTuple):
    """Turns that share a shape, its candidates and the logged winner."""

    shape: Shape
    candidates: tuple[str, ...]
    logged: str


def shape_of(case):
    """A case without its names."""
    candidates = case.final.candidates
    outcome = decided(case, order=candidates)
    tied = tuple(candidates.index(c) for c in outcome.tied_set)
    own = Projection(tied, (candidates.index(outcome.winner),), impossible=False)
    return Shape(case.final.profile, case.initial and case.initial.profile, own)


def gather_named(cases, logged):
    """Turns by shape, candidates and logged winner, in the order of first appearance."""
    found: dict[Named, list[TurnKey]] = {}
    for case, keys in cases.items():
        named = Named(shape_of(case), case.final.candidates, logged[case])
        found.setdefault(named, []).extend(keys)
    return found


class Recounter:
    """Answers about shapes, each question once.

    Args:
        budget: Points of a cumulative ballot.
        identifier: Answers about profiles.
    """

    def __init__(self, *, budget, identifier):
        self._budget = budget
        self._identifier = identifier
        self._led: dict[tuple[Profile, Target], tuple[int, ...]] = {}
        self._answers: dict[tuple[Shape, Target, int, TieReading], Answer] = {}
        self._breakdowns: dict[tuple[Shape, Target, TieReading], int] = {}

    def answer(self, shape, target, *, exempt, reading):
        """Everything about one question.

        Where the target is the protocol that decided and nobody is exempt, the logged ballots and
        their tie round decide under both readings. With exempt voters that winner stays possible,
        and ties of other ballots are read as under any other target.
        """
        key = (shape, target, exempt, reading)
        if key not in self._answers:
            self._answers[key] = self._answered(shape, target, exempt, reading)
        return self._answers[key]

    def _answered(self, shape, target, exempt, reading):
        profile = shape.final
        own = shape.own if target == profile.protocol else None
        possible = self._possible(profile, target, exempt, reading, own)
        projected = own or self._projected(profile, target, possible, reading)
        return Answer(possible, projected, self._breakdown(shape, target, reading, own))

    def _breakdown(self, shape, target, reading, own):
        """0 where there is no necessary winner to begin with; see `breakdown_point`."""
        asked = (shape, target, reading)
        if asked not in self._breakdowns:
            start = self._possible(shape.final, target, 0, reading, own)
            self._breakdowns[asked] = self._lost(shape.final, target, reading, start)
        return self._breakdowns[asked]

    def _lost(self, profile, target, reading, start):
        winner = start.necessary
        if winner is None:
            return 0 if len(start.winners) > 1 else NOT_SETTLED
        cast = under(profile, ballot_format(target))

        def contested(k):
            asked = {"winner": winner, "reading": reading}
            return self._identifier.contested(cast, target, exempt=k, **asked)

        return breakdown_point(contested, voters=len(profile.ballots))

    def first_vote(self, shape, target, *, exempt, reading):
        """Leaders of the first vote; `None` without such a vote. Its ties had no tie round."""
        profile = shape.initial
        if profile is None:
            return None
        possible = self._asked(profile, target, exempt, reading)
        return possible, self._projected(profile, target, possible, reading)

    def _asked(self, profile, target, exempt, reading):
        plain = under(profile, ballot_format(target))
        return self._identifier.possible(plain, target, exempt=exempt, reading=reading)

    def _possible(self, profile, target, exempt, reading, own):
        if own is None:
            return self._asked(profile, target, exempt, reading)
        if exempt == 0:
            return Possible(own.outcome, settled=True)
        found = self._asked(profile, target, exempt, reading)
        return Possible(tuple(sorted({*own.outcome, *found.winners})), found.settled)

    def _projected(self, profile, target, possible, reading):
        """The projection's outcome, and whether it can be."""
        led = self._leaders(profile, target)
        outcome = _outcome(led, reading)
        tied = led if len(led) > 1 else ()
        impossible = possible.settled and not set(outcome) <= set(possible.winners)
        return Projection(tied, outcome, impossible)

    def _leaders(self, profile, target):
        key = (profile, target)
        if key not in self._led:
            self._led[key] = projected_winners(profile, target, budget=self._budget)
        return self._led[key]


def _outcome(led, reading):
    if not led:
        return (NOBODY,)
    return led[:1] if reading == "fallback" else led
