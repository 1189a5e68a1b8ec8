"""How fast ballots are recounted, each beside a reference in the same test."""

from collections import Counter
from functools import cache
from itertools import permutations, product
from math import prod
from typing import Any, Final

import numpy as np
import polars as pl
import pytest

from tests.benchmarks.ballots import masses
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import DistinctPanels
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import largest
from tutorsim.analysis.identify.possible_winners import table_ends
from tutorsim.analysis.recount import count_parts, recount
from tutorsim.analysis.recount.recount_plan_and_own_rules import make_plan
from tutorsim.analysis.recount.result_models import OrderTable
from tutorsim.analysis.recount.winners_under_other_orders_ties_electorates_readings import (
    sweep_orders,
    tied_sets,
)
from tutorsim.ballot_reading_and_decisions import first_in_order
from tutorsim.vocabularies import CUMULATIVE_BUDGET, DEFAULT_ROLES, PROTOCOLS

TURNS: Final = 1_000_000
NEEDED: Final = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
SAMPLE: Final = 40
"""Turns that plain enumeration answers for."""
FEW_POINTS: Final = 4
PAIRS: Final = [(p, q) for p in PROTOCOLS for q in PROTOCOLS if p != q]


def possible_winners(cast, protocol, target, budget=CUMULATIVE_BUDGET):
    """Possible winners of each turn, ties to the order, as bits."""
    voted = np.ones(cast.shape[:2], dtype=np.bool_)
    panels = DistinctPanels.find(cast, voted, protocol)
    ends = table_ends(panels, [target], budget=budget)[target]
    return np.asarray((ends[0] & 255)[panels.of])


def test_every_order_costs_little_more_than_reading(side_by_side, million):
    swept: list[OrderTable] = []

    def sweep():
        swept[:] = recount(open_source(million), tables=("orders",)).orders[:1]
        assert swept[0].orders == 24

    found = side_by_side.time(lambda: pl.read_parquet(million, columns=NEEDED), sweep)
    assert swept[0].turns == TURNS
    side_by_side.note(
        what="all 24 fallback orders on 1,000,000 turns from Parquet, ballots checked",
        reference=f"reading the columns with polars ({found.reference:.2f} s)",
        target="at most 3 × its time",
        ratio=found.candidate / found.reference,
        unit="× its time",
    )


def test_all_orders_cost_no_more_than_one(side_by_side, million):
    source = open_source(million)
    tied = tied_sets(count_parts(source.parts(), make_plan(source, tables=("orders",))).ended)
    won: list[Counter[str]] = []

    def count_one_order():
        won[:] = [Counter()]
        for undecided, n in tied.items():
            won[0][first_in_order(undecided, DEFAULT_ROLES)] += n

    swept: list[Any] = []
    found = side_by_side.time(
        count_one_order, lambda: swept.extend(sweep_orders(tied, order=DEFAULT_ROLES)), rounds=20
    )
    assert swept[0][0].tolist() == [won[0][role] for role in DEFAULT_ROLES]
    side_by_side.note(
        what="a fallback order besides the first, once the tied sets are counted",
        reference=f"one order ({found.reference * 1e6:,.0f} µs)",
        target="a few microseconds",
        ratio=(found.candidate - found.reference) / (len(swept[0]) - 1) * 1e6,
        unit="µs",
    )


@cache
def every_ballot(form, m, budget):
    """All ballots of a format as masses."""
    if form == "ranked":
        return list(permutations(range(m)))
    most = budget if form == "cumulative" else 1
    total = {"simple": 1, "cumulative": budget}.get(form)
    return [x for x in product(range(most + 1), repeat=m) if total in (None, sum(x))]


def consistent(ballot, protocol, target, budget):
    """What a sincere voter who cast a ballot may cast in another format: the table, as it reads."""
    every = every_ballot(target, len(ballot), budget)
    if target == "simple":
        return [x for x in every if ballot[x.index(1)] == max(ballot)]
    if protocol == "simple" and target == "approval":
        return [x for x in every if x[ballot.index(1)]]
    pairs = list(product(range(len(ballot)), repeat=2))
    above = [(a, b) for a, b in pairs if ballot[a] > ballot[b]]
    found = [x for x in every if all(x[a] >= x[b] for a, b in above)]
    if target == "approval":
        equal = [(a, b) for a, b in pairs if ballot[a] == ballot[b]]
        found = [x for x in found if any(x) and all(x[a] == x[b] for a, b in equal)]
    return found


def enumerated(cast, protocol, target, budget=CUMULATIVE_BUDGET):
    """Possible winners of one turn, as bits: every combination of consistent ballots counted."""
    options = [consistent(ballot, protocol, target, budget) for ballot in cast.tolist()]
    found = 0
    for ballots in product(*options):
        totals = [sum(column) for column in zip(*ballots, strict=True)]
        found |= 2 << totals.index(max(totals))
    return found


@pytest.mark.parametrize("kind", [np.int8, np.int64])
@pytest.mark.parametrize(("protocol", "target"), [p for p in PAIRS if p[1] != "cumulative"])
def test_possible_winners_beside_plain_enumeration(side_by_side, protocol, target, kind):
    """Integers of 64 bits take eight times the memory, and reading them most of the time."""
    cast = masses(protocol, TURNS, np.random.default_rng(2)).astype(kind)
    plain: list[int] = []
    last: list[Any] = []

    def enumerate_sample():
        plain[:] = [enumerated(turn, protocol, target) for turn in cast[:SAMPLE]]

    found = side_by_side.time(
        enumerate_sample, lambda: last.append(possible_winners(cast, protocol, target)), rounds=5
    )
    assert last[-1][:SAMPLE].tolist() == plain
    per_turn = found.reference / SAMPLE
    side_by_side.note(
        what=f"possible winners on 1,000,000 turns of {kind.__name__}, {protocol} → {target}",
        reference=f"plain enumeration ({per_turn * 1e6:,.0f} µs a turn, on {SAMPLE} turns)",
        target="at least 1,000 × faster",
        ratio=per_turn / (found.candidate / TURNS),
        unit=f"× faster, {pl.thread_pool_size()} threads",
    )


@pytest.mark.parametrize(("protocol", "target"), [p for p in PAIRS if p[1] == "cumulative"])
def test_possible_winners_where_enumeration_would_not_end(side_by_side, protocol, target):
    """Points have too many completions: what a million of them take is measured instead.

    With few points there are few, and then all are counted, so that answers can be compared.
    """
    cast = masses(protocol, TURNS, np.random.default_rng(2))
    with_few = possible_winners(cast[:SAMPLE], protocol, target, budget=FEW_POINTS)
    assert with_few.tolist() == [
        enumerated(turn, protocol, target, FEW_POINTS) for turn in cast[:SAMPLE]
    ]
    counts = [
        prod(len(consistent(b, protocol, target, CUMULATIVE_BUDGET)) for b in turn)
        for turn in cast[:20].tolist()
    ]
    ballots = every_ballot(target, 4, CUMULATIVE_BUDGET)[:10]
    completions = list(product(ballots, repeat=4))

    def count_completions():
        for chosen in completions:
            totals = [sum(column) for column in zip(*chosen, strict=True)]
            totals.index(max(totals))

    found = side_by_side.time(
        count_completions, lambda: possible_winners(cast, protocol, target), rounds=2
    )
    each = found.reference / len(completions) * float(np.mean(counts))
    side_by_side.note(
        what=f"possible winners on 1,000,000 turns, {protocol} → {target}",
        reference=f"plain enumeration, extrapolated from 10,000 completions ({each:.3g} s a turn)",
        target="at least 1,000 × faster",
        ratio=each / (found.candidate / TURNS),
        unit="× faster",
    )


def library_winners(protocol):
    """One profile's winners by the independent library."""
    from pref_voting.grade_methods import approval
    from pref_voting.grade_profiles import GradeProfile
    from pref_voting.profiles import Profile
    from pref_voting.scoring_methods import borda, plurality

    def ranked(turn):
        return list(borda(Profile([sorted(range(4), key=lambda c: -b[c]) for b in turn])))

    def simple(turn):
        return list(plurality(Profile([sorted(range(4), key=lambda c: -b[c]) for b in turn])))

    def graded(turn):
        maps = [dict(enumerate(b)) for b in turn]
        grades = list(range(2 if protocol == "approval" else CUMULATIVE_BUDGET + 1))
        profile = GradeProfile(maps, grades, candidates=list(range(4)))
        if protocol == "approval":
            return list(approval(profile))
        sums = {c: profile.sum(c) for c in range(4)}
        return [c for c in sums if sums[c] == max(sums.values())]

    return {"simple": simple, "ranked": ranked}.get(protocol, graded)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tallies_beside_an_independent_library(side_by_side, protocol):
    sample = 500
    cast = masses(protocol, TURNS, np.random.default_rng(3))
    some = cast[:sample].tolist()
    theirs: list[list[int]] = []
    ours: list[Any] = []
    count = library_winners(protocol)
    count(some[0])  # what it compiles at first is not counted

    def ask_the_library():
        theirs[:] = [sorted(count(turn)) for turn in some]

    def ask_us():
        ours[:] = [largest(cast.sum(axis=1))]

    found = side_by_side.time(ask_the_library, ask_us)
    assert [np.flatnonzero(row).tolist() for row in ours[0][:sample]] == theirs
    per_turn = found.reference / sample
    side_by_side.note(
        what=f"the {protocol} tally on 1,000,000 turns",
        reference=f"pref_voting, profile by profile ({per_turn * 1e6:,.0f} µs each, on {sample})",
        target="at least 500 × faster",
        ratio=per_turn / (found.candidate / TURNS),
        unit="× faster",
    )
