"""`tutorsim report` writes a page, a text, or one chart."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Charts are drawn by this process, which has its renderer already."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.mark.costly
def test_a_page_is_written_and_named(shell, empty_run, tmp_path):
    path = tmp_path / "new folder" / "page.html"
    done = shell("report", empty_run.folder, "-o", path)
    assert done.code == 0
    assert done.out == f"{path}\n"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.costly
def test_without_a_file_a_page_goes_to_the_reports_folder(shell, empty_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = shell("report", empty_run.folder)
    assert done.code == 0
    assert (tmp_path / "reports" / f"{empty_run.folder.name}.html").is_file()


@pytest.mark.costly
def test_json_names_charts_and_episodes(shell, built, tmp_path):
    wanted = built.episodes[0].episode_id, built.episodes[1].episode_id
    done = shell(
        "report", built.folder, "-o", tmp_path / "page.md", "--episodes", ",".join(wanted), "--json"
    )
    value = json.loads(done.out)
    path = tmp_path / "page.md"
    assert value["written"] == str(path)
    assert value["bytes"] == path.stat().st_size
    assert value["episodes"] == list(wanted)
    assert "orders" in value["charts"]


@pytest.mark.costly
@pytest.mark.parametrize(
    ("suffix", "start"), [(".svg", b"<svg "), (".png", b"\x89PNG"), (".json", b"{")]
)
def test_one_chart_is_written_in_each_format(shell, built, tmp_path, suffix, start):
    path = tmp_path / f"chart{suffix}"
    done = shell("report", built.folder, "-o", path, "--chart", "decided-by")
    assert done.code == 0
    assert path.read_bytes().startswith(start)


@pytest.mark.costly
def test_the_same_run_gives_the_same_chart(shell, built, tmp_path):
    for name in ("a.svg", "b.svg"):
        shell("report", built.folder, "-o", tmp_path / name, "--chart", "movement")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.costly
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "x.svg"], "takes one chart, and none is named"),
        (["-o", "x.html", "--chart", "orders"], "takes the whole report"),
        (["-o", "x.svg", "--chart", "pie"], "There is no chart 'pie'"),
        (["-o", "x.docx"], "an ending that says no known format"),
        (["-o", "x.html", "--episodes", "nowhere"], "no episode 'nowhere'"),
    ],
)
def test_a_refusal_names_a_way_out(shell, built, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    shell("report", built.folder, *options).fails(2, said)
    assert not list(tmp_path.iterdir())


def test_a_chart_that_the_data_do_not_allow_says_why(shell, empty_run, tmp_path):
    said = shell("report", empty_run.folder, "-o", tmp_path / "x.svg", "--chart", "orders")
    said.fails(2, "Nothing was put to a vote")


@pytest.mark.costly
def test_a_file_that_cannot_be_written_is_a_usage_error(shell, empty_run, tmp_path):
    (tmp_path / "file").write_text("")
    said = shell("report", empty_run.folder, "-o", tmp_path / "file" / "page.html")
    said.fails(2, "cannot be written")


def test_help_loads_no_charts():
    code = (
        "import sys; from tutorsim.cli import cli; cli.main(['report', '--help'], "
        "standalone_mode=False); sys.exit('altair' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("command", ["summary", "report"])
def test_printed_figures_are_refused_beside_the_stand_in_s(shell, empty_run, tmp_path, command):
    file = tmp_path / "mine.toml"
    file.write_text('[[figure]]\nquantity = "flip"\nvalue = 0.5\nwhere = "Table X"\n')
    shell(command, empty_run.folder, "--published", file).fails(2, "Leave --published out.")
