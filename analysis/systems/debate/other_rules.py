"""What a rule may decide on ballots that were cast under another one."""

from collections.abc import Sequence
from functools import lru_cache

from tutorsim.analysis.ballots.turn_profiles import Profile
from tutorsim.analysis.identify import Identifier
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import Protocol

__all__ = ["possible_outcomes"]


def possible_outcomes(
    ballots: Sequence[BallotRecord], candidates: Sequence[str], rule: Protocol, *, budget: int
) -> tuple[tuple[str, ...], bool]:
    """Possible winners of a vote under another rule, and whether it may tie.

    Every ballot is taken to rank the candidates as it does in its own format. The answer is an
    outer bound: with several possible winners a tie is always held possible, and a question that
    is too costly leaves every candidate.
    """
    protocol = ballots[0].rule
    masses = tuple(
        tuple(ballot.mass[name] for name in candidates) if ballot.mass else None
        for ballot in ballots
    )
    profile = Profile(protocol, len(candidates), masses)
    possible = _identifier(budget).possible(profile, rule, exempt=0, reading="set")
    if not possible.settled:
        return tuple(candidates), True
    winners = tuple(candidates[place] for place in possible.winners)
    return winners, len(winners) > 1


@lru_cache(maxsize=8)
def _identifier(budget: int) -> Identifier:
    return Identifier(budget=budget)
