"""Output that nobody reads, or that has no room, is told without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
