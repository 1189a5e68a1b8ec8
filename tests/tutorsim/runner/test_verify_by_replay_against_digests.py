"""Verifying: exit codes, reports, and what differs."""

import pytest

from tutorsim.records import to_line
from tutorsim.runner import play_recorded_episodes_and_retests as piece_playback

EPISODE = "sciq.ice.help_avoidant.simple"


@pytest.fixture
def drifting(monkeypatch):
    """This version of the code gives other records than the recording did."""

    def changed(record):
        if record.episode_id != EPISODE:
            return to_line(record)
        return to_line(record.model_copy(update={"final_correctness": 0.125}))

    monkeypatch.setattr(piece_playback, "to_line", changed)


def test_a_recording_as_it_was_made_is_confirmed(reader, recorded, shell):
    shell("verify", recorded.cassettes).tells(
        f"4 of 4 episodes ({recorded.calls} calls) give the recorded bytes.", "relay: unnamed"
    )


def test_other_records_are_drift_and_name_what_differs(drifting, recorded, shell):
    said = shell("verify", recorded.cassettes)
    said.fails(
        1,
        f"{EPISODE}: the replay gives another record",
        "final_correctness: recorded 0.",
        "now 0.125",
    )
    assert "3 of 4 episodes" in said.out


def test_a_log_to_compare_with_names_the_field(recorded, shell, monkeypatch):
    def changed(record):
        first = record.attempts[0].model_copy(update={"text": record.attempts[0].text + "!"})
        return to_line(record.model_copy(update={"attempts": (first, *record.attempts[1:])}))

    monkeypatch.setattr(piece_playback, "to_line", changed)
    alone = shell("verify", recorded.cassettes)
    assert "other fields of the record differ" in alone.err
    said = shell("verify", recorded.cassettes, "--against", recorded.log)
    said.fails(1, "attempts[0].text differs at character")


@pytest.mark.parametrize("content", [None, b"[1]\n", b"{\n", b"\xff\n"])
def test_a_folder_without_a_log_to_compare_with_is_refused(content, recorded, shell, tmp_path):
    (tmp_path / "other").mkdir()
    if content is not None:
        (tmp_path / "other" / "episodes.jsonl").write_bytes(content)
    said = shell("verify", recorded.cassettes, "--against", tmp_path / "other")
    said.fails(4, "holds no whole log")


def test_changed_prompts_are_a_finding_of_their_own(recorded, shell):
    (recorded.cassettes / "wordings.toml").unlink()
    path = recorded.cassettes / "study.toml"
    path.write_text(path.read_text() + '\n[catalog.prompts]\njudge_reminder = "Once more."\n')
    said = shell("verify", recorded.cassettes)
    assert said.code == 4
    assert "4 of 4 episodes" in said.out
    assert "prompts of this tutorsim are not the recorded ones" in said.err
