"""The sandbox as its users see it."""

import json
import os
import pwd
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tutorsim.errors import SandboxError, SandboxUnavailable, TaskFileError, UsageError
from tutorsim.kernel.flow_drivers_and_call_log import CodeRun
from tutorsim.sandbox import LEVELS, Limits, Sandbox, prove_tasks, require_provable
from tutorsim.sandbox.sandbox_judges_answers_and_proves_tasks import (
    Usage,
    _workers,
    memory_ceiling,
    read_aftermath,
)
from tutorsim.sandbox.start_and_drive_one_zygote import Aftermath, Broken, Zygote
from tutorsim.tasks import CodeTask, builtin, load_tasks

TERMS = {
    "prompt": "def twice(n):\n",
    "entry_point": "twice",
    "test": "def check(candidate):\n    assert candidate(4) == 8\n",
}
RIGHT = "def twice(n):\n    return 2 * n\n"


def coderun(message, **terms):
    return CodeRun(turn=0, message=message, **{**TERMS, **terms})


def fenced_run(code):
    return coderun(f"Maybe:\n```python\n{code}```\nor not?")


def test_a_message_gets_its_program_and_verdict(best):
    result = best.sandbox.judge(fenced_run(RIGHT))
    assert result.code == RIGHT
    assert (result.verdict.outcome, result.verdict.reason) == ("pass", "all tests passed")
    assert not result.verdict.near_limit
    assert not result.verdict.unsafe


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("I do not know.", "no fenced Python block"),
        ("```python\ndef twice(\n```", "no fenced Python block compiles"),
        ("\ud800 \x00", "no fenced Python block"),
    ],
)
def test_a_message_without_a_program_says_why(best, message, reason):
    result = best.sandbox.judge(coderun(message))
    assert result.code is None
    assert (result.verdict.outcome, result.verdict.reason) == ("no_code", reason)


@pytest.mark.parametrize("text", ["x" * ((1 << 20) - 1), "\U0001f600" * 700_000])
def test_a_message_too_long_to_read_is_no_code(best, text):
    result, usage = best.sandbox.judge_detailed(coderun(text))
    assert result.verdict.reason == "the message is too long"
    assert usage == Usage(0.0, 0.0, 0, 0, 0, "", "")
    longest = best.sandbox.judge(coderun("x" * ((1 << 20) - 2)))  # and its two quotes
    assert longest.verdict.reason == "no fenced Python block"


def test_a_message_that_takes_too_long_to_read_is_ended(best):
    slow = "\n".join(f"```python\n{'x = 1' + chr(10)}{'(1,' * 900}" for _ in range(499))
    result = best.sandbox.judge(coderun(slow + "\n```"))
    assert result.verdict.outcome in ("no_code", "timeout", "error")


@pytest.mark.parametrize("text", [RIGHT.ljust(65_537), f"x = '{chr(0x1F600) * 710_000}'"])
def test_a_program_too_long_is_no_code(best, text):
    result, _ = best.sandbox.judge_program(text, **TERMS)
    assert (result.verdict.outcome, result.verdict.reason) == ("no_code", "the program is too long")
    result, _ = best.sandbox.judge_program(RIGHT.ljust(65_536), **TERMS)
    assert result.verdict.outcome == "pass"


def test_the_module_is_cheap_to_import_and_opening_starts_nothing():
    with Sandbox() as sandbox:
        assert sandbox._started is None
    source = "import sys, tutorsim.sandbox; sys.exit('ctypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0


@pytest.mark.costly
def test_programs_are_judged_side_by_side_from_threads():
    with Sandbox(workers=2) as sandbox, ThreadPoolExecutor(6) as pool:
        outcomes = list(
            pool.map(
                lambda n: sandbox.judge(fenced_run(RIGHT.replace("2", str(n % 3)))).verdict.outcome,
                range(30),
            )
        )
    assert outcomes == ["pass" if n % 3 == 2 else "fail" for n in range(30)]


def _idle(sandbox):
    """The process of a zygote that waits."""
    return next(one._process for one in sandbox._slots.queue if one is not None)


@pytest.mark.costly
def test_a_zygote_that_was_killed_is_replaced_and_the_program_judged():
    with Sandbox(workers=1) as sandbox:
        assert sandbox.judge(fenced_run(RIGHT)).verdict.outcome == "pass"
        _idle(sandbox).send_signal(signal.SIGKILL)
        _idle(sandbox).wait()
        assert sandbox.judge(fenced_run(RIGHT)).verdict.outcome == "pass"


@pytest.mark.costly
def test_a_failure_of_the_sandbox_is_retried_once_and_never_scored(monkeypatch):
    tries = []

    def fail(self, job):
        tries.append(job)
        raise Broken("the judge ended with status -9")

    monkeypatch.setattr(Zygote, "run", fail)
    with Sandbox(workers=1) as sandbox, pytest.raises(SandboxError, match="judge ended") as error:
        sandbox.judge(fenced_run(RIGHT))
    assert len(tries) == 2
    assert error.value.exit_code == 6


def test_a_zygote_that_does_not_start_says_why(monkeypatch):
    said = f"raise OSError('no room: {'x' * 300} {{}}')"
    monkeypatch.setattr("tutorsim.sandbox.start_and_drive_one_zygote._BOOT", said)
    with Sandbox(workers=1) as sandbox, pytest.raises(SandboxError, match="no room") as error:
        sandbox.judge(fenced_run(RIGHT))
    assert error.value.exit_code == 6
    assert f": OSError: no room: {'x' * 182}. " in error.value.why


SLEEPS = "import signal\ndef twice(n):\n    signal.pause()\n"


@pytest.mark.costly
@pytest.mark.parametrize("victim", ["worker", "judge"])
def test_a_process_killed_from_outside_is_no_verdict(victim):
    with Sandbox("filter-only", workers=1, limits=Limits(wall=1.5)) as sandbox:
        sandbox.judge(fenced_run(RIGHT))
        killer = threading.Timer(0.3, _kill_child, (_idle(sandbox).pid, victim))
        killer.start()
        result = sandbox.judge(fenced_run(SLEEPS))
        killer.join()
    # Judged again on a new zygote, where nobody kills it.
    assert (result.verdict.outcome, result.verdict.reason) == ("timeout", "wall limit")


BOMB = """
import signal
def twice(n):
    kept = bytearray(b"x") * (200 << 20)
    signal.pause()
"""


@pytest.mark.costly
def test_a_program_that_was_killed_for_its_memory_has_an_error():
    """As in a container smaller than the limits, where the kernel ends the largest process."""
    with Sandbox("filter-only", workers=1, limits=Limits(wall=60)) as sandbox:
        sandbox.judge(fenced_run(RIGHT))
        watcher = threading.Thread(target=_kill_the_largest, args=(_idle(sandbox).pid,))
        watcher.start()
        result = sandbox.judge(fenced_run(BOMB))
        watcher.join()
        assert (result.verdict.outcome, result.verdict.reason) == ("error", "memory limit")
        assert sandbox.judge(fenced_run(RIGHT)).verdict.outcome == "pass"


def _kill_the_largest(zygote):
    for _ in range(6000):
        for child in Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split():
            with suppress(OSError, IndexError):
                if _resident(child) > 180 << 20:
                    os.kill(int(child), signal.SIGKILL)
                    return
        threading.Event().wait(0.01)


def test_as_many_programs_run_at_once_as_there_are_cores_unless_memory_allows_fewer(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6))
    asked = [(None, None), (None, 8 * Limits().memory), (9, None), (None, 1)]
    assert [_workers(wanted, Limits(), room) for wanted, room in asked] == [6, 4, 9, 1]


def test_the_limit_on_memory_follows_the_container(monkeypatch):
    monkeypatch.setattr(
        "tutorsim.sandbox.sandbox_judges_answers_and_proves_tasks.memory_ceiling", lambda: 300 << 20
    )
    with Sandbox() as sandbox:
        assert sandbox.workers == 1
        assert sandbox.fingerprint["limits"]["memory"] == 150 << 20
        for size, reason in ((100, "wrong answer (call 1)"), (200, "memory limit (call 1)")):
            code = f"def twice(n):\n    return len(bytes({size} << 20))\n"
            assert sandbox.judge(fenced_run(code)).verdict.reason == reason


def test_a_small_limit_on_messages_cuts_no_program():
    """A program that was cut off after an eighth of the limit lost what makes it fail."""
    long = f"{RIGHT}{'# more' + chr(10)}" * 400 + "def twice(n):\n    return 0\n"
    with Sandbox(limits=Limits(message=100_000), workers=1) as sandbox:
        assert len(long) > 100_000 // 12
        result, _ = sandbox.judge_program(long, **TERMS)
        assert (result.verdict.outcome, result.code) == ("fail", long)


@pytest.mark.costly
def test_the_wall_limit_is_one_limit():
    """Time of the processor adds nothing to it, on either side."""
    busy = "import time\nwhile time.process_time() < 1.5: pass\n"
    with Sandbox(limits=Limits(wall=1.0), workers=1) as sandbox:
        result = sandbox.judge(fenced_run(busy + RIGHT))
    assert (result.verdict.outcome, result.verdict.reason) == ("timeout", "wall limit")


def test_a_program_may_write_as_many_bytes_as_its_limit():
    with Sandbox(limits=Limits(output=1000), workers=1) as sandbox:
        for size, reason in ((1000, "all tests passed"), (1001, "output limit")):
            writes = f"import time\nprint({size} * 'x', end='', flush=True)\ntime.sleep(0.2)\n"
            assert sandbox.judge(fenced_run(writes + RIGHT)).verdict.reason == reason


def test_a_mark_before_the_program_is_no_part_of_it(best):
    result, _ = best.sandbox.judge_program(f"\ufeff{RIGHT}", **TERMS)
    assert (result.verdict.outcome, result.code) == ("pass", RIGHT)
    assert best.sandbox.judge(coderun(f"\ufeff```python\n\ufeff{RIGHT}```")).code == RIGHT


def _kill_child(zygote, which):
    """Kill a process of the working pair: of the zygote's four children the older two."""
    children = Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()
    pair = sorted(map(int, children))[:2]
    os.kill(pair[0 if which == "worker" else 1], signal.SIGKILL)


@pytest.mark.costly
def test_a_closed_sandbox_refuses_and_leaves_nothing():
    before = _descriptors()
    sandbox = Sandbox(workers=2)
    with sandbox, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: sandbox.judge(fenced_run(RIGHT)), range(4)))
        processes = [z._process for z in list(sandbox._slots.queue) if z is not None]
        below = [pid for process in processes for pid in _descendants(process.pid)]
    assert processes
    assert all(process.returncode is not None for process in processes)
    assert [pid for pid in below if _alive(pid)] == []
    assert _descriptors() == before
    with pytest.raises(SandboxError, match="closed"):
        sandbox.judge(fenced_run(RIGHT))


def _descriptors():
    with os.scandir("/proc/self/fd") as entries:
        return {entry.name for entry in entries}


def _descendants(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.costly
def test_nothing_outlives_an_owner_that_was_killed():
    source = (
        "import sys, time; from tutorsim.sandbox import Sandbox\n"
        "s = Sandbox('filter-only', workers=1); s.level\n"
        "print(next(iter(s._slots.queue))._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as owner:
        zygote = int(owner.stdout.readline())
        below = [zygote, *_descendants(zygote)]
        owner.kill()
    for _ in range(3000):
        if not any(map(_alive, below)):
            break
        threading.Event().wait(0.02)
    assert [pid for pid in below if _alive(pid)] == []


@pytest.mark.costly
def test_memory_and_descriptors_stay_flat_over_many_programs(best):
    best.sandbox.judge(fenced_run(RIGHT))
    before = len(_descriptors()), _resident()
    for _ in range(100):
        best.sandbox.judge(fenced_run(RIGHT))
    next_pairs = 2 * best.sandbox.workers  # the ends of a pair that waits may have come or not
    assert abs(len(_descriptors()) - before[0]) <= next_pairs
    assert _resident() - before[1] < 4 << 20


@pytest.mark.slow
def test_memory_stays_flat_over_ten_thousand_programs():
    batch = [fenced_run(RIGHT)] * 200
    with Sandbox() as sandbox, ThreadPoolExecutor(sandbox.workers) as pool:
        assert all(pool.map(sandbox.judge, batch))
        before = _resident(), _residents(sandbox)
        for _ in range(50):
            assert all(pool.map(sandbox.judge, batch))
        after = _resident(), _residents(sandbox)
    assert after[0] - before[0] < 4 << 20
    assert after[1] - before[1] < 1 << 20


def _resident(pid="self"):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _residents(sandbox):
    zygotes = [z._process.pid for z in list(sandbox._slots.queue) if z is not None]
    return sum(_resident(pid) for zygote in zygotes for pid in [zygote, *_descendants(zygote)[:1]])


def test_the_report_says_what_holds_and_is_plain_data(bench):
    report = json.loads(json.dumps(bench.sandbox.report()))
    assert report["level"] in LEVELS
    on = {layer for layer, status in report["layers"].items() if status == "ok"}
    assert LEVELS[report["level"]] <= on
    assert (report["user"] == "root") == (pwd.getpwuid(os.geteuid()).pw_name == "root")
    assert report["limits"] == bench.sandbox.fingerprint["limits"]
    assert (report["workers"], report["kernel"].split()[0]) == (2, "Linux")
    assert len(report["probes"]) == 12
    assert all(result.startswith("denied") for result in report["probes"].values())
    assert report["fixed_loop_seconds"] == round(report["fixed_loop_seconds"], 4) > 0
    zygote = _idle(bench.sandbox).pid
    score = int(Path("/proc/self/oom_score_adj").read_text())
    assert Path(f"/proc/{zygote}/oom_score_adj").read_text() == f"{max(500, score)}\n"


PLACE = """
import fcntl, os, sys, zoneinfo
def works(action, *given):
    try:
        return action(*given) is not None
    except (OSError, zoneinfo.ZoneInfoNotFoundError):
        return False
def twice(n):
    return [
        sys.argv, sys.path, hasattr(sys.modules["__main__"], "main"),
        [name for name in sys.modules if name.partition(".")[0] in ("inner", "tutorsim")],
        [name for name in ("posix/UTC", "No/Where") if works(zoneinfo.ZoneInfo, name)],
        [number for number in range(64) if works(fcntl.fcntl, number, fcntl.F_GETFD)],
        os.getgroups(), 0 in (*os.getresuid(), *os.getresgid()),
    ]
"""


def test_a_program_finds_the_library_and_nothing_of_the_sandbox(best):
    place = [["solution"], [], False, [], [], [0, 1, 2, 3], [], False]
    test = f"def check(candidate):\n    assert candidate(0) == {place}\n"
    result = best.sandbox.judge(coderun(f"```python\n{PLACE}```", test=test))
    assert result.verdict.outcome == "pass"


def test_every_process_of_the_sandbox_has_given_up_its_rights(best):
    """As the kernel tells it: no capability, no way to one, and no other process looks into it."""
    best.sandbox.judge(fenced_run(RIGHT))
    zygote = _idle(best.sandbox).pid
    assert os.getsid(zygote) == zygote  # Ctrl-C in the owner's terminal does not reach it
    for _ in range(1000):
        below = _descendants(zygote)  # the next pair is forked once the last one has ended
        if len(below) >= 3 and _status(below[-1])["Seccomp"] == "2":
            break
        threading.Event().wait(0.01)
    else:
        raise AssertionError("the next judge is not locked")
    for pid in below[-3:]:
        status = _status(pid)
        assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
        assert (status["NoNewPrivs"], Path(f"/proc/{pid}/environ").stat().st_uid) == ("1", 0)


def _status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_fingerprint_names_limits_and_interpreter_and_nothing_of_the_machine():
    with Sandbox("auto") as one, Sandbox("unsafe", workers=7) as other:
        assert one.fingerprint == other.fingerprint
        assert one.fingerprint["rules"] == 3, "recordings of other rules are another question"
        assert sorted(one.fingerprint) == ["interpreter", "limits", "rules"]
        assert one._started is None
    with Sandbox(limits=Limits(cpu=1)) as changed:
        assert changed.fingerprint != one.fingerprint


@pytest.mark.costly
def test_too_few_layers_are_refused_by_name():
    with (
        Sandbox(without=frozenset({"seccomp"})) as sandbox,
        pytest.raises(SandboxUnavailable, match="seccomp: off") as error,
    ):
        sandbox.judge(fenced_run(RIGHT))
    assert "--sandbox unsafe" in str(error.value)


def test_a_level_whose_layer_is_missing_is_refused():
    with (
        Sandbox("strong", without=frozenset({"landlock"})) as sandbox,
        pytest.raises(SandboxUnavailable, match="landlock: off"),
    ):
        assert sandbox.level


def test_layers_that_do_not_hold_are_refused(monkeypatch):
    start = Zygote.__init__

    def leaky(self, *arguments):
        start(self, *arguments)
        self.started["probes"]["read a file"] = "allowed"

    monkeypatch.setattr(Zygote, "__init__", leaky)
    with Sandbox() as sandbox, pytest.raises(SandboxUnavailable, match="read a file"):
        assert sandbox.level


@pytest.mark.costly
def test_unsafe_runs_without_layers_and_marks_every_verdict():
    none = frozenset({"seccomp", "namespaces", "landlock", "uid"})
    with Sandbox("unsafe", without=none, workers=1) as sandbox:
        assert sandbox.level == "unsafe"
        runs = [coderun(text) for text in ("?", "x" * (1 << 20))]
        for run in (fenced_run(RIGHT), fenced_run(SLEEPS.replace("pause()", "x")), *runs):
            assert sandbox.judge(run).verdict.unsafe
        forger = "def twice(n):\n    import os\n    os._exit(0)\n"
        assert sandbox.judge(fenced_run(forger)).verdict.reason == "early exit"
        killer = "def twice(n):\n    import os\n    os.kill(os.getpid(), 9)\n"
        assert sandbox.judge(fenced_run(killer)).verdict.reason == "killed by SIGKILL"


def test_an_unknown_level_is_refused():
    with pytest.raises(UsageError, match="very-safe"):
        Sandbox("very-safe")  # type: ignore[arg-type]


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_refused_in_words(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    with Sandbox(workers=2) as sandbox:
        assert sandbox.workers == 1
        with pytest.raises(SandboxUnavailable, match="cannot be judged"):
            sandbox.judge(fenced_run(RIGHT))


def test_the_level_is_the_one_that_this_machine_is_known_for():
    expected = os.environ.get("TUTORSIM_EXPECT_SANDBOX")
    if not expected:
        pytest.skip("TUTORSIM_EXPECT_SANDBOX is not set")
    with Sandbox() as sandbox:
        assert sandbox.level == expected, sandbox.report()


# --- Proof of tasks ------------------------------------------------------------------------------

BESIDE = Path(__file__).parents[4] / "shared" / "data"
TASK = CodeTask(
    task_id="twice",
    prompt='def twice(n):\n    """Two times n."""\n',
    entry_point="twice",
    canonical_solution="    return 2 * n\n",
    test="def check(candidate):\n    assert candidate(4) == 8\n",
)
WRONG = replace(TASK, task_id="wrong", canonical_solution="    return n\n")
IDLE = replace(TASK, task_id="idle", test="def check(candidate):\n    candidate(1)\n")


def _code_tasks(tasks):
    return [task for task in tasks if isinstance(task, CodeTask)]


@pytest.mark.costly
def test_every_task_that_ships_is_sound(best):
    tasks = _code_tasks(builtin("humaneval"))
    assert tasks
    assert prove_tasks(best.sandbox, tasks) == []


@pytest.mark.costly
def test_tasks_that_cannot_be_judged_are_named_in_order(best):
    calls = replace(
        TASK,
        task_id="takes a function",
        canonical_solution="    return n(4)\n",
        test="def check(candidate):\n    assert candidate(lambda n: 2 * n) == 8\n",
    )
    problems = prove_tasks(best.sandbox, [TASK, WRONG, IDLE, calls, TASK])
    assert [p.task_id for p in problems] == ["wrong", "idle", "takes a function"]
    assert problems[0].problem == (
        "its reference solution does not pass: fail, wrong answer (call 1)"
    )
    assert problems[1].problem == "a function that returns nothing passes its tests"
    assert "exception TypeError" in problems[2].problem


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    return tmp_path / "new" / "tutorsim" / "proven-tasks.txt"


def test_tasks_that_cannot_be_judged_are_refused_by_name(best, cache):
    with pytest.raises(TaskFileError) as error:
        require_provable(best.sandbox, [TASK, WRONG, IDLE])
    assert error.value.exit_code == 2
    assert error.value.what == "Programming tasks that cannot be judged: 2."
    assert "wrong: its reference solution does not pass: fail" in error.value.why
    assert "idle: a function that returns nothing passes its tests" in error.value.why
    assert "tutorsim judge" in error.value.hint


def test_many_tasks_that_cannot_be_judged_are_counted(best, cache):
    with pytest.raises(TaskFileError, match=r"And 2 more\.") as error:
        require_provable(best.sandbox, [replace(WRONG, task_id=f"w{n}") for n in range(7)])
    assert "cannot be judged: 7" in error.value.what


class Counting(Sandbox):
    """Counts what is judged."""

    judged = 0

    def judge_program(self, *arguments, **terms):
        self.judged += 1
        return super().judge_program(*arguments, **terms)


@pytest.mark.costly
def test_a_proof_is_kept_by_content(cache):
    """Not by name; and what was not proven is tried again."""
    with Counting(workers=1) as sandbox:
        for task, judged in (
            (TASK, 2), (TASK, 2), (replace(TASK, task_id="other"), 2),
            (replace(TASK, prompt=TASK.prompt + "    # more\n"), 4),
        ):  # fmt: skip
            require_provable(sandbox, [task])
            assert sandbox.judged == judged
        for _ in range(2):
            with pytest.raises(TaskFileError):
                require_provable(sandbox, [TASK, IDLE])
        assert sandbox.judged == 8
    with Counting(workers=1, limits=Limits(cpu=1)) as sandbox:
        require_provable(sandbox, [TASK])
        assert sandbox.judged == 2
    assert len(cache.read_text().split()) == 3


def test_without_a_cache_folder_tasks_are_proven_each_time(cache):
    cache.parents[1].write_text("no folder")
    with Counting(workers=1) as sandbox:
        for _ in range(2):
            require_provable(sandbox, [TASK])
        assert sandbox.judged == 4


def test_a_study_without_programs_needs_no_sandbox(cache):
    with Sandbox() as sandbox:
        require_provable(sandbox, builtin("sciq"))
        assert sandbox._started is None


@pytest.mark.costly
def test_every_published_task_is_sound():
    folder = Path(os.environ.get("TUTORSIM_PUBLISHED_DATA", BESIDE))
    if not (folder / "HumanEval.jsonl.gz").exists():
        pytest.skip("HumanEval.jsonl.gz is not there; see TUTORSIM_PUBLISHED_DATA")
    tasks = _code_tasks(load_tasks("humaneval", folder / "HumanEval.jsonl.gz"))
    assert len(tasks) == 164
    with Sandbox() as sandbox:
        assert prove_tasks(sandbox, tasks) == []


# --- What is read of a verdict -------------------------------------------------------------------

MIB = 1 << 20
FOUND = {"found": {"code": "x", "reason": ""}}
ENDS = {"killed": "", "worker": 0, "judge": 3, "cpu": 0.1, "wall": 0.1, "rss": 40 * MIB,
        "judge_rss": 40 * MIB}  # fmt: skip


def _read(frames, ends, written=0):
    aftermath = Aftermath(frames=[FOUND, *frames], ends={**ENDS, **ends}, written=written)
    result, _ = read_aftermath(
        aftermath, limits=Limits(), baseline=30 * MIB, unsafe=False, may_kill_itself=False
    )
    return result.verdict


def _verdict(frames=(), **ends):
    verdict = _read(frames, ends)
    return verdict.outcome, verdict.reason


GONE = {"verdict": {"outcome": "gone", "reason": "", "detail": ""}}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({"worker": -9, "rss": 94 * MIB + 1}, ("error", "memory limit")),
        ({"worker": -9, "rss": 300 * MIB, "cpu": 3.0}, ("timeout", "cpu limit")),
        ({"worker": -9, "killed": "left"}, ("error", "protocol: connection closed")),
        ({"cpu": 2.0}, ("timeout", "cpu limit")),
        ({"judge": -9, "judge_rss": 94 * MIB + 1}, ("error", "memory limit in the tests")),
        ({"judge": -9, "judge_rss": 300 * MIB, "killed": "tests"},
         ("timeout", "cpu limit in the tests")),
        ({"worker": -9, "killed": "wall"}, ("timeout", "wall limit")),
        ({"worker": -24}, ("timeout", "cpu limit")),
        ({"judge": -24}, ("timeout", "cpu limit in the tests")),
        ({"worker": -11}, ("error", "killed by SIGSEGV")),
        ({"worker": -40}, ("error", "killed by signal 40")),
        ({"worker": 0}, ("error", "early exit")),
    ],
)  # fmt: skip
def test_the_end_of_a_program_tells_its_verdict(ends, expected):
    assert _verdict((GONE,), **ends) == expected


@pytest.mark.parametrize(
    "ends",
    [
        {"worker": -9, "rss": 94 * MIB}, {"judge": -9, "judge_rss": 94 * MIB}, {"judge": -1},
        {"judge": 1}, {"killed": "owner"},
    ],
)  # fmt: skip
def test_what_no_program_did_is_no_verdict(ends):
    with pytest.raises(Broken):
        _verdict((), **ends)


@pytest.mark.parametrize(
    ("ends", "written"),
    [({"cpu": 1.0}, 0), ({"wall": 5.0}, 0), ({"rss": 286 * MIB}, 0), ({}, MIB / 2)],
)
def test_a_limit_is_near_where_more_than_half_of_it_was_used(ends, written):
    passed = {"verdict": {"outcome": "pass", "reason": "", "detail": ""}}

    def near(more):
        used = {name: amount + more for name, amount in ends.items()}
        return _read((passed,), used, written + more * (not ends)).near_limit

    assert (near(0), near(1)) == (False, True)


@pytest.mark.parametrize("word", ["infra_error", "passed", "", None])
def test_no_other_word_of_the_judge_is_an_outcome(word):
    said = {"verdict": {"outcome": word, "reason": "x", "detail": ""}}
    assert _verdict((said,)) == ("error", "early exit")


# --- Available memory ----------------------------------------------------------------------------

MACHINE = memory_ceiling(Path("/nowhere"))


def _root(folder, groups, limits):
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups, encoding="utf-8")
    for place, limit in limits.items():
        path = folder / "sys/fs/cgroup" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n", encoding="ascii")
    return folder


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": str(64 * MIB)}, 64),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": str(48 * MIB + 5)}, 48),
        ("0::/a/b\n", {"memory.max": str(32 * MIB), "a/memory.max": str(48 * MIB)}, 32),
        ("0::/\n", {"memory.max": str(96 * MIB)}, 96),
        ("4:memory:/x\n1:cpu:/x\n", {"memory/x/memory.limit_in_bytes": str(20 * MIB)}, 20),
        ("4:cpu,memory:/of/the/host\n", {"memory/memory.limit_in_bytes": str(20 * MIB)}, 20),
        ("0::/a\n", {"a/memory.max": "max"}, None),
        ("0::/a\n", {}, None),
        ("4:memory:/x\n", {"memory/x/memory.limit_in_bytes": str(2**63 - 4096)}, None),
    ],
    ids=[
        *("group", "above", "the least", "container", "first version", "container, first version"),
        *("no limit", "nothing in sight", "no limit, first version"),
    ],
)
def test_memory_is_the_limit_of_a_control_group_or_machine(groups, limits, expected, tmp_path):
    found = memory_ceiling(_root(tmp_path, groups, limits))
    assert found == (MACHINE if expected is None else expected * MIB)
