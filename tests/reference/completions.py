"""Plain oracle of `analysis.identify`: every ballot that voters may have cast, one by one."""

from functools import cache, lru_cache
from itertools import combinations, permutations, product

from tests.reference.plain_rules import ranking_of, winners
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, Masses
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    ANY_NUMBER,
    Approvals,
    ballot_format,
)
from tutorsim.ballot_reading_and_decisions import first_in_order

__all__ = [
    "agreeing", "agrees", "approvals_agreeing", "completions", "every_ballot",
    "possible_by_enumeration", "sets_by_enumeration", "tied_winners",
]  # fmt: skip


@cache
def every_ballot(protocol, m, budget):
    """Every ballot of a format, as masses."""
    if protocol == "simple":
        return tuple(tuple(int(d == c) for d in range(m)) for c in range(m))
    if protocol == "ranked":
        return tuple(permutations(range(m)))
    top = 1 if protocol == "approval" else budget
    every = product(range(top + 1), repeat=m)
    return tuple(x for x in every if protocol in ("approval", "score") or sum(x) == budget)


def agrees(ballot, logged, other, target):
    """Whether a sincere voter that cast `ballot` may cast `other`: the table, as it reads."""
    m = len(ballot)
    if logged == target and min(ballot) > LEFT_OUT:
        return ballot == other
    if logged == target == "score":
        return all(own in (LEFT_OUT, new) for own, new in zip(ballot, other, strict=True))
    places = [(a, b) for a in range(m) for b in range(m) if ballot[a] > ballot[b]]
    if target == "simple":
        choice = other.index(1)
        return ballot[choice] == max(ballot)
    if target in ("ranked", "cumulative", "score"):
        return all(other[a] >= other[b] for a, b in places)
    if logged == "simple":
        return other[ballot.index(1)] == 1
    return (
        any(other)
        and all(other[a] >= other[b] for a, b in places)
        and all(
            other[a] == other[b]
            for a, b in combinations(range(m), 2)
            if ballot[a] == ballot[b] != LEFT_OUT
        )
    )


@cache
def approvals_agreeing(ballot, logged, number, top):
    """Every approval of so many candidates that a sincere voter may cast.

    Of any number, equal candidates are approved together or not at all; in a range, a set may
    split them, as long as no outsider is preferred to a member.
    """
    if logged == "approval":
        return (ballot,)
    m = len(ballot)
    least, most = number.of(m)
    sets = [s for s in every_ballot("approval", m, 1) if least <= sum(s) <= most]
    open_ = [range(top + 1) if mass == LEFT_OUT else (mass,) for mass in ballot]
    found: dict[Masses, None] = {}
    for meant in product(*open_) if logged == "score" else (ballot,):
        if number == ANY_NUMBER:
            agree = [s for s in sets if agrees(meant, logged, s, "approval")]
        else:
            above = [(a, b) for a in range(m) for b in range(m) if meant[a] > meant[b]]
            agree = [s for s in sets if all(s[a] >= s[b] for a, b in above)]
        found.update(dict.fromkeys(agree))
    return tuple(found)


@cache
def agreeing(ballot, logged, target, budget):
    every = every_ballot(target, len(ballot), budget)
    meant = (ballot,)
    if logged == "score" != target:  # every score that is left out may be any of the scale
        open_ = [range(budget + 1) if mass == LEFT_OUT else (mass,) for mass in ballot]
        meant = tuple(product(*open_))
    return tuple(
        other for other in every if any(agrees(one, logged, other, target) for one in meant)
    )


def completions(profile, target, budget, exempt):
    """For each choice of exempt voters, what each voter may have cast."""
    if isinstance(target, Approvals):
        yield from _approved(profile, target, budget, exempt)
        return
    form = ballot_format(target)
    for freed in combinations(range(len(profile.ballots)), min(exempt, len(profile.ballots))):
        options: list[tuple[Masses | None, ...]] = []
        for voter, ballot in enumerate(profile.ballots):
            own = (None,) if ballot is None else agreeing(ballot, profile.protocol, form, budget)
            every = every_ballot(form, profile.size, budget)
            options.append((*own, *every) if voter in freed else own)
        yield options


def _approved(profile, number, top, exempt):
    least, most = number.of(profile.size)
    sets = every_ballot("approval", profile.size, 1)
    every = tuple(s for s in sets if least <= sum(s) <= most)
    own = [
        (None,) if b is None else approvals_agreeing(b, profile.protocol, number, top)
        for b in profile.ballots
    ]
    for freed in combinations(range(len(own)), min(exempt, len(own))):
        yield [(*one, *every) if v in freed else one for v, one in enumerate(own)]


@lru_cache(maxsize=1 << 18)
def tied_winners(target, ballots, m):
    names = [str(c) for c in range(m)]
    masses = [{str(c): x for c, x in enumerate(ballot)} for ballot in ballots]
    rankings = [ranking_of(ballot) for ballot in masses]
    found = winners(target, ballots=masses, rankings=rankings, candidates=names)
    return frozenset(int(c) for c in found)


def sets_by_enumeration(profile, target, *, budget, exempt=0):
    """Every set of tied winners over all completions."""
    found: set[frozenset[int]] = set()
    for options in completions(profile, target, budget, exempt):
        for cast in product(*options):
            ballots = tuple(sorted(ballot for ballot in cast if ballot is not None))
            found.add(tied_winners(target, ballots, profile.size))
    return found


def possible_by_enumeration(sets, reading, m):
    """Possible outcomes of winner sets; -1 where nobody wins."""
    order = [str(c) for c in range(m)]
    outcomes: set[int] = {-1} if frozenset() in sets else set()
    for tied in sets - {frozenset()}:
        first = int(first_in_order([str(c) for c in tied], order))
        outcomes |= set(tied) if reading == "set" else {first}
    return tuple(sorted(outcomes))
