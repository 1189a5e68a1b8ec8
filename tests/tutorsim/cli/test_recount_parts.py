"""`tutorsim recount` of ballots in parts: here, and on a cluster of two workers."""

import json

import polars as pl
import pytest

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


def value_of(tutorsim, *options):
    done = tutorsim("recount", *options, *ASKED, "--json")
    assert done.exit_code == 0, done.stderr
    value = json.loads(done.stdout)
    del value["source"], value["provenance"]
    return value


def test_parts_give_the_figures_of_one_file(tutorsim, parts, whole):
    found = value_of(tutorsim, parts)
    assert found == value_of(tutorsim, whole)
    assert found["turns"] == 3
    [simple] = [o for o in found["orders"] if o["protocol"] == "simple"]
    assert {c["candidate"]: c["robust"] for c in simple["candidates"]} == {"a": 1, "b": 1, "c": 0}


def test_a_large_file_is_recounted_in_parts(tutorsim, whole, monkeypatch):
    expected = value_of(tutorsim, whole)
    monkeypatch.setattr(command, "_IN_MEMORY", 1)
    monkeypatch.setattr(command, "open_source", None)  # nothing is held at once
    assert value_of(tutorsim, whole) == expected


@pytest.mark.costly
@pytest.mark.loopback
def test_a_cluster_of_two_workers_gives_the_answer_of_this_process(tutorsim, parts):
    pytest.importorskip("distributed")
    found = value_of(tutorsim, parts, "--engine", "dask://local?workers=2")
    assert found == value_of(tutorsim, parts)


def test_tables_of_parts_read_like_those_of_a_file(tutorsim, parts):
    done = tutorsim("recount", parts, *ASKED)
    assert done.exit_code == 0, done.stderr
    assert "Every fallback order" in done.stdout


def test_turns_are_not_written_of_parts(tutorsim, parts, tmp_path):
    done = tutorsim("recount", parts, "--turns", tmp_path / "turns.csv")
    assert done.exit_code == 2
    assert "--turns cannot be written" in done.stderr


def test_an_engine_wants_parquet_and_an_address(tutorsim, parts, tmp_path):
    (tmp_path / "b.csv").write_text("episode_id\n", encoding="utf-8")
    done = tutorsim("recount", tmp_path / "b.csv", "--engine", "dask://local")
    assert done.exit_code == 2
    assert "--engine is for ballots in Parquet" in done.stderr
    done = tutorsim("recount", parts, "--engine", "spark://local")
    assert done.exit_code == 2
    assert "dask://HOST:PORT" in done.stderr
