"""A system that only this test registers goes through every command, or is told why not."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tutorsim.conftest import killed_after, to_folders
from tutorsim.runner import replay_into_run_folder_in_several_processes as replaying
from tutorsim.system_registry import system_names

pytestmark = pytest.mark.loopback

GREETING = Path(__file__).with_name("greeting.py")


@pytest.fixture
def recorded(greeting, model, shell, tmp_path):
    """A recording of the system; its log is in the folder `log` beside it."""
    folder = tmp_path / "rec"
    said = shell("run", greeting, "--log-dir", tmp_path / "log", "--cassette-dir", folder)
    assert said.code == 0, said.err
    return folder


def test_the_system_is_small_and_nothing_in_the_product_names_it():
    assert len(GREETING.read_text().splitlines()) <= 220  # with a table and a chart
    root = Path(__file__).parents[3]
    files = [*(root / "tutorsim").rglob("*.py"), *(root / "analysis").rglob("*.py")]
    assert [path for path in files if "greeting" in path.read_text(encoding="utf-8")] == []
    assert "greeting" not in system_names()


def test_a_recording_of_it_replays_to_the_same_bytes(recorded, shell, tmp_path, monkeypatch):
    """Also where a process is started that has nothing of this one: its catalog is a lambda."""
    monkeypatch.setattr(replaying, "CHUNK", 1)
    monkeypatch.setattr(replaying, "_threads", lambda: 2)
    lines = (tmp_path / "log" / "episodes.jsonl").read_bytes()
    head = (tmp_path / "log" / "run.json").read_bytes()
    for name, options in {"one": ("--workers", 1), "two": ("--workers", 2)}.items():
        assert shell("replay", recorded, "--log-dir", tmp_path / name, *options).code == 0
        assert (tmp_path / name / "episodes.jsonl").read_bytes() == lines
        assert (tmp_path / name / "run.json").read_bytes() == head
    assert shell("verify", recorded).out.startswith("2 of 2 episodes (12 calls)")
    assert shell("cassette", "verify", recorded).code == 0


def test_a_batch_gives_the_cassettes_of_direct_calls(recorded, greeting, shell, tmp_path):
    folder = tmp_path / "batch"
    options = ("--log-dir", tmp_path / "batch-log", "--cassette-dir", folder, "--batch")
    assert shell("run", greeting, *options).code == 0
    for path in sorted(recorded.glob("guests.*.json")):
        assert (folder / path.name).read_bytes() == path.read_bytes()


@pytest.mark.costly
def test_after_a_kill_the_same_command_asks_nothing_twice(greeting, model, launch, shell, tmp_path):
    folder = tmp_path / "rec"
    command = ("run", greeting, *to_folders(folder, tmp_path / "log"))
    killed_after(launch(*command, "--max-connections", 1), model, 4)
    recorded = sum(len(p.read_bytes().splitlines()) for p in folder.glob("*.journal.jsonl"))
    before = model.requests
    assert shell(*command).code == 0
    assert model.requests - before <= 12 - max(0, recorded - 1)
    assert shell("verify", folder).out.startswith("2 of 2 episodes (12 calls)")


@pytest.mark.costly
def test_its_views_are_drawn_by_every_command(recorded, shell, tmp_path):
    log = tmp_path / "log"
    shell("summary", log).tells("Answered by: stand-in", "How many guests?")
    assert shell("summary", log, "--json").json()["answers"][0]["headline"] == "2"
    shell("show", log, "Otto").tells("anna")
    page = tmp_path / "report.html"
    assert shell("report", log, "-o", page).code == 0
    assert "guests.Otto.none.simple" in page.read_text(encoding="utf-8")
    assert shell("report", log, "-o", tmp_path / "report.md").code == 0
    tables = shell("export", log, "-o", tmp_path / "tables", "--format", "csv")
    assert tables.code == 0
    ballots = (tmp_path / "tables" / "ballots.csv").read_text()
    assert "guests.Otto.none.simple" in ballots
    assert ballots.count("vote_final") == 2 * 3 * 3


def test_its_votes_are_recounted_and_asked_again(recorded, shell, tmp_path):
    log = tmp_path / "log"
    found = shell("recount", log, "--json", "--targets", "approval").json()
    assert found["turns"] == 2
    again = shell("retest", log, "--cassette-dir", recorded, "--repeats", 1)
    assert again.code == 0, again.err
    assert shell("verify", recorded).code == 0


def test_its_calls_are_counted_before_anything_is_sent(greeting, model, shell):
    planned = shell("run", greeting, "--dry-run", "--json").json()
    assert planned["calls"] == {"least": 12, "most": 12, "ceiling": 24}
    assert model.requests == 0


def test_two_runs_of_it_are_compared(recorded, shell, tmp_path):
    shell("compare", tmp_path / "log", tmp_path / "log").tells("Nothing differs")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("diverge", ("--rule", "approval")),
        ("branch", ("--rule", "approval", "--plan")),
        ("recount", ("--set", "threshold=3")),
        ("show", ("Otto", "--turn", "1")),
    ],
)
def test_a_command_not_for_it_names_both(recorded, shell, tmp_path, command, arguments):
    said = shell(command, tmp_path / "log", *arguments)
    said.fails(2, "'greeting'", command)
    assert len(said.err.strip().splitlines()) == 3


def test_a_system_that_tells_no_episode_has_none_to_show(recorded, shell, tmp_path, monkeypatch):
    told = shell("show", tmp_path / "log", "Otto").out
    assert told.startswith("guests.Otto.none.simple\nAnswered by: stand-in")
    module = sys.modules["greeting_system"]
    monkeypatch.setattr(module, "GREETING", replace(module.GREETING, trace=""))
    shell("show", tmp_path / "log", "Otto").fails(2, "'greeting'", "`tutorsim show`")


def test_a_wrong_study_of_it_is_refused_as_a_panel_s_is(greeting, model, shell):
    said = shell("run", greeting, "--set", "greeting.langage='x'", "--dry-run")
    said.fails(2, "there is no setting 'langage'", "Did you mean 'language'?")
    said = shell("run", greeting, "--set", "system='greetin'", "--dry-run")
    assert "there is no system 'greetin'" in said.err


@pytest.fixture
def mistaken(greeting, shell):
    """What a dry run says of the system with one text of its module in place of another."""

    def run(right, wrong):
        module = greeting.parent / "site" / "greeting_system.py"
        module.write_text(module.read_text().replace(right, wrong))
        sys.modules.pop("greeting_system", None)
        return shell("run", greeting, "--dry-run")

    yield run
    sys.modules.pop("greeting_system", None)


def test_a_field_that_the_record_does_not_have_is_refused_by_its_name(mistaken):
    mistaken('done["turns"]', 'done["turn"]').fails(2, "GreetingRecord has no field 'turn'.")


def test_a_fault_in_its_code_is_an_error_with_its_place(mistaken):
    said = mistaken('scene.fill("greet"', 'scene.fill("grete"')
    said.fails(2, "greeting_system.py, line ", "KeyError: 'grete'")
    assert "Traceback" not in said.err
