"""Tallies in one pass over rows in order, held to grouping, and the work that they do."""

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import blocks, tally
from analysis.blocks import Codes, turn_sets
from analysis.tally import TiedSets, count_tied_sets

SCHEMA = {
    "episode_id": pl.String(),
    "turn": pl.Int64(),
    "stage": pl.String(),
    "protocol": pl.String(),
    "voter": pl.String(),
    "candidate": pl.String(),
    "mass": pl.Int64(),
}


@st.composite
def tables(draw):
    """Turns of any size in order; abstentions, other names of stages, empty tie rounds."""
    rows = []
    for e in range(draw(st.integers(1, 3))):
        for t in range(1, 1 + draw(st.integers(1, 3))):
            names = draw(st.permutations("abcde"))[: draw(st.integers(1, 5))]
            protocol = draw(st.sampled_from(["simple", "ranked", "cumulative", "approval"]))
            for stage in draw(
                st.sampled_from(
                    [
                        ("vote_initial", "vote_final"),
                        ("final",),
                        ("vote_final", "tie_vote"),
                        ("initial", "final", "tie"),
                    ]
                )
            ):
                among = names[:2] if stage.startswith("tie") else names
                for voter in range(draw(st.integers(1, 3))):
                    masses = draw(
                        st.lists(st.integers(0, 3), min_size=len(among), max_size=len(among))
                        | st.just([None] * len(among))
                    )
                    cells = zip(among, masses, strict=True)
                    rows += [(f"e{e}", t, stage, protocol, f"v{voter}", c, x) for c, x in cells]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def grouped(table: pl.DataFrame) -> TiedSets:
    return tally._count_by_grouping(table.lazy())


@settings(max_examples=60, deadline=None)
@given(table=tables(), batch=st.sampled_from([1, 7, 250_000]))
def test_one_pass_and_grouping_count_the_same(table, batch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BATCH", batch)
        assert tally._count_in_order(table.lazy()) == grouped(table)


@settings(max_examples=30, deadline=None)
@given(table=tables(), seed=st.integers(0, 99))
def test_rows_in_any_order_are_counted_the_same(table, seed):
    mixed = table.sample(fraction=1, shuffle=True, seed=seed)
    assert count_tied_sets(mixed) == grouped(table)


def a_table(turns: int) -> pl.DataFrame:
    random = Random(3)
    rows = [
        (f"e{turn // 3}", turn % 3, stage, "approval", voter, c, random.randint(0, 1))
        for turn in range(turns)
        for stage in ("vote_initial", "vote_final")
        for voter in "vw"
        for c in "abc"
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@pytest.mark.parametrize(
    "mixed",
    [
        lambda t: t.sort("stage", "episode_id", maintain_order=True),
        lambda t: pl.concat([t.filter(pl.col("turn") == 0), t.filter(pl.col("turn") > 0)]),
        lambda t: t.sort("turn", maintain_order=True),
        lambda t: t.sort("voter", maintain_order=True),
    ],
    ids=["by stage", "first turns apart", "by turn", "by voter"],
)
def test_a_table_out_of_order_is_noticed_and_grouped(mixed):
    table = mixed(a_table(12))
    assert count_tied_sets(table) == grouped(a_table(12))


def test_a_tie_round_apart_from_its_vote_is_noticed():
    table = pl.DataFrame(
        [
            ("e", 1, "vote_final", "simple", "v", "a", 1),
            ("e", 1, "vote_final", "simple", "v", "b", 1),
            ("f", 1, "vote_final", "simple", "v", "a", 1),
            ("e", 1, "tie_vote", "simple", "v", "b", 1),
        ],
        schema=SCHEMA,
        orient="row",
    )
    assert tally._count_in_order(table.lazy()) is None
    assert count_tied_sets(table) == grouped(table)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["c", "b", "a", "z"])])
def test_a_column_of_categories_is_coded_like_text(dtype):
    table = a_table(9)
    coded = table.with_columns(pl.col("candidate").cast(dtype))
    assert count_tied_sets(coded) == grouped(table)


def test_more_candidates_than_bits_are_grouped():
    rows = [("e", 1, "vote_final", "simple", "v", f"c{i}", int(i == 3)) for i in range(70)]
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    assert tally._count_in_order(table.lazy()) is None
    assert [tied.undecided for tied, _ in count_tied_sets(table)] == [("c3",)]


def test_masses_too_large_for_exact_sums_are_grouped():
    rows = [("e", 1, "vote_final", "simple", "v", c, 2**53 + (c == "a")) for c in "ab"]
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    assert tally._count_in_order(table.lazy()) is None
    assert [tied.undecided for tied, _ in count_tied_sets(table)] == [("a",)]


def test_each_row_is_counted_once_and_only_the_columns_of_a_tally_are_read(tmp_path, monkeypatch):
    """The work grows with the rows and not with turns, orders or batches."""
    table = a_table(40)
    table.with_columns(pl.lit("x").alias("label")).write_parquet(tmp_path / "b.parquet")
    counted = []
    once = blocks._counted
    monkeypatch.setattr(blocks, "BATCH", 17)
    monkeypatch.setattr(
        blocks, "_counted", lambda f, s, c: counted.append((f.height, f.columns)) or once(f, s, c)
    )
    found = list(turn_sets(pl.scan_parquet(tmp_path / "b.parquet"), Codes()))
    assert sum(part.led.size for part in found) == 40
    assert sum(height for height, _ in counted) == table.height // 2  # the first vote is no tally
    assert {tuple(columns) for _, columns in counted} == {blocks.COLUMNS}
