"""A zygote starts whatever its owner left lying about, or says in words why it cannot."""

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tutorsim.errors import SandboxError
from tutorsim.sandbox import LAYERS, Limits, Sandbox
from tutorsim.sandbox.start_and_drive_one_zygote import Job, Zygote

RIGHT = {"program": "def twice(n):\n    return 2 * n\n", "prompt": "", "entry_point": "twice",
         "test": "def check(c):\n    assert c(4) == 8\n"}  # fmt: skip
JUDGED = f"""
import os
from tutorsim.sandbox import Sandbox
terms = {RIGHT!r}
terms["program"] += "import time; time.sleep(0.1)"
with Sandbox(workers=1) as sandbox:
    result, _ = sandbox.judge_program(terms.pop("program"), **terms)
os._exit(0 if result.verdict.outcome == "pass" else 9)
"""
HERITAGE = {
    "SIGCHLD ignored": "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "every signal blocked": "import signal; signal.pthread_sigmask(0, range(1, 65))",
    "standard input closed": "import os; os.close(0)",
    "standard streams closed": "import os; os.closerange(0, 3)",
    "thousands of open files": "import os, resource\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))\n"
    "kept = [os.dup(2) for _ in range(5000)]",
}


COSTLY = {"every signal blocked", "standard input closed"}
"""Ways that are left to CI: another one shows as much."""


@pytest.mark.costly
@pytest.mark.parametrize(
    "heritage",
    [pytest.param(name, marks=[pytest.mark.costly] * (name in COSTLY)) for name in HERITAGE],
)
def test_programs_are_judged_whatever_the_owner_left(heritage):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if heritage == "thousands of open files" and hard < 8192:
        pytest.skip("this machine allows fewer open files")
    command = [sys.executable, "-c", HERITAGE[heritage] + JUDGED]
    ended = subprocess.run(command, check=False, stderr=subprocess.PIPE)
    assert ended.returncode == 0, ended.stderr.decode()


def _refuse(*_, **__):
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@pytest.mark.parametrize("name", ["subprocess.Popen", "socket.socketpair"])
def test_what_the_kernel_refuses_is_told_in_three_parts(name, monkeypatch):
    monkeypatch.setattr(f"tutorsim.sandbox.start_and_drive_one_zygote.{name}", _refuse)
    before = _open_files()
    with Sandbox(workers=1) as sandbox, pytest.raises(SandboxError) as error:
        assert sandbox.level
    assert error.value.exit_code == 6
    assert os.strerror(errno.EAGAIN) in error.value.why
    assert error.value.hint
    assert _open_files() == before


def test_an_interpreter_that_is_gone_is_told(monkeypatch):
    monkeypatch.setattr(
        "tutorsim.sandbox.start_and_drive_one_zygote._interpreter", lambda: "/nowhere/python"
    )
    with Sandbox(workers=1) as sandbox, pytest.raises(SandboxError, match="No such file") as error:
        assert sandbox.level
    assert error.value.exit_code == 6


@pytest.mark.costly
def test_no_room_for_the_descriptors_of_a_program_is_told(monkeypatch):
    received = socket.recv_fds

    def without(*arguments):
        part, ends, flags, address = received(*arguments)
        for end in ends:
            os.close(end)
        return part, [], flags, address

    monkeypatch.setattr("tutorsim.sandbox.start_and_drive_one_zygote.socket.recv_fds", without)
    with Sandbox(workers=1) as sandbox, pytest.raises(SandboxError, match="open files"):
        sandbox.judge_program(**RIGHT)


@pytest.mark.costly
def test_a_task_too_large_to_be_sent_is_told(monkeypatch):
    monkeypatch.setattr("tutorsim.sandbox.start_and_drive_one_zygote.TASK_CAP", 1 << 20)
    with Sandbox(workers=1) as sandbox, pytest.raises(SandboxError, match="more than 1 MiB"):
        sandbox.judge_program(**{**RIGHT, "test": "#" * (1 << 20)})


@pytest.mark.costly
def test_tests_of_many_megabytes_are_no_hindrance():
    test = f"{RIGHT['test']}NOTE = {'x' * (12 << 20)!r}\n"
    with Sandbox(workers=1) as sandbox:
        result, _ = sandbox.judge_program(**{**RIGHT, "test": test})
    assert result.verdict.outcome == "pass"


@pytest.mark.costly
def test_the_interpreters_own_memory_is_not_the_owners():
    """What a process held at most outlives its exec, so the owner's size would count as its own."""
    held = bytearray(b"x") * (300 << 20)
    with Sandbox("filter-only", workers=1) as sandbox:
        sandbox.judge_program(**RIGHT)
        zygote = sandbox._slots.get()
        sandbox._slots.put(zygote)
        assert 10 << 20 < zygote.started["resident"] < 150 << 20
    assert held


@pytest.mark.costly
@pytest.mark.parametrize(
    ("side", "killed"), [("program", "cpu"), ("program", "wall"), ("test", "tests")]
)
def test_what_is_over_a_limit_is_ended_at_once(side, killed):
    """So the judge says itself that the program is gone, and is not given up a second later."""
    name = "tests_cpu" if side == "test" else killed
    code = {**RIGHT, side: f"{RIGHT[side]}\nwhile True: pass\n"}
    zygote = Zygote(frozenset(LAYERS), Limits(**{name: 0.3}))  # type: ignore[arg-type]
    ends = zygote.run(Job(message="", **code)).ends
    zygote.close()
    assert ends["killed"] == killed
    assert (ends["judge"] == -9) if side == "test" else (ends["judge"], ends["worker"]) == (3, -9)


def test_what_the_probes_aimed_at_is_closed_when_the_zygote_serves():
    zygote = Zygote(frozenset(LAYERS), Limits())
    name = f"@tutorsim-probe-{zygote._process.pid}"
    listening = Path("/proc/net/unix").read_text()
    zygote.close()
    assert name not in listening


def test_a_zygote_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr("tutorsim.sandbox.start_and_drive_one_zygote._END_SECONDS", 0.1)
    zygote = Zygote(frozenset(), Limits())
    zygote._process.send_signal(signal.SIGSTOP)
    zygote.close()
    assert zygote._process.returncode == -signal.SIGKILL


def _open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


COMMANDS = {"judge": ("judge", "FILE", "--task", "vowel-runs"), "doctor": ("doctor",)}


@pytest.mark.costly
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_commands_work_with_closed_streams(command, closed, tmp_path):
    """The shell starts them as a user would, with a stream that is closed from the start."""
    message = tmp_path / "message"
    message.write_text("no program", encoding="utf-8")
    arguments = " ".join(COMMANDS[command]).replace("FILE", str(message))
    line = f"{sys.executable} -c 'from tutorsim.cli import main; main()' {arguments} {closed}"
    ended = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    assert ended.returncode == (1 if command == "judge" else 0)
    assert b"Traceback" not in ended.stdout + ended.stderr
