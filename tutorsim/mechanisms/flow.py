"""The contract between flows and the drivers that run them.

A flow is a generator. It yields *effects*, the only things that it can ask of the world, and
receives their results; its return value is a record. It touches no network, disk, clock or
global random, so the same flow can be driven live, from a recording or from canned replies.

* `Round`: model calls that do not depend on one another; the driver may make them side by
  side and sends back their replies in the same order.
* `CodeRun`: a student's message to extract a program from and to test; the driver sends back
  a `CodeResult`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tutorsim.model import Answer, Call, Question, Reply
from tutorsim.records import VerdictRecord

__all__ = ["CodeResult", "CodeRun", "Effect", "Flow", "Round", "Sent", "ask"]

T = TypeVar("T")


class Round(NamedTuple):
    """Independent calls, in call order."""

    calls: tuple[Call, ...]
    fresh: bool = False
    """The path has left the recording that it continues, which can answer none of the calls."""


@dataclass(frozen=True)
class CodeRun:
    """A message of a student on a programming task, to be judged."""

    turn: int
    message: str
    """The whole message; finding the program in it is part of the judging."""
    prompt: str
    """The task's program head: imports, helpers, signature, docstring."""
    entry_point: str
    """Name of the function under test."""
    test: str
    """Source that defines `check(candidate)`."""


@dataclass(frozen=True)
class CodeResult:
    """What came of a `CodeRun`."""

    code: str | None
    """The program found in the message; `None` where none was found."""
    verdict: VerdictRecord


Effect = Round | CodeRun
Sent = tuple[Reply, ...] | CodeResult
Flow = Generator[Effect, Sent, T]
"""A flow that returns a `T`."""


def ask(questions: Sequence[Question[T]]) -> Flow[list[Answer[T]]]:
    """Ask side by side; ask what could not be read once more, again side by side.

    Args:
        questions: Independent questions, with attempt 1 in their keys.

    Returns:
        One answer per question, in the same order.
    """
    if not questions:
        return []
    replies = yield from _round([question.call for question in questions])
    answers = [
        Answer(question.read(reply.text), reply.text, None, False, 1)
        for question, reply in zip(questions, replies, strict=True)
    ]
    unread = [i for i, answer in enumerate(answers) if answer.value is None]
    if unread:
        again = yield from _round([_second(questions[i]) for i in unread])
        for i, reply in zip(unread, again, strict=True):
            answers[i] = _retried(questions[i], answers[i].raw, reply.text)
    return answers


def _round(calls: Sequence[Call]) -> Flow[tuple[Reply, ...]]:
    sent = yield Round(tuple(calls))
    assert isinstance(sent, tuple)
    return sent


def _second(question: Question[T]) -> Call:
    key = question.call.key._replace(attempt=2)
    return Call(key, question.call.request.followed_by(question.reminder))


def _retried(question: Question[T], first: str, last: str) -> Answer[T]:
    value = question.read(last)
    salvaged = value is None
    if salvaged:
        value = question.salvage(last)
    return Answer(value, last, first, salvaged=salvaged and value is not None, attempts=2)
