"""Recording through batches gives the bytes of direct calls, whatever happens on the way."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tutorsim.replay.recording import Tape
from tutorsim.runner.submissions import BATCHES_FILE
from tutorsim.standin import StandIn
from tutorsim.standin.batches import Batches

pytestmark = pytest.mark.loopback

SEED = 4
Files = dict[str, bytes]
Serve = Callable[..., StandIn]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a stand-in with faults; the SDK's environment points at the last one started."""
    running: list[StandIn] = []
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789-credential")
    monkeypatch.delenv("CI", raising=False)
    for name in ("INITIAL_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(f"anthropic._base_client.{name}", 0.001)
    for name in ("FIRST_POLL", "LONGEST_POLL", "FIRST_RETRY"):
        monkeypatch.setattr(f"tutorsim.runner.submissions.{name}", 0.01)

    def start(*faults: str) -> StandIn:
        server = StandIn(seed=SEED, faults=faults)
        server.__enter__()
        running.append(server)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What every stand-in of this process is asked about batches: method and path."""
    seen: list[tuple[str, str]] = []
    answer = Batches.answer

    def watch(self: Batches, method: str, target: str, host: str | None, content: bytes) -> Any:
        seen.append((method, target))
        return answer(self, method, target, host, content)

    monkeypatch.setattr(Batches, "answer", watch)
    return seen


def sent(watched: list[tuple[str, str]]) -> int:
    return watched.count(("POST", "/v1/messages/batches"))


def folders(tmp_path: Path, name: str) -> tuple[Path, Path]:
    return tmp_path / name / "cassettes", tmp_path / name / "log"


def options(tmp_path: Path, name: str) -> list[str]:
    cassettes, log = folders(tmp_path, name)
    return ["--cassette-dir", str(cassettes), "--log-dir", str(log)]


@pytest.fixture
def direct(
    serve: Serve, write_grid: Any, record: Any, files: Any, tmp_path: Path
) -> Callable[..., tuple[Path, Files]]:
    """Record a study by direct calls; gives the study and the bytes."""

    def make(**settings: Any) -> tuple[Path, Files]:
        study = write_grid(**{"benchmarks": BOTH, "conditions": ALL, **settings})
        serve()
        assert record(study, name="direct").code == 0
        return study, files(*folders(tmp_path, "direct"))

    return make


ALL = ["baseline", "simple", "cumulative"]
BOTH = {"sciq": {"tasks": "questions.jsonl"}, "humaneval": {"limit": 1}}
SCIENCE = {"sciq": {"tasks": "questions.jsonl"}}


def test_waves_of_batches_give_the_bytes_of_direct_calls(
    serve: Serve, direct: Any, record: Any, files: Any, watched: Any, tmp_path: Path
) -> None:
    study, whole = direct()
    server = serve()
    said = record(study, "--batch", name="batch")
    assert said.code == 0, said.err
    assert files(*folders(tmp_path, "batch")) == whole
    assert "sent 9 calls as batch msgbatch_" in said.err
    assert len([target for method, target in watched if method == "POST"]) < 25
    assert server.requests == len(watched)


def test_what_expires_or_fails_for_the_moment_is_asked_again(
    serve: Serve, direct: Any, record: Any, files: Any, watched: Any, tmp_path: Path
) -> None:
    study, whole = direct(benchmarks=SCIENCE)
    serve("expired:0.2", "errored:0.2", "500:0.3", "garbage:0.2", "cut:0.2", "drop:0.2")
    said = record(study, "--batch", name="batch")
    assert said.code == 0, said.err
    assert files(*folders(tmp_path, "batch")) == whole
