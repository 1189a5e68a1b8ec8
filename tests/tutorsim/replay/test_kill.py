"""A recording that is killed goes on where it stopped and ends with the bytes of one run."""

import asyncio
import os
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import orjson
import pytest

from tutorsim.replay.durable_files_and_key_leaks import LOCK_FILE

PROGRAM = Path(__file__).with_name("record_rounds.py")
CALLS = 6 * 4 * 4


def run_here(folder):
    asyncio.run(runpy.run_path(str(PROGRAM))["record"](folder))


def start(folder):
    return subprocess.Popen([sys.executable, str(PROGRAM), str(folder)], env=os.environ.copy())


def recorded(folder):
    """Calls that are on disk in full, each as `<episode>/<key>`."""
    found = set()
    for path in folder.glob("*.journal.jsonl"):
        for line in path.read_bytes().split(b"\n")[1:-1]:
            found.add(orjson.loads(line)["request_headers"]["x-tutorsim-call"])
    for path in folder.glob("*.json"):
        for entry in orjson.loads(path.read_bytes())["interactions"]:
            found.add(entry["request"]["headers"]["x-tutorsim-call"][0])
    return found


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.loopback
def test_after_a_kill_no_recorded_call_is_sent_again_and_the_bytes_are_those_of_one_run(
    tmp_path, server, message
):
    def slowly(body):
        time.sleep(0.005)
        return message("re: " + body["messages"][0]["content"])

    server.respond = slowly
    run_here(tmp_path / "whole")
    assert len(server.seen) == CALLS

    folder = tmp_path / "killed"
    for kill_after in (53, None):
        before, on_disk = len(server.headers), recorded(folder)
        if kill_after is None:
            run_here(folder)
        else:
            child = start(folder)
            while len(server.headers) - before < kill_after:
                time.sleep(0.001)
            child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            assert recorded(folder) > on_disk
        sent = [headers["x-tutorsim-call"] for headers in server.headers[before:]]
        assert on_disk.isdisjoint(sent)
        assert max(Counter(sent).values()) == 1

    (folder / LOCK_FILE).unlink()  # A killed run cannot; the next one takes it over.
    assert content(folder) == content(tmp_path / "whole")
