"""Verdicts: kept by what was judged and by what judged it."""

import hashlib
import json
from dataclasses import replace

import pytest

from tutorsim.errors import FolderError, RecordingError
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun
from tutorsim.records import VerdictRecord
from tutorsim.replay import VERDICTS_FILE, VerdictStore

RUN = CodeRun(turn=1, message="use x", prompt="def f():", entry_point="f", test="check")
PASS = CodeResult("x = 1\n", VerdictRecord(outcome="pass", reason="", near_limit=True))
FAIL = CodeResult(None, VerdictRecord(outcome="no_code", reason="no block", unsafe=True))


def judged(message):
    return CodeRun(turn=2, message=message, prompt="p", entry_point="f", test="t")


@pytest.fixture
def store(tmp_path):
    """A store that holds one verdict."""
    store = VerdictStore(tmp_path, fingerprint="here")
    store.add(RUN, PASS, fingerprint="here")
    return store


def test_a_verdict_survives_a_kill_right_after_it_was_added(tmp_path, store):
    store.add(judged("b"), FAIL, fingerprint="here")

    again = VerdictStore(tmp_path, fingerprint="here")
    assert again.find(RUN) == PASS
    assert again.find(judged("b")) == FAIL
    assert again.find(judged("c")) is None


def test_the_turn_does_not_count_but_all_that_is_judged_does(store):
    assert store.find(replace(RUN, turn=3)) == PASS
    for field in ("message", "prompt", "entry_point", "test"):
        assert store.find(replace(RUN, **{field: "other"})) is None


def test_a_recording_reuses_only_what_the_same_sandbox_judged(tmp_path):
    VerdictStore(tmp_path, fingerprint="there").add(RUN, PASS, fingerprint="there")

    assert VerdictStore(tmp_path, fingerprint="here").find(RUN) is None
    assert VerdictStore(tmp_path, fingerprint="there").find(RUN) == PASS
    assert VerdictStore(tmp_path).find(RUN) == PASS  # a replay takes it on any machine


def test_another_recording_s_verdict_is_kept_once_as_it_was_judged_there(tmp_path):
    other = VerdictStore(tmp_path / "other", fingerprint="there")
    (tmp_path / "other").mkdir()
    other.add(RUN, PASS, fingerprint="there")
    (tmp_path / "own").mkdir()
    store = VerdictStore(tmp_path / "own", fingerprint="here")
    assert [store.adopt(RUN, other) for _ in range(3)] == [PASS] * 3
    assert store.adopt(judged("b"), other) is None
    line = (tmp_path / "other" / VERDICTS_FILE).read_bytes()
    assert (tmp_path / "own" / VERDICTS_FILE).read_bytes() == line


def test_the_finished_file_does_not_depend_on_the_order_of_judging(tmp_path):
    runs = [judged(str(n)) for n in range(5)]
    contents = []
    for order in (runs, runs[::-1]):
        folder = tmp_path / str(len(contents))
        folder.mkdir()
        store = VerdictStore(folder, fingerprint="here")
        for run in order:
            store.add(run, PASS, fingerprint="here")
        digest = store.finish()
        data = (folder / VERDICTS_FILE).read_bytes()
        assert digest == hashlib.sha256(data).hexdigest()
        contents.append(data)

    assert contents[0] == contents[1]
    assert len(VerdictStore(tmp_path / "0")) == 5


def test_a_later_verdict_takes_the_place_of_an_earlier_one(tmp_path):
    store = VerdictStore(tmp_path, fingerprint="here")
    store.add(RUN, FAIL, fingerprint="there")
    store.add(RUN, PASS, fingerprint="here")
    store.finish()

    assert len((tmp_path / VERDICTS_FILE).read_text().splitlines()) == 1
    assert VerdictStore(tmp_path).find(RUN) == PASS


def test_adding_goes_on_after_a_rewrite(tmp_path, store):
    store.finish()
    store.add(judged("b"), FAIL, fingerprint="here")
    store.close()

    assert len(VerdictStore(tmp_path)) == 2


def test_a_study_without_programs_has_no_file(tmp_path):
    assert VerdictStore(tmp_path, fingerprint="here").finish() is None
    assert list(tmp_path.iterdir()) == []


def test_a_torn_last_line_counts_as_never_written(tmp_path, store):
    store.add(judged("b"), FAIL, fingerprint="here")
    store.close()
    path = tmp_path / VERDICTS_FILE
    path.write_bytes(path.read_bytes()[:-5])

    again = VerdictStore(tmp_path, fingerprint="here")
    assert again.find(RUN) == PASS
    assert again.find(judged("b")) is None
    again.add(judged("b"), PASS, fingerprint="here")
    assert VerdictStore(tmp_path).find(judged("b")) == PASS


@pytest.mark.parametrize(
    ("field", "value"), [("fingerprint", "other"), ("outcome", 3), ("program", "x"), ("new", 1)]
)
def test_an_edited_line_is_refused(field, value, tmp_path):
    VerdictStore(tmp_path, fingerprint="here").add(RUN, PASS, fingerprint="here")
    path = tmp_path / VERDICTS_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}) + "\n")

    with pytest.raises(RecordingError, match="Line 1"):
        VerdictStore(tmp_path)


def test_a_link_to_a_file_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / VERDICTS_FILE).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RecordingError):
        VerdictStore(tmp_path)


def test_a_folder_that_is_gone_is_told(tmp_path):
    store = VerdictStore(tmp_path / "gone", fingerprint="here")

    with pytest.raises(FolderError, match="cannot be written"):
        store.add(RUN, PASS, fingerprint="here")
