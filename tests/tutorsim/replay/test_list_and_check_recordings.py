"""What recordings there are, and what belongs to nothing."""

import pytest

from tests.tutorsim.replay.made import call, interaction, message, write
from tutorsim.errors import RecordingError
from tutorsim.records import Provenance
from tutorsim.replay import AnsweredBy, EpisodeEntry, Manifest, package_versions, write_manifest
from tutorsim.replay.list_and_check_recordings import (
    Finding,
    StudyEpisodes,
    list_calls,
    list_recordings,
    orphans,
    verify_files,
)

STUDY = "1" * 64
ONE, TWO = "sciq.q1.p.simple", "sciq.q2.p.simple"


@pytest.fixture
def recording(tmp_path):
    """A finished recording of two episodes in a folder below."""
    folder = tmp_path / "below" / "small"
    folder.mkdir(parents=True)
    entries = []
    for name in (ONE, TWO):
        cassette = write(folder, [interaction(call("a"), message("b"), name)], name)
        entries.append(
            EpisodeEntry(episode_id=name, status="complete", failure=None, calls=1,
                         cassette_sha256=cassette.sha256,
                         requests_sha256=cassette.requests_sha256(), record_sha256="a" * 64,
                         outcome={"success": True, "turns_taken": 0, "winners": (),
                                  "decided_by": (), "initial_correctness": 1.0,
                                  "final_correctness": 1.0, "code_passed": None}),
        )  # fmt: skip
    provenance = Provenance(kind="relay", name="x")
    write_manifest(
        folder,
        Manifest(study_name="small", study_digest=STUDY, prompt_digest="2" * 64,
                 provenance=provenance, packages={}, sandbox=None, verdicts_sha256=None,
                 log_sha256="b" * 64, episodes=tuple(entries)),
    )  # fmt: skip
    return folder


def test_recordings_are_found_below_a_folder(tmp_path, recording):
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / f"{ONE}.journal.jsonl").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.json").write_text("{}")

    found = list_recordings(tmp_path)

    assert [one.folder for one in found] == [recording, unfinished]
    assert found[0].manifest is not None
    assert found[0].cassettes == (ONE, TWO)
    assert found[0].size == sum(len((recording / f"{n}.json").read_bytes()) for n in (ONE, TWO))
    assert found[1].manifest is None
    assert "is not a recording" in str(found[1].problem)
    assert found[1].journals == (ONE,)


def test_no_folder_holds_no_recordings(tmp_path):
    assert list_recordings(tmp_path / "absent") == ()


def test_calls_are_summarised(tmp_path):
    one = interaction(call("é"), message("b"))
    [summary] = list_calls(write(tmp_path, [one]))

    assert summary.key == "1/propose/motivation/1"
    assert (summary.model, summary.stop_reason) == ("model-1", "end_turn")
    assert (summary.input_tokens, summary.output_tokens) == (7, 3)
    assert summary.request_bytes == len(one.request.encode())


def test_calls_of_an_unreadable_reply_are_refused(tmp_path):
    cassette = write(tmp_path, [interaction(call("x"), {})])

    with pytest.raises(RecordingError, match="cannot be read"):
        list_calls(cassette)


def test_an_untouched_recording_verifies(recording):
    assert verify_files(recording) == ()


def test_what_is_wrong_with_a_recording_is_named_file_by_file(recording):
    one, two = recording / f"{ONE}.json", recording / f"{TWO}.json"
    one.write_text(one.read_text().replace('\\"b\\"', '\\"c\\"'))
    stray = "sciq.q3.p.simple"
    (recording / f"{stray}.json").write_bytes(two.read_bytes())
    (recording / f"{stray}.journal.jsonl").write_text("")
    (recording / "verdicts.jsonl").write_text("")
    two.unlink()

    assert verify_files(recording) == (
        Finding(one.name, "its replies were edited"),
        Finding(two.name, f"{two.name}: the recording has no cassette for this episode."),
        Finding("verdicts.jsonl", "it was edited"),
        Finding(f"{stray}.json", "the manifest does not name it"),
        Finding(f"{stray}.journal.jsonl", "the episode is half recorded"),
    )


def test_an_edited_request_is_told_apart_from_an_edited_reply(recording):
    one = recording / f"{ONE}.json"
    one.write_text(one.read_text().replace("You tutor.", "You teach."))

    assert verify_files(recording) == (Finding(one.name, "its requests were edited"),)


def test_nothing_is_orphaned_when_study_and_recording_fit(tmp_path, recording):
    found = orphans(list_recordings(tmp_path), [StudyEpisodes("small", STUDY, (ONE, TWO))])

    assert (found.recordings, found.cassettes, found.episodes) == ((), (), ())


def test_orphans_are_recordings_without_study_and_episodes_without_recording(tmp_path, recording):
    (recording / "sciq.q9.p.simple.json").write_bytes((recording / f"{ONE}.json").read_bytes())
    (recording / f"{TWO}.json").unlink()
    studies = [StudyEpisodes("small", STUDY, (ONE, TWO)), StudyEpisodes("new", "9" * 64, (ONE,))]

    found = orphans(list_recordings(tmp_path), studies)
    assert found.recordings == ()
    assert found.cassettes == ((recording, "sciq.q9.p.simple.json"),)
    assert found.episodes == (("small", TWO), ("new", ONE))

    changed = orphans(list_recordings(tmp_path), [StudyEpisodes("small", "8" * 64, (ONE,))])
    assert changed.recordings == (recording,)
    assert changed.episodes == (("small", ONE),)


# --- What answered a recording, as its own replies tell -------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "relay_name", "expected"),
    [
        (["stand-in"], None, ("stand-in", "tutorsim stand-in 1.0")),
        (["api"], "mine", ("api", "Anthropic API")),
        (["relay"], None, ("relay", "unnamed")),
        (["relay"], "mine", ("relay", "mine")),
        (["api", "relay"], "mine", ("relay", "mine (mixed: api, relay)")),
        ([], None, ("relay", "unnamed")),
    ],
)
def test_provenance_is_what_the_replies_tell(kinds, relay_name, expected):
    answered_by = AnsweredBy(kinds=set(kinds), models={"b", "a"}, standins={"1.0"})

    told = answered_by.provenance(
        relay_name=relay_name, recorded_from="2026-01-02", recorded_to="2026-01-03"
    )

    assert (told.kind, told.name) == expected
    assert told.models == ("a", "b")
    assert (told.recorded_from, told.recorded_to) == ("2026-01-02", "2026-01-03")


def test_a_witness_reads_sources_from_cassettes(tmp_path):
    answered_by = AnsweredBy()
    answered_by.note(write(tmp_path, []))
    answered_by.note(write(tmp_path, [interaction(call("a"), message("b"))]))

    assert answered_by == AnsweredBy(kinds={"relay"}, silent=True)


def test_package_versions_name_what_shapes_a_recording():
    assert [*package_versions()] == ["anthropic", "httpx2", "python", "tutorsim", "vcrpy"]
