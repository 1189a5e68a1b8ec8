"""Streams that were closed before the command began."""

import subprocess
import sys
from itertools import combinations

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
