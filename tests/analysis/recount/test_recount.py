"""A recount is the same however its ballots are read: rows, batches, files side by side."""

import pickle
from random import Random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.reference.drawn import drawn_ballot
from tutorsim.analysis import recount as recount_module
from tutorsim.analysis.ballots import parquet_batches
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.recount import possible_winners_of_every_protocol_by_rule as per_turn_table
from tutorsim.analysis.recount import recount
from tutorsim.ballot_reading_and_decisions import decide
from tutorsim.errors import BallotFileError, UsageError
from tutorsim.vocabularies import PROTOCOLS

ROLES = ("ann", "bob", "cyd")
TARGETS = ("ranked", "cumulative", "condorcet")


def rows_of_turn(random, place, protocol):
    def cast(stage, among):
        ballots = [drawn_ballot(random, protocol, among, points=25) for _ in ROLES]
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


def a_table(seed, episodes):
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
def table():
    return a_table(4, 24)


def in_parts(table, folder, sizes):
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


def backwards(function, pieces):
    """Counts elsewhere, in another order: all that travels is pickled."""
    return [pickle.loads(pickle.dumps(function))(piece) for piece in list(pieces)[::-1]]


def counted(path, *, run=None, order=None, **asked):
    asked = {"targets": TARGETS, "exempt": (0, 1), **asked}
    source = open_source(path, hints=Hints(fallback_order=order))
    return recount(source, **asked, run=run)


def same(one, other):
    left_out = {"source", "provenance", "notes"}
    return one.model_dump(exclude=left_out) == other.model_dump(exclude=left_out)


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory):
    """The recount of the ballots as rows of a CSV file."""
    file = tmp_path_factory.mktemp("rows") / "b.csv"
    table.write_csv(file)
    found = counted(file)
    assert found.turns == 48
    assert found.notes[0].startswith("8 of the ")
    return found


@pytest.mark.parametrize("together", [1, 7, 100_000])
@pytest.mark.parametrize("batch", [1, 100, 2**20])
def test_batches_are_recounted_as_rows_are(batch, together, table, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "BATCH", batch)
    monkeypatch.setattr(
        parquet_batches.ParquetBatches.parts,
        "__kwdefaults__",
        {"together": together, "shown": False},
    )
    table.write_parquet(tmp_path / "b.parquet")
    assert same(counted(tmp_path / "b.parquet"), whole)


def test_files_side_by_side_add_up_to_the_whole(table, whole, tmp_path):
    in_parts(table, tmp_path, [5, 1, 9])
    assert same(counted(tmp_path), whole)
    elsewhere = counted(tmp_path, run=backwards)
    assert same(elsewhere, whole)
    assert sorted(elsewhere.notes) == sorted(counted(tmp_path).notes) == sorted(whole.notes)


def test_only_files_in_the_tables_shape_are_counted_elsewhere(table, tmp_path):
    table.write_csv(tmp_path / "b.csv")
    with pytest.raises(UsageError, match=r"--engine is for ballots in Parquet"):
        counted(tmp_path, run=backwards)


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
        lambda t: t.sort("stage"),
    ],
    ids=[
        *("rows apart", "categories", "text", "floats", "short names", "status", "rank alone"),
        "stages apart",
    ],
)
def test_ballots_of_another_shape_are_counted_the_same(changed, table, whole, tmp_path):
    changed(table).write_parquet(tmp_path / "b.parquet", row_group_size=5)
    assert same(counted(tmp_path / "b.parquet"), whole)


@pytest.mark.costly
def test_turns_of_other_sizes_are_counted_among_the_others(table, tmp_path):
    """Five candidates have no table, and one turn's voters change between the votes."""
    odd = [("z", 1, "vote_final", "ranked", v, c, i) for v in "vw" for i, c in enumerate("abcde")]
    odd += [("z", 2, "vote_initial", "simple", "v", c, int(c == "a")) for c in "ab"]
    odd += [("z", 2, "vote_final", "simple", "w", c, int(c == "b")) for c in "ab"]
    mixed = pl.concat([table, pl.DataFrame(odd, schema=table.schema, orient="row")])
    mixed.write_parquet(tmp_path / "b.parquet")
    mixed.write_csv(tmp_path / "b.csv")
    found, expected = (
        counted(tmp_path / f"b.{form}", targets=["simple"], exempt=[0])
        for form in ("parquet", "csv")
    )
    assert same(found, expected)
    assert found.turns == 50


def test_another_order_changes_batches_as_it_changes_rows(table, tmp_path):
    table.write_parquet(tmp_path / "b.parquet")
    table.write_csv(tmp_path / "b.csv")
    for asked in ({"order": ROLES[::-1]}, {"targets": ["simple"], "exempt": [0]}):
        found, expected = (counted(tmp_path / f"b.{form}", **asked) for form in ("parquet", "csv"))
        assert same(found, expected)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("y", 1, "vote_final", "simple", "v", "a", 2), "sums to 2"),
        (("y", 1, "vote_final", "simple", "v", "a", -1), "is negative"),
        (("y", 1, "vote_final", "dictator", "v", "a", 1), "unknown protocol 'dictator'"),
        (("y", 1, "final round", "simple", "v", "a", 1), "unknown stage"),
        (("y", 1, "vote_final", "simple", " ", "a", 1), "no voter"),
        ((" ", 1, "vote_final", "simple", "v", "a", 1), "no episode_id"),
        (("y", 1, "vote_final", "cumulative", "v", "a", 24), "sum to 24, not to 25"),
        (("y", 1, "vote_final", "ranked", "v", "a", 1), "has a hole"),
    ],
)
def test_a_batch_is_checked_like_rows_and_names_the_row(row, reason, table, tmp_path):
    part = tmp_path / "part-7.parquet"
    bad = pl.DataFrame([row], schema=table.schema, orient="row")
    pl.concat([table, bad]).write_parquet(part)
    with pytest.raises(BallotFileError, match=reason) as found:
        recount(open_source(part, hints=Hints(budget=25)), targets=["simple"], exempt=[0])
    assert f"part-7.parquet, row {table.height + 1}:" in found.value.what


def of_points(*ballots):
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
        counted(file)
    with pytest.raises(BallotFileError, match=r"row 3: the points of 'v1' sum to 25, not to 20"):
        recount(open_source(file, hints=Hints(budget=20)))
    of_points((10, 10), (5, 20)).write_parquet(file)
    with pytest.raises(BallotFileError, match="as many ballots sum to 25 points as to 20"):
        counted(file)


def test_files_with_different_budgets_are_refused(tmp_path):
    for name, points in (("a", 25), ("b", 30)):
        of_points((points, 0)).with_columns(episode_id=pl.lit(name)).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    with pytest.raises(BallotFileError, match=r"sum to \[25, 30\]"):
        counted(tmp_path)


def test_files_lie_in_folders_of_any_depth_and_may_name_equal_episodes(table, whole, tmp_path):
    for at in ("b/x.parquet", "a/c/y.parquet"):
        (tmp_path / at).parent.mkdir(parents=True)
        table.write_parquet(tmp_path / at)
    assert counted(tmp_path).turns == 2 * whole.turns
    table.write_csv(tmp_path / "b.csv")
    assert counted(tmp_path).turns == whole.turns


def test_what_is_no_parquet_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no")
    with pytest.raises(BallotFileError, match=r"a\.parquet cannot be read"):
        open_source(tmp_path / "a.parquet")


def test_no_row_is_held_and_each_turn_is_counted_once(table, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "check_ballots", None)  # nothing is left for it
    in_parts(table, tmp_path, [10])
    source, told = open_source(tmp_path), []
    found = recount(source, targets=["simple"], exempt=[0], progress=lambda *at: told.append(at))
    assert told[-1] == (2 * 48, 2 * 48)
    assert not {"votes", "ballots"} & set(vars(source))
    assert found.turns == 48


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
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame.write_parquet(tmp_path / "b.parquet")
    frame.write_csv(tmp_path / "b.csv")
    asked = {"targets": ["cumulative"], "exempt": [0]}
    assert same(counted(tmp_path / "b.parquet", **asked), counted(tmp_path / "b.csv", **asked))


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
    found = counted(tmp_path / "b.parquet", targets=["approval"], exempt=[0])
    [without_v] = [r for r in found.electorates if r.voter == "v" and r.protocol is None]
    assert without_v.wins["b"].point == 1


@pytest.mark.costly
@pytest.mark.parametrize("own_order", [None, ROLES[::-1]])
def test_the_rows_of_every_turn_are_those_of_the_whole(own_order, tmp_path, monkeypatch):
    """In frames of any size, though the last file holds a turn whose rows lie apart."""
    monkeypatch.setattr(recount_module, "_TOLD_TOGETHER", 5)
    monkeypatch.setattr(per_turn_table, "_TOGETHER", 3 * 2)
    table = a_table(4, 6)
    apart = pl.concat([table.slice(3), table.slice(0, 3)])
    apart.write_csv(tmp_path / "b.csv")
    (tmp_path / "parts").mkdir()
    in_parts(table, tmp_path / "parts", [2, 1])
    asked = {"targets": ["simple", "approval"], "exempt": [0], "order": own_order}
    frames = list(counted(tmp_path / "parts", **asked).per_turn_frames())
    assert all(frame.height <= 6 for frame in frames)
    whole = counted(tmp_path / "b.csv", **asked)
    keys = ["episode_id", "turn", "target", "reading"]
    assert_frame_equal(pl.concat(frames).sort(keys), whole.per_turn.sort(keys))


def test_turns_under_a_target_are_those_of_the_whole_without_breakdown_points(table, tmp_path):
    table.write_csv(tmp_path / "b.csv")
    found = counted(tmp_path / "b.csv", targets=["simple", "approval"], exempt=[0, 1])
    rows = found.per_turn.filter(pl.col("exempt") == 0, pl.col("target") == "approval")
    under = found.turns_under("approval")
    assert under.height > 0
    assert_frame_equal(under, rows.drop("breakdown", "breakdown_state"))


def test_what_answered_the_calls_is_told_of_batches_too(table, tmp_path):
    one, *_ = in_parts(table, tmp_path, [5])
    part = pl.read_parquet(one)
    part.with_columns(provenance=pl.lit("stand-in: x")).write_parquet(one)
    assert open_source(tmp_path).stated == ("stand-in: x",)


@pytest.mark.costly
def test_a_turn_in_two_files_is_recounted_whole_or_not_in_batches(table, tmp_path):
    rows = table.with_row_index()
    table.filter(rows["index"] % 2 == 0).write_parquet(tmp_path / "a.parquet")
    table.filter(rows["index"] % 2 == 1).write_parquet(tmp_path / "b.parquet")
    assert open_source(tmp_path).batches is None
    assert counted(tmp_path).turns == table.select("episode_id", "turn").n_unique()


def test_an_episode_whose_turns_lie_in_two_files_is_recounted_in_batches(table, tmp_path):
    one = (pl.col("episode_id") == "e000") & (pl.col("turn") == 1)
    table.filter(one).write_parquet(tmp_path / "a.parquet")
    table.filter(~one).write_parquet(tmp_path / "b.parquet")
    assert len(open_source(tmp_path).batches.files) == 2
