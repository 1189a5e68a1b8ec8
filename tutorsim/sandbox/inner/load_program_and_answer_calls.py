"""The process that runs a student's program. It knows no test and no right answer.

It locks itself, says so, is sent the message, sends back the program that it found there,
loads it, and then answers calls of the entry point until somebody ends it. All that it says
after loading the program is the student's word and nothing more.
"""

import json
import os
import random
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from .encode_and_decode_plain_values import MUTABLE, NAME_CAP, Encoder, Node, decode, item_of
from .extract import Extraction, compile_head, extract, without_mark
from .frames_layers_and_longest_program import (
    TASK_CAP,
    Closed,
    Malformed,
    frame_bytes,
    read_frame,
    write_frame,
)
from .jail import Jail

_SOCKET = 3
_TEXT_CAP = 64 * 1024
# What a class is called, whatever its metaclass says of it.
_name = vars(type)["__name__"].__get__
_BUILTIN_ERRORS = {
    name: kind
    for name, kind in vars(__import__("builtins")).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}


def run_worker(jail: Jail) -> None:
    """Serve one program; the caller ends the process when this returns or raises."""
    jail.lock(cpu=jail.limits["cpu"])
    _run_a_small_program()
    write_frame(_SOCKET, {"ready": True})
    job = _mapping(read_frame(_SOCKET, TASK_CAP))
    code, reason = _found(job)
    write_frame(_SOCKET, {"code": code, "reason": reason})
    if code is None:
        return
    function = _load(job["prompt"], code, job["entry_point"])
    if function is not None:
        write_frame(_SOCKET, {"loaded": True})
        _Calls(function).serve()


def _run_a_small_program() -> None:
    """Do what every program needs, while nobody waits for a verdict.

    A forked process copies each page of memory when it first writes to it.
    """
    calls = _Calls(_load("", "def same(value):\n    return value\n", "same"))
    frame_bytes(calls._called({"nodes": [], "args": [0], "kwargs": []}))


def _found(job: dict[str, Any]) -> Extraction:
    if job["program"] is None:
        return extract(job["message"], job["entry_point"])
    return Extraction(without_mark(job["program"]), "")


def _load(prompt: str, code: str, entry_point: str) -> Any:
    """Run the program as the module `solution`; its entry point, or `None` with a word why."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    random.seed(0)
    try:
        program = compile(code, "<solution>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        write_frame(_SOCKET, {"uncompiled": True})
        return None
    try:
        # The task's imports and helpers, without the function that the student is to write.
        exec(compile_head(prompt), module.__dict__)
        module.__dict__.pop(entry_point, None)
        exec(program, module.__dict__)
    except BaseException as error:
        write_frame(_SOCKET, _raised(error, Encoder()))
        return None
    function = module.__dict__.get(entry_point)
    if not callable(function):
        write_frame(_SOCKET, {"missing": True})
        return None
    return function


class _Calls:
    """Answers calls; all goes by value, so that neither side can reach over to the other."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._iterators: list[Iterator[Any]] = []
        """By handle: what answers held, and the tests may ask for more of."""
        self._output = sys.stdout

    def serve(self) -> None:
        """Answer until the other side is gone."""
        while True:
            try:
                call = _mapping(read_frame(_SOCKET, TASK_CAP))
            except Closed:
                return
            reply = self._more(call) if "handle" in call else self._called(call)
            with suppress(Exception):
                self._output.flush()
            ticket = {"ticket": call["ticket"]}
            try:
                write_frame(_SOCKET, reply | ticket)
            except Malformed:
                write_frame(_SOCKET, {"large": True} | ticket)

    def _called(self, call: dict[str, Any]) -> dict[str, Any]:
        """What came of a call, and what became of its arguments."""
        objects = decode(call["nodes"])
        args = [item_of(item, objects) for item in call["args"]]
        kwargs = {name: item_of(item, objects) for name, item in call["kwargs"]}
        before = _contents(call["nodes"], objects, Encoder(objects))
        encoder = Encoder(objects, self._handle)
        try:
            reply = {"value": encoder.item(self._function(*args, **kwargs))}
        except BaseException as error:
            reply = _raised(error, encoder)
        try:
            after = _contents(call["nodes"], objects, encoder)
            changed = [[n, node] for n, node in after.items() if _text(node) != _text(before[n])]
        except BaseException as error:
            return {"changed": [], **_raised(error, Encoder(objects))}
        return {**reply, "changed": changed, "nodes": encoder.nodes}

    def _more(self, call: dict[str, Any]) -> dict[str, Any]:
        """The next items of an iterator that an answer held."""
        encoder = Encoder((), self._handle)
        items: list[Any] = []
        wanted: int = call["count"]
        end: dict[str, Any] = {}
        try:
            for item in islice(self._iterators[call["handle"]], wanted):
                items.append(encoder.item(item))  # noqa: PERF401  what came before an error counts
        except BaseException as error:
            end = _raised(error, encoder)
        return {"items": items, "end": len(items) < wanted, "nodes": encoder.nodes} | end

    def _handle(self, iterator: Iterator[Any]) -> Node:
        self._iterators.append(iterator)
        return ["handle", len(self._iterators) - 1]


def _contents(nodes: list[Node], objects: list[Any], encoder: Encoder) -> dict[int, Node]:
    """What the arguments that can change hold now, by number."""
    return {
        number: encoder.node(objects[number])
        for number, node in enumerate(nodes)
        if node[0] in MUTABLE
    }


def _text(node: Node) -> str:
    """A node to be compared: 1, 1.0 and true are different contents."""
    return json.dumps(node)


def _raised(error: BaseException, encoder: Encoder) -> dict[str, Any]:
    """An exception as plain data: the first builtin class that it is, its own name, its text."""
    kind = type(error)
    names = [_name(c) for c in type.mro(kind) if _BUILTIN_ERRORS.get(_name(c)) is c]
    try:
        text = str(error)[:_TEXT_CAP]
    except BaseException:
        text = ""
    try:
        # An error of the system keeps its file's name apart from its other arguments.
        parts = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args
        args = [encoder.item(part) for part in parts]
    except BaseException:
        args = []
    own = {"raised": names[0], "name": _name(kind)[:NAME_CAP], "text": text}
    return {**own, "args": args, "nodes": encoder.nodes}


def _mapping(frame: object) -> dict[str, Any]:
    if not isinstance(frame, dict):
        os._exit(1)
    return frame
