"""Sums of ballot masses, ties, and the way to one winner, each step kept; masses are integers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tutorsim.vocabularies import DecidedBy


def tally(masses: Iterable[Mapping[str, int]], candidates: Sequence[str]) -> dict[str, int]:
    """Sum the mass of each candidate over ballots.

    `masses`: one mapping candidate → mass per ballot; absent candidates have no mass. An abstention
    is an empty mapping. `candidates`: who stands, in the order that the result keeps. Returns
    candidate → total mass, every candidate present.
    """
    total = dict.fromkeys(candidates, 0)
    for mass in masses:
        for candidate in candidates:
            total[candidate] += mass.get(candidate, 0)
    return total


def leaders(tallies: Mapping[str, int]) -> tuple[str, ...]:
    """Candidates with the largest total, in the mapping's order.

    All candidates lead when every total is zero: nobody voted, everybody is tied.
    """
    top = max(tallies.values())
    return tuple(candidate for candidate, total in tallies.items() if total == top)


def first_in_order(tied: Iterable[str], order: Sequence[str]) -> str:
    """The candidate of `tied` that stands first in the fallback `order`.

    Raises `ValueError` if no tied candidate is in `order`.
    """
    members = set(tied)
    for candidate in order:
        if candidate in members:
            return candidate
    raise ValueError(f"no candidate of {sorted(members)} is in the order {list(order)}")


# --- Decide winner -------------------------------------------------------------------------------


class Step(BaseModel):
    """One step towards a winner."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: Literal["vote_final", "tie_vote", "fallback"]
    """Which count, or the fallback order."""
    tallies: dict[str, int] | None
    """Mass per candidate in this count; `None` for the fallback, which counts nothing."""
    remaining: tuple[str, ...]
    """Candidates still standing after the step; one when it decided."""


class Decision(BaseModel):
    """How the reply of one turn was chosen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tallies: dict[str, int]
    """Mass per candidate in the final vote, before any tie round."""
    tied_set: tuple[str, ...]
    """The last set of candidates found level: what the fallback chose among, or what the tie
    round resolved. Empty when one candidate led the final vote alone."""
    steps: tuple[Step, ...] = ()
    """Every step taken, in order; the last one left a single candidate."""
    decided_by: DecidedBy
    winner: str

    @property
    def tied_in_vote(self) -> tuple[str, ...]:
        """Candidates tied in the final vote, before any tie round; empty when one led alone."""
        first = leaders(self.tallies)
        return first if len(first) > 1 else ()

    @property
    def undecided(self) -> tuple[str, ...]:
        """The candidates that the counting left: more than one only where the order decided.

        The winner under another fallback order is the first of these in that order.
        """
        return self.tied_set if self.decided_by == "fallback" else (self.winner,)


def decide(
    final: Iterable[Mapping[str, int]],
    candidates: Sequence[str],
    *,
    order: Sequence[str],
    tie_round: Iterable[Mapping[str, int]] | None = None,
) -> Decision:
    """Choose the winner of a turn.

    The largest sum wins. A tie goes to the tie round where one was held (the same
    protocol among the tied candidates), and what is still tied then to the
    fallback order, which picks among *those* candidates only.

    `final`: masses of the final ballots, an empty mapping for an abstention. `order`: the fallback
    order; every candidate is in it. `tie_round`: masses of the tie-round ballots, or `None` when no
    tie round was held.
    """
    tallies = tally(final, candidates)
    standing = leaders(tallies)
    tied: tuple[str, ...] = ()
    steps = [Step(step="vote_final", tallies=tallies, remaining=standing)]
    decided_by: DecidedBy = "vote"
    if len(standing) > 1 and tie_round is not None:
        tied = standing
        again = tally(tie_round, standing)
        standing = leaders(again)
        steps.append(Step(step="tie_vote", tallies=again, remaining=standing))
        decided_by = "tie_round"
    if len(standing) > 1:
        tied = standing
        standing = (first_in_order(standing, order),)
        steps.append(Step(step="fallback", tallies=None, remaining=standing))
        decided_by = "fallback"
    return Decision(
        tallies=tallies,
        tied_set=tied,
        steps=tuple(steps),
        decided_by=decided_by,
        winner=standing[0],
    )
