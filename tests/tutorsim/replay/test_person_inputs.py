"""What a person said, kept beside the cassettes."""

import json

import pytest

from tutorsim.errors import ChangedCallError, RecordingError
from tutorsim.kernel.flow_drivers_and_call_log import Listen, PersonInput
from tutorsim.replay.program_verdicts_and_person_inputs import (
    INPUTS_FILE,
    InputStore,
    inputs_digest,
)

ASKED = Listen(3, "wait", 4.0)
SAID = PersonInput("hello\u2028there", 12, message_id="message-1")


def test_what_was_heard_is_on_disk_at_once(tmp_path):
    InputStore(tmp_path).add("e", 1, ASKED, SAID)
    again = InputStore(tmp_path)
    assert again.find("e", 1, ASKED) == SAID
    assert again.find("e", 2, ASKED) is None
    assert again.find("f", 1, ASKED) is None
    assert again.message_ids("e") == {"message-1"}
    assert len((tmp_path / INPUTS_FILE).read_bytes().splitlines()) == 1


def test_a_line_that_a_kill_cut_off_is_not_there(tmp_path):
    store = InputStore(tmp_path)
    store.add("e", 1, ASKED, SAID)
    store.close()
    path = tmp_path / INPUTS_FILE
    path.write_bytes(path.read_bytes() + b'{"episode_id":"e","num')
    again = InputStore(tmp_path)
    assert len(again) == 1
    again.add("e", 2, ASKED, SAID)
    again.close()
    assert len(InputStore(tmp_path)) == 2


@pytest.mark.parametrize(
    "listen", [Listen(4, "wait", 4.0), Listen(3, "before_posting", 4.0), Listen(3, "wait", None)]
)
def test_an_input_heard_elsewhere_is_refused(tmp_path, listen):
    store = InputStore(tmp_path)
    store.add("e", 1, ASKED, SAID)
    with pytest.raises(ChangedCallError, match="input 1"):
        store.find("e", 1, listen)


@pytest.mark.parametrize("key", ["text", "turn", "waited_ms", "ended", "digest"])
def test_an_edited_line_is_refused(tmp_path, key):
    InputStore(tmp_path).add("e", 1, ASKED, SAID)
    path = tmp_path / INPUTS_FILE
    value = json.loads(path.read_text())
    value[key] = {"text": "other", "turn": 9, "waited_ms": 1, "ended": True, "digest": "0"}[key]
    path.write_text(json.dumps(value) + "\n")
    with pytest.raises(RecordingError, match="not a whole file of inputs"):
        InputStore(tmp_path)


def test_a_finished_file_is_sorted_and_has_a_digest(tmp_path):
    store = InputStore(tmp_path)
    for number in (2, 10, 1):
        store.add("e", number, ASKED, SAID)
    digest = store.finish()
    numbers = [
        json.loads(line)["number"] for line in (tmp_path / INPUTS_FILE).read_text().split("\n")[:-1]
    ]
    assert numbers == [1, 2, 10]
    assert inputs_digest(tmp_path) == digest


def test_nobody_listened_to_leaves_no_file(tmp_path):
    assert InputStore(tmp_path).finish() is None
    assert inputs_digest(tmp_path) is None
