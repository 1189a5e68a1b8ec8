"""`tutorsim recount` of ballots in parts: here, and on a cluster of two workers."""

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tutorsim.cli.recount as command

ASKED = ("--targets", "simple,approval", "--exempt", "0,1")


@pytest.fixture
def parts(tmp_path):
    """Three files of simple votes: a and b win one turn each, in one they tie."""
    votes = {"e1": "aab", "e2": "bba", "e3": "abc"}
    schema = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    for episode, cast in votes.items():
        rows = [
            (episode, 1, "vote_final", "simple", voter, c, int(c == choice))
            for voter, choice in zip("vwx", cast, strict=True)
            for c in "abc"
        ]
        folder = tmp_path / "ballots" / f"part={episode}"
        folder.mkdir(parents=True)
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(folder / "0.parquet")
    return tmp_path / "ballots"


@pytest.fixture
def whole(parts, tmp_path):
    """The same ballots in one file, under the name of the folder."""
    (tmp_path / "one").mkdir()
    files = sorted(parts.rglob("*.parquet"))
    pl.concat([pl.read_parquet(file, hive_partitioning=False) for file in files]).write_parquet(
        tmp_path / "one" / "ballots"
    )
    return (tmp_path / "one" / "ballots").rename(tmp_path / "one" / "ballots.parquet")


def value_of(shell, *options):
    value = shell("recount", *options, *ASKED, "--json").json()
    del value["source"], value["provenance"]
    return value


def test_parts_give_the_figures_of_one_file(shell, parts, whole):
    ordered = ("--fallback-order", "b,a")
    found = value_of(shell, parts, *ordered)
    assert found == value_of(shell, whole, *ordered)
    assert found["turns"] == 3
    [simple] = [o for o in found["orders"] if o["protocol"] == "simple"]
    assert {c["candidate"]: c["robust"] for c in simple["candidates"]} == {"a": 1, "b": 1, "c": 0}


def test_a_parquet_file_is_recounted_as_its_rows_in_a_csv(shell, whole, tmp_path):
    """Approval ballots of nobody are noted once, however many pieces they are in."""
    nobody = pl.DataFrame(
        [("e4", 1, "vote_final", "approval", v, c, 0) for v in "vwx" for c in "abc"],
        schema=pl.read_parquet(whole).schema,
        orient="row",
    )
    ballots = pl.concat([pl.read_parquet(whole), nobody])
    ballots.write_parquet(whole)
    ballots.write_csv(tmp_path / "ballots.csv")
    for order in ((), ("--fallback-order", "a,b,c")):
        expected = value_of(shell, tmp_path / "ballots.csv", *order)
        assert value_of(shell, whole, *order) == expected
        [note] = [n for n in expected["notes"] if "had only zeros" in n]
        assert note.startswith("3 of the approval ballots had only zeros")


@pytest.mark.costly
@pytest.mark.loopback
def test_a_cluster_of_two_workers_gives_the_answer_of_this_process(shell, parts):
    pytest.importorskip("distributed")
    found = value_of(shell, parts, "--engine", "dask://local?workers=2")
    assert found == value_of(shell, parts)


def test_tables_of_parts_read_like_those_of_a_file(shell, parts):
    shell("recount", parts, *ASKED, "--full").tells("Wins whatever the order")


@pytest.mark.parametrize("ordered", [(), ("--fallback-order", "b,a")])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_turns_of_parts_are_written_as_of_one_file(shell, parts, whole, tmp_path, ordered, ending):
    written = []
    for source in (parts, whole):
        path = tmp_path / f"{len(written)}.{ending}"
        done = shell("recount", source, *ASKED, *ordered, "--turns", path)
        assert done.code == 0, done.err
        rows = 3 * 2 * 2 * (2 if ordered else 1)
        assert f"{rows} rows written" in done.err
        read = pl.read_csv if ending == "csv" else pl.read_parquet
        written.append(read(path))
    assert_frame_equal(*written)


def test_turns_that_stop_in_the_middle_leave_what_was_there(shell, parts, tmp_path):
    last = parts / "part=e3" / "0.parquet"
    pl.read_parquet(last, hive_partitioning=False).with_columns(mass=-1).write_parquet(last)
    (tmp_path / "turns.csv").write_text("of another day")
    done = shell("recount", parts, *ASKED, "--turns", tmp_path / "turns.csv")
    assert done.code != 0
    assert "is negative" in done.err
    assert (tmp_path / "turns.csv").read_text() == "of another day"
    assert not list(tmp_path.glob(".turns.csv*"))


def test_a_cluster_writes_no_turns_and_says_what_does(shell, parts, tmp_path):
    turns = ("--turns", tmp_path / "turns.csv")
    said = shell("recount", parts, *ASKED, *turns, "--engine", "dask://local?workers=2")
    said.fails(2, "Leave --engine out")
    assert shell("recount", parts, *ASKED, *turns).code == 0


def test_parts_say_what_answered_the_calls(shell, parts, tmp_path):
    for file in parts.rglob("*.parquet"):
        frame = pl.read_parquet(file, hive_partitioning=False)
        frame.with_columns(provenance=pl.lit("stand-in: x")).write_parquet(file)
    done = shell("recount", parts, *ASKED, "--turns", tmp_path / "turns.csv")
    assert "answered by: stand-in: x. A scripted model" in done.out
    assert set(pl.read_csv(tmp_path / "turns.csv")["provenance"]) == {"stand-in: x"}
    json_done = shell("recount", parts, *ASKED, "--json")
    assert "answered by stand-in: x" in json.loads(json_done.out)["provenance"]


def test_an_engine_wants_parquet_and_an_address(shell, parts, tmp_path, monkeypatch):
    """What cannot be counted in pieces is refused before any worker starts."""
    monkeypatch.setattr(command, "connect", None)
    (tmp_path / "b.csv").write_text("episode_id\n", encoding="utf-8")
    pl.DataFrame({"voter": ["v"], "a": [1], "b": [0]}).write_parquet(tmp_path / "wide.parquet")
    for source in ("b.csv", "wide.parquet"):
        done = shell("recount", tmp_path / source, "--engine", "dask://local")
        done.fails(2, "--engine is for ballots in Parquet")
    shell("recount", parts, "--engine", "spark://local").fails(2, "dask://HOST:PORT")
