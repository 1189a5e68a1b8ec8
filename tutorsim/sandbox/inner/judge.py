"""The process that holds the tests and decides. No code of the student's ever runs in it.

It calls the entry point by sending arguments to the worker and building the answer again from
plain data, so that comparing is done by this process on its own values. Whatever the worker
sends is a student's answer; none of it is a verdict.
"""

import builtins
import os
import random
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

from .encode_and_decode_plain_values import (
    MUTABLE,
    NAME_CAP,
    Decoded,
    Encoder,
    decode,
    item_of,
    refill,
)
from .extract import compile_head
from .frames_layers_and_longest_program import (
    TASK_CAP,
    Closed,
    Frames,
    Malformed,
    frame_bytes,
    read_frame,
    write_frame,
)
from .jail import Jail

WORKER_GONE = 3
"""Exit status that says: ask the worker's own end what happened."""

_OWNER, _WORKER = 3, 4
_GONE = "gone"
_RECURSION = 4_000
_PREFETCH = 8
"""An iterator is asked ahead for one in so many of the items taken from it so far."""
_MOST_ITEMS = 1_000
_LOOP_ENDS = (StopIteration, StopAsyncIteration)


class _Stopped(BaseException):
    """The program will not answer any more; nothing in a test may catch this by accident."""


class _Unread(Exception):
    """Stands for an exception of the student's that cannot be built from its text."""


class _Student:
    """The function under test, as the tests see it."""

    def __init__(self) -> None:
        self.calls = 0
        self.ended: dict[str, Any] | None = None
        self.raised: list[tuple[BaseException, str, str]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.ended is not None:
            raise _Stopped
        self.calls += 1
        encoder = Encoder()
        call = {
            "args": [encoder.item(value) for value in args],
            "kwargs": [[name, encoder.item(value)] for name, value in kwargs.items()],
            "nodes": encoder.nodes,
        }
        reply = self._ask(call)
        objects = self._built(reply, encoder.objects)
        self._change(reply, encoder, objects)
        if "raised" in reply:
            raise self._error(reply, objects)
        return self._item(reply.get("value", []), objects)

    def load(self) -> None:
        """Wait for the program to be loaded."""
        reply = self._ask(None)
        if "uncompiled" in reply:
            self._stop("error", "syntax error")
        if "missing" in reply:
            self._stop("error", "missing function")
        if "raised" in reply:
            error = self._error(reply, self._built(reply, []))
            self._stop("error", f"{self.reason(error)} (loading)", self.detail(error))
        if "loaded" not in reply:
            self._stop("error", "protocol: unexpected answer")

    def reason(self, error: BaseException) -> str | None:
        """How a student's exception is named; `None` for one of the tests' own."""
        for raised, name, _ in self.raised:
            if raised is error:
                return "memory limit" if isinstance(raised, MemoryError) else f"exception {name}"
        return None

    def detail(self, error: BaseException) -> str:
        """The text of a student's exception."""
        return next((text for raised, _, text in self.raised if raised is error), "")

    def _built(self, reply: dict[str, Any], known: list[object]) -> Decoded:
        """The objects of a reply, made again."""
        if "large" in reply:
            self._stop("error", "answer too large")
        try:
            return decode(reply.get("nodes"), known, self._yielded)
        except Malformed:
            self._stop("error", "protocol: unreadable answer")

    def _item(self, item: object, objects: Decoded) -> Any:
        try:
            return item_of(item, objects)
        except Malformed:
            self._stop("error", "protocol: unreadable answer")

    def _change(self, reply: dict[str, Any], sent: Encoder, objects: Decoded) -> None:
        """Do to the arguments what the program did to its own."""
        try:
            for number, node in reply["changed"]:
                tag = sent.nodes[number][0]
                if tag not in MUTABLE or node[0] != tag or number < 0:
                    raise Malformed("not the content of an argument")
                refill(sent.objects[number], node, objects)
        except (Malformed, LookupError, TypeError, ValueError):
            self._stop("error", "protocol: unreadable answer")

    def _yielded(self, handle: int) -> Iterator[Any]:
        """An iterator of the student's: asked for one item at a time, and later for more."""
        count = taken = 1
        while True:
            reply = self._ask({"handle": handle, "count": count})
            objects = self._built(reply, [])
            items = reply.get("items")
            if not isinstance(items, list) or len(items) > count:
                self._stop("error", "protocol: unreadable answer")
            for item in items:
                yield self._item(item, objects)
            if "raised" in reply:
                raise self._error(reply, objects)
            if reply.get("end") is not False:
                return
            taken += count
            count = max(1, min(taken // _PREFETCH, _MOST_ITEMS))

    def _ask(self, call: dict[str, Any] | None) -> dict[str, Any]:
        """The worker's next word; an answer counts only with its call's ticket, unknown before."""
        if self.ended is not None:
            raise _Stopped
        ticket = os.urandom(8).hex()
        try:
            if call is not None:
                self._send({**call, "ticket": ticket})
            reply = read_frame(_WORKER)
        except Closed:
            self._stop(_GONE, "the program ended")
        except Malformed:
            self._stop("error", "protocol: unreadable answer")
        if not isinstance(reply, dict):
            self._stop("error", "protocol: unreadable answer")
        if call is not None and reply.get("ticket") != ticket:
            self._stop("error", "protocol: unexpected answer")
        return reply

    def _send(self, call: dict[str, Any]) -> None:
        try:
            write_frame(_WORKER, call, TASK_CAP)
        except Closed:
            read_frame(_WORKER)  # raises again, unless an answer to no call lies there
            self._stop("error", "protocol: unexpected answer")

    def _error(self, reply: dict[str, Any], objects: Decoded) -> BaseException:
        builtin, name, text = (str(reply.get(key, "")) for key in ("raised", "name", "text"))
        kind = getattr(builtins, builtin, None)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            self._stop("error", "protocol: unreadable answer")
        # `StopIteration` would quietly end a loop of the tests.
        if not issubclass(kind, Exception) or issubclass(kind, _LOOP_ENDS):
            left = kind is SystemExit
            self._stop("error", "early exit" if left else f"exception {_word(name)}", text)
        error = self._made(kind, text, reply.get("args"), objects)
        self.raised.append((error, _word(name), text))
        return error

    def _made(
        self, kind: type[BaseException], text: str, items: object, objects: Decoded
    ) -> BaseException:
        """The exception with its arguments, or with its text where it takes no such arguments."""
        args = [self._item(i, objects) for i in items] if isinstance(items, list) else [text]
        for given in (args, [text]):
            with suppress(Exception):
                error = kind(*given)
                if isinstance(error, Exception):
                    return error
        return _Unread(text)

    def _stop(self, outcome: str, reason: str, detail: str = "") -> NoReturn:
        self.ended = {"outcome": outcome, "reason": reason, "detail": detail[:500]}
        raise _Stopped


def run_judge(jail: Jail) -> int:
    """Judge one program; the exit status of the process."""
    jail.lock(cpu=jail.limits["tests_cpu"])
    sys.setrecursionlimit(_RECURSION)
    _run_a_small_test()
    job: Any = read_frame(_OWNER, TASK_CAP)
    student = _Student()
    try:
        if read_frame(_WORKER) != {"ready": True}:
            return 1
        sent = {key: job[key] for key in ("message", "program", "prompt", "entry_point")}
        write_frame(_WORKER, sent, TASK_CAP)
        found = read_frame(_WORKER)
    except Closed:
        return WORKER_GONE
    write_frame(_OWNER, {"found": found})
    if not isinstance(found, dict) or found.get("code") is None:
        return 0
    verdict = _decide(student, job)
    # The worker's process ends while this one does, instead of after it.
    os.close(_WORKER)
    write_frame(_OWNER, {"verdict": verdict, "calls": student.calls})
    return WORKER_GONE if verdict["outcome"] == _GONE else 0


def _run_a_small_test() -> None:
    """Do what every verdict needs, while nobody waits for one, as the worker does."""
    test = "def check(candidate):\n    assert candidate\n"
    _run_tests(_Student(), {"prompt": "", "test": test, "entry_point": "same"})
    encoder, frames = Encoder(), Frames()
    frames.feed(frame_bytes({"args": [encoder.item(0)], "ticket": os.urandom(8).hex()}))
    decode(encoder.nodes, encoder.objects)


def _decide(student: _Student, job: dict[str, Any]) -> dict[str, Any]:
    """Run the tests. A student that broke off has lost, whatever the tests made of it."""
    try:
        student.load()
        _run_tests(student, job)
    except _Stopped:
        pass
    except BaseException as error:
        if student.ended is None:
            return _failure(student, error)
    return student.ended or {"outcome": "pass", "reason": "all tests passed", "detail": ""}


def _failure(student: _Student, error: BaseException) -> dict[str, Any]:
    at = f"call {student.calls}" if student.calls else "no call"
    reason = student.reason(error)
    if reason is not None:
        return {
            "outcome": "error",
            "reason": f"{reason} ({at})",
            "detail": student.detail(error)[:500],
        }
    if isinstance(error, AssertionError):
        return {"outcome": "fail", "reason": f"wrong answer ({at})", "detail": ""}
    name = type(error).__name__
    return {"outcome": "fail", "reason": f"answer unfit for the tests: {name} ({at})", "detail": ""}


def _run_tests(student: _Student, job: dict[str, Any]) -> None:
    module = types.ModuleType("tests")
    sys.modules["tests"] = module
    names = module.__dict__
    random.seed(0)
    # The task's own helpers, also where the program has its own under the same names.
    exec(compile_head(job["prompt"]), names)
    exec(compile(job["test"], "<tests>", "exec"), names)
    # Some tests call the function by its name, beside the argument.
    names[job["entry_point"]] = student
    names["check"](student)


def _word(name: str) -> str:
    """A class's name as far as it is one."""
    return name[:NAME_CAP] if name.isidentifier() else "of its own"
