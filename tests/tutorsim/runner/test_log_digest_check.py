"""A log says only what its recording says; one without a recording says so."""

import json
import shutil
from hashlib import sha256

import pytest

from tutorsim.errors import LogError
from tutorsim.runner.open_recording import check_tied

EPISODE = "sciq.ice.help_avoidant.simple"
COMMANDS = (
    ("summary",),
    ("show", EPISODE),
    ("report", "-o", "{tmp}/report.html"),
    ("export", "-o", "{tmp}/tables"),
    ("recount",),
    ("diverge", "--rule", "ranked"),
)


def leaves(value, path=()):
    """Every place in a JSON value that holds no further ones."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in inner:
        if isinstance(child, dict | list) and child:
            yield from leaves(child, (*path, key))
        else:
            yield (*path, key)


def altered(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return ["simple"]
        case dict():
            return {"x": "y"}
        case _:
            return "2030-01-01"


def test_no_field_of_the_head_can_be_altered(recorded):
    path = recorded.log / "run.json"
    head = json.loads(path.read_bytes())
    places = list(leaves(head))
    assert len(places) > 30
    passed = []
    for place in places:
        value = json.loads(json.dumps(head))
        inner = value
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = altered(inner[place[-1]])
        path.write_text(json.dumps(value))
        try:
            if check_tied(recorded.log) is None:
                passed.append(place)
        except LogError:
            continue
    assert passed == []


def test_lines_that_the_recording_does_not_give_are_refused(recorded, shell):
    lines, head = recorded.log / "episodes.jsonl", recorded.log / "run.json"
    data = lines.read_bytes()
    edited = data.replace(b"I think", b"I guess", 1)
    assert edited != data
    lines.write_bytes(edited)
    one, other = (sha256(text).hexdigest() for text in (data, edited))
    head.write_text(head.read_text().replace(one, other))
    said = shell("summary", recorded.log)
    assert said.code == 4
    assert "is not what its recording gives: episodes_sha256" in said.err.replace("\n", " ")


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_every_command_that_reads_a_log_holds_it_against_its_recording(
    command, recorded, shell, tmp_path
):
    path = recorded.log / "run.json"
    path.write_text(path.read_text().replace('"kind": "relay"', '"kind": "api"'))
    more = [word.format(tmp=tmp_path) for word in command[1:]]
    said = shell(command[0], recorded.log, *more)
    assert said.code == 4
    assert "provenance.kind: the log says 'api'" in said.err.replace("\n", " ")


def test_a_log_whose_recording_is_gone_says_so_and_is_read(recorded, shell, tmp_path):
    assert shell("summary", recorded.log).err == ""
    recorded.cassettes.rename(tmp_path / "elsewhere")
    said = shell("summary", recorded.log)
    assert said.code == 0
    assert "is not tied to a recording, so nothing vouches for what it says" in said.err
    path = recorded.log / "run.json"
    head = json.loads(path.read_bytes())
    path.write_text(json.dumps({**head, "recording_digest": ""}))
    assert "it names none" in shell("summary", recorded.log).err


def test_no_field_of_the_head_of_a_retest_can_be_altered(retested, shell):
    """Another digest of the lines is another retest, which is said and not refused."""
    log = retested.with_name("log")
    assert shell("replay", retested, "--log-dir", log).code == 0
    path = log / "retest.json"
    head = json.loads(path.read_bytes())
    for name, value in {"repeats": 3, "stages": ["vote_final"], "sample": 7, "seed": 5}.items():
        path.write_text(json.dumps({**head, name: value}))
        with pytest.raises(LogError, match=f"retest.json is not what its recording gives: {name}"):
            check_tied(log)
    path.write_text(json.dumps(head))
    assert check_tied(log) is None
    shutil.rmtree(retested / "retest")
    assert "is not tied to the retest" in str(check_tied(log))
