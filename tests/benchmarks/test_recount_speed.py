"""How fast ballots are recounted, each beside a reference in the same test."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pytest

from analysis.identify.domains import domain_of
from analysis.identify.outcomes import allowed, ballots_of
from analysis.identify.tabled import possible_winners
from analysis.recount import order_table
from analysis.recount.arrayed import leading_sets
from analysis.rules import ballot_format
from analysis.tally import count_tied_sets
from tests.benchmarks.ballots import ballots_frame, masses
from tests.benchmarks.sides import SideBySide
from tutorsim.types import CUMULATIVE_BUDGET, DEFAULT_ROLES, PROTOCOLS, Protocol

TURNS: Final = 1_000_000
NEEDED: Final = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
PAIRS: Final = [(p, q) for p in PROTOCOLS for q in PROTOCOLS if p != q]


@pytest.fixture(scope="session")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ballots of a million turns in one Parquet file."""
    path = tmp_path_factory.mktemp("million") / "ballots.parquet"
    ballots_frame(TURNS, seed=1).write_parquet(path)
    return path


def test_every_order_costs_little_more_than_reading(
    side_by_side: SideBySide, million: Path
) -> None:
    tied: list[Any] = []

    def sweep() -> None:
        tied[:] = [count_tied_sets(pl.scan_parquet(million))]
        assert order_table(tied[0], order=DEFAULT_ROLES, protocol=None).orders == 24

    found = side_by_side.time(lambda: pl.read_parquet(million, columns=NEEDED), sweep)
    assert tied[0].turns == TURNS
    side_by_side.note(
        what="all 24 fallback orders on 1,000,000 turns from Parquet",
        reference=f"reading the columns with polars ({found.reference:.2f} s)",
        target="at most 3 × its time",
        ratio=found.candidate / found.reference,
        unit="× its time",
    )


def test_all_orders_cost_no_more_than_one(side_by_side: SideBySide, million: Path) -> None:
    tied = count_tied_sets(pl.scan_parquet(million))
    found = side_by_side.time(
        lambda: pl.scan_parquet(million).select(pl.len()).collect(),
        lambda: order_table(tied, order=DEFAULT_ROLES, protocol=None),
    )
    side_by_side.note(
        what="all 24 orders once the tied sets of 1,000,000 turns are counted",
        reference="none",
        target="independent of the turns",
        ratio=found.candidate * 1e6,
        unit="µs",
    )


def enumerated(cast: np.ndarray[Any, Any], protocol: Protocol, target: Protocol) -> set[int]:
    """Possible winners of one turn, every combination of consistent ballots counted."""
    form = ballot_format(target)
    table = ballots_of(form, cast.shape[1]).tolist()
    options = []
    for ballot in cast.tolist():
        domain = domain_of(tuple(ballot), protocol=protocol, target=target)
        options.append([table[i] for i in allowed(domain, form, len(ballot))])
    found = set()
    for ballots in product(*options):
        totals = [sum(column) for column in zip(*ballots, strict=True)]
        found.add(totals.index(max(totals)))
    return found


@pytest.mark.parametrize(("protocol", "target"), [p for p in PAIRS if p[1] != "cumulative"])
def test_possible_winners_beside_plain_enumeration(
    side_by_side: SideBySide, protocol: Protocol, target: Protocol
) -> None:
    sample = 40
    cast = masses(protocol, TURNS, np.random.default_rng(2))
    plain: list[set[int]] = []
    last: list[Any] = []

    def enumerate_sample() -> None:
        plain[:] = [enumerated(turn, protocol, target) for turn in cast[:sample]]

    found = side_by_side.time(
        enumerate_sample,
        lambda: last.append(possible_winners(cast, protocol, target).fallback[:, 0]),
        rounds=2,
    )
    bits = [sum(2 << c for c in winners) for winners in plain]
    assert last[-1][:sample].tolist() == bits
    per_turn = found.reference / sample
    side_by_side.note(
        what=f"possible winners on 1,000,000 turns, {protocol} → {target}",
        reference=f"plain enumeration ({per_turn * 1e6:,.0f} µs a turn, on {sample} turns)",
        target="at least 1,000 × faster",
        ratio=per_turn / (found.candidate / TURNS),
        unit="× faster",
    )


@pytest.mark.parametrize(("protocol", "target"), [p for p in PAIRS if p[1] == "cumulative"])
def test_possible_winners_where_enumeration_would_not_end(
    side_by_side: SideBySide, protocol: Protocol, target: Protocol
) -> None:
    """Points have too many completions: what a million of them take is measured instead."""
    points = list(product(range(CUMULATIVE_BUDGET + 1), repeat=4))
    ballots = [x for x in points if sum(x) == CUMULATIVE_BUDGET]
    completions = list(product(ballots[:10], repeat=4))
    cast = masses(protocol, TURNS, np.random.default_rng(2))
    some = cast[:200].tolist()
    counts = [
        float(np.prod([sum(_agrees(b, x) for x in ballots) for b in turn])) for turn in some[:20]
    ]

    def count_completions() -> None:
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


def _agrees(ballot: list[int], points: tuple[int, ...]) -> bool:
    return all(points[a] >= points[b] for a in range(4) for b in range(4) if ballot[a] > ballot[b])


def library_winners(protocol: Protocol) -> Callable[[list[list[int]]], list[int]]:
    """One profile's winners by the independent library."""
    from pref_voting.grade_methods import approval
    from pref_voting.grade_profiles import GradeProfile
    from pref_voting.profiles import Profile
    from pref_voting.scoring_methods import borda, plurality

    def ranked(turn: list[list[int]]) -> list[int]:
        return list(borda(Profile([sorted(range(4), key=lambda c: -b[c]) for b in turn])))

    def simple(turn: list[list[int]]) -> list[int]:
        return list(plurality(Profile([sorted(range(4), key=lambda c: -b[c]) for b in turn])))

    def graded(turn: list[list[int]]) -> list[int]:
        maps = [dict(enumerate(b)) for b in turn]
        grades = list(range(2 if protocol == "approval" else CUMULATIVE_BUDGET + 1))
        profile = GradeProfile(maps, grades, candidates=list(range(4)))
        if protocol == "approval":
            return list(approval(profile))
        sums = {c: profile.sum(c) for c in range(4)}
        return [c for c in sums if sums[c] == max(sums.values())]

    return {"simple": simple, "ranked": ranked}.get(protocol, graded)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tallies_beside_an_independent_library(
    side_by_side: SideBySide, protocol: Protocol
) -> None:
    sample = 500
    cast = masses(protocol, TURNS, np.random.default_rng(3))
    some = cast[:sample].tolist()
    theirs: list[list[int]] = []
    ours: list[Any] = []
    count = library_winners(protocol)
    count(some[0])  # what it compiles at first is not counted

    def ask_the_library() -> None:
        theirs[:] = [sorted(count(turn)) for turn in some]

    def ask_us() -> None:
        ours[:] = [leading_sets(cast)]

    found = side_by_side.time(ask_the_library, ask_us)
    assert ours[0][:sample].tolist() == [sum(1 << c for c in won) for won in theirs]
    per_turn = found.reference / sample
    side_by_side.note(
        what=f"the {protocol} tally on 1,000,000 turns",
        reference=f"pref_voting, profile by profile ({per_turn * 1e6:,.0f} µs each, on {sample})",
        target="at least 500 × faster",
        ratio=per_turn / (found.candidate / TURNS),
        unit="× faster",
    )
