"""Plain oracle of `winners_as_logged_and_with_votes_changed`: one turn at a time, by `decide`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tests.reference.turns import TurnBallots
from tutorsim.analysis.ballots.vote_arrays_and_profiles import TurnKey
from tutorsim.ballot_reading_and_decisions import decide, leaders, tally
from tutorsim.vocabularies import BallotFormat

__all__ = [
    "Ballots", "Case", "Cases", "Change", "Outcome", "cast_by", "decided", "decided_without_each",
    "gather", "leading", "redecided",
]  # fmt: skip

Ballots = list[tuple[str, dict[str, int]]]
"""Voter and masses of each ballot cast."""

Change = Callable[[Ballots], Ballots]
"""What a scenario does to the ballots of one stage."""


class Case(NamedTuple):
    """The ballots of a turn."""

    final: TurnBallots
    initial: TurnBallots | None
    """`None` where no first vote was held."""
    tie: TurnBallots | None
    """`None` where no tie round was held."""

    @property
    def protocol(self) -> BallotFormat:
        """What the ballots count under."""
        return self.final.profile.protocol


Cases = Mapping[Case, Sequence[TurnKey]]


class Outcome(NamedTuple):
    """How a recount of one turn ends."""

    standing: tuple[str, ...]
    """Who may have won: several only where a tie was never put to a tie round."""
    winner: str
    """The first of those in the order."""
    led: tuple[str, ...]
    """Who led the final vote; several where it was tied."""
    undecided: tuple[str, ...]
    """What counting left, after a tie round where it applies."""
    tied_set: tuple[str, ...]
    """The last tie; empty where one led the final vote alone."""


def gather(turns):
    """Every case with its turns, in the order of first appearance."""
    found: dict[Case, list[TurnKey]] = {}
    for key, final in turns.final.items():
        case = Case(final, turns.initial.get(key), turns.tie.get(key))
        found.setdefault(case, []).append(key)
    return found


def cast_by(ballots):
    """Who cast what, abstentions left out."""
    pairs = zip(ballots.voters, ballots.profile.ballots, strict=True)
    return [(voter, ballots.named(ballot)) for voter, ballot in pairs if ballot is not None]


def decided(case, *, order, change=None):
    """Decide a turn again, its ballots changed.

    A tied set that the log put to a tie round is decided by that round, changed likewise; one
    that the log itself left to the order goes to the order. Any other tie stays open.
    """

    def changed(ballots):
        return change(cast_by(ballots)) if change else cast_by(ballots)

    return redecided(
        changed(case.final),
        case.final.candidates,
        order=order,
        logged=leading(cast_by(case.final), case.final.candidates),
        tie=None if case.tie is None else changed(case.tie),
    )


def decided_without_each(case, *, order):
    """Decide a turn again without one voter, for each voter of the final vote.

    Only totals decide, so a voter's masses are taken off them; voters that cast alike are
    decided once.
    """
    candidates = case.final.candidates
    final = _by_voter(cast_by(case.final))
    tie = None if case.tie is None else _by_voter(cast_by(case.tie))
    logged = leading(cast_by(case.final), candidates)
    of_final = _sums(final)
    of_tie = None if tie is None else _sums(tie)
    found: dict[object, Outcome] = {}
    outcomes = []
    for voter in case.final.voters:
        own = final.get(voter, Counter())
        again = Counter() if tie is None else tie.get(voter, Counter())
        cast = (tuple(own.items()), tuple(again.items()))
        if cast not in found:
            found[cast] = redecided(
                _rest(of_final, own),
                candidates,
                order=order,
                logged=logged,
                tie=None if of_tie is None else _rest(of_tie, again),
            )
        outcomes.append(found[cast])
    return outcomes


def _by_voter(cast):
    found: dict[str, Counter[str]] = {}
    for voter, masses in cast:
        found.setdefault(voter, Counter()).update(masses)
    return found


def _sums(cast):
    total = Counter[str]()
    for masses in cast.values():
        total.update(masses)
    return total


def _rest(total, own):
    """What all the others cast together."""
    return [("", {c: mass - own.get(c, 0) for c, mass in total.items()})]


def redecided(final, candidates, *, order, logged, tie):
    """Decide from ballots.

    Args:
        final: Ballots of the final vote, as changed.
        candidates: All candidates.
        order: The fallback order.
        logged: Who led the logged final vote; a tie round was held among these.
        tie: Ballots of that tie round, as changed, or `None` when none was held.
    """
    cast = [masses for _, masses in final]
    decision = decide(cast, candidates, order=order)
    led = leaders(decision.tallies)
    as_logged = set(led) == set(logged)
    if as_logged and len(led) > 1 and tie is not None:
        again = [masses for _, masses in tie]
        decision = decide(cast, candidates, order=order, tie_round=again)
    standing = (decision.winner,) if as_logged else led
    return Outcome(standing, decision.winner, led, decision.undecided, decision.tied_set)


def leading(ballots, candidates):
    """Who has the largest total."""
    return leaders(tally([masses for _, masses in ballots], candidates))
