"""Frames, and bytes that are none."""

import json
import os
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.sandbox.inner.frames_layers_and_longest_program import (
    FRAME_CAP,
    Closed,
    Frames,
    Malformed,
    frame_bytes,
    read_frame,
    write_frame,
)


def _piped(sent):
    reader, writer = os.pipe()
    os.write(writer, sent)
    os.close(writer)
    return reader


@pytest.mark.costly
@given(st.lists(st.dictionaries(st.text(), st.integers()), max_size=4), st.integers(1, 7))
def test_frames_are_put_together_however_they_were_cut(values, size):
    sent = b"".join(map(frame_bytes, values))
    frames = Frames()
    for start in range(0, len(sent), size):
        frames.feed(sent[start : start + size])
    assert frames.ready == values


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(sent):
    reader = _piped(sent)
    with suppress(Malformed, Closed):
        json.dumps(read_frame(reader))
    os.close(reader)


def test_one_frame_is_read_and_the_next_one_left():
    reader = _piped(frame_bytes(1) + frame_bytes(2))
    assert [read_frame(reader), read_frame(reader)] == [1, 2]
    with pytest.raises(Closed):
        read_frame(reader)
    os.close(reader)


@pytest.mark.parametrize("body", [b"", b"x", b"[" * 100_000])
def test_a_frame_that_is_no_data_is_malformed(body):
    reader = _piped(len(body).to_bytes(4, "big") + body[:60_000])
    with pytest.raises((Malformed, Closed)):
        read_frame(reader)
    os.close(reader)


def test_a_frame_above_the_cap_is_neither_sent_nor_read():
    longest = "x" * (FRAME_CAP - 2)  # two quotes belong to it
    frames = Frames()
    frames.feed(frame_bytes(longest))
    assert frames.ready == [longest]
    with pytest.raises(Malformed):
        frame_bytes(f"{longest}x")
    with pytest.raises(Malformed):
        frames.feed(frame_bytes(f"{longest}x", cap=2 * FRAME_CAP))


def test_writing_to_nobody_says_so():
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(Closed):
        write_frame(writer, {})
    os.close(writer)
