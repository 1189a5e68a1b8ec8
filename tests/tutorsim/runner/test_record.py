"""Recording over real HTTP: side by side, with faults, stopped, and taken up again."""

import errno
import os
import random
import signal
import time
from types import SimpleNamespace

import orjson
import pytest

from tests.tutorsim.conftest import ended, files, folders, on_disk, to_folders
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, Round, at_once
from tutorsim.model import Call, CallKey, Request
from tutorsim.records import VerdictRecord
from tutorsim.replay import FolderLock
from tutorsim.runner.record import _World
from tutorsim.runner.write_run_folder_and_timings import LogWriter
from tutorsim.sandbox import Sandbox

pytestmark = pytest.mark.loopback


def run_again(shell, recorded):
    return shell("run", recorded.study, *to_folders(recorded.cassettes, recorded.log))


def statuses(tmp_path, name="one"):
    lines = (folders(tmp_path, name)[1] / "episodes.jsonl").read_bytes().splitlines()
    return {one["episode_id"]: one["status"] for one in map(orjson.loads, lines)}


GRID_PERSONAS = (
    "help_avoidant",
    "low_confidence_novice",
    "easily_frustrated_beginner",
    "hint_seeking_dependent",
)
ALL = ["baseline", "simple", "ranked", "cumulative", "approval"]


@pytest.mark.costly
def test_any_bound_on_calls_gives_the_same_bytes_and_holds(endpoint, write_grid, record, tmp_path):
    endpoint.delay = 0.004
    study = write_grid(
        conditions=ALL, benchmarks={"sciq": {"tasks": "questions.jsonl", "limit": 1}}
    )
    seen = []
    for bound in (1, 3):
        endpoint.most_open = 0
        assert record(study, "--max-connections", bound, name=f"by{bound}").code == 0
        assert endpoint.most_open == bound
        seen.append(files(*folders(tmp_path, f"by{bound}")))
    assert seen[0] == seen[1]
    assert set(endpoint.counts().values()) == {2}
    names = {"manifest.json", "study.toml", "wordings.toml", "tasks.sciq.jsonl"}
    names |= {"run.json", "episodes.jsonl"}
    assert {name.split("/")[1] for name in seen[0]} == names | {
        f"sciq.ice.help_avoidant.{condition}.json" for condition in ALL
    }


@pytest.mark.parametrize(
    ("repeats", "personas"), [(3, 1), pytest.param(75, 4, marks=pytest.mark.slow)]
)
def test_episodes_record_side_by_side(repeats, personas, endpoint, write_grid, record, tmp_path):
    episodes = repeats * personas
    endpoint.delay = 0.002 * episodes
    study = write_grid(
        conditions=["baseline"],
        repeats=repeats,
        max_turns=0,
        personas=list(GRID_PERSONAS[:personas]),
        benchmarks={"sciq": {"tasks": "questions.jsonl", "limit": 1}},
    )
    assert record(study, "--max-connections", 300).code == 0
    assert list(statuses(tmp_path).values()) == ["complete"] * episodes
    assert set(endpoint.counts().values()) == {1}
    assert len(endpoint.sent) == 2 * episodes
    assert endpoint.most_open > 0.6 * episodes


def test_a_finished_recording_is_run_again_without_a_call_and_nothing_changes(
    endpoint, recorded, shell
):
    before = files(recorded.cassettes, recorded.log)
    (recorded.log / "run.json").unlink()
    (recorded.log / "episodes.jsonl").unlink()
    assert run_again(shell, recorded).code == 0
    assert endpoint.sent == []
    assert files(recorded.cassettes, recorded.log) == before


def kill_and_resume(seed, endpoint, study, tools, tmp_path, *, calls, kills):
    """Kill a recording at random moments until it is done; returns how often it was killed."""
    launch, record, on_disk = tools
    chance = random.Random(seed)
    name = f"killed{seed}"
    cassettes, _ = folders(tmp_path, name)
    done = 0
    for _ in range(kills):
        held, before = on_disk(cassettes), len(endpoint.sent)
        child = launch("run", study, *to_folders(*folders(tmp_path, name)))
        endpoint.wait_for(before + chance.randint(1, max(1, (calls - len(held)) // 2)))
        time.sleep(chance.uniform(0, 0.02))
        child.kill()
        assert child.wait() == -signal.SIGKILL
        sent = endpoint.sent[before:]
        assert held.isdisjoint(sent)
        assert len(set(sent)) == len(sent)
        done += 1
    held, before = on_disk(cassettes), len(endpoint.sent)
    assert len(held) < calls
    assert record(study, name=name).code == 0
    assert held.isdisjoint(endpoint.sent[before:])
    assert set(endpoint.sent[before:]) | held == on_disk(cassettes)
    return done


@pytest.mark.costly
def test_after_kills_the_same_command_sends_no_recorded_call_and_ends_with_the_same_bytes(
    endpoint, write_grid, recorded_once, launch, record, tmp_path
):
    endpoint.delay = 0.005
    tools = launch, record, on_disk
    kill_and_resume(1, endpoint, write_grid(), tools, tmp_path, calls=recorded_once.calls, kills=1)
    whole = files(recorded_once.cassettes, recorded_once.log)
    assert files(*folders(tmp_path, "killed1")) == whole


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 14))
def test_after_kills_at_many_moments(seed, endpoint, write_grid, launch, record, tmp_path):
    endpoint.delay = 0.003
    study = write_grid(benchmarks={"sciq": {"tasks": "questions.jsonl"}, "humaneval": {"limit": 1}})
    assert record(study, name="whole").code == 0
    calls = len(endpoint.sent)
    tools = launch, record, on_disk
    kill_and_resume(seed, endpoint, study, tools, tmp_path, calls=calls, kills=4)
    whole, killed = folders(tmp_path, "whole"), folders(tmp_path, f"killed{seed}")
    assert files(*killed) == files(*whole)


@pytest.mark.costly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_replies_under_way_and_the_same_command_goes_on(
    number, endpoint, write_grid, launch, record, recorded_once, tmp_path
):
    endpoint.delay = 0.2
    cassettes, log = folders(tmp_path)
    study = write_grid()
    child = launch("run", study, *to_folders(*folders(tmp_path)), "--max-connections", 3)
    endpoint.wait_for(4)
    child.send_signal(number)
    words = ("Interrupted.", "The same command goes on from here.", "under way")
    ended(child).fails(130, *words)
    assert on_disk(cassettes) == set(endpoint.sent)
    assert len(endpoint.sent) <= 6
    assert [path.name for path in log.iterdir()] == []
    endpoint.delay = 0
    before = set(endpoint.sent)
    assert record(study).code == 0
    assert before.isdisjoint(endpoint.sent[len(before) :])
    assert files(cassettes, log) == files(recorded_once.cassettes, recorded_once.log)


@pytest.mark.costly
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_a_signal_that_ends_gives_up_replies_that_do_not_come_and_loses_no_other(
    number, endpoint, write_grid, launch, record, recorded_once, tmp_path
):

    def held_back(call, attempt):
        endpoint.delay = 60 if "/critique/" in call else 0

    endpoint.fault = held_back
    cassettes, log = folders(tmp_path)
    study = write_grid()
    child = launch("run", study, *to_folders(*folders(tmp_path)), "--timeout", 60)
    endpoint.wait_for(22)  # every call up to the critiques, and these
    time.sleep(0.3)
    started = time.monotonic()
    child.send_signal(number)
    ended(child).fails(130, "Replies that were under way are lost; all others are kept.")
    assert time.monotonic() - started < 40, "it waited for replies that take 60 s"
    kept = on_disk(cassettes)
    assert kept
    assert kept >= {call for call in endpoint.sent if "/critique/" not in call}
    assert [path.name for path in log.iterdir()] == []
    endpoint.fault, endpoint.delay = lambda call, attempt: None, 0
    endpoint.sent.clear()
    assert record(study).code == 0
    assert kept.isdisjoint(endpoint.sent)
    assert files(cassettes, log) == files(recorded_once.cassettes, recorded_once.log)


@pytest.mark.costly
def test_a_second_ctrl_c_waits_for_nothing(endpoint, write_grid, launch, tmp_path):
    endpoint.delay = 90
    child = launch("run", write_grid(), *to_folders(*folders(tmp_path)))
    endpoint.wait_for(4)
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    ended(child).fails(130, "Interrupted.")
    assert time.monotonic() - started < 60


FAULTS = ("429", "529", "500", "overloaded", "drop", "cut", "garbage")


def test_faults_that_pass_leave_no_trace(endpoint, write_grid, record, recorded_once, tmp_path):
    endpoint.fault = lambda call, attempt: FAULTS[hash(call) % len(FAULTS)] if attempt < 2 else None
    assert record(write_grid()).code == 0
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)
    assert set(endpoint.counts().values()) == {3}


FAILING = "sciq.ice.help_avoidant.simple/1/critique/motivation/1"


def test_an_episode_whose_call_fails_stays_failed_until_it_is_taken_up_again(
    endpoint, write_grid, record, shell, recorded_once, tmp_path
):
    study, (cassettes, log) = write_grid(), folders(tmp_path)
    endpoint.fault = lambda call, attempt: "400" if call == FAILING else None
    record(study).fails(
        1,
        "Failed: sciq.ice.help_avoidant.simple: HTTP 400, some_error: no [31m.",
        "Episodes that failed: 1. The same command with --retry-errors",
    )
    assert statuses(tmp_path) == {
        "sciq.ice.help_avoidant.baseline": "complete",
        "sciq.ice.help_avoidant.simple": "failed",
        "sciq.moon.help_avoidant.baseline": "complete",
        "sciq.moon.help_avoidant.simple": "complete",
    }
    assert not list(cassettes.glob("*.journal.jsonl"))
    assert endpoint.counts().pop(FAILING) == 1

    endpoint.fault = lambda call, attempt: None
    kept, before = files(cassettes, log), len(endpoint.sent)
    assert record(study).code == 1
    assert len(endpoint.sent) == before
    assert files(cassettes, log) == kept
    again = tmp_path / "again" / "log"
    assert shell("replay", cassettes, "--log-dir", again).code == 0
    assert files(again) == files(log)
    assert shell("verify", cassettes).code == 0

    assert record(study, "--retry-errors").code == 0
    assert endpoint.sent[before] == FAILING
    assert {count for call, count in endpoint.counts().items() if call != FAILING} == {1}
    assert files(cassettes, log) == files(recorded_once.cassettes, recorded_once.log)


ONCE_MORE = ("--max-retries", 1, "--max-outage", 0)
SAID = {
    "429": "HTTP 429", "529": "HTTP 529", "overloaded": "HTTP 529, overloaded_error: Overloaded",
    "400": "HTTP 400", "drop": "The connection failed: it was closed without a reply",
    "cut": "The connection failed: the reply was cut off",
    "garbage": "The reply is not a message but a page", "slow": "No reply in time",
    "drip": "No reply in time",
}  # fmt: skip


@pytest.mark.costly
def test_every_lasting_fault_is_named_in_the_log(endpoint, write_grid, record, shell, tmp_path):
    study = write_grid(
        conditions=["baseline"],
        repeats=len(SAID),
        benchmarks={"sciq": {"tasks": "questions.jsonl", "limit": 1}},
    )
    assert record(study, name="whole").code == 0
    endpoint.sent.clear()
    places = {f"sciq.ice.help_avoidant.baseline.r{n:02d}": kind for n, kind in enumerate(SAID, 1)}

    def fault(call, attempt):
        episode, _, key = call.partition("/")
        return places[episode] if key == "1/propose/baseline/1" else None

    endpoint.fault = fault
    assert record(study, *ONCE_MORE, "--timeout", 0.5).code == 1
    lines = (folders(tmp_path)[1] / "episodes.jsonl").read_bytes().splitlines()
    for line in map(orjson.loads, lines):
        assert line["failure"]["error"].startswith(SAID[places[line["episode_id"]]])
        assert line["failure"]["key"] == "1/propose/baseline/1"
        tries = endpoint.counts()[f"{line['episode_id']}/1/propose/baseline/1"]
        assert tries == (1 if places[line["episode_id"]] == "400" else 2)
    assert len(lines) == len(SAID)
    assert shell("verify", folders(tmp_path)[0]).code == 0
    endpoint.fault = lambda call, attempt: None
    assert record(study, "--retry-errors").code == 0
    assert files(*folders(tmp_path)) == {
        name.replace("whole", "one"): data
        for name, data in files(*folders(tmp_path, "whole")).items()
    }


def test_an_episode_whose_first_call_failed_replays(endpoint, write_grid, record, shell, tmp_path):
    endpoint.fault = lambda call, attempt: "400" if "ice" in call else None
    assert record(write_grid(), "--max-retries", 0).code == 1
    assert list(statuses(tmp_path).values()).count("failed") == 2
    assert shell("verify", folders(tmp_path)[0]).code == 0
    assert shell("cassette", "verify", folders(tmp_path)[0]).code == 0


@pytest.mark.slow
def test_a_killed_retry_goes_on(endpoint, write_grid, record, launch, recorded_once, tmp_path):
    endpoint.fault = lambda call, attempt: "400" if "/1/propose/m" in call else None
    study = write_grid()
    assert record(study, "--max-retries", 0).code == 1
    endpoint.fault, endpoint.delay = (lambda call, attempt: None), 0.01
    before = len(endpoint.sent)
    child = launch("run", study, *to_folders(*folders(tmp_path)), "--retry-errors")
    endpoint.wait_for(before + 20)
    child.kill()
    child.wait()
    assert record(study, "--retry-errors").code == 0
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


def test_refused_credentials_stop_everything_at_once(endpoint, write_grid, record, tmp_path):
    endpoint.fault = lambda call, attempt: "401"
    record(write_grid(), "--max-connections", 4).fails(2, "refused the credentials (HTTP 401")
    assert len(endpoint.sent) <= 4
    assert not (folders(tmp_path)[0] / "manifest.json").exists()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("404", "The endpoint has no model 'tutor-model'"),
        ("403", "may not be used to call"),
        ("402", "wants to be paid first"),
        ("400 Your credit balance is too low.", "wants to be paid first"),
    ],
)
def test_a_model_that_cannot_be_called_stops_everything_and_what_is_paid_for_is_kept(
    status, words, endpoint, write_grid, record, recorded_once, tmp_path
):
    endpoint.fault = lambda call, attempt: status if "/propose/" in call else None
    study, (cassettes, log) = write_grid(), folders(tmp_path)
    record(study, "--max-connections", 1).fails(2, words, f"(HTTP {status[:3]}, some_error: no")
    assert len(endpoint.sent) == 3
    assert on_disk(cassettes) == set(endpoint.sent[:2])
    endpoint.fault = lambda call, attempt: None
    assert record(study).code == 0
    assert files(cassettes, log) == files(recorded_once.cassettes, recorded_once.log)
    assert endpoint.counts()[endpoint.sent[0]] == 1


def test_without_credentials_no_folder_is_made(endpoint, write_grid, record, monkeypatch, tmp_path):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    record(write_grid()).fails(2, "No credentials")
    assert not (tmp_path / "one").exists()


def test_credential_and_private_headers_are_in_no_file(endpoint, write_grid, record, tmp_path):
    key = os.environ["ANTHROPIC_API_KEY"]
    endpoint.credential = key
    endpoint.fault = lambda call, attempt: "400" if "moon" in call and "simple" in call else None
    assert record(write_grid(), "--max-retries", 0).code == 1
    written = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(written) == 11
    for path in written:
        data = path.read_bytes()
        for secret in (key.encode(), b"cookie-secret", b"org-secret", b"req-secret", b"\x1b"):
            assert secret not in data, path


def test_caps_hold_and_a_higher_one_goes_on(endpoint, write_grid, record, recorded_once, tmp_path):
    study = write_grid()
    prices = ("--prices", study.with_name("prices.toml"))
    each = (100 * 1.0 + 20 * 10.0) / 1e6
    sent: list[int] = []
    for cap in (0.014, 0.018):
        record(study, *prices, "--max-usd", cap).fails(5, "could pass the cap", "So far:")
        sent.append(len(endpoint.sent))
        assert cap - 0.013 < len(endpoint.sent) * each <= cap
    assert 0 < sent[0] < sent[1] < recorded_once.calls
    assert record(study, *prices, "--max-usd", 10).code == 0
    assert set(endpoint.counts().values()) == {1}
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


def test_a_cap_needs_the_price_of_every_model(endpoint, write_grid, record):
    record(write_grid(), "--max-usd", 1).fails(2, "the price of 'judge-model' is unknown")
    assert endpoint.sent == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_run_into_a_folder_in_use_is_refused(which, endpoint, write_grid, record, tmp_path):
    with FolderLock(folders(tmp_path)[which]):
        said = record(write_grid())
    said.fails(2, "Another run is using", "Wait until it ends, or choose another folder.")
    assert endpoint.sent == []
    assert record(write_grid()).code == 0


def failing_writes(monkeypatch, number, after):
    """The system refuses to write once `after` writes were done; returns what ends that."""
    write, done = os.write, [0]

    def refuse(handle, data):
        done[0] += 1
        if done[0] > after:
            raise OSError(number, os.strerror(number))
        return write(handle, data)

    monkeypatch.setattr("tutorsim.replay.durable_files_folder_lock_key_leaks.os.write", refuse)
    return lambda: monkeypatch.setattr(
        "tutorsim.replay.durable_files_folder_lock_key_leaks.os.write", write
    )


@pytest.mark.parametrize("after", [0, 9, 60])
def test_a_full_disk_is_told_and_the_same_command_goes_on(
    after, endpoint, write_grid, record, recorded_once, monkeypatch, tmp_path
):
    space = failing_writes(monkeypatch, errno.ENOSPC, after)
    study = write_grid()
    record(study).fails(2, "No space left", "Free some space")
    space()
    assert not list((tmp_path / "one").rglob("*.partial"))
    assert not list((tmp_path / "one").rglob("*.tmp"))
    assert record(study).code == 0
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


def test_a_log_that_cannot_be_written_stops_the_recording_with_a_message(
    endpoint, write_grid, record, recorded_once, monkeypatch, tmp_path
):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        close = flush = write

    entered = LogWriter.__enter__

    def enter(self):
        entered(self)
        assert self._file is not None
        self._file.close()
        self._file = Full()  # type: ignore[assignment]
        return self

    study = write_grid()
    with monkeypatch.context() as patch:
        patch.setattr(Full, "close", lambda self: self.write(b""))
        patch.setattr(LogWriter, "__enter__", enter)
        said = record(study)
    said.fails(2, "No space left")
    assert list(folders(tmp_path)[1].iterdir()) == []
    assert record(study).code == 0
    assert set(endpoint.counts().values()) == {1}
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


def test_a_folder_that_cannot_be_made_is_told(endpoint, write_grid, shell, tmp_path):
    (tmp_path / "file").write_text("")
    shell(
        *("run", write_grid(), "--log-dir", tmp_path / "log"),
        *("--cassette-dir", tmp_path / "file" / "cassettes"),
    ).fails(2, "cannot be written")
    assert endpoint.sent == []


def test_one_folder_can_hold_both(endpoint, write_grid, shell, recorded_once, tmp_path):
    both = tmp_path / "both"
    assert shell("run", write_grid(), "--log-dir", both, "--cassette-dir", both).code == 0
    assert shell("verify", both).code == 0
    assert shell("replay", both, "--log-dir", both).code == 0
    log = recorded_once.log / "episodes.jsonl"
    assert (both / "episodes.jsonl").read_bytes() == log.read_bytes()


def test_the_folder_of_another_study_is_refused_and_kept(
    endpoint, write_grid, recorded, shell, tmp_path
):
    before = files(recorded.cassettes, recorded.log)
    other = write_grid(seed=6)
    said = shell("run", other, "--log-dir", recorded.log, "--cassette-dir", tmp_path / "new")
    said.fails(2, "holds the log of another study (grid)")
    shell(
        "run", other, "--log-dir", tmp_path / "new-log", "--cassette-dir", recorded.cassettes
    ).fails(4, "holds the recording of another study (grid)")
    assert files(recorded.cassettes, recorded.log) == before
    assert endpoint.sent == []


def test_a_half_recorded_folder_of_another_study_is_refused(endpoint, write_grid, record, tmp_path):
    study = write_grid()
    prices = ("--prices", study.with_name("prices.toml"))
    assert record(study, *prices, "--max-usd", 0.014).code == 5
    before = files(*folders(tmp_path))
    record(write_grid(seed=6)).fails(4, "another study")
    assert files(*folders(tmp_path)) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "episodes.jsonl").write_bytes(b"{}\n"),
        lambda folder: (folder / "run.json").write_bytes(b'{"schema'),
        lambda folder: (folder / "run.json").unlink(),
        lambda folder: (folder / "episodes.jsonl").unlink(),
    ],
    ids=["edited", "truncated head", "no head", "no lines"],
)
def test_a_damaged_log_is_never_written_over(damage, recorded, endpoint, shell):
    damage(recorded.log)
    before = files(recorded.cassettes, recorded.log)
    into = ("--log-dir", recorded.log)
    for command in (
        ("run", recorded.study, "--cassette-dir", recorded.cassettes, *into),
        ("replay", recorded.cassettes, *into),
    ):
        said = shell(*command)
        assert said.code == 4
        assert said.err.count("\n") >= 2
        assert files(recorded.cassettes, recorded.log) == before


@pytest.mark.parametrize("head", ["new", "old"])
def test_a_kill_between_the_names_of_a_logs_two_files_is_made_good(head, recorded, endpoint, shell):
    before = files(recorded.cassettes, recorded.log)
    run = recorded.log / "run.json"
    (recorded.log / "run.json.partial").write_bytes(run.read_bytes())
    if head == "new":
        run.unlink()
    else:
        text = run.read_text()
        digest = orjson.loads(text)["episodes_sha256"]
        run.write_text(text.replace(digest, "0" * 64))
    assert run_again(shell, recorded).code == 0
    assert files(recorded.cassettes, recorded.log) == before


@pytest.mark.parametrize("edit", ["reply", "entry", "verdicts"])
def test_an_edited_recording_is_not_gone_on_with(edit, recorded, endpoint, shell):
    path = recorded.cassettes / "sciq.ice.help_avoidant.simple.json"
    if edit == "reply":
        path.write_bytes(path.read_bytes().replace(b"I think", b"I know", 1))
    elif edit == "entry":
        content = orjson.loads(path.read_bytes())
        content["interactions"].pop()
        path.write_bytes(orjson.dumps(content))
    else:
        (recorded.cassettes / "verdicts.jsonl").write_text("{}\n")
    before = files(recorded.cassettes, recorded.log)
    assert run_again(shell, recorded).code == 4
    assert endpoint.sent == []
    assert files(recorded.cassettes, recorded.log) == before


def test_a_cassette_that_was_removed_is_recorded_again_and_nothing_else(endpoint, recorded, shell):
    before = files(recorded.cassettes, recorded.log)
    (recorded.cassettes / "sciq.moon.help_avoidant.simple.json").unlink()
    assert run_again(shell, recorded).code == 0
    assert {call.split("/")[0] for call in endpoint.sent} == {"sciq.moon.help_avoidant.simple"}
    assert files(recorded.cassettes, recorded.log) == before


def test_a_reply_with_the_credential_stops_the_recording(endpoint, write_grid, record, tmp_path):
    key = os.environ["ANTHROPIC_API_KEY"]
    endpoint.votes = {"vote_final": key}
    said = record(write_grid(conditions=["simple"]))
    said.fails(2, "contains the credential")
    assert key not in said.err
    assert all(
        key.encode() not in path.read_bytes()
        for path in (tmp_path / "one").rglob("*")
        if path.is_file()
    )


@pytest.mark.costly
def test_a_program_has_one_verdict_in_all_episodes_of_a_recording(
    endpoint, write_grid, record, shell, monkeypatch, tmp_path
):
    judged = []

    def judge(self, run):
        judged.append(run.message)
        time.sleep(0.02)
        return CodeResult("code", VerdictRecord(outcome="fail", reason=f"number {len(judged)}"))

    monkeypatch.setattr(Sandbox, "judge", judge)
    monkeypatch.setattr(Sandbox, "report", lambda self: {"level": "none"})
    monkeypatch.setattr(endpoint, "_text", lambda call, user: "SCORE: 0.1\nSame for all.")
    study = write_grid(
        conditions=["baseline"], repeats=6, max_turns=1, benchmarks={"humaneval": {"limit": 1}}
    )
    assert record(study).code == 0
    assert len(judged) == 1
    assert shell("verify", folders(tmp_path)[0]).code == 0

    kept = files(*folders(tmp_path))
    monkeypatch.setattr(Sandbox, "fingerprint", {"interpreter": "another"})
    assert record(study).code == 0
    assert len(judged) == 1
    assert files(*folders(tmp_path)) == kept


SOUND = {
    "task_id": "double",
    "prompt": 'def double(n):\n    """Two times n."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * n\n",
    "test": "def check(candidate):\n    assert candidate(4) == 8\n",
}
UNSOUND = {
    "a wrong reference": SOUND | {"task_id": "bad", "canonical_solution": "    return n\n"},
    "tests that ask for nothing": SOUND | {"task_id": "bad", "test": "def check(c):\n    c(1)\n"},
}


@pytest.mark.costly
@pytest.mark.parametrize("kind", UNSOUND)
def test_a_task_proving_nothing_is_refused_by_name(kind, endpoint, write_grid, record, tmp_path):
    study = write_grid(benchmarks={"humaneval": {"tasks": "programs.jsonl"}}, max_turns=0)
    programs = study.with_name("programs.jsonl")
    programs.write_text(f"{orjson.dumps(SOUND).decode()}\n{orjson.dumps(UNSOUND[kind]).decode()}\n")
    said = record(study)
    said.fails(2, "Programming tasks that cannot be judged: 1.", "bad: ")
    assert "double: " not in said.err
    assert endpoint.sent == []
    assert not list((tmp_path / "one" / "cassettes").glob("*.toml"))

    # The same command takes the corrected file.
    programs.write_text(f"{orjson.dumps(SOUND).decode()}\n")
    assert record(study).code == 0


def test_a_finished_recording_needs_no_sandbox(endpoint, write_grid, record, monkeypatch):
    study = write_grid(benchmarks={"humaneval": {"limit": 1}}, conditions=["baseline"], max_turns=0)
    assert record(study).code == 0
    monkeypatch.setattr(Sandbox, "_start", None)
    monkeypatch.setattr(Sandbox, "report", lambda self: None)
    assert record(study).code == 0


@pytest.mark.costly
@pytest.mark.parametrize("proven", [True, False])
def test_a_sandbox_that_cannot_be_started_is_told_in_three_parts(
    proven, endpoint, write_grid, record, monkeypatch, tmp_path
):
    study = write_grid(benchmarks={"humaneval": {"limit": 1}}, conditions=["baseline"], max_turns=0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if proven:
        assert record(study, name="earlier").code == 0

    def refuse(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr("tutorsim.sandbox.start_and_drive_one_zygote.subprocess.Popen", refuse)
        said = record(study)
    said.fails(
        6,
        "The sandbox failed twice in a row.",
        "Resource temporarily unavailable",
        "tutorsim doctor",
    )
    assert "Traceback" not in said.err
    assert record(study).code == 0


def test_who_takes_part_is_told_what_is_asked_and_when_it_is_answered():
    told = []

    async def answered(tape, replies):
        for reply in replies:
            reply.close()

    hearing = SimpleNamespace(asking=lambda calls, shown=None: told.append((len(calls), shown)))
    job = SimpleNamespace(prior=lambda _: None, hearing=lambda _: hearing)
    world = _World(SimpleNamespace(job=job, queue=SimpleNamespace(round=answered)), "e", None)
    call = Call(CallKey(1, "think", "alice", 1), Request("m", "s", "u", 9))
    at_once(world(Round((call, call), shown="a board")))
    assert told == [(2, "a board"), (0, None)]
