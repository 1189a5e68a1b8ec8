"""A reply that was cut off, or is empty, is asked for once more, in every system."""

import json
from dataclasses import replace

import polars as pl
import pytest

from tutorsim.kernel.flow_drivers_and_call_log import PersonInput, Round, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_study, system_named
from tutorsim.kernel.study_file_and_episode_spec import shipped_studies
from tutorsim.kernel.system_and_loaded_study import CUT_OFF_REMINDER, Chance
from tutorsim.model import CALL_HEADER
from tutorsim.standin.messages_api_routes_and_replies import think
from tutorsim.system_registry import system_names


def loaded(system, **settings):
    """The system's shipped study, in no other wordings than a recording of it holds."""
    study = load_study(shipped_studies()[system_named(system).example], overrides=settings)
    return study.with_wordings(study.wordings())


def one_of_each_condition(study):
    return {spec.condition: spec for spec in study.grid()}.values()


def cut_off(reply):
    return reply._replace(stop_reason="max_tokens")


def emptied(reply):
    """A reply without text that ends as usual."""
    return reply._replace(text="", stop_reason="end_turn")


def requests_of(study, spec, first=cut_off):
    """Call key → request of an episode in which every first reply is cut off, or as told."""
    sent = {}

    def reply(call):
        sent[call.key] = call.request
        chance = Chance(7, str(call.key), call.request.user)
        body = call.request.body()
        return think({**body, "max_tokens": 9_999}, chance, steady=chance).text

    canned = scripted(reply, listen=lambda _: PersonInput(None, 0, ended=True))

    def world(effect):
        replies = canned(effect)
        if not isinstance(effect, Round):
            return replies
        return tuple(
            first(reply) if call.key.attempt == 1 else reply
            for call, reply in zip(effect.calls, replies, strict=True)
        )

    record = drive(study.episode(spec), world)
    assert record.status == "complete"
    return sent


@pytest.mark.parametrize("system", system_names())
def test_every_call_of_every_condition_is_asked_again_when_cut_off(system):
    study = loaded(system)
    reminder = study.catalog.fill(CUT_OFF_REMINDER)
    for spec in one_of_each_condition(study):
        sent = requests_of(study, spec)
        firsts = [key for key in sent if key.attempt == 1]
        assert firsts
        for key in firsts:
            assert sent[key._replace(attempt=2)] == sent[key].followed_by(reminder)


@pytest.mark.parametrize("ask_cut_off_again", [True, False])
@pytest.mark.parametrize("system", system_names())
def test_every_call_of_any_condition_is_asked_again_after_an_empty_reply(system, ask_cut_off_again):
    """No reader takes an empty text, so that it is asked for again whatever the study says."""
    study = loaded(system, ask_cut_off_again=ask_cut_off_again)
    for spec in one_of_each_condition(study):
        sent = requests_of(study, spec, emptied)
        for key in [key for key in sent if key.attempt == 1]:
            assert sent[key._replace(attempt=2)].user.startswith(f"{sent[key].user}\n\n")


def asks_again(system, study, spec):
    """Whether some call of an episode asks again for what was cut off, in the shipped words."""
    reminder = system_named(system).catalog().fill(CUT_OFF_REMINDER)
    return any(sent.user.endswith(reminder) for sent in requests_of(study, spec).values())


@pytest.mark.parametrize("system", system_names())
def test_without_the_setting_nothing_is_asked_again_and_the_wording_is_not_recorded(system):
    study = loaded(system, ask_cut_off_again=False)
    assert CUT_OFF_REMINDER not in study.wordings()["prompts"]
    for spec in one_of_each_condition(study):
        assert not asks_again(system, study, spec)


@pytest.mark.parametrize("system", system_names())
def test_a_recording_whose_wordings_lack_the_reminder_asks_as_it_did(system):
    """Recordings made before the system had the reminder keep their calls and their digest."""
    before = loaded(system, ask_cut_off_again=False)
    study = replace(before, study=before.study.model_copy(update={"ask_cut_off_again": True}))
    [spec, *_] = one_of_each_condition(study)
    assert not asks_again(system, study, spec)
    assert study.wordings() == before.wordings()


# --- Recorded ------------------------------------------------------------------------------------

SMALL = {
    "panel": ("demo", "benchmarks.sciq.limit=1", 'personas=["help_avoidant"]', "max_turns=1"),
    "debate": ("debate-demo", "benchmarks.strategyqa.limit=1", 'conditions=["simple", "full"]'),
    "oversight": ("oversight", "benchmarks.mrbench.sample=1"),
    "group": ("lessons", "benchmarks.lesson.limit=1", "group.max_events=12"),
}


def replies_of(cassettes):
    """Call header → text of every reply, of the recording's raw JSON."""
    paths = [path for path in cassettes.glob("*.*.json") if not path.name.startswith("tasks.")]
    for path in paths:
        for one in json.loads(path.read_text())["interactions"]:
            [call] = one["request"]["headers"][CALL_HEADER]
            blocks = json.loads(one["response"]["body"]["string"])["content"]
            yield call, "".join(block["text"] for block in blocks)


@pytest.mark.loopback
@pytest.mark.costly
@pytest.mark.parametrize("system", system_names())
def test_empty_replies_are_recorded_told_and_played(system, shell, tmp_path, stand_ins):
    study, *settings = SMALL[system]
    given = [part for setting in settings for part in ("--set", setting)]
    log, cassettes, batch, other = (tmp_path / n for n in ("log", "cassettes", "batch", "other"))
    stand_ins(seed=3, faults=["empty:0.2"])
    said = shell("run", study, *given, "--log-dir", log, "--cassette-dir", cassettes)
    shell("run", study, *given, "--batch", "--log-dir", batch, "--cassette-dir", other)
    replies = dict(replies_of(cassettes))
    empty = {call for call, text in replies.items() if not text}
    assert len(empty) > 5
    for call in empty:
        if call.endswith("/1"):
            assert f"{call[:-1]}2" in replies
    assert f"Warning: {len(empty)} replies were without text" in said.err
    assert f"not {len(empty)} of {len(replies)} replies" in shell("summary", log).out
    assert f"The run has {len(empty)} replies without text" in shell("recount", log).out
    listed = shell("show", log, "--json").json()["episodes"]
    assert sum(
        int(words.split()[0])
        for row in listed
        for words in row["special"]
        if words.endswith(" without text")
    ) == len(empty)
    tables = tmp_path / "tables"
    shell("export", log, "-o", tables)
    assert pl.read_parquet(tables / "calls.parquet")["without_text"].sum() == len(empty)
    assert (batch / "episodes.jsonl").read_bytes() == (log / "episodes.jsonl").read_bytes()
    assert shell("verify", cassettes).code == 0
    assert shell("verify", other).code == 0
