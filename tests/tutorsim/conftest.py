"""A scripted Messages API on loopback, the command line, and recordings made with both."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import httpx2
import orjson
import pytest
import tomli_w

from tutorsim.cli import main
from tutorsim.records import TIMINGS_FILE
from tutorsim.standin import StandIn

KEY = "sk-ant-test-0123456789-credential"
CALL = "x-tutorsim-call"
RUN = "from tutorsim.cli import main; main()"

GRID = {
    "name": "grid",
    "seed": 5,
    "conditions": ["baseline", "simple"],
    "personas": ["help_avoidant"],
    "max_turns": 1,
    "benchmarks": {"sciq": {"tasks": "questions.jsonl"}},
    "models": {"tutor": "tutor-model", "judge": "judge-model", "student": "student-model"},
}
QUESTIONS = [
    {
        "task_id": name, "question": f"Why is {name} the way it is?",
        "correct_answer": f"because of {name}", "distractor1": "luck", "distractor2": "noise",
        "distractor3": "wind", "support": "",
    }
    for name in ("ice", "moon")
]  # fmt: skip
PRICES = {
    "as_of": "2026-01-01",
    "models": {
        f"{who}-model": {"input": 1.0, "output": 10.0} for who in ("tutor", "judge", "student")
    },
}


def draw(*parts):
    """A number that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:4])


@dataclass
class Endpoint:
    """What the server answers, which faults it has, and what it saw.

    Every proposal carries its role as `MARK-role-`; a ballot is written with role names, and the
    label that the prompt shows before the mark takes the name's place.
    """

    url: str = ""
    votes: Mapping[str, str] = field(default_factory=dict)
    """Key `turn/stage/agent/attempt`, `stage/agent` or `stage` → ballot, in role names."""
    fault: Callable[[str, int], str | None] = lambda call, attempt: None
    """Call and how often it was sent before → kind of fault."""
    rewrite: Callable[[str, bytes], bytes] = lambda call, data: data
    """Call and the bytes of its reply → those that are sent."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of every reply."""
    stop: Callable[[str], str] = lambda call: "end_turn"
    """Call → why its reply ends."""
    delay: float = 0.0
    """Seconds before each reply."""
    credential: str = ""
    """Echoed in error messages when set."""
    sent: list[str] = field(default_factory=list)
    """Calls in the order in which they arrived, each time that they did."""
    bodies: dict[str, bytes] = field(default_factory=dict)
    """Call → its body as it arrived last."""
    open: int = 0
    most_open: int = 0
    """Most requests that were being answered at the same time."""
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def counts(self):
        """How often each call was sent."""
        return Counter(self.sent)

    def wait_for(self, calls, seconds=60):
        """Wait until so many calls have arrived in all."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.sent) >= calls, seconds)

    async def serve(self, reader, writer):
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        headers = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
        content = await reader.readexactly(int(headers["content-length"]))
        body, call = json.loads(content), headers[CALL]
        with self.arrived:
            attempt = self.sent.count(call)
            self.sent.append(call)
            self.bodies[call] = content
            self.arrived.notify_all()
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            kind = self.fault(call, attempt)
            await asyncio.sleep(3 if kind == "slow" else self.delay)
            if kind == "drip":
                return await self._drip(writer)
            return self._answer(writer, call, body, kind) and not await writer.drain()
        finally:
            self.open -= 1

    async def _drip(self, writer):
        """A byte now and then, never the whole."""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        for _ in range(20):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.1)
        return False

    def _answer(self, writer, call, body, kind):
        if kind == "reset":  # a socket that is closed without lingering sends a reset
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if kind in ("drop", "reset"):
            return False
        data = self.rewrite(call, json.dumps(self._message(call, body)).encode())
        status, more = 200, {}
        code, _, also = (kind or "").partition(" ")
        if code.isdigit():
            status = int(code)
            more = {"retry-after": "0.01"} if kind in ("429", "529") else {}
            reason = {"type": "some_error", "message": f"no\n\x1b[31m {self.credential}{also}"}
            data = json.dumps({"type": "error", "error": reason}).encode()
        elif kind == "overloaded":
            reason = {"type": "overloaded_error", "message": "Overloaded"}
            data = json.dumps({"type": "error", "error": reason}).encode()
        elif kind == "garbage":
            data = b"<html>welcome to the hotel</html>"
        headers = {
            "content-type": "application/json", "content-length": str(len(data)),
            "set-cookie": "session=cookie-secret", "anthropic-organization-id": "org-secret",
            "request-id": "req-secret", **more, **self.headers,
        }  # fmt: skip
        lines = [f"HTTP/1.1 {status} Said", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        writer.write(data[: len(data) // 2] if kind == "cut" else data)
        return kind != "cut"

    def _message(self, call, body):
        text = self._text(call, body["messages"][0]["content"])
        return {
            "id": f"msg_{draw(call)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": text}],
            "stop_reason": self.stop(call),
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }

    def _text(self, call, user):
        episode, _, key = call.partition("/")
        turn, stage, agent, *_ = key.split("/")
        if stage == "student":
            return f"I think it is {episode} {turn}.\n```python\ndef double(n):\n    return n\n```"
        if stage == "judge":
            score = (0.1, 0.4, 0.9)[draw(episode, turn) % 3] if turn != "0" else 0.1
            return f"SCORE: {score}\nbecause of turn {turn}"
        if stage in ("propose", "revise"):
            return f"PROPOSAL: MARK-{agent}- {stage} {turn}.\nRATIONALE: r.\nCONFIDENCE: 70"
        labels = {m[1]: m[0] for m in re.findall(r"^([A-H]): MARK-(\w+)-", user, re.MULTILINE)}
        if "critique" in stage:
            return "\n".join(f"{x}:\nSTRENGTH: s {x}\nWEAKNESS: w" for x in labels.values())
        names = (key, f"{turn}/{stage}/{agent}", f"{stage}/{agent}", stage)
        given = next((self.votes[name] for name in names if name in self.votes), None)
        if given is None:
            given = _ballot(episode.split(".")[3], sorted(labels), draw(call))
        return re.sub(r"[a-z_]{5,}", lambda found: labels.get(found[0], found[0]), given)


def _ballot(protocol, roles, chance):
    order = sorted(roles, key=lambda role: draw(role, str(chance % 7)))
    if protocol == "simple":
        return order[0]
    if protocol == "ranked":
        return ",".join(order)
    if protocol == "approval":
        return ",".join(order[:2])
    rest = 5 * (len(order) - 1)
    return ",".join([f"{order[0]}={25 - rest}", *(f"{role}=5" for role in order[1:])])


@pytest.fixture
def endpoint(monkeypatch):
    """A running server; the SDK's environment points at it, and its retries do not wait."""
    with monkeypatch.context() as patch, Serving(patch) as running:
        yield running


class Serving:
    """Runs a server in a thread of its own, while the block runs."""

    def __init__(self, patch):
        self._patch = patch
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        endpoint = Endpoint()
        self._thread.start()
        self._server = self._run(asyncio.start_server(endpoint.serve, "127.0.0.1", backlog=1000))
        endpoint.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._patch.setenv("ANTHROPIC_BASE_URL", endpoint.url)
        self._patch.setenv("ANTHROPIC_API_KEY", KEY)
        self._patch.delenv("CI", raising=False)
        self._patch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.001)
        self._patch.setattr("anthropic._base_client.MAX_RETRY_DELAY", 0.002)
        return endpoint

    def __exit__(self, *_):
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, task):
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(30)

    async def _end(self):
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Scripted(httpx2.AsyncBaseTransport):
    """Answers with the given responses or exceptions, the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request):
        await request.aread()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def loaded_by(statement):
    """Modules that are loaded in a new process after a statement."""
    program = [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


class Said(NamedTuple):
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    def fails(self, code, *words):
        """Hold that the command ended with this code and told these words, wherever lines break."""
        assert self.code == code, self
        told = " ".join(self.err.split())
        assert [one for one in words if one not in told] == [], self

    def tells(self, *words):
        """Hold that the command ended well and wrote these words."""
        assert self.code == 0, self
        assert [one for one in words if one not in self.out] == [], self

    def json(self, code=0):
        """What the command printed as JSON, if it ended with this code."""
        assert self.code == code, self
        return json.loads(self.out)


def ended(child):
    """What a started command said, which ends within 90 seconds and without a traceback."""
    out, err = child.communicate(timeout=90)
    assert b"Traceback" not in err
    return Said(child.returncode, out.decode(), err.decode())


def killed_after(child, model, requests, *, seconds=0.0):
    """Kill a command some seconds after a stand-in had so many requests; how it ended."""
    deadline = time.monotonic() + 60
    while model.requests < requests and child.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(seconds)
    child.kill()
    return child.wait()


@pytest.fixture
def stand_ins(monkeypatch):
    """Start stand-ins; the SDK's environment points at the last one started."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789-credential")
    with ExitStack() as running:

        def start(**options):
            server = running.enter_context(StandIn(**options))
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
            return server

        yield start


@pytest.fixture
def shell(capsys, monkeypatch):
    """Run the command line in this process, with no terminal to ask for its width."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args, columns=None):
        monkeypatch.setattr(sys, "argv", ["tutorsim", *map(str, args)])
        code = 0
        with monkeypatch.context() as patch:
            if columns:
                patch.setenv("COLUMNS", str(columns))
            try:
                main()
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def no_waiting():
    """A pipe that is read after all fails its test, instead of waiting for a writer for ever."""

    def late(*_):
        raise AssertionError("a pipe was waited for")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["fast", "sdk"])
def reader(request):
    """What plays recordings in a test: the product's reader, then the oracle."""
    from tests.reference.replay_through_sdk import through_the_sdk

    with through_the_sdk() if request.param == "sdk" else nullcontext():
        yield request.param


@pytest.fixture
def write_grid(tmp_path):
    """Write a study of two science tasks and two conditions; keywords replace settings."""
    return lambda **settings: write_study(tmp_path / "study", **settings)


def write_study(folder, **settings):
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in QUESTIONS)
    (folder / "questions.jsonl").write_text(lines)
    (folder / "prices.toml").write_text(tomli_w.dumps(PRICES))
    path = folder / "study.toml"
    path.write_text(tomli_w.dumps({**GRID, **settings}))
    return path


def files(*folders):
    """Read every file of folders that has to be the same each time, by name."""
    return {
        f"{folder.name}/{path.relative_to(folder)}": path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMINGS_FILE
    }


def edit(path, change):
    """Change a JSON file through its value."""
    value = orjson.loads(path.read_bytes())
    change(value)
    path.write_bytes(orjson.dumps(value))


def seal(folder):
    """Give a manifest the digests of the cassettes as they are."""

    def note(manifest):
        for entry in manifest["episodes"]:
            data = (folder / f"{entry['episode_id']}.json").read_bytes()
            entry["cassette_sha256"] = hashlib.sha256(data).hexdigest()

    edit(folder / "manifest.json", note)


def on_disk(folder):
    """Calls that a recording holds in full, each as `<episode>/<key>`."""
    found = set()
    for path in folder.glob("*.journal.jsonl"):
        for line in path.read_bytes().split(b"\n")[1:-1]:
            found.add(orjson.loads(line)["request_headers"][CALL])
    for path in folder.glob("*.*.*.*.json"):
        for entry in orjson.loads(path.read_bytes())["interactions"]:
            found.add(entry["request"]["headers"][CALL][0])
    return found


@pytest.fixture
def launch():
    """Start the command line in a process of its own; keywords are environment variables."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*args, **environment):
        child = subprocess.Popen(
            [sys.executable, "-c", RUN, *map(str, args)],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


class Recorded(NamedTuple):
    """A finished recording, and the study and the calls that it was made of."""

    study: Path
    cassettes: Path
    log: Path
    calls: int


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory):
    """A recording of the grid; not to be changed."""
    folder = tmp_path_factory.mktemp("recorded")
    study = write_study(folder / "study")
    found = Recorded(study, folder / "cassettes", folder / "log", 0)
    with pytest.MonkeyPatch.context() as patch, Serving(patch) as endpoint:
        patch.setattr(
            sys, "argv", ["tutorsim", "run", str(study), *to_folders(found.cassettes, found.log)]
        )
        main()
    return found._replace(calls=len(endpoint.sent))


def folders(tmp_path, name="one"):
    """Where `record` puts a recording and its log."""
    return tmp_path / name / "cassettes", tmp_path / name / "log"


def to_folders(cassettes, log):
    return ["--cassette-dir", str(cassettes), "--log-dir", str(log)]


@pytest.fixture
def recorded(recorded_once, tmp_path):
    """A copy of that recording, to be changed."""
    copy = recorded_once._replace(cassettes=tmp_path / "cassettes", log=tmp_path / "log")
    shutil.copytree(recorded_once.cassettes, copy.cassettes)
    shutil.copytree(recorded_once.log, copy.log)
    timings = copy.log / TIMINGS_FILE
    moved = timings.read_text().replace(str(recorded_once.cassettes), str(copy.cassettes))
    timings.write_text(moved)
    return copy


RETEST_FAILURE = "sciq.ice.help_avoidant.simple/1/vote_final/motivation/1/r02"


@pytest.fixture(scope="session")
def retested_once(recorded_once, tmp_path_factory):
    """That recording with a retest of two repeats; not to be changed.

    One voter never writes a ballot, and one call of another failed.
    """
    folder = tmp_path_factory.mktemp("retested") / "cassettes"
    shutil.copytree(recorded_once.cassettes, folder)
    with pytest.MonkeyPatch.context() as patch, Serving(patch) as endpoint:
        endpoint.votes = {"vote_initial/scaffolding": "none of them"}
        endpoint.fault = lambda call, attempt: "400" if call == RETEST_FAILURE else None
        args = ["tutorsim", "retest", str(folder), "--repeats", "2"]
        patch.setattr(sys, "argv", args)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 1
    return folder


@pytest.fixture
def retested(retested_once, tmp_path):
    """A copy of the recording with the retest, to be changed."""
    return Path(shutil.copytree(retested_once, tmp_path / "retested" / "cassettes"))


@pytest.fixture
def record(shell, tmp_path):
    """`tutorsim run` of a study into `<name>/cassettes` and `<name>/log`."""

    def run(study, *more, name="one"):
        return shell("run", study, *to_folders(*folders(tmp_path, name)), *more)

    return run
