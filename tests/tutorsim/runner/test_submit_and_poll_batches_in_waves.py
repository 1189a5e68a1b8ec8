"""Recording through batches gives the bytes of direct calls, whatever happens on the way."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import orjson
import pytest

from tests.tutorsim.conftest import ended, files, folders, on_disk, to_folders
from tutorsim.model.batch_api import call_digest
from tutorsim.runner.submit_and_poll_batches_in_waves import BATCHES_FILE, _by_episodes
from tutorsim.standin import Endpoint, StandIn
from tutorsim.standin.http_responses_and_faults import Response
from tutorsim.standin.messages_api_routes_and_replies import Batches, entry_error

pytestmark = pytest.mark.loopback

SEED = 4
RUN = "from tutorsim.cli import main; main()"


class Hook:
    """Called for every request about batches: with its number, method and path."""

    def __init__(self):
        self.before: Callable[[int, str, str], None] = lambda number, method, target: None
        self.after = self.before
        self.seen: list[tuple[str, str]] = []

    @property
    def sent(self):
        """Batches that arrived."""
        return sum(one == ("POST", "/v1/messages/batches") for one in self.seen)


@pytest.fixture
def serve(monkeypatch, stand_ins):
    """Start a stand-in with faults; nobody waits long."""
    for name in ("INITIAL_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(f"anthropic._base_client.{name}", 0.001)
    for name in ("FIRST_POLL", "LONGEST_POLL", "FIRST_RETRY"):
        monkeypatch.setattr(f"tutorsim.runner.submit_and_poll_batches_in_waves.{name}", 0.01)
    return lambda *faults: stand_ins(seed=SEED, faults=faults)


@pytest.fixture
def hook(monkeypatch):
    """Watches what the stand-ins of this process are asked about batches."""
    hook = Hook()
    answer = Batches.answer

    def watch(self, method, target, host, content):
        hook.seen.append((method, target))
        hook.before(len(hook.seen), method, target)
        response = answer(self, method, target, host, content)
        hook.after(len(hook.seen), method, target)
        return response

    monkeypatch.setattr(Batches, "answer", watch)
    return hook


@pytest.fixture
def direct(serve, write_grid, record, tmp_path):
    """Record a study by direct calls; gives the study and the bytes."""

    def make(**settings):
        study = write_grid(**{"benchmarks": SCIENCE, "conditions": ALL, **settings})
        serve()
        assert record(study, name="direct").code == 0
        return study, files(*folders(tmp_path, "direct"))

    return make


@pytest.fixture
def batched(record, tmp_path):
    """Record a study through batches, with the bytes of direct calls; gives what was said."""

    def run(study, whole, *more):
        said = record(study, "--batch", *more, name="batch")
        assert said.code == 0, said.err
        assert files(*folders(tmp_path, "batch")) == whole
        return said

    return run


ALL = ["baseline", "simple", "cumulative"]
BOTH = {"sciq": {"tasks": "questions.jsonl"}, "humaneval": {"limit": 1}}
SCIENCE = {"sciq": {"tasks": "questions.jsonl"}}


@pytest.mark.costly
def test_waves_of_batches_give_the_bytes_of_direct_calls(serve, direct, batched, hook):
    study, whole = direct(benchmarks=BOTH)
    server = serve()
    said = batched(study, whole)
    assert "sent 9 calls as batch msgbatch_" in said.err
    assert hook.sent < 12
    assert server.requests == len(hook.seen)


@pytest.mark.costly
def test_what_expires_or_fails_is_asked_again_and_no_batch_twice(serve, direct, batched, hook):
    study, whole = direct()
    serve("expired:0.2", "errored:0.2", "500:0.3", "garbage:0.2", "cut:0.3", "drop:0.2")
    said = batched(study, whole)
    assert hook.sent == said.err.count("calls as batch msgbatch_")


@pytest.mark.costly
def test_a_batch_is_split_at_the_limits_of_the_endpoint(serve, direct, batched, hook, monkeypatch):
    study, whole = direct()
    serve()
    monkeypatch.setattr("tutorsim.runner.submit_and_poll_batches_in_waves.MOST_ENTRIES", 4)
    monkeypatch.setattr("tutorsim.runner.submit_and_poll_batches_in_waves.LARGEST_BATCH", 5000)
    monkeypatch.setattr("tutorsim.runner.submit_and_poll_batches_in_waves.SIDE_BY_SIDE", 2)
    # calls of another batch have no result yet, and have not failed
    said = batched(study, whole, "--max-retries", 0)
    assert "sent 4 calls" in said.err
    assert "sent 5 calls" not in said.err
    assert hook.sent > 20


def test_a_batch_is_noted_before_it_is_sent(serve, write_grid, record, hook, monkeypatch, tmp_path):
    study = write_grid(conditions=["baseline"], benchmarks=SCIENCE, max_turns=1)
    serve()
    noted, sync = folders(tmp_path, "batch")[0] / BATCHES_FILE, os.fsync
    synced, sent = set(), []

    def synced_to(handle):
        sync(handle)
        at = os.fstat(handle)
        synced.add((at.st_ino, at.st_size))

    def asked(number, method, target):
        if method == "POST":
            sent.append((noted.stat().st_ino, noted.stat().st_size))

    monkeypatch.setattr(os, "fsync", synced_to)
    hook.before = asked
    assert record(study, "--batch", name="batch").code == 0
    assert sent
    assert synced.issuperset(sent)


def test_a_group_of_calls_is_so_many_whole_episodes(monkeypatch):
    monkeypatch.setattr("tutorsim.runner.submit_and_poll_batches_in_waves.SIDE_BY_SIDE", 2)
    calls = [SimpleNamespace(name=f"{episode}/{n}") for episode in "abcde" for n in (1, 2)]
    groups = ["".join(call.name[0] for call in group) for group in _by_episodes(calls)]
    assert groups == ["aabb", "ccdd", "ee"]


ONCE_MORE = ("--max-retries", 1, "--max-outage", 0)


@pytest.mark.costly
@pytest.mark.parametrize("fault", ["500", "expired"])
def test_failed_calls_mark_an_episode_as_direct_ones_do(fault, serve, write_grid, record, tmp_path):
    study = write_grid(conditions=["baseline"], benchmarks=SCIENCE)
    serve("500:1:persist")
    assert record(study, *ONCE_MORE, name="direct").code == 1
    serve(f"{'errored' if fault == '500' else fault}:1:persist")
    said = record(study, "--batch", *ONCE_MORE, name="batch")
    assert said.code == 1
    if fault == "500":
        assert files(*folders(tmp_path, "batch")) == files(*folders(tmp_path, "direct"))
    else:
        assert "Failed: sciq.ice.help_avoidant.baseline: The batch ended before it" in said.err
    serve()
    assert record(study, "--batch", "--retry-errors", name="batch").code == 0
    assert record(study, "--retry-errors", name="direct").code == 0
    assert files(*folders(tmp_path, "batch")) == files(*folders(tmp_path, "direct"))


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(400, 1, "HTTP 400, invalid_request_error: no."), (404, 2, "has no model 'student-model'")],
)
def test_an_entry_that_is_refused_is_not_asked_again(
    status, code, words, serve, write_grid, record, hook, monkeypatch, tmp_path
):
    study = write_grid(conditions=["baseline"], benchmarks=SCIENCE)
    ask = Endpoint._entry
    first = call_digest("sciq.ice.help_avoidant.baseline/0/student/student/1")

    asked = []

    def refuse(self, params, occurrence):
        asked.append(occurrence)
        return entry_error(status, "no") if occurrence == first else ask(self, params, occurrence)

    monkeypatch.setattr(Endpoint, "_entry", refuse)
    serve()
    said = record(study, "--batch", name="batch")
    assert said.code == code
    assert words in said.err
    assert (hook.sent == 1) == (status == 404)
    assert asked.count(first) == 1
    assert "sciq.moon.help_avoidant.baseline/0/student/student/1" in on_disk(
        folders(tmp_path, "batch")[0]
    )


def test_an_endpoint_without_batches_is_told(endpoint, write_grid, record, monkeypatch):
    study = write_grid(conditions=["baseline"])
    with StandIn() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}/elsewhere")
        said = record(study, "--batch")
    said.fails(2, "The endpoint takes no batches (HTTP 404", "Record without --batch.")


def test_a_silent_endpoint_is_given_up_and_the_same_command_goes_on(serve, direct, record, batched):
    study, whole = direct(conditions=["baseline"])
    serve("500:1:persist")
    record(study, "--batch", *ONCE_MORE, name="batch").fails(
        1,
        "The batch endpoint does not answer.",
        "HTTP 500, api_error: Internal server error, 2 times.",
    )
    serve()
    batched(study, whole)


@pytest.mark.costly
@pytest.mark.parametrize("first", [3, 5])  # it is asked after; another one is sent
def test_an_outage_in_the_middle_is_waited_out_and_no_batch_is_sent_twice(
    first, serve, direct, record, batched, hook, monkeypatch
):
    monkeypatch.setattr("tutorsim.runner.early_stops_by_signal_cost_cap_or_outage.SHORTEST", 0.05)
    study, whole = direct(conditions=["baseline"])
    serve()
    answer, began = Batches.answer, []

    def away(self, method, target, host, content):
        if len(hook.seen) == first - 1:
            began.append(time.monotonic())
        if began and time.monotonic() < began[0] + 0.5:
            hook.seen.append((method, f"lost {target}"))
            return Response(503, b"{}", "")
        return answer(self, method, target, host, content)

    monkeypatch.setattr(Batches, "answer", away)
    retries = ("--max-retries", 1, "--max-outage")
    said = batched(study, whole, *retries, 60)
    text = said.err.replace("\n", " ")
    assert "does not answer (HTTP 503" in text
    assert "Waiting for it, at most 60 seconds." in text
    assert "the endpoint answers again" in text
    assert hook.sent == text.count("calls as batch msgbatch_")
    began.clear()
    hook.seen.clear()
    assert record(study, "--batch", *retries, 0, name="not waited for").code == 1


def killed_at(hook, launch, command, number, *, when="after"):
    """Run a command that is killed around its request of this number; returns its process."""
    hook.seen.clear()
    child = launch(*command)

    def kill(seen, method, target):
        if seen == number:
            child.kill()
            child.wait()

    setattr(hook, when, kill)
    child.communicate(timeout=60)
    hook.before = hook.after = lambda number, method, target: None
    return child


@pytest.mark.costly
@pytest.mark.parametrize(
    ("number", "when", "batches"),
    [
        (2, "before", 2),  # while the first batch is sent: it arrives
        pytest.param(4, "after", 2, marks=pytest.mark.slow),  # while its results are read
        pytest.param(1, "after", 1, marks=pytest.mark.slow),  # before anything is sent
        pytest.param(3, "after", 2, marks=pytest.mark.slow),  # while it is asked after
    ],
)
def test_after_a_kill_no_batch_is_sent_twice_and_the_bytes_are_those_of_direct_calls(
    number, when, batches, serve, direct, launch, record, batched, hook, tmp_path
):
    study, whole = direct(conditions=["baseline"])
    serve()
    command = ["run", study, "--batch", *to_folders(*folders(tmp_path, "batch"))]
    assert killed_at(hook, launch, command, number, when=when).returncode == -signal.SIGKILL
    first = hook.sent
    assert first == batches - 1
    said = batched(study, whole)
    undisturbed = record(study, "--batch", name="again").err.count("calls as batch")
    assert said.err.count("calls as batch") == undisturbed - first


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_after_kills_at_many_moments(seed, serve, direct, launch, record, hook, tmp_path):
    study, whole = direct(benchmarks=BOTH)
    serve("expired:0.1", "errored:0.1", "pending:0.3:0.2", "500:0.1", "cut:0.1")
    chance = random.Random(seed)
    for _ in range(4):
        command = ["run", study, *to_folders(*folders(tmp_path, "batch"))]
        command += ["--batch"] if chance.random() < 0.8 else []
        when = chance.choice(["before", "after"])
        killed_at(hook, launch, command, chance.randint(1, 14), when=when)
    said = record(study, *(["--batch"] if seed % 2 else []), name="batch")
    assert said.code == 0, said.err
    assert files(*folders(tmp_path, "batch")) == whole
    assert not (folders(tmp_path, "batch")[0] / BATCHES_FILE).exists()


@pytest.mark.costly
def test_direct_calls_use_what_batches_brought(serve, direct, launch, record, hook, tmp_path):
    study, whole = direct()
    server = serve("pending:1:60")
    command = ["run", study, "--batch", *to_folders(*folders(tmp_path, "batch"))]
    assert killed_at(hook, launch, command, 3).returncode == -signal.SIGKILL
    before = server.requests
    said = record(study, name="batch")
    assert said.code == 0, said.err
    assert "an earlier command sent 1 batches; they are ended now." in said.err
    assert files(*folders(tmp_path, "batch")) == whole
    assert sum(target.endswith("/cancel") for _, target in hook.seen) == 1
    calls = len(whole_calls(folders(tmp_path, "batch")[0]))
    assert server.requests - before == calls - 3 + 3  # three brought; cancel, find and read


def whole_calls(cassettes):
    return [
        entry
        for path in cassettes.glob("*.*.*.*.json")
        for entry in orjson.loads(path.read_bytes())["interactions"]
    ]


@pytest.mark.slow
def test_batches_go_on_after_direct_calls(serve, direct, launch, batched, hook, tmp_path):
    study, whole = direct()
    server = serve("slow:0.5:0.05")
    child = launch("run", study, *to_folders(*folders(tmp_path, "batch")), "--max-connections", 2)
    while server.requests < 12:
        time.sleep(0.005)
    child.kill()
    child.wait()
    batched(study, whole)
    assert hook.sent > 2


@pytest.mark.slow
def test_batches_lost_in_a_restart_are_sent_again(serve, direct, launch, batched, hook, tmp_path):
    study, whole = direct(conditions=["baseline"])
    serve("pending:1:60")
    command = ["run", study, "--batch", *to_folders(*folders(tmp_path, "batch"))]
    assert killed_at(hook, launch, command, 4).returncode == -signal.SIGKILL
    serve()
    said = batched(study, whole)
    assert "is gone; its calls are made again." in said.err


@pytest.mark.slow
def test_a_recording_outlives_a_server_that_is_killed_and_comes_back_without_its_batches(
    direct, launch, monkeypatch, tmp_path
):
    study, whole = direct(conditions=["baseline"])
    faults = ("--seed", SEED, "--fault", "pending:3:1.5")
    server = launch("standin", "serve", *faults)
    url = server.stdout.readline().decode().strip()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    child = launch("run", study, "--batch", *to_folders(*folders(tmp_path, "batch")))
    said = b""
    while said.count(b"calls as batch") < 3:  # the third batch takes its time
        said += child.stderr.readline()
    server.kill()
    server.wait()
    launch("standin", "serve", "--port", url.rsplit(":", 1)[1], *faults[:2])
    _, rest = child.communicate(timeout=300)
    assert child.returncode == 0, rest
    assert b"is gone; its calls are made again." in rest
    assert files(*folders(tmp_path, "batch")) == whole


@pytest.mark.costly
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_an_interrupt_leaves_the_batch_to_the_next_command(
    number, serve, direct, launch, batched, hook, tmp_path
):
    study, whole = direct(conditions=["baseline"])
    serve("pending:2:2")
    child = launch("run", study, "--batch", *to_folders(*folders(tmp_path, "batch")))
    hook.after = lambda seen, *_: child.send_signal(number) if seen == 6 else None
    ended(child).fails(130, "batches that were sent go on")
    sent = hook.sent
    hook.after = hook.before
    said = batched(study, whole)
    assert hook.sent == sent + said.err.count("calls as batch")


@pytest.mark.costly
def test_no_wave_passes_a_cap_and_a_higher_one_goes_on(serve, direct, record, batched, tmp_path):
    study, whole = direct()
    prices = ("--prices", study.with_name("prices.toml"))
    serve()
    calls = []
    for cap in (0.05, 0.08):
        said = record(study, "--batch", *prices, "--max-usd", cap, name="batch")
        said.fails(5, "could pass the cap")
        cassettes = folders(tmp_path, "batch")[0]
        found = [
            orjson.loads(orjson.loads(line)["response"])["usage"]
            for path in cassettes.glob("*.journal.jsonl")
            for line in path.read_bytes().splitlines()[1:]
        ]
        found += [
            orjson.loads(c["response"]["body"]["string"])["usage"] for c in whole_calls(cassettes)
        ]
        spent = sum(use["input_tokens"] + 10 * use["output_tokens"] for use in found) / 1e6
        assert 0.2 * cap < spent <= cap
        calls.append(len(found))
    assert calls[0] < calls[1]
    batched(study, whole, *prices, "--max-usd", 10)


def test_a_credential_in_a_prompt_is_not_sent(serve, write_grid, record, hook, monkeypatch):
    study = write_grid(conditions=["baseline"])
    serve()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "student-model")
    record(study, "--batch").fails(2, "contains the credential in use")
    assert hook.sent == 0


@pytest.mark.slow
def test_more_episodes_are_under_way_than_files_may_be_open(
    serve, write_grid, launch, record, tmp_path
):
    study = write_grid(conditions=["baseline", "simple"], repeats=75, max_turns=1)
    serve()
    assert record(study, name="direct").code == 0
    command = f"ulimit -n 160; exec {sys.executable} -c '{RUN}' "
    command += shlex.join(["run", str(study), "--batch", *to_folders(*folders(tmp_path, "batch"))])
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert files(*folders(tmp_path, "batch")) == files(*folders(tmp_path, "direct"))
