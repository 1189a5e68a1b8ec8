"""Replay beside the stock tools, and beside the mere reading of its files."""

import asyncio
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import anthropic
import httpx2
import orjson
import pytest
import vcr

from tests.benchmarks.making import Made
from tests.reference.replay_through_sdk import SdkReader
from tutorsim.model import CALL_HEADER, Call, CallKey, Request
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import SdkModel
from tutorsim.replay import read_cassette
from tutorsim.runner.find_and_check_recording import open_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_each
from tutorsim.runner.write_run_folder_and_timings import LogWriter

SOME = 17
"""Every so many episodes of the 120: all conditions and both benchmarks."""
COMMAND = """
import re, resource, sys
if __name__ == "__main__":
    from tutorsim.cli import main
    into = sys.argv.pop(1)
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
    with open("/proc/self/status") as status:
        own = int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1])
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with open(into, "w") as file:
        file.write(str(own + workers))
"""


@pytest.fixture(scope="module")
def grid(make_recording):
    """The published grid: 1,200 episodes."""
    return make_recording()


@pytest.fixture(scope="module")
def small(make_recording):
    """Two tasks of each benchmark: 120 episodes."""
    return make_recording(tasks=2)


@pytest.fixture(scope="module")
def sample(small):
    recording = open_recording(small.folder)
    return replace(recording, specs=recording.specs[::SOME])


def cassettes(recording):
    return [read_cassette(recording.folder, spec.episode_id) for spec in recording.specs]


def calls_of(cassette):
    def request(body):
        [message] = body["messages"]
        return Request(body["model"], body["system"], message["content"], body["max_tokens"])

    return [
        Call(CallKey.parse(key), request(orjson.loads(one.request)))
        for key, one in cassette.interactions.items()
    ]


def stock(recording):
    """Ask every call again with the stock client under stock vcrpy."""
    for cassette in cassettes(recording):
        with (
            warnings.catch_warnings(action="ignore"),
            vcr.use_cassette(
                str(recording.folder / cassette.name),
                serializer="json",
                record_mode="none",
                match_on=("method", "path", "body"),
            ),
            anthropic.Anthropic(api_key="unused", max_retries=0) as client,
        ):
            for one in cassette.interactions.values():
                client.messages.create(**orjson.loads(one.request))


def test_fast_reader(side_by_side, sample, tmp_path):
    def fast():
        with LogWriter(tmp_path) as log:
            for one in replay_each(sample):
                assert one.line is not None
                log.add(one.line, one.episode_id, one.seconds)

    measured = side_by_side.time(lambda: stock(sample), fast)
    side_by_side.note(
        what="replay, fast reader, per call, request checked, record written",
        reference="stock vcrpy + SDK, the same cassettes",
        target="at least 50 × faster",
        ratio=measured.reference / measured.candidate,
        unit="× faster",
    )


class Canned(httpx2.AsyncBaseTransport):
    """Answers each call with its recorded reply."""

    def __init__(self, recording):
        self.replies = {
            f"{cassette.episode_id}/{key}": one.response.encode()
            for cassette in cassettes(recording)
            for key, one in cassette.interactions.items()
        }

    async def handle_async_request(self, request):
        body = self.replies[request.headers[CALL_HEADER]]
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(body))


def test_sdk_reader(side_by_side, sample):
    asked = {cassette.episode_id: calls_of(cassette) for cassette in cassettes(sample)}
    canned = Canned(sample)

    async def alone():
        options = {"max_connections": 1, "max_retries": 0, "placeholder": "unused"}
        async with SdkModel(transport=canned, **options) as model:
            for episode_id, calls in asked.items():
                for call in calls:
                    await model.reply(episode_id, call)

    async def reader():
        async with SdkReader(sample.folder) as opened:
            for episode_id, calls in asked.items():
                playback = opened.open(episode_id)
                for call in calls:
                    await playback.reply(episode_id, call)
                opened.close(playback)

    measured = side_by_side.time(
        lambda: asyncio.run(alone()), lambda: asyncio.run(reader()), rounds=5
    )
    side_by_side.note(
        what="replay through the SDK, cassettes read and requests matched by vcrpy",
        reference="the SDK with a canned transport",
        target="at most 1.5 × its time",
        ratio=measured.candidate / measured.reference,
        unit="× its time",
    )


def run(into, *command):
    """Run a command of its own process.

    Returns:
        Kilobytes that it and its largest worker held at most. What the process that started it
        holds does not count, as it would by the system's usual figure.
    """
    program = into.with_name("program.py")
    program.write_text(COMMAND)
    subprocess.run(
        [sys.executable, str(program), str(into), *map(str, command)],
        check=True,
        capture_output=True,
    )
    return int(into.read_text())


def parsed(folder, *, bodies):
    """Read every file of a recording and parse its JSON once."""
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if path.suffix == ".jsonl":
            for line in data.splitlines():
                orjson.loads(line)
        elif path.suffix == ".json":
            for one in orjson.loads(data).get("interactions", ()) if bodies else (data,):
                if bodies:
                    orjson.loads(one["request"]["body"])
                    orjson.loads(one["response"]["body"]["string"])
                else:
                    orjson.loads(one)


@pytest.mark.parametrize("bodies", [False, True], ids=["files", "bodies"])
def test_published_grid(side_by_side, grid, tmp_path, bodies):
    def replayed():
        command = ("replay", grid.folder, "--log-dir", tmp_path / "log", "--workers", 2)
        kilobytes.append(run(tmp_path / "said.json", *command))

    kilobytes: list[int] = []
    measured = side_by_side.time(lambda: parsed(grid.folder, bodies=bodies), replayed)
    inner = ", and the JSON inside that" if bodies else ""
    side_by_side.note(
        what=f"the published grid replayed end to end by two processes ({grid.calls:,} calls, "
        f"{measured.candidate:.1f} s, {max(kilobytes) / 1e3:.0f} MB)",
        reference=f"reading its files and parsing their JSON once{inner}",
        target="at most 8 × that",
        ratio=measured.candidate / measured.reference,
        unit="× that",
    )


def test_published_grid_per_call(side_by_side, grid, sample, tmp_path):
    """A whole command in one process, its start included, beside calls without one."""
    asked = sum(len(cassette.interactions) for cassette in cassettes(sample))
    command = ("replay", grid.folder, "--log-dir", tmp_path / "log", "--workers", 1)
    measured = side_by_side.time(
        lambda: stock(sample), lambda: run(tmp_path / "said.json", *command), rounds=2
    )
    side_by_side.note(
        what=f"`tutorsim replay` of the published grid, start included, per call "
        f"({grid.calls:,} calls, {measured.candidate:.1f} s)",
        reference="stock vcrpy + SDK, cassettes of the same study",
        target="at least 100 × faster",
        ratio=measured.reference / asked * grid.calls / measured.candidate,
        unit="× faster",
    )


SIZES = [pytest.param(1, id="1200"), pytest.param(10, id="12000", marks=pytest.mark.slow)]


@pytest.fixture
def large(request, make_recording):
    """The grid, repeated so many times."""
    return make_recording(repeats=request.param)


@pytest.mark.parametrize("large", SIZES, indirect=True)
@pytest.mark.parametrize("command", ["replay", "verify", "export"])
def test_growth(side_by_side, small, large, command, tmp_path):
    def arguments(made):
        log = tmp_path / f"log-{made.episodes}"
        if command == "export":
            return "export", log, "-o", tmp_path / f"tables-{made.episodes}-{time.monotonic_ns()}"
        more = ("--log-dir", log) if command == "replay" else ()
        return command, made.folder, *more, "--workers", 1

    def runs(made):
        if command == "export":
            log = tmp_path / f"log-{made.episodes}"
            run(tmp_path / "log.json", "replay", made.folder, "--log-dir", log)
        held[made] = []
        return lambda: held[made].append(run(tmp_path / "said.json", *arguments(made)))

    held: dict[Made, list[int]] = {}
    measured = side_by_side.time(runs(small), runs(large), rounds=1)
    memory = min(held[large]) / min(held[small])
    side_by_side.note(
        what=f"`{command}` of {large.episodes:,} episodes ({memory:.2f} × the memory)",
        reference=f"`{command}` of {small.episodes:,} episodes",
        target=f"at most {large.calls / small.calls:.1f} × its time, as its calls",
        ratio=measured.candidate / measured.reference,
        unit="× its time",
    )
