"""The sandbox as the rest of the project sees it: open it, ask for verdicts, close it.

    with Sandbox(level="auto") as sandbox:
        result = sandbox.judge(run)  # a `CodeRun`: the student's message and the task's tests

What came back of a program is read into a verdict in the record's closed words here. Tasks are
proven before any student is judged by them.
"""

import hashlib
import json
import os
import platform
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeVar

from tutorsim.errors import SandboxError, SandboxUnavailable, TaskFileError, UsageError
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun
from tutorsim.records import VerdictRecord
from tutorsim.sandbox.inner.frames_layers_and_longest_program import CODE_CAP, Layer
from tutorsim.sandbox.protection_levels_limits_and_near_limit import (
    LEVELS,
    SETTINGS,
    Level,
    Limits,
    Setting,
    level_of,
    wanted_layers,
)
from tutorsim.sandbox.start_and_drive_one_zygote import Aftermath, Broken, Job, Zygote
from tutorsim.tasks import CodeTask, Task

# --- Available memory ----------------------------------------------------------------------------

_ROUND = 1 << 20


def memory_ceiling(root: Path = Path("/")) -> int | None:
    """Bytes of memory of this machine or container, whichever is less, in whole MiB.

    Read from the control groups of both versions, each with all groups above it, as the kernel
    holds a process to all of them. `None` where nothing is known.
    """
    known = [*_group_limits(root), *_machine()]
    return min(known) // _ROUND * _ROUND if known else None


def _machine() -> Iterator[int]:
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_limits(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    mounted = root / "sys/fs/cgroup"
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if number == "0" and not controllers:
            yield from _upwards(mounted, group, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _upwards(mounted / "memory", group, "memory.limit_in_bytes")


def _upwards(mounted: Path, group: str, name: str) -> Iterator[int]:
    """Limits of a group and of those above it; in a container the group may not be in sight."""
    path = PurePosixPath(group.lstrip("/"))
    for place in (path, *path.parents):
        with suppress(OSError, ValueError):
            # `max` is no number: no limit.
            yield int((mounted / place / name).read_text(encoding="ascii"))


# --- Verdict reading -----------------------------------------------------------------------------

_SHARE_OF_MEMORY: Final = 1 / 8
"""Share of the limit that a killed program must hold for memory to be the reason why it was killed.
An honest program of these tasks holds a few megabytes."""
_DECIDED: Final = frozenset({"pass", "fail", "error"})
_GONE: Final = "gone"


@dataclass(frozen=True)
class Usage:
    """What a program used, and what it said. It depends on the machine: never in a record."""

    cpu: float
    """Seconds of CPU time."""
    wall: float
    """Seconds from fork to end."""
    memory: int
    """Largest resident set, bytes; the interpreter's own included."""
    calls: int
    """Calls of the entry point."""
    written: int
    """Bytes written to standard output and error."""
    output: str
    """The first 64 KiB of them, bytes that are no UTF-8 as escapes."""
    detail: str
    """The first 500 characters of the exception's text; empty where there was none."""


def read_aftermath(
    aftermath: Aftermath, *, limits: Limits, baseline: int, unsafe: bool, may_kill_itself: bool
) -> tuple[CodeResult, Usage]:
    """The verdict on a program, and what it used.

    `baseline` is the interpreter's resident bytes before any program; `unsafe`: it ran on the
    user's word. `Broken` if the sandbox failed and the program is not to blame.
    """
    found = _found(aftermath)
    verdict = aftermath.said("verdict") or {}
    usage = _usage(aftermath, verdict)
    outcome, reason = _decide(aftermath, found, verdict, limits)
    if outcome == _GONE:
        much = baseline + _SHARE_OF_MEMORY * limits.memory
        outcome, reason = _gone(aftermath.ends, may_kill_itself, much)
    record = VerdictRecord(
        outcome=outcome,
        reason=reason,
        # Memory that was asked for and refused, or taken away, is at the limit and not resident.
        near_limit=reason.startswith("memory limit")
        or limits.nearly_used(
            cpu=usage.cpu,
            wall=usage.wall,
            memory=usage.memory - baseline,
            output=usage.written,
        ),
        unsafe=unsafe,
    )
    return CodeResult(found["code"], record), usage


def _found(aftermath: Aftermath) -> dict[str, Any]:
    found = aftermath.said("found") or {"code": None, "reason": ""}
    if not isinstance(found["code"], str | None) or not isinstance(found["reason"], str):
        raise Broken("the program found is no text")
    return found


def _decide(
    aftermath: Aftermath, found: dict[str, Any], verdict: dict[str, Any], limits: Limits
) -> tuple[str, str]:
    """Limits first, then the judge's word; `_GONE` where only the end can tell."""
    ends = aftermath.ends
    if ends["killed"] == "owner":
        raise Broken("the run was given up")
    if ends["killed"] == "cpu" or ends["cpu"] >= limits.cpu:
        return "timeout", "cpu limit"
    if ends["killed"] == "wall":
        return "timeout", "wall limit"
    if ends["killed"] == "tests":
        return "timeout", "cpu limit in the tests"
    if aftermath.written > limits.output:
        return "error", "output limit"
    if verdict and verdict["outcome"] in _DECIDED:
        return verdict["outcome"], verdict["reason"]
    if found["reason"]:
        return "no_code", found["reason"]
    return _GONE, ""


def _gone(ends: dict[str, Any], may_kill_itself: bool, much: float) -> tuple[str, str]:
    """The program ended, or closed its socket, before its verdict.

    From `much` resident bytes on a process was killed for its memory: no limit of ours does that,
    but the kernel does in a container that is smaller than the limits.
    """
    status = ends["worker"]
    if ends["judge"] == -signal.SIGXCPU:
        return "timeout", "cpu limit in the tests"
    if ends["judge"] == -signal.SIGKILL and ends["judge_rss"] > much:
        return "error", "memory limit in the tests"
    if ends["judge"] < 0 or ends["judge"] == 1:
        raise Broken(f"the judge ended with status {ends['judge']}")
    if ends["killed"] == "left":
        return "error", "protocol: connection closed"
    if status == -signal.SIGXCPU:
        return "timeout", "cpu limit"
    if status == -signal.SIGKILL and ends["rss"] > much:
        return "error", "memory limit"
    if status == -signal.SIGKILL and not may_kill_itself:
        raise Broken("the program was killed from outside")
    if status < 0:
        return "error", f"killed by {_signal_name(-status)}"
    return "error", "early exit"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _usage(aftermath: Aftermath, verdict: dict[str, Any]) -> Usage:
    ends = aftermath.ends
    return Usage(
        cpu=ends["cpu"],
        wall=ends["wall"],
        memory=ends["rss"],
        calls=aftermath.said("calls") or 0,
        written=aftermath.written,
        output=aftermath.output.decode("utf-8", "backslashreplace"),
        detail=verdict.get("detail") or "",
    )


# --- Sandbox -------------------------------------------------------------------------------------

RULES_VERSION: Final = 3
"""Raised whenever the same program could get another verdict, reason or extracted code."""

T = TypeVar("T")


class Sandbox:
    """Judges programs, side by side from as many threads as it has workers.

    Nothing starts before the first verdict. Use it as a context manager, or call `close`.

    Args:
        level: The level to run at; `auto` takes the strongest that this machine offers, and
            `unsafe` takes whatever works, requires none of it, and marks every verdict.
        workers: Zygotes at most; one per core by default.
        without: Layers to leave off, whatever the level.
        limits: What a program may use. Less memory where this machine or container has little.

    Raises:
        UsageError: If the level is not one.
    """

    def __init__(
        self,
        level: Setting = "auto",
        *,
        workers: int | None = None,
        without: frozenset[Layer] = frozenset(),
        limits: Limits | None = None,
    ) -> None:
        if level not in SETTINGS:
            raise UsageError(
                f"There is no sandbox level {level!r}.",
                hint=f"Choose one of {', '.join(SETTINGS)}.",
            )
        self._setting: Setting = level
        self._wanted = wanted_layers(level) - without
        ceiling = memory_ceiling() if _on_linux() else None
        self._limits = (limits or Limits()).within(ceiling)
        self._size = _workers(workers, self._limits, ceiling)
        self._slots: queue.LifoQueue[Zygote | None] = queue.LifoQueue()
        for _ in range(self._size):
            self._slots.put(None)
        self._started: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._open = True

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def workers(self) -> int:
        """How many programs can be judged side by side."""
        return self._size

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that a verdict may depend on besides code and tests; nothing of the machine."""
        version = platform.python_version()
        return {
            "rules": RULES_VERSION,
            "interpreter": f"{sys.implementation.name} {version}",
            "limits": self._limits.as_dict(),
        }

    @property
    def level(self) -> Level:
        """The level that programs run at; starts a zygote if none has been started."""
        layers = self._facts()["layers"]
        if self._setting == "unsafe":
            return "unsafe"
        return level_of(frozenset(layer for layer, status in layers.items() if status == "ok"))

    def judge(self, run: CodeRun) -> CodeResult:
        """Find the program in a student's message, run it against the tests, and decide.

        Blocks until a worker is free. Safe to call from several threads. `SandboxUnavailable` if
        this machine cannot offer the level; `SandboxError` if the sandbox failed twice on this
        program.
        """
        return self.judge_detailed(run)[0]

    def judge_detailed(self, run: CodeRun) -> tuple[CodeResult, Usage]:
        """The verdict, with what the program used and wrote, which is no matter of record."""
        if _size(run.message) > self._limits.message:
            return self._too_long("message")
        return self._judged(Job(run.message, None, run.prompt, run.entry_point, run.test))

    def judge_program(
        self, program: str, *, prompt: str, entry_point: str, test: str
    ) -> tuple[CodeResult, Usage]:
        """The verdict and usage of a program that is not in a message; nothing is extracted."""
        if len(program) > CODE_CAP:
            return self._too_long("program")
        return self._judged(Job("", program, prompt, entry_point, test))

    def report(self) -> dict[str, Any]:
        """What this sandbox is on this machine, for the log beside the record and for people."""
        facts = self._facts()
        return {
            "level": self.level,
            "setting": self._setting,
            "layers": facts["layers"],
            "proven": facts["proven"],
            "probes": facts["probes"],
            "limits": self._limits.as_dict(),
            "interpreter": self.fingerprint["interpreter"],
            "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
            "user": "root" if os.geteuid() == 0 else "ordinary user",
            "workers": self._size,
            "fixed_loop_seconds": round(self._retried(Zygote.fixed_loop), 4),
        }

    def close(self) -> None:
        """End every process, now or when its verdict is there; later ones are refused."""
        self._open = False
        idle = []
        with suppress(queue.Empty):
            while True:
                idle.append(self._slots.get_nowait())
        for zygote in idle:
            if zygote is not None:
                zygote.close()
            # A thread that waits for a worker wakes up and sees that there is none.
            self._slots.put(None)

    def _too_long(self, what: str) -> tuple[CodeResult, Usage]:
        """The verdict on what is not even sent to the sandbox; nothing of it is cut off."""
        record = VerdictRecord(
            outcome="no_code", reason=f"the {what} is too long", unsafe=self._setting == "unsafe"
        )
        return CodeResult(None, record), Usage(0.0, 0.0, 0, 0, 0, "", "")

    def _judged(self, job: Job) -> tuple[CodeResult, Usage]:
        return self._retried(lambda zygote: self._one(zygote, job))

    def _retried(self, action: Callable[[Zygote], T]) -> T:
        """Do something with a zygote; where the sandbox fails at it, once more with a new one."""
        try:
            return self._with_zygote(action)
        except Broken:
            pass
        try:
            return self._with_zygote(action)
        except Broken as error:
            raise SandboxError(
                "The sandbox failed twice in a row.",
                why=f"{error}. This says nothing about a student's program; it has no verdict.",
                hint="See `tutorsim doctor`; free memory and processes, and run again to resume.",
            ) from error

    def _one(self, zygote: Zygote, job: Job) -> tuple[CodeResult, Usage]:
        layers = zygote.started["layers"]
        return read_aftermath(
            zygote.run(job),
            limits=self._limits,
            baseline=zygote.started["resident"],
            unsafe=self._setting == "unsafe",
            may_kill_itself=layers["seccomp"] != "ok",
        )

    def _with_zygote(self, action: Callable[[Zygote], T]) -> T:
        """Do something with a free zygote; one on which it fails is ended, and replaced later."""
        zygote = self._slots.get()
        kept = None
        try:
            if not self._open:
                raise SandboxError(
                    "The sandbox is closed.", hint="Keep it open for as long as the run lasts."
                )
            zygote = zygote or self._start()
            result = action(zygote)
            kept = zygote if self._open else None
            return result
        finally:
            if kept is None and zygote is not None:
                zygote.close()
            self._slots.put(kept)

    def _facts(self) -> dict[str, Any]:
        if self._started is None:
            self._retried(lambda zygote: None)
        assert self._started is not None
        return self._started

    def _start(self) -> Zygote:
        if not _on_linux():
            raise SandboxUnavailable(
                f"Student code cannot be judged on {platform.system()}.",
                why="The sandbox is made of Linux kernel features: seccomp, namespaces, Landlock.",
                hint="Use Linux, a Linux container or WSL 2; replaying a recording works anywhere.",
            )
        zygote = Zygote(self._wanted, self._limits)
        try:
            self._check(zygote.started)
        except BaseException:
            zygote.close()
            raise
        with self._lock:
            self._started = self._started or zygote.started
        return zygote

    def _check(self, started: dict[str, Any]) -> None:
        """Refuse what does not hold: layers missing for the level, or a probe that got through."""
        if self._setting == "unsafe":
            return
        on = frozenset(layer for layer, status in started["layers"].items() if status == "ok")
        allowed = [n for n, r in started["probes"].items() if not r.startswith("denied")]
        wanted = self._setting if self._setting != "auto" else "filter-only"
        missing = sorted(LEVELS[wanted] - on)
        if not missing and not allowed:
            return
        why = "; ".join(f"{layer}: {started['layers'][layer]}" for layer in missing)
        if not missing:
            why = f"Not stopped by all layers together: {', '.join(allowed)}."
        raise SandboxUnavailable(
            f"This machine does not offer the sandbox level {self._setting!r}.",
            why=why,
            hint="`tutorsim doctor --sandbox unsafe` shows every layer. With that level student "
            "code runs with what protection there is, and every verdict is marked.",
        )


def _on_linux() -> bool:
    return sys.platform == "linux"


def _workers(wanted: int | None, limits: Limits, ceiling: int | None) -> int:
    """How many programs at once: one per core, and no more than memory allows."""
    if not _on_linux():
        return 1
    cores = len(os.sched_getaffinity(0))
    room = cores if ceiling is None else ceiling // 2 // limits.memory
    return max(1, wanted or min(cores, room))


def _size(text: str) -> int:
    """Bytes that a text takes on its way to the worker, as JSON of ASCII characters."""
    return len(json.dumps(text))


# --- Proof of tasks ------------------------------------------------------------------------------

_PROVEN_FILE: Final = "proven-tasks.txt"
_NAMED: Final = 5
"""Problems that an error names; it counts the others."""


class TaskProblem(NamedTuple):
    """Why verdicts on a task would mean nothing."""

    task_id: str
    problem: str


def require_provable(sandbox: Sandbox, tasks: Iterable[Task]) -> None:
    """Refuse tasks that cannot be judged; a task that was proven once is not proven again.

    What was proven is kept by content in the user's cache folder, as digests of a task, the rules,
    the interpreter and the limits. `TaskFileError` names the tasks.
    """
    programming = [task for task in tasks if isinstance(task, CodeTask)]
    if not programming:
        return
    file = _cache_folder() / _PROVEN_FILE
    proven = _read(file)
    digests = {task: _digest(sandbox, task) for task in programming}
    unproven = [task for task in programming if digests[task] not in proven]
    problems = prove_tasks(sandbox, unproven) if unproven else []
    unsound = {problem.task_id for problem in problems}
    _append(file, [digests[task] for task in unproven if task.task_id not in unsound])
    if problems:
        raise _refused(problems)


def prove_tasks(sandbox: Sandbox, tasks: Iterable[CodeTask]) -> list[TaskProblem]:
    """Run each task's reference solution, and a function that returns nothing.

    The first must pass; otherwise the tests ask for something that cannot be sent between the two
    processes, or the reference is wrong. The second must not; otherwise the tests ask for nothing.
    The tasks that fail either way come back in the order given.
    """
    with ThreadPoolExecutor(sandbox.workers) as pool:
        found = pool.map(lambda task: _problem(sandbox, task), tasks)
        return [problem for problem in found if problem is not None]


def _problem(sandbox: Sandbox, task: CodeTask) -> TaskProblem | None:
    reference = _verdict(sandbox, task, task.prompt + task.canonical_solution)
    if reference != "pass":
        return TaskProblem(task.task_id, f"its reference solution does not pass: {reference}")
    empty = _verdict(sandbox, task, f"def {task.entry_point}(*args, **kwargs):\n    return None\n")
    if empty == "pass":
        return TaskProblem(task.task_id, "a function that returns nothing passes its tests")
    return None


def _verdict(sandbox: Sandbox, task: CodeTask, program: str) -> str:
    result, _ = sandbox.judge_program(
        program, prompt=task.prompt, entry_point=task.entry_point, test=task.test
    )
    verdict = result.verdict
    return verdict.outcome if verdict.outcome == "pass" else f"{verdict.outcome}, {verdict.reason}"


def _refused(problems: list[TaskProblem]) -> TaskFileError:
    named = [f"{one.task_id}: {one.problem}." for one in problems[:_NAMED]]
    more = len(problems) - len(named)
    return TaskFileError(
        f"Programming tasks that cannot be judged: {len(problems)}.",
        why="\n".join([*named, *([f"And {more} more."] if more else [])]),
        hint="Correct these tasks or take them out of the file; `tutorsim judge FILE --task ID "
        "--tasks PATH` shows what the tests make of a program.",
    )


def _cache_folder() -> Path:
    """The user's folder for what can be found out again, as the XDG specification has it."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(chosen) if chosen.startswith("/") else Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111
    return base / "tutorsim"


def _digest(sandbox: Sandbox, task: CodeTask) -> str:
    """SHA-256 over all that a proof depends on."""
    proven = [task.prompt, task.entry_point, task.canonical_solution, task.test]
    text = json.dumps([proven, sandbox.fingerprint])
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> set[str]:
    try:
        return set(file.read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return set()


def _append(file: Path, digests: list[str]) -> None:
    """Remember proofs; where that is not possible they are made again next time."""
    if not digests:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="ascii") as lines:
            lines.write("".join(f"{digest}\n" for digest in digests))
