"""The journal: what it holds, and what it refuses."""

import json

import pytest

from tutorsim.errors import RecordingError
from tutorsim.replay.episode_recorder import Journal, journal_path

DIGEST = "0" * 64


@pytest.fixture
def entries(call, interaction, message):
    return [interaction(call("x\n\u2028", agent=name), message("y")) for name in "ab"]


def test_what_was_appended_is_read_back(tmp_path, episode, entries):
    journal = Journal(tmp_path, episode, DIGEST)
    assert journal.read() == {}
    for one in entries:
        journal.append(one)
    journal.close()

    assert list(Journal(tmp_path, episode, DIGEST).read().values()) == entries


def test_lines_that_name_no_method_and_address_are_messages(tmp_path, episode, entries):
    """As journals were written before they could hold calls of other APIs."""
    journal = Journal(tmp_path, episode, DIGEST)
    journal.append(entries[0])
    journal.close()
    path = journal_path(tmp_path, episode)
    head, line, _ = path.read_text().split("\n")
    fields = {k: v for k, v in json.loads(line).items() if k not in ("method", "uri")}
    path.write_text(f"{head}\n{json.dumps(fields)}\n")

    assert [*Journal(tmp_path, episode, DIGEST).read().values()] == entries[:1]


def test_nothing_is_on_disk_before_the_first_reply(tmp_path, episode):
    Journal(tmp_path, episode, DIGEST).read()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda lines: [lines[0].replace(b"1", b"2", 1), *lines[1:]], "It begins with"),
        (lambda lines: [b"not json", *lines[1:]], "first line"),
        (lambda lines: lines[1:], "It begins with"),
        (lambda lines: [*lines[:2], b"not json", lines[2]], "Line 3"),
        (lambda lines: [*lines, lines[1]], "Line 4 holds call 1/propose/a/1 a second time"),
        (lambda lines: [lines[0], b"[]"], "Line 2"),
        (lambda lines: [lines[0], b"{}"], "Line 2: fields are missing"),
        (lambda lines: [lines[0], lines[1].replace(b'"key"', b'"name"', 1)], "Line 2"),
        (lambda lines: [lines[0], b"\x00" * 40], "Line 2"),
    ],
)
def test_anything_but_a_torn_last_line_is_refused(damage, why, tmp_path, episode, entries):
    journal = Journal(tmp_path, episode, DIGEST)
    for one in entries:
        journal.append(one)
    journal.close()
    path = journal_path(tmp_path, episode)
    path.write_bytes(b"".join(line + b"\n" for line in damage(path.read_bytes().splitlines())))
    before = path.read_bytes()

    with pytest.raises(RecordingError, match=why) as caught:
        Journal(tmp_path, episode, DIGEST).read()

    assert caught.value.exit_code == 4
    assert path.name in caught.value.what
    assert path.read_bytes() == before
