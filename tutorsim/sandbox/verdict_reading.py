"""From what came back of a program to its verdict, in the record's closed words."""

import signal
from dataclasses import dataclass
from typing import Any, Final

from tutorsim.mechanisms.flow import CodeResult
from tutorsim.records import VerdictRecord
from tutorsim.sandbox.protection_levels import Limits
from tutorsim.sandbox.zygote_process import Aftermath, Broken

__all__ = ["Usage", "read_aftermath"]

_HALF = 0.5
_SHARE_OF_MEMORY: Final = 1 / 8
"""Of the limit: what a killed program must hold to be the reason for which it was killed. An
honest program of these tasks holds a few megabytes."""
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

    Args:
        aftermath: What came back.
        limits: What it might use.
        baseline: Resident bytes of the interpreter before any program.
        unsafe: Whether it ran on the user's word.
        may_kill_itself: Whether nothing keeps a program from sending itself SIGKILL.

    Raises:
        Broken: If the sandbox failed; the program is not to blame.
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
        near_limit=_near(usage, limits, baseline) or reason.startswith("memory limit"),
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

    Args:
        ends: How the processes ended.
        may_kill_itself: Whether nothing keeps a program from sending itself SIGKILL.
        much: Resident bytes from which on a process was killed for its memory: no limit of ours
            does that, but the kernel does in a container that is smaller than the limits.
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


def _near(usage: Usage, limits: Limits, baseline: int) -> bool:
    """Whether a limit was more than half used up."""
    return (
        usage.cpu > _HALF * limits.cpu
        or usage.wall > _HALF * limits.wall
        or usage.memory - baseline > _HALF * limits.memory
        or usage.written > _HALF * limits.output
    )
