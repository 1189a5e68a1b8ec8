"""`tutorsim export` writes tables that open again as the same ballots."""

import json
import re

import pytest

from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import by_name
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.systems.system_view_opened_run_and_cost import view_of
from tutorsim.cli.export import export

TABLES = {"episodes", "turns", "ballots", "diagnostic_ballots", "proposals", "calls"}


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_exported_ballots_open_as_the_run_s_ballots(shell, built, tmp_path, format_):
    done = shell("export", built.folder, "-o", tmp_path / "out", "--format", format_)
    assert done.code == 0
    assert {p.stem for p in (tmp_path / "out").glob(f"*.{format_}")} == TABLES
    again = open_source(tmp_path / "out" / f"ballots.{format_}")
    assert again.ballots.equals(by_name(open_source(built.folder).ballots))


@pytest.mark.costly
@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_what_answered_travels_with_every_file_and_back(shell, built, tmp_path, format_):
    run = open_source(built.folder)
    shell("export", built.folder, "-o", tmp_path / "a", "--format", format_)
    shell("export", tmp_path / "a", "-o", tmp_path / "b", "--format", format_)
    for folder in ("a", "b"):
        for path in (tmp_path / folder).rglob("*"):
            lines = (
                0 if path.is_dir() or path.suffix == ".parquet" else path.read_text().count("\n")
            )
            if lines > 1:  # a table without rows has none to say it
                assert run.provenance in path.read_text(), path
        again = open_source(tmp_path / folder / f"ballots.{format_}")
        assert again.stated == (run.provenance,)
    preflib = next((tmp_path / "b").rglob("*.soc"))
    assert open_source(preflib).stated == (run.provenance,)
    done = shell("summary", tmp_path / "b" / f"ballots.{format_}")
    assert "say nothing about any language model" in done.out.partition("\n\n")[0]
    value = shell("summary", preflib, "--json").json()
    assert value["provenance"].startswith(run.provenance)
    told = shell("report", preflib, "-o", tmp_path / "page.md")
    assert told.code == 0
    said = "What answered the calls?** A scripted stand-in, no language model. "
    said += f"The ballots were exported from a recording: {run.provenance}."
    assert said in (tmp_path / "page.md").read_text()


def test_every_file_written_is_named(shell, built, tmp_path):
    done = shell("export", built.folder, "-o", tmp_path, "--json")
    value = json.loads(done.out)
    assert value["format"] == "parquet"
    files = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert set(value["written"]) == files
    assert any(name.endswith(".soc") for name in files)
    assert any(name.endswith(".cat") for name in files)


def test_ballots_from_elsewhere_give_one_table(shell, built, tmp_path):
    shell("export", built.folder, "-o", tmp_path / "a")
    done = shell("export", tmp_path / "a/ballots.parquet", "-o", tmp_path / "b")
    assert done.code == 0
    assert [p.name for p in (tmp_path / "b").glob("*.parquet")] == ["ballots.parquet"]


def test_an_empty_run_gives_tables_without_rows(shell, empty_run, tmp_path):
    done = shell("export", empty_run.folder, "-o", tmp_path, "--format", "csv")
    assert done.code == 0
    assert (tmp_path / "ballots.csv").read_text().count("\n") == 1


def test_a_folder_that_is_a_file_is_a_usage_error(shell, built, tmp_path):
    (tmp_path / "x").write_text("")
    assert shell("export", built.folder, "-o", tmp_path / "x").code == 2


def test_what_a_run_says_itself_is_not_taken_from_options(shell, built, tmp_path):
    said = shell("export", built.folder, "-o", tmp_path / "x", "--protocol", "simple")
    assert said.code == 2
    assert "its study says what its ballots are" in said.err
    assert not (tmp_path / "x").exists()


def test_an_unknown_format_is_a_usage_error(shell, built, tmp_path):
    assert shell("export", built.folder, "-o", tmp_path, "--format", "xls").code == 2


@pytest.mark.parametrize("system", ["panel", "debate", "group", "oversight"])
def test_the_help_names_every_table(system):
    words = set(re.findall(r"\w+", export.help))
    assert not view_of(system).tables.keys() - words
