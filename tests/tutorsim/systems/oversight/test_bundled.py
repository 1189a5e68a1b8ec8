"""What is bundled: the oversight study, and the audit of the panel's."""

import json

import pytest

from tests.tutorsim.conftest import files
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    audited_turns,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run
from tutorsim.kernel.load_and_check_study_file import load_recorded_study
from tutorsim.records.oversight import OversightRecord
from tutorsim.replay import Reader
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay
from tutorsim.systems.oversight import OVERSIGHT

FIRST_ASKINGS = {
    "hpo": 15, "single": 1, "cooperative": 10, "unstructured": 12, "self_consistency": 5,
}  # fmt: skip


def bodies(folder, episode_id):
    """Call key → system text and message as they were sent."""
    playback = Reader(folder).open(episode_id)
    found = {}
    for one in playback.cassette.interactions.values():
        body = json.loads(one.request)
        found[one.key] = f"{body['system']}\n{body['messages'][0]['content']}"
    return found


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """Folder of the bundled study, and its records."""
    folder = bundled_recording(OVERSIGHT.demo)
    assert folder is not None
    log = tmp_path_factory.mktemp("bundled")
    replay(folder, log_dir=log, workers=1)
    return folder, open_run(log).episodes


def test_sixteen_items_under_five_conditions_take_the_calls_announced(bundled):
    folder, records = bundled
    assert len(records) == 80
    loaded = load_recorded_study(folder)
    assert sum(loaded.call_range(spec).least for spec in loaded.grid()) == 688
    for record in records:
        first = [call for call in record.calls if call.key.endswith("/1")]
        assert len(first) == FIRST_ASKINGS[record.condition]


def test_no_recorded_prompt_holds_gold_or_a_reference(bundled):
    folder, records = bundled
    items = {item.task_id: item for item in load_recorded_study(folder).tasks["mrbench"]}
    seen = 0
    for record in records:
        item = items[record.task_id]
        for text in bodies(folder, record.episode_id).values():
            seen += 1
            assert item.reference not in text
            assert not any(name in text for name in item.annotation)
            assert "Yes (and" not in text
    assert seen == 706


def test_act_four_is_asked_once_in_every_debate_and_its_presses_reach_the_summary(bundled):
    folder, records = bundled
    pressed = 0
    for record in records:
        if record.condition != "hpo":
            continue
        assert next(c.key for c in record.calls if c.stage == "press") == "4/press/advocate/1"
        assert record.press is not None
        unmet = {critic for critic, said in record.press.verdicts.items() if said == "unmet"}
        assert set(record.press.presses) == unmet
        prompts = bodies(folder, record.episode_id)
        for critic in ("permissive", "strict"):
            demanded = "has one last demand" in prompts[f"5/close/{critic}/1"]
            assert demanded == (critic in unmet)
            pressed += demanded
    assert pressed > 0


def test_the_bundled_audit_is_of_twelve_turns_with_every_proposal(tmp_path):
    folder = bundled_recording("oversight-audit")
    assert folder is not None
    replay(folder, log_dir=tmp_path, workers=1)
    records: tuple[OversightRecord, ...] = open_run(tmp_path).episodes
    assert len(records) == 48
    turns = audited_turns(records)
    assert len(turns) == 12
    assert all(len(turn.labels) == 4 for turn in turns)


def test_what_is_bundled_is_small():
    for name, most in (("oversight", 300_000), ("oversight-audit", 150_000)):
        folder = bundled_recording(name)
        assert sum(path.stat().st_size for path in folder.iterdir()) < most


@pytest.mark.costly
def test_the_demo_gives_the_same_bytes_twice(shell, tmp_path):
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        said = shell("demo", "--system", "oversight", "--log-dir", folder / "log")
        said.tells("say nothing about any language model")
        made.append(list(files(folder / "log").values()))
    assert made[0] == made[1]
