"""Possible winners of many turns: small panels by table, all others by search."""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

import numpy as np

from analysis.identify.domains import Domain, domain_of
from analysis.identify.halves import labels_of, panel_table
from analysis.identify.numbering import RAISED, BallotCells, Book, Numbers, numbered
from analysis.identify.outcomes import tabled
from analysis.identify.panels import Winners, added_up, covered, looked_up
from analysis.identify.possible import NOBODY, Identifier, Possible, TieReading
from analysis.identify.search import WORK_LIMIT
from analysis.profiles import Masses, Profile
from analysis.rules import Target, ballot_format
from tutorsim.errors import UsageError
from tutorsim.types import CUMULATIVE_BUDGET, BallotFormat, Protocol

__all__ = ["TabledIdentifier", "domains_for", "possible_of", "possible_winners"]


class TabledIdentifier(Identifier):
    """An `Identifier` that answers for the panels it has learned without a search.

    Answers are equal; a small panel is settled whatever the limit is.
    """

    def __init__(self, *, budget: int, limit: int = WORK_LIMIT) -> None:
        super().__init__(budget=budget, limit=limit)
        self._known: dict[tuple[Profile, Target], tuple[bytes, bytes]] = {}

    def learn(self, profiles: Iterable[Profile], targets: Sequence[Target]) -> None:
        """Answer every question about profiles at once.

        Profiles that are too large stay for the search.
        """
        groups: dict[tuple[BallotFormat, int, int], list[Profile]] = {}
        for profile in dict.fromkeys(profiles):
            key = (profile.protocol, profile.size, len(profile.ballots))
            groups.setdefault(key, []).append(profile)
        for (_, m, n), group in groups.items():
            for target in targets:
                self._learn(group, target, m, n)

    def _learn(self, group: Sequence[Profile], target: Target, m: int, n: int) -> None:
        plain = [profile.under(ballot_format(target)) for profile in group]
        cast = [ballot or (-1,) * m for profile in plain for ballot in profile.ballots]
        numbers, ballots = numbered(np.array(cast, dtype=np.int64).reshape(len(group), n, m))
        rule = plain[0].rule
        domains = domains_for(ballots, rule, target)
        if not covered(target, m, n, budget=self.budget, domains=domains):
            return
        found = possible_of(numbers, ballots, rule, target, m=m, exempt=n, budget=self.budget)
        rows = zip(group, found.fallback, found.tied, strict=True)
        self._known |= {(p, target): (f.tobytes(), t.tobytes()) for p, f, t in rows}

    def possible(
        self, profile: Profile, target: Target, *, exempt: int, reading: TieReading
    ) -> Possible:
        bits = self._bits(profile, target, exempt, reading)
        if bits is None:
            return super().possible(profile, target, exempt=exempt, reading=reading)
        return _possible(bits)

    def contested(
        self, profile: Profile, target: Target, *, winner: int, exempt: int, reading: TieReading
    ) -> bool | None:
        bits = self._bits(profile, target, exempt, reading)
        if bits is None:
            return super().contested(profile, target, winner=winner, exempt=exempt, reading=reading)
        return bool(bits & ~(1 << (winner + 1)))

    def _bits(
        self, profile: Profile, target: Target, exempt: int, reading: TieReading
    ) -> int | None:
        known = self._known.get((profile, target))
        if known is None:
            return None
        return known[reading == "set"][min(exempt, len(profile.ballots))]


@cache
def _possible(bits: int) -> Possible:
    winners = tuple(c for c in range(NOBODY, bits.bit_length() - 1) if bits >> (c + 1) & 1)
    return Possible(winners, settled=True)


def possible_winners(
    masses: BallotCells,
    protocol: Protocol,
    target: Target,
    *,
    exempt: int = 0,
    budget: int = CUMULATIVE_BUDGET,
) -> Winners:
    """Possible winners of many turns of one size, from an array of their ballots.

    Args:
        masses: Shape (turns, voters, candidates), candidates in the role-priority order; below
            0 in every cell of a voter who abstained. Integers of any size; bytes are read fastest.
        protocol: Of the ballots.
        target: The rule.
        exempt: Most exempt voters to answer for.
        budget: Points of a cumulative ballot.

    Raises:
        UsageError: If the panels are too large for tables.
    """
    turns, n, m = masses.shape
    if target == "cumulative" or not tabled(target, m, n):
        numbers, ballots = numbered(masses)
        return possible_of(numbers, ballots, protocol, target, m=m, exempt=exempt, budget=budget)
    book = _book(protocol, target, m)
    table = panel_table(target, m, n, labels_of(protocol, target, m).sets)
    return looked_up(table, turns, lambda part: book.entries(masses[part]), exempt=exempt)


@lru_cache(maxsize=16)
def _book(protocol: Protocol, target: Target, m: int) -> Book:
    """What each ballot leaves possible, of the ballots met so far."""
    return Book(labels_of(protocol, target, m).of, m)


def possible_of(
    numbers: Numbers,
    ballots: Sequence[Masses],
    protocol: Protocol,
    target: Target,
    *,
    m: int,
    exempt: int,
    budget: int,
) -> Winners:
    """As `possible_winners`, of turns whose ballots were `numbered`."""
    turns, n = numbers.shape
    domains = domains_for(ballots, protocol, target)
    if not covered(target, m, n, budget=budget, domains=domains):
        raise UsageError(
            f"Panels of {n} voters over {m} candidates are too large for tables of {target}.",
            hint="Ask `analysis.identify.Identifier` about single profiles.",
        )
    if target == "cumulative":
        return added_up(numbers, domains, m=m, budget=budget, exempt=exempt)
    labels = labels_of(protocol, target, m)
    names = labels.of(np.array(ballots).reshape(-1, m))
    entry = np.append(names, -1).astype(np.int16) + np.int16(RAISED)
    table = panel_table(target, m, n, labels.sets)
    return looked_up(table, turns, lambda part: entry[numbers[part].T], exempt=exempt)


def domains_for(ballots: Sequence[Masses], protocol: Protocol, target: Target) -> list[Domain]:
    """Only of points; other panels are covered, or not, whatever was cast."""
    if target != "cumulative":
        return []
    return [domain_of(ballot, protocol=protocol, target=target) for ballot in ballots]
