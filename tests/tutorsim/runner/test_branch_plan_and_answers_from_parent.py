"""What a parent answers, what it refuses, and how its covered cassettes get into a branch."""

import asyncio
from dataclasses import replace
from typing import NamedTuple

import pytest

from tutorsim.errors import ChangedCallError, FolderError, RecordingError, RecordingRefused
from tutorsim.kernel.flow_drivers_and_call_log import Round, drive
from tutorsim.model import CALL_HEADER, Call, CallKey
from tutorsim.records import Branch, BranchedEpisode
from tutorsim.replay import read_cassette
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore
from tutorsim.runner.branch_plan_and_answers_from_parent import Parent, ParentEpisode
from tutorsim.runner.find_and_check_recording import Recording, open_recording
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene

EPISODE = "sciq.ice.help_avoidant.simple"
COVERED = "sciq.ice.help_avoidant.baseline"


class Case(NamedTuple):
    recording: Recording
    parent: Parent
    prior: ParentEpisode
    """Of the first continuation, whose cursor is turn 1."""
    calls: dict[str, Call]
    """The parent's own, by key."""


@pytest.fixture
def case(recorded):
    recording = open_recording(recorded.cassettes)
    branch = Branch(
        parent="grid",
        parent_study="",
        parent_recording="",
        covered=(COVERED,),
        episodes={EPISODE: BranchedEpisode(turn=1, winners=())},
    )
    [spec] = [one for one in recording.specs if one.episode_id == EPISODE]
    calls: dict[str, Call] = {}
    held = read_cassette(recording.folder, EPISODE).interactions

    def world(effect):
        assert isinstance(effect, Round)
        calls.update((str(call.key), call) for call in effect.calls)
        return tuple(held[str(call.key)].reply() for call in effect.calls)

    drive(episode(Scene(recording.loaded, spec)), world)
    parent = Parent(recording, branch)
    prior = parent.episode(replace(spec, episode_id=f"{EPISODE}.c01", continuation=1))
    return Case(recording, parent, prior, calls)


def changed(call, *, key=None):
    request = call.request._replace(user=call.request.user + " And why?")
    return Call(CallKey.parse(key) if key else call.key, request)


def test_the_parent_answers_its_own_requests_in_the_branch_s_name(case):
    for key, call in case.calls.items():
        one = case.prior.answer(call, fresh=False)
        assert one.request_headers[CALL_HEADER] == f"{EPISODE}.c01/{key}"
        own = case.prior.cassette.interactions[key]
        assert (one.response, one.request) == (own.response, own.request)


def test_past_a_left_path_it_answers_nothing_even_where_the_request_is_equal(case):
    assert not any(case.prior.answer(call, fresh=True) for call in case.calls.values())


BEFORE = (
    "0/student/student/1",
    "0/judge/judge/1",
    "1/propose/motivation/1",
    "1/vote_final/misconception/1",
)
AFTER = ("1/student/student/1", "1/judge/judge/1")


@pytest.mark.parametrize("key", BEFORE)
def test_before_the_cursor_another_request_is_an_error_and_never_paid_for(case, key):
    assert case.prior.is_before_cursor(CallKey.parse(key))
    with pytest.raises(ChangedCallError, match=f"call {key} was recorded with another request"):
        case.prior.answer(changed(case.calls[key]), fresh=False)
    unknown = changed(case.calls[key], key="1/critique/nobody/1")
    with pytest.raises(RecordingRefused, match="comes before the branch and is not in the parent"):
        case.prior.answer(unknown, fresh=False)


@pytest.mark.parametrize("key", AFTER)
def test_after_the_cursor_another_request_is_one_to_pay_for(case, key):
    assert not case.prior.is_before_cursor(CallKey.parse(key))
    assert case.prior.answer(changed(case.calls[key]), fresh=False) is None
    assert case.prior.answer(changed(case.calls[key], key="2/judge/judge/1"), fresh=False) is None


@pytest.mark.parametrize("stage", ["tie_critique", "tie_vote", "vote_as_ranked"])
def test_what_decides_comes_after_the_cursor(case, stage):
    assert not case.prior.is_before_cursor(CallKey.parse(f"1/{stage}/motivation/1"))


def test_a_covered_episode_is_before_the_cursor_to_its_end(case):
    [spec] = [one for one in case.recording.specs if one.episode_id == COVERED]
    prior = case.parent.episode(spec)
    assert prior.cursor is None
    assert prior.is_before_cursor(CallKey.parse("9/judge/judge/1"))


def test_an_answer_is_put_on_the_tape_once_and_a_paid_one_stays(case, tmp_path):
    call = case.calls["1/judge/judge/1"]
    store = CassetteStore(tmp_path / "new", study_digest="d", packages={})
    with store.open(f"{EPISODE}.c01", live=None) as tape:  # type: ignore[arg-type]
        assert case.prior.answers(call, tape, fresh=False)
        assert case.prior.answers(call, tape, fresh=False)
        [_] = tape.replies()
        assert tape.paid == 0
        asyncio.run(tape.rest())
    store = CassetteStore(tmp_path / "paid", study_digest="d", packages={})
    with store.open(f"{EPISODE}.c01", live=None) as tape:  # type: ignore[arg-type]
        own = case.prior.cassette.interactions["1/judge/judge/1"]
        paid = own._replace(response=own.response.replace("SCORE", "Score"))
        tape.add(paid)
        assert not case.prior.answers(call, tape, fresh=False)
        assert (case.prior.gave(own), case.prior.gave(paid)) == (True, False)
        asyncio.run(tape.rest())


def test_covered_cassettes_are_linked_once(case, tmp_path):
    for _ in range(2):
        case.parent.link_covered(tmp_path / "new")
    [link] = (tmp_path / "new").iterdir()
    assert link.samefile(case.recording.folder / f"{COVERED}.json")


def test_a_linked_file_of_the_parent_is_written_out(case, tmp_path):
    own = case.recording.folder / f"{COVERED}.json"
    text = own.read_bytes()
    own.rename(own.with_name("kept.text"))
    own.symlink_to("kept.text")
    case.parent.link_covered(tmp_path / "new")
    [copy] = (tmp_path / "new").iterdir()
    assert not copy.is_symlink()
    assert copy.read_bytes() == text


def test_another_file_in_the_place_of_a_covered_one_is_refused(case, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / f"{COVERED}.json").write_text("{}")
    with pytest.raises(RecordingError, match="not the cassette that the parent recorded"):
        case.parent.link_covered(tmp_path / "new")
    assert (tmp_path / "new" / f"{COVERED}.json").read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_named(case, tmp_path):
    (tmp_path / "new").write_text("a file")
    with pytest.raises(FolderError, match="new cannot be written"):
        case.parent.link_covered(tmp_path / "new")


def test_an_edited_cassette_of_the_parent_is_refused(case, tmp_path):
    for name in (EPISODE, COVERED):
        path = case.recording.folder / f"{name}.json"
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(RecordingError, match=f"{COVERED}.json of the parent was edited"):
        case.parent.link_covered(tmp_path / "new")
    fresh = Parent(case.recording, case.parent.branch).episode(case.prior.spec)
    with pytest.raises(RecordingError, match=f"{EPISODE}.json of the parent was edited"):
        fresh.answer(case.calls[BEFORE[0]], fresh=False)
