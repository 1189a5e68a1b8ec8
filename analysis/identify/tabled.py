"""Possible winners of many turns: small panels by table, all others by search."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import Domain, domain_of
from analysis.identify.panels import ABSENT, Winners, covered, winners_of
from analysis.identify.possible import NOBODY, Identifier, Possible, TieReading
from analysis.identify.search import WORK_LIMIT
from analysis.profiles import Masses, Profile
from analysis.rules import Target, ballot_format
from tutorsim.errors import UsageError
from tutorsim.types import CUMULATIVE_BUDGET, BallotFormat, Protocol

__all__ = ["TabledIdentifier", "numbered", "possible_of", "possible_winners"]

_DENSE: Final = 1 << 22
"""Ballots that a table of all possible masses may have."""


_WORTH: Final = 64
"""Panels that may be looked up in a table for each turn that there is."""


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
        number: dict[Masses, int] = {}
        panels = np.full((len(group), n), ABSENT, dtype=np.int64)
        plain = [profile.under(ballot_format(target)) for profile in group]
        for row, profile in enumerate(plain):
            for voter, ballot in enumerate(profile.ballots):
                if ballot is not None:
                    panels[row, voter] = number.setdefault(ballot, len(number))
        rule = plain[0].rule
        of_ballot = [domain_of(b, protocol=rule, target=target) for b in number]
        domains = list(dict.fromkeys(of_ballot))
        if not covered(target, m, n, budget=self.budget, domains=domains):
            return
        place = {domain: i for i, domain in enumerate(domains)}
        numbers = np.array([place[d] for d in of_ballot] + [ABSENT], dtype=np.int64)
        found = winners_of(target, numbers[panels], domains, m=m, budget=self.budget, exempt=n)
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
    masses: NDArray[np.int64],
    protocol: Protocol,
    target: Target,
    *,
    exempt: int = 0,
    budget: int = CUMULATIVE_BUDGET,
) -> Winners:
    """Possible winners of many turns of one size, from an array of their ballots.

    Args:
        masses: Shape (turns, voters, candidates), candidates in the role-priority order; below
            0 in every cell of a voter who abstained.
        protocol: Of the ballots.
        target: The rule.
        exempt: Most exempt voters to answer for.
        budget: Points of a cumulative ballot.

    Raises:
        UsageError: If the panels are too large for tables.
    """
    numbers, ballots = numbered(masses)
    return possible_of(
        numbers,
        ballots,
        protocol,
        target,
        m=masses.shape[2],
        exempt=exempt,
        budget=budget,
    )


def possible_of(
    numbers: NDArray[np.int64],
    ballots: Sequence[Masses],
    protocol: Protocol,
    target: Target,
    *,
    m: int,
    exempt: int,
    budget: int,
) -> Winners:
    """As `possible_winners`, of turns whose ballots were numbered by `numbered`."""
    n = numbers.shape[1]
    of_ballot = [domain_of(b, protocol=protocol, target=target) for b in ballots]
    domains: list[Domain] = list(dict.fromkeys(of_ballot))
    if not covered(target, m, n, budget=budget, domains=domains):
        raise UsageError(
            f"Panels of {n} voters over {m} candidates are too large for tables of {target}.",
            hint="Ask `analysis.identify.Identifier` about single profiles.",
        )
    place = {domain: i for i, domain in enumerate(domains)}
    table = np.array([place[d] for d in of_ballot] + [ABSENT], dtype=np.int16)
    rows, index = _distinct_panels(np.sort(table[numbers], axis=1), len(domains))
    found = winners_of(target, rows, domains, m=m, budget=budget, exempt=exempt)
    return Winners(found.fallback[index], found.tied[index])


def numbered(masses: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[Masses]]:
    """Ballots by number, -1 for an abstention, and what the numbers stand for.

    Args:
        masses: Shape (turns, voters, candidates); below 0 where a voter abstained.
    """
    code, base = _codes(masses)
    seen = _seen(code)
    ballots = [_ballot(c, base, masses.shape[2]) for c in seen.tolist() if c >= 0]
    absent = len(seen) - len(ballots)
    return _looked_up(code, seen, np.arange(len(seen)) - absent), ballots


def _codes(masses: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """A number for each ballot, -1 for an abstention, and the base of its digits."""
    base = int(masses.max(initial=0)) + 1
    code = np.zeros(masses.shape[:2], dtype=np.int64)
    for c in range(masses.shape[2]):
        code *= base
        code += masses[:, :, c]
    return np.where(masses[:, :, 0] < 0, -1, code), base


def _ballot(code: int, base: int, m: int) -> Masses:
    digits = []
    for _ in range(m):
        code, digit = divmod(code, base)
        digits.append(digit)
    return tuple(reversed(digits))


def _seen(code: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes that occur, sorted."""
    if code.size and int(code.max()) < _DENSE:
        return np.flatnonzero(np.bincount(code.ravel() + 1)) - 1
    return np.unique(code)


def _looked_up(
    code: NDArray[np.int64], seen: NDArray[np.int64], numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    if len(seen) and int(seen[-1]) < _DENSE:
        table = np.zeros(int(seen[-1]) + 2, dtype=np.int64)
        table[seen + 1] = numbers
        return np.asarray(table[code + 1])
    return np.asarray(numbers[np.searchsorted(seen, code)])


def _distinct_panels(
    panels: NDArray[np.int16], domains: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different rows, and where each row is among them."""
    base, n = domains + 1, panels.shape[1]
    code = np.zeros(len(panels), dtype=np.int64)
    for voter in range(n):
        code *= base
        code += panels[:, voter] + 1
    if base**n <= _WORTH * len(panels):
        found = np.flatnonzero(np.bincount(code, minlength=1))
        index = np.zeros(base**n, dtype=np.int32)
        index[found] = np.arange(len(found), dtype=np.int32)
        where = index[code].astype(np.int64)
    else:
        found, where = np.unique(code, return_inverse=True)
    rows = found[:, None] // base ** np.arange(n - 1, -1, -1) % base - 1
    return rows, where
