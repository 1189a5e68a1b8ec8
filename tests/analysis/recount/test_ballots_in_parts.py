"""Parts of ballots: their summaries add up to the whole, and say what one reading says."""

from dataclasses import replace
from random import Random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tutorsim.analysis.ballots import parquet_batches
from tutorsim.analysis.ballots.ballot_checks import notes_together
from tutorsim.analysis.ballots.parquet_batches import rows_of, stated_in
from tutorsim.analysis.ballots.reading_options import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.recount import (
    RecountCounts,
    ballots_in_parts,
    make_plan,
    per_turn_table,
    recount,
)
from tutorsim.analysis.recount.ballots_in_parts import outline, parts_of, recount_parts, summarise
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import PROTOCOLS
from tutorsim.voting import decide

ROLES = ("ann", "bob", "cyd")
TARGETS = ("ranked", "cumulative", "condorcet")


def a_ballot(random: Random, protocol: str, among: tuple[str, ...]) -> dict[str, int]:
    if random.random() < 0.1:
        return {}
    m = len(among)
    if protocol == "ranked":
        return dict(zip(random.sample(among, m), range(m), strict=True))
    if protocol == "approval":
        return {c: random.randint(0, 1) for c in among}
    cast = random.choices(among, k=1 if protocol == "simple" else 25)
    return {c: cast.count(c) for c in among}


def rows_of_turn(random: Random, place: tuple[str, int], protocol: str) -> list[tuple[object, ...]]:
    def cast(stage: str, among: tuple[str, ...]) -> list[dict[str, int]]:
        ballots = [a_ballot(random, protocol, among) for _ in ROLES]
        for voter, ballot in zip(ROLES, ballots, strict=True):
            rows.extend((*place, stage, protocol, voter, c, ballot.get(c)) for c in among)
        return ballots

    rows: list[tuple[object, ...]] = []
    if random.random() < 0.8:
        cast("vote_initial", ROLES)
    final = cast("vote_final", ROLES)
    tied = decide(final, ROLES, order=ROLES).tied_in_vote
    if tied and random.random() < 0.8:
        cast("tie_vote", tied)
    return rows


def a_table(seed: int, episodes: int) -> pl.DataFrame:
    random = Random(seed)
    rows = [
        row
        for e in range(episodes)
        for turn in (1, 2)
        for row in rows_of_turn(random, (f"e{e:03}", turn), PROTOCOLS[e % 4])
    ]
    names = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return a_table(4, 24)


@pytest.fixture(scope="module")
def plan():
    return make_plan(ROLES, 25, targets=TARGETS, exempt=(0, 1))


def in_parts(table: pl.DataFrame, folder, sizes):
    """Files of so many episodes each, the last with the rest."""
    names = table["episode_id"].unique(maintain_order=True)
    start, files = 0, []
    for i, size in enumerate([*sizes, len(names)]):
        file = folder / f"part-{i}.parquet"
        table.filter(
            pl.col("episode_id").is_in(names[start : start + size].to_list())
        ).write_parquet(file)
        start += size
        files.append(file)
    return files


def same(one, other) -> bool:
    return one.model_dump(exclude={"source", "provenance", "notes"}) == other.model_dump(
        exclude={"source", "provenance", "notes"}
    )


@pytest.mark.costly
def test_parts_give_the_recount_of_the_whole(table, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "BATCH", 100)
    whole = tmp_path / "whole.parquet"
    table.write_parquet(whole)
    expected = recount(open_source(whole), targets=TARGETS, exempt=(0, 1))
    assert expected.turns == 48
    (tmp_path / "parts").mkdir()
    parts = in_parts(table, tmp_path / "parts", [5, 1, 9])
    found = recount_parts(parts, name="x", targets=TARGETS, exempt=(0, 1))
    assert same(found, expected)
    assert found.per_turn.height == 0


@pytest.mark.costly
def test_summaries_add_up_in_any_order_and_grouping(table, plan, tmp_path):
    whole = tmp_path / "whole.parquet"
    table.write_parquet(whole)
    a, b, c = (summarise(part, plan) for part in in_parts(table, tmp_path, [7, 6]))
    total = summarise(whole, plan)
    for added in ((a + b) + c, a + (b + c), c + a + b, RecountCounts.empty() + total):
        assert replace(added, notes=()) == replace(total, notes=())
        assert notes_together(added.notes) == notes_together(total.notes)
    assert total.turns == a.turns + b.turns + c.turns == 48


@pytest.mark.costly
@pytest.mark.parametrize(
    "changed",
    [
        lambda t: t.sort("voter", maintain_order=True),
        lambda t: t.with_columns(pl.col("candidate", "stage", "protocol").cast(pl.Categorical)),
        lambda t: t.with_columns(pl.col("turn").cast(pl.String)),
        lambda t: t.with_columns(pl.col("mass").cast(pl.Float64)),
        lambda t: t.with_columns(pl.col("stage").replace({"vote_final": "final"})),
        lambda t: t.with_columns(
            ballot_status=pl.when(pl.col("mass").is_null()).then(pl.lit("abstained"))
        ),
        lambda t: t.with_columns(rank=pl.lit(None, pl.Int64)),
    ],
    ids=["rows apart", "categories", "text", "floats", "short names", "status", "rank alone"],
)
def test_a_part_of_another_shape_is_counted_the_same(changed, table, plan, tmp_path):
    table.write_parquet(tmp_path / "a.parquet")
    changed(table).write_parquet(tmp_path / "b.parquet")
    first, second = (summarise(tmp_path / f"{name}.parquet", plan) for name in "ab")
    assert replace(second, notes=()) == replace(first, notes=())


@pytest.mark.parametrize("batch", [1, 1_000_000])
def test_rows_in_the_order_of_their_stages_are_counted_the_same(
    batch, table, plan, tmp_path, monkeypatch
):
    """Small row groups give a first batch that holds first votes alone, so no decided turn."""
    table.write_parquet(tmp_path / "a.parquet")
    expected = summarise(tmp_path / "a.parquet", plan)
    monkeypatch.setattr(parquet_batches, "BATCH", batch)
    table.sort("stage").write_parquet(tmp_path / "b.parquet", row_group_size=5)
    assert replace(summarise(tmp_path / "b.parquet", plan), notes=()) == replace(expected, notes=())


@pytest.mark.costly
def test_turns_of_other_sizes_are_counted_among_the_others(table, tmp_path):
    """Five candidates have no table, and one turn's voters change between the votes."""
    odd = [("z", 1, "vote_final", "ranked", v, c, i) for v in "vw" for i, c in enumerate("abcde")]
    odd += [("z", 2, "vote_initial", "simple", "v", c, int(c == "a")) for c in "ab"]
    odd += [("z", 2, "vote_final", "simple", "w", c, int(c == "b")) for c in "ab"]
    mixed = pl.concat([table, pl.DataFrame(odd, schema=table.schema, orient="row")])
    mixed.write_parquet(tmp_path / "b.parquet")
    expected = recount(open_source(tmp_path / "b.parquet"), targets=["simple"], exempt=[0])
    found = recount_parts([tmp_path / "b.parquet"], name="x", targets=["simple"], exempt=[0])
    assert same(found, expected)
    assert found.turns == 50


def test_another_order_changes_the_parts_as_it_changes_the_whole(table, tmp_path):
    table.write_parquet(tmp_path / "b.parquet")
    asked = {"targets": ["simple", "ranked"], "exempt": [0], "order": ROLES[::-1]}
    expected = recount(open_source(tmp_path / "b.parquet"), **asked)
    assert same(recount_parts([tmp_path / "b.parquet"], name="x", **asked), expected)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("y", 1, "vote_final", "simple", "v", "a", 2), "sums to 2"),
        (("y", 1, "vote_final", "simple", "v", "a", -1), "is negative"),
        (("y", 1, "vote_final", "plurality", "v", "a", 1), "unknown protocol 'plurality'"),
        (("y", 1, "final round", "simple", "v", "a", 1), "unknown stage"),
        (("y", 1, "vote_final", "simple", " ", "a", 1), "no voter"),
        ((" ", 1, "vote_final", "simple", "v", "a", 1), "no episode_id"),
        (("y", 1, "vote_final", "cumulative", "v", "a", 24), "sum to 24, not to 25"),
        (("y", 1, "vote_final", "ranked", "v", "a", 1), "has a hole"),
    ],
)
def test_a_part_is_checked_like_the_whole_and_names_the_row(row, reason, table, tmp_path):
    part = tmp_path / "part-7.parquet"
    bad = pl.DataFrame([row], schema=table.schema, orient="row")
    pl.concat([table, bad]).write_parquet(part)
    with pytest.raises(BallotFileError, match=reason) as found:
        recount_parts([part], name="x", targets=["simple"], exempt=[0], budget=25)
    assert f"part-7.parquet, row {table.height + 1}:" in found.value.what


def of_points(*ballots: tuple[int, int]) -> pl.DataFrame:
    rows = [
        ("e", 1, "vote_final", "cumulative", f"v{i}", c, mass)
        for i, ballot in enumerate(ballots)
        for c, mass in zip("ab", ballot, strict=True)
    ]
    names = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_the_ballot_with_another_sum_is_blamed_and_not_those_after_it(tmp_path):
    file = tmp_path / "a.parquet"
    of_points((10, 10), (5, 20), (15, 10)).write_parquet(file)
    with pytest.raises(BallotFileError, match=r"row 1: the points of 'v0' sum to 20, not to 25"):
        recount_parts([file], name="x")
    with pytest.raises(BallotFileError, match=r"row 3: the points of 'v1' sum to 25, not to 20"):
        recount_parts([file], name="x", budget=20)
    of_points((10, 10), (5, 20)).write_parquet(file)
    with pytest.raises(BallotFileError, match="as many ballots sum to 25 points as to 20"):
        recount_parts([file], name="x")


def test_parts_with_different_budgets_are_refused(tmp_path):
    for name, points in (("a", 25), ("b", 30)):
        rows = [("e" + name, 1, "vote_final", "cumulative", "v", "a", points)]
        schema = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(tmp_path / f"{name}.parquet")
    assert [outline(p).budget for p in parts_of(tmp_path)] == [25, 30]
    with pytest.raises(BallotFileError, match=r"sum to \[25, 30\]"):
        recount_parts(parts_of(tmp_path), name="x")


def test_parts_lie_in_folders_of_any_depth(table, tmp_path):
    for at in ("b/x.parquet", "a/c/y.parquet"):
        (tmp_path / at).parent.mkdir(parents=True)
        table.write_parquet(tmp_path / at)
    assert [p.name for p in parts_of(tmp_path)] == ["y.parquet", "x.parquet"]
    assert rows_of(parts_of(tmp_path)) == 2 * table.height
    (tmp_path / "more.csv").touch()
    assert parts_of(tmp_path) is None


def test_what_is_no_parquet_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no")
    with pytest.raises(BallotFileError, match=r"a\.parquet cannot be read"):
        rows_of([tmp_path / "a.parquet"])


def test_each_part_is_read_once_and_each_regular_turn_in_arrays(table, plan, tmp_path, monkeypatch):
    """The work is one pass over each part, whatever the number of targets."""
    monkeypatch.setattr(ballots_in_parts, "_checked", None)  # nothing is left for it
    scans, counted = [], []
    scan, once = pl.scan_parquet, ballots_in_parts.count_turns
    monkeypatch.setattr(pl, "scan_parquet", lambda p, **k: scans.append(p.name) or scan(p, **k))
    monkeypatch.setattr(
        ballots_in_parts,
        "count_turns",
        lambda every, asked: counted.append(every.votes.turns.height) or once(every, asked),
    )
    parts = in_parts(table, tmp_path, [10])
    recount_parts(parts, name="x", targets=["simple", "ranked"], exempt=[0])
    assert sum(counted) == 48
    per_part = {p.name: scans.count(p.name) for p in parts}
    assert per_part == {p.name: 6 for p in parts}  # footers, the outline, the ballots


def test_first_votes_too_wide_for_tables_are_counted_case_by_case(tmp_path):
    """Eight voters who approved two have many more ways to give points than for all four."""
    order = ("a", "b", "c", "d")
    rows = [
        ("e", 1, stage, "approval", f"v{v}", c, int(c in approved))
        for stage, approved in (("vote_initial", "ab"), ("vote_final", "abcd"))
        for v in range(8)
        for c in order
    ]
    schema = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(tmp_path / "b.parquet")
    asked = {"targets": ["cumulative"], "exempt": [0]}
    expected = recount(open_source(tmp_path / "b.parquet"), **asked)
    assert same(recount_parts([tmp_path / "b.parquet"], name="x", **asked), expected)


def test_a_tie_round_of_other_voters_is_counted_as_it_was_held(tmp_path):
    """Without v both are tied as before, and b wins the round that v had no part in."""
    final, again = {"v": "ab", "w": "a", "x": "b"}, {"w": "b", "x": "a", "y": "b"}
    rows = [
        ("e", 1, stage, "approval", voter, c, int(c in approved))
        for stage, votes in (("vote_final", final), ("tie_vote", again))
        for voter, approved in votes.items()
        for c in "ab"
    ]
    schema = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(tmp_path / "b.parquet")
    asked = {"targets": ["approval"], "exempt": [0]}
    found = recount_parts([tmp_path / "b.parquet"], name="x", **asked)
    assert same(found, recount(open_source(tmp_path / "b.parquet"), **asked))
    [without_v] = [r for r in found.electorates if r.voter == "v" and r.protocol is None]
    assert without_v.wins["b"].point == 1


@pytest.mark.costly
@pytest.mark.parametrize("own_order", [None, ROLES[::-1]])
def test_the_rows_of_every_turn_are_those_of_the_whole(own_order, tmp_path, monkeypatch):
    """In pieces of any size, though the last part holds a turn whose rows lie apart."""
    monkeypatch.setattr(ballots_in_parts, "_TOLD_TOGETHER", 5)
    monkeypatch.setattr(per_turn_table, "_TOGETHER", 3 * 2)
    table = a_table(4, 6)
    apart = pl.concat([table.slice(3), table.slice(0, 3)])
    apart.write_parquet(tmp_path / "whole.parquet")
    (tmp_path / "parts").mkdir()
    parts = in_parts(apart, tmp_path / "parts", [2, 1])
    asked = {"targets": ["simple", "approval"], "exempt": [0]}
    frames = []
    recount_parts(parts, name="x", own_order=own_order, write=frames.append, **asked)
    assert all(0 < frame.height <= 6 for frame in frames)
    source = open_source(tmp_path / "whole.parquet", hints=Hints(fallback_order=own_order))
    whole = recount(source, **asked)
    keys = ["episode_id", "turn", "target", "reading"]
    assert_frame_equal(pl.concat(frames).sort(keys), whole.per_turn.sort(keys))


def test_what_answered_the_calls_is_told_of_parts_too(table, tmp_path):
    one, *_ = in_parts(table, tmp_path, [5])
    part = pl.read_parquet(one)
    part.with_columns(provenance=pl.lit("stand-in: x")).write_parquet(one)
    assert stated_in(parts_of(tmp_path)) == ("stand-in: x",)


@pytest.mark.costly
def test_a_turn_in_two_files_is_recounted_whole_or_not_in_parts(table, tmp_path):
    rows = table.with_row_index()
    table.filter(rows["index"] % 2 == 0).write_parquet(tmp_path / "a.parquet")
    table.filter(rows["index"] % 2 == 1).write_parquet(tmp_path / "b.parquet")
    assert parts_of(tmp_path) is None
    assert recount(open_source(tmp_path)).turns == table.select("episode_id", "turn").n_unique()


def test_an_episode_whose_turns_lie_in_two_files_is_recounted_in_parts(table, tmp_path):
    longest = table.group_by("episode_id").agg(pl.col("turn").n_unique()).sort("turn")[-1]
    assert longest["turn"].item() > 1
    one = (pl.col("episode_id") == longest["episode_id"].item()) & (pl.col("turn") == 1)
    table.filter(one).write_parquet(tmp_path / "a.parquet")
    table.filter(~one).write_parquet(tmp_path / "b.parquet")
    assert len(parts_of(tmp_path)) == 2
