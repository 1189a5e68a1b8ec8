"""Recorded wordings against today's, and whose wordings every command uses."""

import json
import re
from dataclasses import replace

import pytest

from tests.tutorsim.conftest import files, seal
from tutorsim.kernel.load_and_check_study_file import load_recorded_study
from tutorsim.kernel.study_file_and_episode_spec import BaseStudy
from tutorsim.runner.verify_by_replay_against_digests import Reworded, reworded
from tutorsim.systems.panel import PANEL
from tutorsim.systems.panel.settings_and_members_of_compared_panels import load_panel_catalog

EPISODE = "sciq.ice.help_avoidant.simple"
EDITS = ("judge_reminder", "student_science", "vote_reminder")
AGAIN = "Your last reply could not be read as a ballot."


@pytest.fixture
def reworded_today(monkeypatch):
    """Every template, role and persona that ships is worded otherwise than when recorded."""
    shipped = load_panel_catalog()
    prompts = {name: f"TODAY {text}" for name, text in shipped.prompts.items()}
    roles = {
        name: role.model_copy(update={"means": f"TODAY {role.means}"})
        for name, role in shipped.roles.items()
    }
    today = shipped.model_copy(update={"prompts": prompts, "roles": roles})
    monkeypatch.setitem(PANEL.__dict__, "catalog", lambda: today)


@pytest.fixture
def in_first_form(monkeypatch):
    """Make a recording one of the first form: without wordings, its digest over all templates."""

    def make(folder):
        loaded = load_recorded_study(folder)
        settings = loaded.study.model_copy(update=BaseStudy.later)
        old = replace(loaded, catalog=load_panel_catalog(), study=settings).in_first_form()
        study = folder / "study.toml"
        later = re.compile(rf"(?m)^({'|'.join(BaseStudy.later)}) = .*\n")
        study.write_text(later.sub("", study.read_text()))
        for name in ("manifest.json", *(path.name for path in folder.glob("*.*.*.*.json"))):
            path = folder / name
            text = path.read_text(encoding="utf-8")
            text = text.replace(loaded.digest(), old.digest())
            path.write_text(text.replace(loaded.prompt_digest(), old.prompt_digest()))
        seal(folder)
        (folder / "wordings.toml").unlink()

    return make


# --- The comparison ----------------------------------------------------------------------------


def test_an_entry_that_differs_is_named_with_its_line_and_both_texts():
    recorded = {"prompts": {"a": "one\ntwo", "b": "b"}, "roles": {"r": {"title": "t", "x": 1}}}
    today = {"prompts": {"a": "one\ntoo", "b": "b"}, "roles": {"r": {"title": "u", "x": 1}}}
    names = {"prompts": ["b", "a"], "roles": ["r"]}
    assert reworded(recorded, today, names) == (
        Reworded("prompts.a", r"'one\ntwo'", r"'one\ntoo'", 2),
        Reworded("roles.r.title", "'t'", "'u'", 1),
    )


def test_an_entry_that_is_not_used_is_not_compared():
    assert reworded({"prompts": {"a": "x"}}, {"prompts": {"a": "y"}}, {"prompts": []}) == ()


def test_an_entry_that_is_gone_says_so():
    [found] = reworded({"prompts": {"a": "x"}}, {"prompts": {}}, {"prompts": ["a"]})
    assert str(found) == "prompts.a, line 1: recorded 'x', today there is none."


# --- A recording with wordings of its own --------------------------------------------------------


def test_a_recording_replays_in_its_own_words(reader, recorded, shell, tmp_path, reworded_today):
    assert shell("verify", recorded.cassettes).code == 0
    log = tmp_path / "again" / "log"
    assert shell("replay", recorded.cassettes, "--log-dir", log).code == 0
    assert files(log) == files(recorded.log)


def test_todays_wordings_are_compared_when_asked_for(recorded, shell, reworded_today):
    value = shell("verify", recorded.cassettes, "--wordings", "current", "--json").json(1)
    assert (value["same"], value["episodes"]) == (0, 4)
    named = {one["name"] for one in value["reworded"]}
    assert {"prompts.vote", "prompts.vote_reminder", "roles.motivation.means"} <= named
    assert "prompts.ballot_ranked" not in named
    assert all(
        "TODAY" in one["today"] and "TODAY" not in one["recorded"] for one in value["reworded"]
    )


def test_equal_wordings_are_said_to_be_equal(recorded, shell):
    shell("verify", recorded.cassettes, "--wordings", "current").tells("none of those used differ")


def test_a_damaged_cassette_stays_a_fault_under_todays_wordings(recorded, shell):
    path = recorded.cassettes / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes().replace(b"I think", b"I know"))
    assert shell("verify", recorded.cassettes, "--wordings", "current").code == 4


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_wording_is_refused(name, recorded, shell, tmp_path):
    path = recorded.cassettes / "wordings.toml"
    text = load_panel_catalog().prompts[name].strip().splitlines()[-1]
    assert path.read_text().count(text) == 1
    path.write_text(path.read_text().replace(text, text.replace("e", "3", 1)))
    for command in (("verify",), ("replay", "--log-dir", tmp_path / "log")):
        said = shell(command[0], recorded.cassettes, *command[1:])
        said.fails(4, "does not hold the recorded wordings")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda text: text.replace("[roles.motivation]", "[roles.other]"), "roles.motivation"),
        (lambda text: text.replace("title = ", "heading = "), "wordings of the system 'panel'"),
        (lambda text: "[prompts]\n", "wordings of the system 'panel'"),
        (lambda text: text + "[", "wordings of a recording"),
    ],
)
def test_wordings_that_are_not_whole_are_refused(edit, words, recorded, shell):
    path = recorded.cassettes / "wordings.toml"
    path.write_text(edit(path.read_text()))
    shell("verify", recorded.cassettes).fails(4, words)


def test_an_edited_entry_of_the_study_file_is_refused(recorded, shell):
    path = recorded.cassettes / "study.toml"
    path.write_text(path.read_text() + '\n[catalog.prompts]\njudge_reminder = "Once more."\n')
    shell("verify", recorded.cassettes).fails(4, "entries of [catalog] in study.toml, were edited")


@pytest.mark.loopback
def test_the_same_command_goes_on_in_the_recorded_words(recorded, shell, endpoint, reworded_today):
    before = files(recorded.cassettes, recorded.log)
    (recorded.cassettes / f"{EPISODE}.json").unlink()
    (recorded.cassettes / "manifest.json").rename(recorded.cassettes / "kept")
    manifest = json.loads((recorded.cassettes / "kept").read_bytes())
    head = {"study_digest": manifest["study_digest"], "packages": manifest["packages"]}
    days = {"started": manifest["provenance"]["recorded_from"]}
    days["latest"] = manifest["provenance"]["recorded_to"]
    (recorded.cassettes / ".recording.json").write_text(json.dumps(head | days))
    (recorded.cassettes / "kept").unlink()
    args = ("--cassette-dir", recorded.cassettes, "--log-dir", recorded.log)
    assert shell("run", recorded.study, *args).code == 0
    assert endpoint.sent
    assert all(b"TODAY" not in body for body in endpoint.bodies.values())
    after = files(recorded.cassettes, recorded.log)
    assert after.keys() == before.keys()
    assert after["cassettes/wordings.toml"] == before["cassettes/wordings.toml"]
    assert shell("verify", recorded.cassettes).code == 0


@pytest.mark.loopback
def test_other_words_in_the_study_file_are_another_study(recorded, shell, endpoint):
    path = recorded.study.with_name("other.toml")
    text = recorded.study.read_text() + '\n[catalog.prompts]\njudge_reminder = "Once more."\n'
    path.write_text(text)
    args = ("--cassette-dir", recorded.cassettes, "--log-dir", recorded.log)
    shell("run", path, *args).fails(2, "log of another study")
    assert shell("run", path, *args[:3], recorded.log.with_name("new")).code == 4
    assert endpoint.sent == []


@pytest.mark.loopback
def test_a_retest_asks_again_in_the_recorded_words(recorded, shell, endpoint, reworded_today):
    endpoint.votes = {"vote_final/scaffolding": "none of them"}
    assert shell("retest", recorded.cassettes, "--repeats", 1).code == 0
    bodies = b"\n".join(endpoint.bodies.values())
    assert AGAIN.encode() in bodies
    assert b"TODAY" not in bodies
    assert shell("verify", recorded.cassettes).code == 0


@pytest.mark.loopback
def test_a_branch_goes_on_in_recorded_words(recorded, shell, endpoint, tmp_path, reworded_today):
    """Only what the recording does not have, the ballots of another rule, is today's."""
    new = tmp_path / "new"
    assert shell("branch", recorded.log, "--rule", "ranked", "-o", new).code == 0
    bodies = {name: body.decode() for name, body in endpoint.bodies.items()}
    assert bodies
    todays = {name.split("/")[2] for name, body in bodies.items() if "TODAY" in body}
    assert todays <= {"vote_as_ranked", "vote_final", "vote_initial", "tie_vote"}
    assert all(body.count("TODAY") <= 1 for body in bodies.values())
    assert shell("verify", new).code == 0


# --- A recording of the first form ---------------------------------------------------------------


def test_the_first_form_is_read_in_todays_words(reader, recorded, shell, in_first_form):
    in_first_form(recorded.cassettes)
    shell("verify", recorded.cassettes).tells("4 of 4 episodes")


@pytest.mark.loopback
def test_a_recording_of_the_first_form_goes_on(recorded, shell, in_first_form, endpoint, tmp_path):
    in_first_form(recorded.cassettes)
    args = ("--cassette-dir", recorded.cassettes, "--log-dir", tmp_path / "new")
    assert shell("run", recorded.study, *args).code == 0
    assert endpoint.sent == []


def test_converting_adds_the_wordings_and_then_no_rewording_matters(
    recorded, shell, in_first_form, tmp_path, monkeypatch
):
    in_first_form(recorded.cassettes)
    into = tmp_path / "new"
    said = shell("cassette", "convert", recorded.cassettes, "--to", "text", "-o", into)
    assert said.code == 0
    assert "the recorded ones were added" in said.err.replace("\n", " ")
    manifests = (folder / "manifest.json" for folder in (into, recorded.cassettes))
    assert len({path.read_bytes() for path in manifests}) == 1
    shipped = load_panel_catalog()
    prompts = {name: f"TODAY {text}" for name, text in shipped.prompts.items()}
    today = shipped.model_copy(update={"prompts": prompts})
    monkeypatch.setitem(PANEL.__dict__, "catalog", lambda: today)
    assert shell("verify", into).code == 0
    assert shell("verify", recorded.cassettes).code == 3


def test_wordings_other_than_the_recorded_are_not_added(recorded, shell, tmp_path, reworded_today):
    (recorded.cassettes / "wordings.toml").unlink()
    into = tmp_path / "new"
    said = shell("cassette", "convert", recorded.cassettes, "--to", "text", "-o", into)
    assert said.code == 0
    assert "are not the recorded ones" in said.err.replace("\n", " ")
    assert not (into / "wordings.toml").exists()
