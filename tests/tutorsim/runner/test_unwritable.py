"""Folders that can no longer be written in the middle, and journals that cannot be read."""

import builtins
import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.tutorsim.conftest import files, folders, on_disk
from tests.tutorsim.replay.made import message
from tutorsim.errors import RecordingError
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import Interaction
from tutorsim.replay.recording_transport_tapes_and_journals import Journal, journal_path

pytestmark = pytest.mark.loopback


@contextmanager
def unwritable(folder, when):
    """What a system answers whose user may no longer create, rename or delete in a folder."""

    def refuse(path):
        inside = isinstance(path, str | Path) and Path(path).parent == folder
        if inside and when():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    plain_open, plain_os_open = builtins.open, os.open

    def open_file(file, mode="r", *rest, **more):
        if any(letter in mode for letter in "wax+") and not os.path.exists(file):  # noqa: PTH110
            refuse(file)
        return plain_open(file, mode, *rest, **more)

    def os_open(path, flags, *rest, **more):
        if flags & os.O_CREAT and not os.path.exists(path):  # noqa: PTH110
            refuse(path)
        return plain_os_open(path, flags, *rest, **more)

    def refusing(plain):
        def call(path, *rest, **more):
            refuse(path)
            return plain(path, *rest, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "open", open_file)
        patch.setattr(os, "open", os_open)
        for name in ("unlink", "remove", "mkdir", "rename", "replace"):
            patch.setattr(os, name, refusing(getattr(os, name)))
        yield


CASSETTES, LOG = 0, 1
OTHERS = [(CASSETTES, 0), (CASSETTES, 3), (CASSETTES, 21), (LOG, 0), (LOG, 9), (LOG, 21)]


@pytest.mark.parametrize(
    ("which", "after"),
    [(CASSETTES, 9), *(pytest.param(*other, marks=pytest.mark.costly) for other in OTHERS)],
)
def test_a_folder_that_can_no_longer_be_written_is_told_and_nothing_is_lost(
    which, after, endpoint, write_grid, record, recorded_once, tmp_path
):
    folder = folders(tmp_path)[which]
    study = write_grid()
    with unwritable(folder, lambda: len(endpoint.sent) >= after):
        said = record(study)
    assert (said.code, "Traceback" in said.err) == (2, False), said.err
    text = " ".join(said.err.split())
    assert "cannot be written" in text
    assert "Permission denied" in text
    assert "hoose a folder that you may write" in text or "choose a place that you may" in text
    kept = on_disk(folders(tmp_path)[0])
    assert len(endpoint.sent) - len(kept) <= 16 * (which == CASSETTES)
    endpoint.sent.clear()
    assert record(study).code == 0
    assert kept.isdisjoint(endpoint.sent)
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


EPISODE = "sciq.ice.help_avoidant.simple"
KEY = "1/critique/motivation/1"
MESSAGE = message("yes")
WHOLE = {
    "key": KEY,
    "kind": "api",
    "status": 200,
    "request_headers": {"x-tutorsim-call": f"{EPISODE}/{KEY}"},
    "request": "{}",
    "response_headers": {},
    "response": orjson.dumps(MESSAGE).decode(),
}
DAMAGES: dict[str, Any] = {
    "no JSON": {"response": "<html>"},
    "no message": {"response": "{}"},
    "a number": {"response": 5},
    "nothing": {"response": None},
    "content": {"response": '{"type": "message", "content": [1], "usage": 5}'},
    "half": {"response": orjson.dumps(MESSAGE).decode()[:40]},
    "deep": {"response": "[" * 100_000},
    "headers": {"response_headers": 7},
    "header": {"response_headers": {"content-type": 7}},
    "status": {"status": "ok"},
    "refused": {"status": 500},
    "request": {"request": "]"},
    "kind": {"kind": "oracle"},
    "key": {"key": "a"},
    "another key": {"key": "1/critique/motivation/2"},
    "no call": {"request_headers": {}},
    "one more": {"more": 1},
}


def journal_of(folder, **changed):
    journal = Journal(folder, EPISODE, "0" * 64)
    head = {"schema": 1, "episode_id": EPISODE, "study_digest": "0" * 64}
    lines = b"".join(orjson.dumps(line) + b"\n" for line in (head, WHOLE | changed))
    journal_path(folder, EPISODE).write_bytes(lines)
    return journal


def test_a_whole_line_of_a_journal_is_read(tmp_path):
    assert journal_of(tmp_path).read() == {KEY: Interaction(**WHOLE)}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_line_that_is_no_recorded_call_is_told(damage, tmp_path):
    with pytest.raises(RecordingError, match="is not a journal of this recording") as caught:
        journal_of(tmp_path, **DAMAGES[damage]).read()
    assert caught.value.why.startswith("Line 2: ")
    assert "move this file away to ask its calls again" in caught.value.hint


@pytest.mark.costly
def test_a_journal_with_an_unreadable_reply_is_told_kept_and_can_be_moved_away(
    endpoint, write_grid, record, recorded_once, tmp_path
):
    cassettes, log = folders(tmp_path)
    study = write_grid()
    with unwritable(cassettes, lambda: len(endpoint.sent) >= 9):
        assert record(study).code == 2
    (cassettes / ".tutorsim.lock").unlink()
    [journal, *_] = sorted(cassettes.glob("*.journal.jsonl"))
    head, line, *rest = journal.read_bytes().splitlines(keepends=True)
    damaged = orjson.dumps({**orjson.loads(line), "response": "<html>"}) + b"\n"
    journal.write_bytes(b"".join([head, damaged, *rest]))
    before = files(cassettes, log)
    said = record(study)
    assert (said.code, "Traceback" in said.err) == (4, False), said.err
    assert f"{journal.name} is not a journal" in said.err
    assert files(cassettes, log) == before
    journal.rename(tmp_path / "away")
    assert record(study).code == 0
    assert files(cassettes, log) == files(recorded_once.cassettes, recorded_once.log)
