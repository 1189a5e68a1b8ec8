"""Drivers: run a flow against a world that can perform its effects.

A world is a function from an effect to its result. `drive` runs with a world that answers at
once (a recording, a script); `drive_async` with one that waits (the real endpoint). Both give
the same value for the same results.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from tutorsim.errors import CallFailed
from tutorsim.mechanisms.flow import (
    CodeResult,
    CodeRun,
    Effect,
    Flow,
    Heard,
    Listen,
    Round,
    Sent,
)
from tutorsim.model import Call, Reply
from tutorsim.records import VerdictRecord

__all__ = ["at_once", "drive", "drive_async", "scripted"]

T = TypeVar("T")

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
    listen: Callable[[Listen], Heard] | None = None,
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
            return listen(effect) if listen is not None else Heard(None, 0, ended=True)
        if judge_code is not None:
            return judge_code(effect)
        return CodeResult(None, VerdictRecord(outcome="fail", reason="scripted"))

    return world


def _reply(call: Call, text: str) -> Reply:
    request = call.request
    asked = len(request.system) + len(request.user)
    return Reply(text, request.model, "end_turn", -(-asked // 4), -(-len(text) // 4))
