"""Streams that were closed before the command began."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

CHECK = """
import os, sys
from tutorsim.cli import open_closed_streams
open_closed_streams()
with open(os.devnull) as other:
    number = other.fileno()
assert sys.stdin.read() == ""
print("said"); print("said", file=sys.stderr)
sys.stdout.flush()
os._exit(0 if number > 2 else 9)
"""
CLOSED = [set(some) for size in range(4) for some in combinations((0, 1, 2), size)]


@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_no_other_file_takes_the_number_of_a_closed_stream(closed):
    shut = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {shut}', sys.executable, CHECK],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0
    assert ended.stdout == (b"" if 1 in closed else b"said\n")
    assert ended.stderr == (b"" if 2 in closed else b"said\n")


# --- Output that nobody reads, or that has no room, is told without a traceback -------------------

MAIN = "from tutorsim.cli import main; main()"
DEMO = Path(__file__).parents[3] / "cassettes" / "demo"
COMMANDS = (("cassette", "show", DEMO), ("cassette", "show", DEMO, "--json"))


def run(*args, stdout):
    return subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, args)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.costly
@pytest.mark.parametrize("command", COMMANDS, ids=["text", "json"])
def test_a_reader_that_ends_first_is_no_failure(command):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(*command, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.costly
@pytest.mark.parametrize("command", COMMANDS, ids=["text", "json"])
def test_an_output_without_room_says_so(command):
    with Path("/dev/full").open("w") as full:
        done = run(*command, stdout=full.fileno())
    assert done.returncode == 2
    assert "The output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_short_output_without_room_says_so_when_the_command_ends(shell, monkeypatch, tmp_path):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        shell("cassette", "list", tmp_path, "--json").fails(2, "The output cannot be written")
