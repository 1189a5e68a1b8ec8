"""The bundled recording of groups, through every command."""

import json
import shutil
from pathlib import Path

import pytest

BUNDLED = Path(__file__).parents[4] / "cassettes" / "group"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay

    folder = tmp_path_factory.mktemp("group") / "log"
    replay(BUNDLED, log_dir=folder, workers=1)
    return folder


def value(shell, *arguments):
    return shell(*arguments, "--json").json()


@pytest.mark.costly
def test_the_demo_gives_the_same_bytes_twice_with_a_persons_lesson(shell, tmp_path):
    for name in ("one", "two"):
        assert shell("demo", "--system", "group", "--log-dir", tmp_path / name).code == 0
    first, second = ((tmp_path / name / "episodes.jsonl").read_bytes() for name in ("one", "two"))
    assert first == second
    persons = [line for line in first.splitlines() if b'"variant":"person"' in line]
    assert len(persons) == 1
    said = [e["text"] for e in json.loads(persons[0])["events"] if e["who"] == "learner"]
    assert len(said) == 12


def test_the_bundled_recording_is_small():
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 500_000


@pytest.mark.costly
def test_the_report_has_every_part_and_no_word_of_the_person(log, shell, tmp_path):
    page = tmp_path / "r.html"
    assert shell("report", log, "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    for part in ("lessons", "interaction", "recount", "duels", "calls"):
        assert f'id="{part}"' in text
    assert "one side is the barn" not in text


def test_a_recount_is_exact_where_nothing_changes(log, shell):
    found = value(shell, "recount", log, "--set", "threshold=3.5")
    divergences = next(s for s in found["episodes"]["sections"] if s["id"] == "divergences")
    assert all(row["event"] is None for row in divergences["tables"][0]["rows"])


def test_values_combine_to_settings(log, shell):
    found = value(shell, "recount", log, "--set", "threshold=2.5,4", "--set", "silence=off,raise")
    rows = found["episodes"]["sections"][0]["tables"][0]["rows"]
    assert len({row["setting"] for row in rows}) == 4


@pytest.mark.parametrize(
    "given",
    [
        ("--targets", "approval"),
        ("--score", "veto=1,1,0"),
        ("--exempt", "0"),
        ("--fallback-order", "a,b"),
        ("--turns", "turns.csv"),
        ("--engine", "dask://local"),
    ],
)
def test_what_counts_votes_is_refused_where_nobody_votes(log, shell, given):
    done = shell("recount", log, *given)
    assert (done.code, done.out) == (2, "")
    assert f"`tutorsim recount {given[0]}` counts votes." in done.err
    assert "a run of the system 'group'" in done.err


def test_shares_and_phases_sum_to_one(log):
    from tutorsim.analysis.systems.group.page_data_and_shares_of_coded_talk import Evidence
    from tutorsim.analysis.systems.group.page_tables_and_first_sentence import phases
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run

    run = open_run(log)
    for row in phases(Evidence(run.episodes, run.head)).data.iter_rows(named=True):
        kinds = (row["guiding"], row["questioning"], row["affective"], row["other"])
        assert sum(kinds) == pytest.approx(1)


def test_a_study_with_a_person_cannot_run_by_itself(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    folder = ("--log-dir", tmp_path / "log", "--cassette-dir", tmp_path / "rec")
    shell("run", BUNDLED / "study.toml", *folder).fails(2, "tutorsim chat")
    assert not (tmp_path / "rec").exists()


def test_inputs_that_are_missing_or_edited_end_a_replay(shell, tmp_path):
    folder = tmp_path / "rec"
    shutil.copytree(BUNDLED, folder)
    path = folder / "inputs.jsonl"
    whole = path.read_text(encoding="utf-8")
    path.unlink()
    assert shell("replay", folder, "--log-dir", tmp_path / "a").code == 3
    path.write_text(whole.replace("barn", "farm"), encoding="utf-8")
    assert shell("replay", folder, "--log-dir", tmp_path / "b").code == 4
    path.write_text(whole, encoding="utf-8")
    assert shell("replay", folder, "--log-dir", tmp_path / "c").code == 0
