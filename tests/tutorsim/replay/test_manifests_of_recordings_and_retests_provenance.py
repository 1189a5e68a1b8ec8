"""The manifest: deterministic, checked, and unable to lead out of its folder."""

import json
from typing import Any

import pytest

from tests.tutorsim.replay.made import EPISODE, call, interaction, message, write
from tutorsim import replay
from tutorsim.errors import RecordingError
from tutorsim.records import EpisodeRecord, Failure, Provenance, to_line
from tutorsim.systems.panel import outcome

HASH = "a" * 64
PROVENANCE = Provenance(kind="relay", name="unnamed", models=("model-1",))


def record_of(episode_id, **fields):
    benchmark, task, persona, condition = episode_id.split(".")[:4]
    values: dict[str, Any] = {
        "episode_id": episode_id,
        "benchmark": benchmark,
        "task_id": task,
        "persona": persona,
        "condition": condition,
        "attempts": (),
        "turns": (),
        "turns_taken": 0,
        "initial_correctness": 0.8,
        "final_correctness": 0.8,
        "success": True,
    }
    return EpisodeRecord(**{**values, **fields})


@pytest.fixture
def cassette(tmp_path):
    written: replay.Cassette = write(tmp_path, [interaction(call("a"), message("b"))])
    return written


@pytest.fixture
def entry(cassette):
    record = record_of(EPISODE)
    return replay.episode_entry(record, to_line(record), cassette, outcome(record))


@pytest.fixture
def manifest(entry):
    return replay.Manifest(
        study_name="small", study_digest="1" * 64, prompt_digest="2" * 64, provenance=PROVENANCE,
        packages={"tutorsim": "1"}, sandbox=None, verdicts_sha256=None, log_sha256=HASH,
        episodes=(entry,),
    )  # fmt: skip


def test_a_manifest_comes_back_as_it_was_written(tmp_path, manifest):
    replay.write_manifest(tmp_path, manifest)
    first = (tmp_path / "manifest.json").read_bytes()
    assert replay.read_manifest(tmp_path) == manifest

    replay.write_manifest(tmp_path, manifest)
    assert (tmp_path / "manifest.json").read_bytes() == first
    lines = [line for line in first.decode().splitlines() if "episode_id" in line]
    assert len(lines) == 1


def test_a_manifest_without_episodes_comes_back(tmp_path, manifest):
    empty = manifest.model_copy(update={"episodes": ()})
    replay.write_manifest(tmp_path, empty)

    assert replay.read_manifest(tmp_path) == empty


def test_an_entry_says_what_came_of_the_episode(entry, cassette):
    assert entry.calls == 1
    assert entry.cassette_sha256 == cassette.sha256
    assert entry.outcome["success"] is True
    assert entry.outcome["winners"] == []
    assert entry.outcome["initial_correctness"] == 0.8


@pytest.mark.parametrize(
    "change", [{"verdicts_sha256": "b" * 64}, {"study_digest": "3" * 64}, {"episodes": ()}]
)
def test_the_recording_digest_changes_with_what_is_played(change, manifest):
    assert manifest.model_copy(update=change).recording_digest() != manifest.recording_digest()


def test_the_recording_digest_ignores_who_recorded_it(manifest):
    other = manifest.model_copy(update={"packages": {"tutorsim": "2"}, "log_sha256": "c" * 64})

    assert other.recording_digest() == manifest.recording_digest()


def test_the_recording_digest_depends_on_failures(manifest, entry):
    failed = entry.model_copy(update={"failure": Failure(key="0/student/student/1", error="x")})
    other = manifest.model_copy(update={"episodes": (failed,)})

    assert other.recording_digest() != manifest.recording_digest()


def _edit(**fields):
    return lambda data: json.dumps({**data, **fields})


def _entry(**fields):
    return lambda data: json.dumps({**data, "episodes": [{**data["episodes"][0], **fields}]})


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: json.dumps(data)[:-40], "truncated or was edited"),
        (lambda data: "", "truncated or was edited"),
        (lambda data: "[]", "truncated or was edited"),
        (lambda data: "[" * 100_000, "truncated or was edited"),
        (_edit(schema_version=2), "format version 2"),
        (_edit(unknown=1), "Field unknown"),
        (_edit(log_sha256="short"), "Field log_sha256"),
        (_entry(episode_id="../../etc/passwd"), "'../../etc/passwd' is not an episode id"),
        (_entry(episode_id="/etc/passwd"), "is not an episode id"),
        (_entry(episode_id="sciq.q1.p.simple/../x"), "is not an episode id"),
        (_entry(episode_id="sciq.q1.p.simple\n"), "is not an episode id"),
        (lambda data: json.dumps({**data, "episodes": data["episodes"] * 2}), "twice"),
    ],
)
def test_a_damaged_or_hostile_manifest_is_refused(damage, told, tmp_path, manifest):
    replay.write_manifest(tmp_path, manifest)
    path = tmp_path / "manifest.json"
    path.write_text(damage(json.loads(path.read_bytes())))

    with pytest.raises(RecordingError) as caught:
        replay.read_manifest(tmp_path)

    assert told in str(caught.value)
    assert caught.value.exit_code == 4


def test_a_folder_without_a_manifest_is_no_recording(tmp_path):
    with pytest.raises(RecordingError, match="is not a recording"):
        replay.read_manifest(tmp_path)


def test_an_untouched_cassette_passes_its_check(entry, cassette):
    assert replay.check_cassette(entry, cassette) is None


@pytest.mark.parametrize("edit", [('\\"b\\"', '\\"c\\"'), ('"version": 1', '"version":  1')])
def test_an_edited_reply_is_found_before_the_replay(edit, entry, cassette, tmp_path):
    path = tmp_path / cassette.name
    text = path.read_text(encoding="utf-8")
    assert edit[0] in text
    path.write_text(text.replace(*edit), encoding="utf-8")

    with pytest.raises(RecordingError, match="Its requests are the recorded ones"):
        replay.check_cassette(entry, replay.read_cassette(tmp_path, cassette.episode_id))


def test_an_edited_request_is_left_to_the_replay_to_explain(entry, cassette, tmp_path):
    path = tmp_path / cassette.name
    text = path.read_text(encoding="utf-8").replace("You tutor.", "You teach.")
    path.write_text(text, encoding="utf-8")

    error = replay.check_cassette(entry, replay.read_cassette(tmp_path, cassette.episode_id))

    assert isinstance(error, RecordingError)
    assert "was edited" in error.what
