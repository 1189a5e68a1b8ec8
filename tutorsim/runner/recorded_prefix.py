"""Looking ahead: how far a flow comes with what is recorded already, before anything is sent."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tutorsim.flow_drivers import drive
from tutorsim.mechanisms.flow import CodeResult, CodeRun, Effect, Flow, Round, Sent
from tutorsim.model import Call, Reply

__all__ = ["Ahead", "ahead"]


class Ahead(NamedTuple):
    """Where a flow stops."""

    answered: int
    """Calls that are recorded."""
    missing: tuple[Call, ...]
    """Those of the first round that is not recorded whole; empty where the flow came to its end."""


class _NotThere(Exception):
    """Some calls of a round are not recorded."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__(str(calls[0].key))
        self.calls = tuple(calls)


def _no_programs(run: CodeRun) -> CodeResult:
    raise AssertionError(f"a flow without programs has one on turn {run.turn}")


def ahead(
    flow: Flow[Any],
    recorded: Callable[[Call, bool], Reply | None],
    *,
    judged: Callable[[CodeRun], CodeResult] = _no_programs,
) -> Ahead:
    """Drive a flow until the first round that is not recorded whole.

    Args:
        flow: One that hears nobody.
        recorded: From a call, and whether its path has left the recording, to the reply; `None`
            where it is not recorded.
        judged: The recorded verdict on a program.
    """
    answered = 0

    def world(effect: Effect) -> Sent:
        nonlocal answered
        if isinstance(effect, CodeRun):
            return judged(effect)
        assert isinstance(effect, Round)
        replies = [recorded(call, effect.fresh) for call in effect.calls]
        there = tuple(reply for reply in replies if reply is not None)
        answered += len(there)
        if len(there) < len(replies):
            pairs = zip(effect.calls, replies, strict=True)
            raise _NotThere([call for call, reply in pairs if reply is None])
        return there

    try:
        drive(flow, world)
    except _NotThere as stop:
        return Ahead(answered, stop.calls)
    return Ahead(answered, ())
