"""A recording converted to and fro has the same bytes, and each form replays."""

import shutil
from pathlib import Path

import pytest

from tests.tutorsim.conftest import files
from tutorsim.replay import convert_recording_to_other_form

EPISODE = "sciq.ice.help_avoidant.simple"
TO_COMPRESSED = ("--to", "compressed", "-o")


@pytest.fixture
def converted(recorded, shell, tmp_path):
    """The recording in compressed form."""
    into = tmp_path / "packed" / "cassettes"
    said = shell("cassette", "convert", recorded.cassettes, *TO_COMPRESSED, into)
    assert said.code == 0
    assert "(compressed) written to" in said.err.replace("\n", " ")
    return into


def test_to_and_fro_gives_the_same_files(recorded, converted, shell, tmp_path):
    names = {path.name for path in converted.iterdir()}
    assert f"{EPISODE}.json.zst" in names
    assert f"{EPISODE}.json" not in names
    back = tmp_path / "back" / "cassettes"
    assert shell("cassette", "convert", converted, "--to", "text", "-o", back).code == 0
    assert files(back) == files(recorded.cassettes)
    again = tmp_path / "again" / "cassettes"
    assert shell("cassette", "convert", back, *TO_COMPRESSED, again).code == 0
    assert files(again) == files(converted)


def test_both_readers_replay_the_compressed_form(reader, recorded, converted, shell, tmp_path):
    into = tmp_path / "replay" / "log"
    said = shell("replay", converted, "--log-dir", into)
    assert said.code == 0
    assert files(into) == files(recorded.log)
    assert shell("verify", converted).code == 0


def test_the_compressed_form_is_listed_shown_and_verified(recorded, converted, shell):
    for command in ("list", "show", "verify"):
        assert shell("cassette", command, converted).code == 0
    shown = shell("cassette", "show", converted, EPISODE, "--json").out
    assert shown == shell("cassette", "show", recorded.cassettes, EPISODE, "--json").out
    shutil.copy(recorded.cassettes / f"{EPISODE}.json", converted)
    said = shell("cassette", "verify", converted)
    said.fails(1, f"{EPISODE}.json: it is there in text and compressed")


def test_what_was_edited_or_is_missing_is_not_converted(recorded, shell, tmp_path):
    path = recorded.cassettes / f"{EPISODE}.json"
    text = path.read_bytes()
    path.write_bytes(text.replace(b"I think", b"I know"))
    said = shell("cassette", "convert", recorded.cassettes, *TO_COMPRESSED, tmp_path / "a")
    said.fails(4, "was edited after it was recorded")
    path.unlink()
    said = shell("cassette", "convert", recorded.cassettes, *TO_COMPRESSED, tmp_path / "b")
    assert said.code == 3
    assert not (tmp_path / "b" / "manifest.json").exists()


def test_a_folder_that_holds_anything_is_refused(recorded, shell):
    said = shell("cassette", "convert", recorded.cassettes, *TO_COMPRESSED, recorded.cassettes)
    said.fails(2, "is not empty")


@pytest.mark.loopback
def test_no_compressed_recording_is_recorded_into(recorded, converted, endpoint, shell, tmp_path):
    before = files(converted)
    shell(
        *("run", recorded.study, "--cassette-dir", converted, "--log-dir", tmp_path / "new")
    ).fails(4, "holds compressed cassettes")
    assert files(converted) == before
    assert endpoint.sent == []


def test_the_same_command_finishes_an_interrupted_conversion(
    recorded, shell, tmp_path, monkeypatch
):
    into = tmp_path / "new"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: 1 / 0)  # while it writes its mark
        with pytest.raises(ZeroDivisionError):
            convert_recording_to_other_form.convert(recorded.cassettes, into, "compressed")
    assert [path.name for path in into.iterdir()] == [".converting.tmp"]
    with monkeypatch.context() as patch:
        patch.setattr(convert_recording_to_other_form, "write_cassette_file", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert_recording_to_other_form.convert(recorded.cassettes, into, "compressed")
    assert [path.name for path in into.iterdir()] == [".converting"]
    said = shell("cassette", "convert", recorded.cassettes, "--to", "text", "-o", into)
    assert said.code == 2  # another command
    assert shell("cassette", "convert", recorded.cassettes, *TO_COMPRESSED, into).code == 0
    assert not (into / ".converting").exists()
    assert shell("verify", into).code == 0
