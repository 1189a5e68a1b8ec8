"""The contract between flows and the drivers that run them.

A flow is a generator. It yields *effects*, the only things that it can ask of the world, and
receives their results; its return value is a record. It touches no network, disk, clock or
global random, so the same flow can be driven live, from a recording or from canned replies.

* `Round`: model calls that do not depend on one another; the driver may make them side by
  side and sends back their replies in the same order.
* `CodeRun`: a student's message to extract a program from and to test; the driver sends back
  a `CodeResult`.
* `Listen`: wait for a person who takes part; the driver sends back what was `Heard`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, cast

from tutorsim.model import Answer, Call, Question, Reply
from tutorsim.records import Failure, VerdictRecord

__all__ = [
    "CodeResult",
    "CodeRun",
    "Effect",
    "Flow",
    "Heard",
    "Listen",
    "Round",
    "Sent",
    "ask",
    "ask_each",
]

T = TypeVar("T")


class Round(NamedTuple):
    """Independent calls, in call order."""

    calls: tuple[Call, ...]
    fresh: bool = False
    """The path has left the recording that it continues, which can answer none of the calls."""
    each: bool = False
    """A call that fails for good brings its `Failure`, and the others their replies; otherwise the
    whole round fails."""
    shown: object = None
    """What a person who takes part may see meanwhile, as `Listen.shown`; `None`: nothing new."""


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


@dataclass(frozen=True)
class Listen:
    """A place at which the flow hears a person who takes part."""

    turn: int
    place: str
    """What the flow is about to do if the person says nothing."""
    wait_s: float | None
    """How long to wait for a message; `None`: until one comes or the person leaves."""
    shown: object = field(default=None, compare=False)
    """What the person may see at this moment, as the system shapes it; it decides nothing."""


@dataclass(frozen=True)
class Heard:
    """What came of a `Listen`."""

    text: str | None
    """`None` where the person wrote nothing."""
    waited_ms: int
    ended: bool = False
    """The person left."""
    message_id: str = ""
    """The page's name of the message, by which a message sent twice is taken once."""


Effect = Round | CodeRun | Listen
Sent = tuple[Reply | Failure, ...] | CodeResult | Heard
Flow = Generator[Effect, Sent, T]
"""A flow that returns a `T`."""


def ask(questions: Sequence[Question[T]], *, shown: object = None) -> Flow[list[Answer[T]]]:
    """Ask side by side; ask once more, again side by side, what could not be read or was cut off.

    A reply that was cut off is asked for again where its call says how. Of the second reply what
    can be read counts; where nothing can, the first one does.

    Args:
        questions: Independent questions, with attempt 1 in their keys.
        shown: What a person who takes part may see meanwhile.

    Returns:
        One answer per question, in the same order.
    """
    return cast("Flow[list[Answer[T]]]", _answers(questions, each=False, shown=shown))


def ask_each(questions: Sequence[Question[T]]) -> Flow[list[Answer[T] | Failure]]:
    """As `ask`, for questions that have nothing to do with one another.

    Returns:
        One answer per question, in the same order; the failure of a question whose call failed.
    """
    return _answers(questions, each=True)


def _answers(
    questions: Sequence[Question[T]], *, each: bool, shown: object = None
) -> Flow[list[Answer[T] | Failure]]:
    if not questions:
        return []
    replies = yield Round(tuple([one.call for one in questions]), each=each, shown=shown)
    assert isinstance(replies, tuple)
    answers: list[Answer[T] | Failure] = []
    unread: list[tuple[int, Answer[T]]] = []
    second: list[Call] = []
    for question, reply in zip(questions, replies, strict=True):
        if isinstance(reply, Failure):
            answers.append(reply)
            continue
        answer = Answer(question.read(reply.text), reply.text, None, False, 1)
        cut_off = question.call.if_cut_off is not None and reply.is_cut_off
        if answer.value is None or cut_off:
            unread.append((len(answers), answer))
            second.append(_second(question, cut_off=cut_off))
        answers.append(answer)
    if second:
        replies = yield Round(tuple(second), each=each)
        assert isinstance(replies, tuple)
        for (i, first), reply in zip(unread, replies, strict=True):
            if isinstance(reply, Failure):
                answers[i] = reply
            else:
                answers[i] = _retried(questions[i], first, reply.text)
    return answers


def _second(question: Question[T], *, cut_off: bool) -> Call:
    key, more = question.call.key._replace(attempt=2), question.reminder
    if cut_off:
        more = question.call.if_cut_off or more
    return Call(key, question.call.request.followed_by(more))


def _retried(question: Question[T], first: Answer[T], last: str) -> Answer[T]:
    value = question.read(last)
    salvaged = value is None
    if value is None:
        value = question.salvage(last)
    if value is None:
        value = first.value
    return Answer(value, last, first.raw, salvaged=salvaged and value is not None, attempts=2)
