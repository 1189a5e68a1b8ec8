"""Cassettes as files: one text, two forms, and nothing that is not whole."""

import os

import pytest
import zstandard

from tutorsim.errors import MissingCallError, RecordingError
from tutorsim.replay import read_cassette
from tutorsim.replay.cassette_file import (
    cassette_file,
    cassette_files,
    check_inside,
    check_recordable,
    check_regular,
    compressed,
    decompressed,
    read_cassette_file,
    write_cassette_file,
)

TEXT = b'{"a": "\xc3\xa9"}\n' * 50


@pytest.fixture
def packed(tmp_path, episode):
    write_cassette_file(tmp_path, episode, TEXT, "compressed")
    return cassette_file(tmp_path, episode, "compressed")


def test_both_forms_hold_the_same_text(tmp_path, episode, packed):
    assert packed.name == f"{episode}.json.zst"
    assert packed.stat().st_size < len(TEXT) / 4
    assert read_cassette_file(tmp_path, episode) == TEXT
    write_cassette_file(tmp_path, episode, TEXT + b"\n", "text")
    assert read_cassette_file(tmp_path, episode) == TEXT + b"\n"


def test_a_compressed_cassette_has_the_digest_of_its_text(
    tmp_path, episode, call, interaction, message, write
):
    plain = write(tmp_path, [interaction(call("a"), message("b"))])
    path = cassette_file(tmp_path, episode, "text")
    write_cassette_file(tmp_path, episode, path.read_bytes(), "compressed")
    path.unlink()
    assert read_cassette(tmp_path, episode) == plain


def test_names_of_cassettes_are_told_from_others():
    names = ["manifest.json", "sciq.a.p.simple.json", "sciq.b.p.simple.json.zst", "x.json.zst"]
    assert list(cassette_files(names)) == [
        ("sciq.a.p.simple", "text"),
        ("sciq.b.p.simple", "compressed"),
    ]


def _unsized():
    packer = zstandard.ZstdCompressor(write_content_size=False)
    return packer.compress(TEXT)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        TEXT,
        compressed(TEXT)[:-1],
        compressed(TEXT)[:-4] + b"0000",
        compressed(TEXT) + b"x",
        compressed(TEXT) * 2,
        _unsized(),
    ],
    ids=["nothing", "text", "cut", "edited", "more", "twice", "no size"],
)
def test_what_is_no_whole_frame_is_refused(packed, episode, data):
    packed.write_bytes(data)
    with pytest.raises(RecordingError, match=r"\.json\.zst is not a whole compressed cassette"):
        read_cassette_file(packed.parent, episode)


def test_a_frame_that_claims_to_hold_too_much_is_not_unpacked(monkeypatch):
    monkeypatch.setattr("tutorsim.replay.cassette_file._LARGEST", len(TEXT) - 1)
    with pytest.raises(RecordingError, match=f"it holds {len(TEXT)} bytes"):
        decompressed(compressed(TEXT), "x.json.zst")


def test_a_link_that_leads_out_is_refused_in_either_form(packed, episode):
    outside = packed.parent.parent / "outside.zst"
    packed.replace(outside)
    packed.symlink_to(outside)
    with pytest.raises(RecordingError, match="leads out of its folder"):
        read_cassette_file(packed.parent, episode)


def test_an_episode_without_either_form_is_missing(tmp_path, episode):
    with pytest.raises(MissingCallError, match="has no cassette"):
        read_cassette_file(tmp_path, episode)


def test_nothing_is_recorded_into_a_folder_of_compressed_cassettes(packed):
    with pytest.raises(RecordingError, match="holds compressed cassettes"):
        check_recordable(packed.parent)
    packed.unlink()
    check_recordable(packed.parent)
    check_recordable(packed.parent / "none")


def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(RecordingError, match="no regular file"):
        check_regular(tmp_path, links=False)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe", "link outside"])
def test_what_is_no_file_of_the_folder_is_refused_before_it_is_read(kind, tmp_path):
    folder = tmp_path / "recording"
    folder.mkdir()
    path, pipe = folder / "a.json", folder / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "outside").write_text("{}")
    if kind == "folder":
        path.mkdir()
    else:
        led = {"pipe": None, "link to a pipe": pipe, "link outside": tmp_path / "outside"}[kind]
        os.mkfifo(path) if led is None else path.symlink_to(led)
    with pytest.raises(RecordingError, match=r"no regular file|leads out of its folder"):
        check_inside(path)


def test_a_file_of_the_folder_or_none_is_let_through(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "c.json").symlink_to(tmp_path / "gone")
    for path in ("a.json", "b.json", "c.json", "d.json", "a.json/e"):
        check_inside(tmp_path / path)
