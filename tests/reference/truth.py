"""A check on the sets, and a measure of them: voters whose preferences are known.

Voters with Gaussian utilities cast one sincere ballot in each format. From the ballots of one
format the possible winners under the others are found; what the voters would really have
elected must be among them. How wide the sets are, and how often the projection hits, is a
result and nothing to be passed or failed.
"""

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from tests.reference.identifier import Identifier
from tests.reference.projection import projected_winners
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, ballot_format
from tutorsim.analysis.identify.possible_winners import NOBODY
from tutorsim.vocabularies import CUMULATIVE_BUDGET, PROTOCOLS

__all__ = ["TRUTH_SCHEMA", "apportioned", "sincere_ballots", "truth_experiment"]

TRUTH_SCHEMA: Final = pl.Schema(
    {
        "logged_protocol": pl.String(),
        "target": pl.String(),
        "profiles": pl.Int64(),
        "settled": pl.Int64(),
        "contained": pl.Int64(),  # settled profiles whose true winner is possible: all of them
        "identified": pl.Float64(),  # share with exactly one possible winner
        "mean_width": pl.Float64(),  # possible winners
        "hit_rate": pl.Float64(),  # share where the projection names the true winner
    }
)
"""One row per logged protocol and target; shares are of settled profiles."""

_GRAIN: Final = 1_000_000


TOLD: Final = tuple(t for t in TARGETS if t not in ("score", "median_score"))
"""Rules whose ballots a drawn preference tells; a score ballot needs a scale too."""


class _Seen(NamedTuple):
    settled: bool
    contained: bool
    width: int
    hit: bool


def sincere_ballots(utilities, *, budget=CUMULATIVE_BUDGET):
    """Each voter's sincere ballot in each format.

    A voter names its best candidate, ranks by utility, spreads points in proportion to
    utility above its worst, and approves of whoever gets more than an equal share of points
    (of everybody, where all get the same).

    Args:
        utilities: Shape (voters, candidates), all different within a voter.
        budget: Points of a cumulative ballot.
    """
    rows = [_sincere(row, budget) for row in utilities]
    return {protocol: tuple(row[protocol] for row in rows) for protocol in PROTOCOLS}


def _sincere(utility, budget):
    m = len(utility)
    rank = np.argsort(np.argsort(utility)).tolist()
    above = np.round((utility - utility.min()) * _GRAIN).astype(int).tolist()
    points = apportioned(tuple(above), budget)
    approved = tuple(int(x * m > budget) for x in points)
    return {
        "simple": tuple(int(place == m - 1) for place in rank),
        "ranked": tuple(rank),
        "cumulative": points,
        "approval": approved if any(approved) else (1,) * m,
    }


def truth_experiment(
    *,
    profiles,
    seed,
    candidates=4,
    voters=4,
    correlation=0.0,
    targets=TOLD,
    budget=CUMULATIVE_BUDGET,
):
    """Draw profiles and compare truth, sets and projections; see `TRUTH_SCHEMA`.

    Ties go to the fallback order.

    Args:
        profiles: How many to draw.
        seed: Of the draws.
        candidates: Number of candidates.
        voters: Number of voters.
        correlation: Between two voters' utilities of one candidate, from 0 to below 1.
        targets: Rules to ask about.
        budget: Points of a cumulative ballot.
    """
    identifier = Identifier(budget=budget)
    drawn = [
        sincere_ballots(utilities, budget=budget)
        for utilities in _utilities(profiles, seed, voters, candidates, correlation)
    ]
    rows = [
        _row(protocol, target, drawn, identifier) for protocol in PROTOCOLS for target in targets
    ]
    return pl.DataFrame(rows, schema=TRUTH_SCHEMA, orient="row")


def _utilities(profiles, seed, voters, candidates, correlation):
    random = np.random.default_rng(seed)
    for _ in range(profiles):
        shared = random.standard_normal(candidates)
        own = random.standard_normal((voters, candidates))
        yield np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


def _row(protocol, target, drawn, identifier):
    seen = [_seen(ballots, protocol, target, identifier) for ballots in drawn]
    settled = [one for one in seen if one.settled]
    n = len(settled)
    return (
        protocol,
        target,
        len(seen),
        n,
        sum(one.contained for one in settled),
        sum(one.width == 1 for one in settled) / n if n else None,
        sum(one.width for one in settled) / n if n else None,
        sum(one.hit for one in settled) / n if n else None,
    )


def _seen(ballots, protocol, target, identifier):
    cast = ballots[protocol]
    profile = Profile(protocol, len(cast[0]), cast)
    truth = Profile(ballot_format(target), profile.size, ballots[ballot_format(target)])
    found = identifier.possible(profile, target, exempt=0, reading="fallback")
    true_winner = _first(truth, target, identifier.budget)
    return _Seen(
        found.settled,
        true_winner in found.winners,
        len(found.winners),
        _first(profile, target, identifier.budget) == true_winner,
    )


def _first(profile, target, budget):
    """The winner under the projection, which for the target's own format is the count itself."""
    led = projected_winners(profile, target, budget=budget)
    return led[0] if led else NOBODY


def apportioned(weights, budget):
    """Points in proportion to weights by largest remainder; equal weights if all are 0.

    Equal remainders go to the candidate that stands first.
    """
    if not any(weights):
        weights = (1,) * len(weights)
    total = sum(weights)
    points = [weight * budget // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda c: -(weights[c] * budget % total))
    for c in by_remainder[: budget - sum(points)]:
        points[c] += 1
    return tuple(points)
