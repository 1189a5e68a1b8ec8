"""Flows and the world: what a flow asks for, the drivers that perform it, and the log of calls.

A flow is a generator. It yields a `Round` (model calls that do not depend on one another), a
`CodeRun` or a `Listen`, receives what came of it, and returns its result:

    def two_opinions(first: Call, second: Call) -> Flow[tuple[str, str]]:
        one, other = yield Round((first, second))
        return one.text, other.text

It touches no network, disk, clock or chance, so that it can be driven by an endpoint, by a
recording, by a script or by an estimate, and gives the same result.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ConfigDict, TypeAdapter

from tutorsim.errors import CallFailed
from tutorsim.model import Call, CallKey, Reply
from tutorsim.records import CallRecord, Failure, VerdictRecord
from tutorsim.records.how_replies_of_a_run_ended_and_odd_endings import USUAL_STOP_REASONS

# --- Flow ----------------------------------------------------------------------------------------

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
class PersonInput:
    """What the person did at a `Listen`."""

    text: str | None
    """`None` where the person wrote nothing."""
    waited_ms: int
    ended: bool = False
    """The person left."""
    message_id: str = ""
    """The page's name of the message, by which a message sent twice is taken once."""


Effect = Round | CodeRun | Listen
Sent = tuple[Reply | Failure, ...] | CodeResult | PersonInput
Flow = Generator[Effect, Sent, T]
"""A flow that returns a `T`."""


# --- Flow drivers --------------------------------------------------------------------------------

World = Callable[[Effect], Sent]
AsyncWorld = Callable[[Effect], Awaitable[Sent]]


async def drive_async(flow: Flow[T], world: AsyncWorld) -> T:
    """Run a flow to its end.

    `CallFailed` from the world goes into the flow, which decides what to return; every other
    exception ends the drive.
    """
    try:
        effect = next(flow)
        while True:
            try:
                sent = await world(effect)
            except CallFailed as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(sent)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def drive(flow: Flow[T], world: World) -> T:
    """Run a flow to its end with a world that answers at once; otherwise as `drive_async`."""

    async def ready(effect: Effect) -> Sent:
        return world(effect)

    return at_once(drive_async(flow, ready))


def at_once(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop.

    Raises:
        RuntimeError: If it waits.
    """
    try:
        steps.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        steps.close()
    raise RuntimeError("a world that answers at once has waited")


def scripted(
    reply: Callable[[Call], str] | Mapping[str, str],
    *,
    judge_code: Callable[[CodeRun], CodeResult] | None = None,
    listen: Callable[[Listen], PersonInput] | None = None,
) -> World:
    """A world of canned replies, for tests and estimates.

    Args:
        reply: The text for a call, or call key → text.
        judge_code: The result of a code run; without it every program counts as failing.
        listen: What a person says; without it the person leaves at once.
    """
    answer = reply if callable(reply) else lambda call: reply[str(call.key)]

    def world(effect: Effect) -> Sent:
        if isinstance(effect, Round):
            return tuple(_reply(call, answer(call)) for call in effect.calls)
        if isinstance(effect, Listen):
            return listen(effect) if listen is not None else PersonInput(None, 0, ended=True)
        if judge_code is not None:
            return judge_code(effect)
        return CodeResult(None, VerdictRecord(outcome="fail", reason="scripted"))

    return world


def _reply(call: Call, text: str) -> Reply:
    request = call.request
    asked = len(request.system) + len(request.user)
    return Reply(text, request.model, "end_turn", -(-asked // 4), -(-len(text) // 4))


# --- Call log ------------------------------------------------------------------------------------

_CALLS: Final = TypeAdapter(tuple[CallRecord, ...], config=ConfigDict(defer_build=True))
"""Checks the calls of an episode at once, which is faster than one by one."""


class CallLog:
    """The calls of one episode, in call order; grows as its flow runs."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._without_text: list[str] = []
        self._asked: set[CallKey] = set()

    def check(self, calls: Sequence[Call]) -> None:
        """Raise `ValueError` where the episode has asked one of these calls before."""
        for call in calls:
            if call.key in self._asked:
                raise ValueError(
                    f"the call {call.key} is asked twice in one episode; give the later one "
                    "another turn, stage or agent"
                )
            self._asked.add(call.key)

    def add(self, calls: Sequence[Call], sent: Sequence[Reply | Failure]) -> None:
        """Note what the answered calls of a round cost."""
        for call, reply in zip(calls, sent, strict=True):
            if isinstance(reply, Failure):
                continue
            text, model, stop_reason, input_tokens, output_tokens = reply
            key = str(call.key)
            self._calls.append(
                {
                    "key": key,
                    "stage": call.key.stage,
                    "model": model,
                    "stop_reason": stop_reason,
                    "input_tokens": input_tokens,
                    "output_tokens": output_tokens,
                }
            )
            if stop_reason in USUAL_STOP_REASONS and (not text or text.isspace()):
                self._without_text.append(key)

    def fields(self) -> dict[str, Any]:
        """The fields of an episode's record that hold its calls."""
        return {
            "calls": _CALLS.validate_python(self._calls),
            "without_text": tuple(self._without_text) or None,
        }


def run_to_failure(
    flow: Flow[None], calls: CallLog, *, fresh: Callable[[], bool] | None = None
) -> Flow[Failure | None]:
    """Run an episode's flow, note its calls, and end it where a call fails for good.

    Args:
        flow: The episode; what it reached stays with whoever made it.
        calls: Receives every call that was answered.
        fresh: Whether the path has left the recording that it continues; `None` where it
            continues none.

    Returns:
        `None` for an episode that came to its end.
    """
    try:
        yield from _noted(flow, calls, fresh)
    except CallFailed as error:
        return failure_of(error)
    return None


def failure_of(error: CallFailed) -> Failure:
    """A call that failed for good, as records name it."""
    return Failure(key=error.key, error=" ".join(filter(None, (error.what, error.why))))


def _noted(flow: Flow[None], calls: CallLog, fresh: Callable[[], bool] | None) -> Flow[None]:
    try:
        effect = next(flow)
        while True:
            if isinstance(effect, Round):
                calls.check(effect.calls)
                if fresh is not None and fresh():
                    effect = effect._replace(fresh=True)
            sent = yield effect
            if isinstance(effect, Round) and isinstance(sent, tuple):
                calls.add(effect.calls, sent)
            effect = flow.send(sent)
    except StopIteration:
        return
