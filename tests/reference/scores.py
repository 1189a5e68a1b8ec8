"""Plain oracle of scores by rank: every choice of rankings that voters may have cast."""

from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product

__all__ = ["breakdown", "elected", "leaders", "point", "rankings_of", "winner_sets"]

Ranking = tuple[int, ...]


def rankings_of(ballot, m):
    """Every ranking, best first, in which nobody stands behind a candidate with less mass."""
    if ballot is None:
        return [None]
    return [
        order
        for order in permutations(range(m))
        if all(ballot[a] >= ballot[b] for a, b in pairwise(order))
    ]


def leaders(cast, scores):
    """The candidates with the largest sum."""
    total: list[Fraction | int] = [0] * len(scores)
    for ranking in cast:
        for rank, c in enumerate(ranking or ()):
            total[c] += scores[rank]
    return frozenset(c for c, score in enumerate(total) if score == max(total))


@lru_cache(maxsize=1 << 10)
def winner_sets(ballots, scores, exempt):
    """Every set of tied winners, exempt voters casting any ranking."""
    known = [rankings_of(ballot, len(scores)) for ballot in ballots]
    every = list(permutations(range(len(scores))))
    return frozenset(
        leaders(cast, scores)
        for freed in combinations(range(len(ballots)), min(exempt, len(ballots)))
        for cast in product(*([*own, *every] if v in freed else own for v, own in enumerate(known)))
    )


def elected(ballots, scores, exempt, reading):
    """Who may win."""
    sets = winner_sets(tuple(ballots), tuple(scores), exempt)
    return set().union(*(tied if reading == "set" else {min(tied)} for tied in sets))


def breakdown(ballots, scores, reading):
    """Exempt voters that it takes until a second may win; `None` if no number does."""
    numbers = range(len(ballots) + 1)
    several = (k for k in numbers if len(elected(ballots, scores, k, reading)) > 1)
    return next(several, None)


def point(ballots, scores):
    """The largest sums where each ballot counts as the mean over its rankings."""
    total = [Fraction(0)] * len(scores)
    for ballot in ballots:
        rankings = [ranking for ranking in rankings_of(ballot, len(scores)) if ranking]
        for ranking in rankings:
            for rank, c in enumerate(ranking):
                total[c] += Fraction(scores[rank]) / len(rankings)
    return frozenset(c for c, score in enumerate(total) if score == max(total))
