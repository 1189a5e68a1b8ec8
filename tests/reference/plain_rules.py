"""Plain oracle of `analysis.counting.voting_rules_in_arrays`: one vote, counted ballot by ballot.

Each rule gives the set of tied winners, never a pick.
"""

from fractions import Fraction
from functools import lru_cache
from math import lcm

from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT
from tutorsim.analysis.counting.names_and_parameters_of_rules import Approvals, RankVector
from tutorsim.ballot_reading_and_decisions import leaders, tally
from tutorsim.vocabularies import PROTOCOLS

__all__ = ["RANKING_RULES", "SCORE_RULES", "margins", "mass_winners", "ranking_of", "winners"]


def ranking_of(masses):
    """The weak order that a ballot's masses show: equal masses share a level."""
    grades = sorted(set(masses.values()), reverse=True)
    return tuple(tuple(c for c, mass in masses.items() if mass == grade) for grade in grades)


def mass_winners(ballots, candidates):
    """The candidates with the largest total mass: the rule of all four protocols."""
    return leaders(tally(ballots, candidates))


def winners(rule, *, ballots=(), rankings=(), candidates):
    """The tied winners under any rule; `rankings` for the rules that read them, else `ballots`.

    Masses of ballots are the scores that they give under the rule.
    """
    if isinstance(rule, (RankVector, Approvals)) or rule in PROTOCOLS:
        return mass_winners(ballots, candidates)
    if rule in SCORE_RULES:
        return SCORE_RULES[rule](ballots, candidates)
    return RANKING_RULES[rule](rankings, candidates)


def margins(rankings, candidates):
    """(a, b) → voters that place a above b, less those that place b above a."""
    return dict(_margins(tuple(rankings), tuple(candidates)))


@lru_cache(maxsize=1 << 12)  # four rules ask for the same
def _margins(rankings, candidates):
    found = {(a, b): 0 for a in candidates for b in candidates if a != b}
    for ranking in rankings:
        level = {c: i for i, tied in enumerate(ranking) for c in tied}
        for a, b in found:
            found[a, b] += (level[a] < level[b]) - (level[a] > level[b])
    return found


def copeland(rankings, candidates):
    """Most pairwise wins, a tie counting half a win."""
    margin = margins(rankings, candidates)
    score = dict.fromkeys(candidates, 0)
    for (a, _), by in margin.items():
        score[a] += 2 if by > 0 else int(by == 0)
    return leaders(score)


def minimax(rankings, candidates):
    """Smallest largest margin against."""
    margin = margins(rankings, candidates)
    worst = {c: max((margin[d, c] for d in candidates if d != c), default=0) for c in candidates}
    return leaders({c: -defeat for c, defeat in worst.items()})


def schulze(rankings, candidates):
    """Nobody has a stronger path to the winner than the winner has back."""
    path = margins(rankings, candidates)
    for via in candidates:
        for a, b in path:
            if via not in (a, b):
                path[a, b] = max(path[a, b], min(path[a, via], path[via, b]))
    return tuple(
        c for c in candidates if all(path[c, d] >= path[d, c] for d in candidates if d != c)
    )


def condorcet(rankings, candidates):
    """The candidate that beats every other one, or nobody."""
    margin = margins(rankings, candidates)
    return tuple(c for c in candidates if all(margin[c, d] > 0 for d in candidates if d != c))


def mean_position(ballots, candidates):
    """Smallest mean place over the ballots that name a candidate; equal masses share their places.

    Whom no ballot names cannot win, unless that is everybody.
    """
    nearness = {}
    for c in candidates:
        named = [ballot for ballot in ballots if ballot[c] != LEFT_OUT]
        places = [
            sum(2 * (ballot[d] > ballot[c]) + (ballot[d] == ballot[c]) for d in candidates)
            for ballot in named
        ]
        if places:
            nearness[c] = -Fraction(sum(places), len(places))
    return _best(nearness, candidates)


def score(ballots, candidates):
    """Largest mean of the scores given; whom nobody scores cannot win, unless that is everybody."""
    given = _scores_given(ballots, candidates)
    return _best({c: Fraction(sum(found), len(found)) for c, found in given.items()}, candidates)


def median_score(ballots, candidates):
    """Largest lower median of the scores given."""
    given = _scores_given(ballots, candidates)
    medians = {c: Fraction(sorted(found)[(len(found) - 1) // 2]) for c, found in given.items()}
    return _best(medians, candidates)


def _scores_given(ballots, candidates):
    given = {c: [b[c] for b in ballots if b[c] != LEFT_OUT] for c in candidates}
    return {c: found for c, found in given.items() if found}


def _best(values, candidates):
    best = max(values.values(), default=None)
    return tuple(c for c in candidates if values.get(c) == best)


def instant_runoff(rankings, candidates):
    """All with the fewest first places leave together, until those left have equally many."""
    standing = tuple(candidates)
    while True:
        firsts = _first_places(rankings, standing)
        fewest = min(firsts.values())
        left = tuple(c for c in standing if firsts[c] > fewest)
        if not left:
            return standing
        standing = left


def _first_places(rankings, standing):
    """Each ballot's one vote, in `_parts`, goes to its best standing level in equal shares."""
    found = dict.fromkeys(standing, 0)
    parts = _parts(standing)
    for ranking in rankings:
        best = next(level for tied in ranking if (level := [c for c in tied if c in found]))
        for c in best:
            found[c] += parts // len(best)
    return found


def bucklin(rankings, candidates):
    """Widen the count place by place until one is on more than half of the ballots."""
    ballots = len(rankings) * _parts(candidates)
    for depth in range(1, len(candidates) + 1):
        counts = _places(rankings, candidates, depth)
        if 2 * max(counts.values()) > ballots:
            return leaders(counts)
    return tuple(candidates)


def _places(rankings, candidates, depth):
    """How many ballots, in `_parts`, have a candidate among their first `depth` places."""
    found = dict.fromkeys(candidates, 0)
    parts = _parts(candidates)
    for ranking in rankings:
        left = depth
        for tied in ranking:
            share = parts // len(tied) * min(left, len(tied))
            for c in tied:
                found[c] += share
            left -= len(tied)
            if left <= 0:
                break
    return found


def _parts(candidates):
    """The parts of one vote: a level of any size shares them out whole."""
    return lcm(*range(1, len(candidates) + 1))


RANKING_RULES = {
    "copeland": copeland,
    "minimax": minimax,
    "instant_runoff": instant_runoff,
    "schulze": schulze,
    "bucklin": bucklin,
    "condorcet": condorcet,
}
"""The rules that read rankings, by name."""


SCORE_RULES = {"mean_position": mean_position, "score": score, "median_score": median_score}
"""The rules that ask of each candidate only who names it."""
