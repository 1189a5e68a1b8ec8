"""The process that runs a student's program. It knows no test and no right answer.

It locks itself, says so, is sent the message, sends back the program that it found there,
loads it, and then answers calls of the entry point until somebody ends it. All that it says
after loading the program is the student's word and nothing more.
"""

import os
import random
import sys
import types
from contextlib import suppress
from typing import Any

from .extract import CODE_CAP, Extraction, compile_head, extract
from .jail import Jail
from .wire import Closed, Malformed, decode, encode, read_frame, write_frame

__all__ = ["run_worker"]

_SOCKET = 3
_TEXT_CAP = 500
_NAME_CAP = 60
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
    write_frame(_SOCKET, {"ready": True})
    job = _mapping(read_frame(_SOCKET))
    found = _found(job)
    write_frame(_SOCKET, {"code": found.code, "reason": found.reason})
    if found.code is None:
        return
    function = _load(job["prompt"], found.code, job["entry_point"])
    if function is not None:
        write_frame(_SOCKET, {"loaded": True})
        _answer(function)


def _found(job: dict[str, Any]) -> Extraction:
    if job["program"] is None:
        return extract(job["message"], job["entry_point"])
    if len(job["program"]) > CODE_CAP:
        return Extraction(None, "the program is too long")
    return Extraction(job["program"], "")


def _load(prompt: str, code: str, entry_point: str) -> Any:
    """Run the program as the module `solution`; its entry point, or `None` with a word why."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    random.seed(0)
    try:
        program = compile(code, "<solution>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        write_frame(_SOCKET, {"uncompiled": True})
        return None
    try:
        # The task's imports and helpers, without the function that the student is to write.
        exec(compile_head(prompt), module.__dict__)
        module.__dict__.pop(entry_point, None)
        exec(program, module.__dict__)
    except BaseException as error:
        write_frame(_SOCKET, _raised(error))
        return None
    function = module.__dict__.get(entry_point)
    if not callable(function):
        write_frame(_SOCKET, {"missing": True})
        return None
    return function


def _answer(function: Any) -> None:
    """Answer calls; arguments and answers go by value, so that neither side can reach over."""
    output = sys.stdout
    while True:
        try:
            call = _mapping(read_frame(_SOCKET))
        except Closed:
            return
        args: Any = decode(call["args"])
        kwargs: Any = decode(call["kwargs"])
        try:
            reply = {"value": encode(function(*args, **kwargs))}
        except BaseException as error:
            reply = _raised(error)
        with suppress(Exception):
            output.flush()
        ticket = {"ticket": call["ticket"]}
        try:
            write_frame(_SOCKET, reply | ticket)
        except Malformed:
            write_frame(_SOCKET, {"large": True} | ticket)


def _raised(error: BaseException) -> dict[str, Any]:
    """An exception as names and text: the first builtin class that it is, and its own name."""
    kind = type(error)
    names = [_name(c) for c in type.mro(kind) if _BUILTIN_ERRORS.get(_name(c)) is c]
    try:
        text = str(error)[:_TEXT_CAP]
    except BaseException:
        text = ""
    return {"raised": names[0], "name": _name(kind)[:_NAME_CAP], "text": text}


def _mapping(frame: object) -> dict[str, Any]:
    if not isinstance(frame, dict):
        os._exit(1)
    return frame
