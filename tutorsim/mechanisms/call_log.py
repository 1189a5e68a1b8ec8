"""What every episode has, whatever its system: a log of its calls, and an end when a call fails."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from tutorsim.errors import CallFailed
from tutorsim.mechanisms.flow import Flow, Round
from tutorsim.model import Call, Reply
from tutorsim.records import CallRecord, Failure
from tutorsim.records.reply_endings import USUAL

__all__ = ["CallLog", "failure_of", "run_to_failure"]

_CALLS: Final = TypeAdapter(tuple[CallRecord, ...])
"""Checks the calls of an episode at once, which is faster than one by one."""


class CallLog:
    """The calls of one episode, in call order; grows as its flow runs."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._without_text: list[str] = []

    def add(self, calls: Sequence[Call], sent: Sequence[Reply | Failure]) -> None:
        """Note what the answered calls of a round cost."""
        self._calls += [
            {
                "key": str(call.key),
                "stage": call.key.stage,
                "model": reply.model,
                "stop_reason": reply.stop_reason,
                "input_tokens": reply.input_tokens,
                "output_tokens": reply.output_tokens,
            }
            for call, reply in zip(calls, sent, strict=True)
            if isinstance(reply, Reply)
        ]
        self._without_text += [
            str(call.key)
            for call, reply in zip(calls, sent, strict=True)
            if isinstance(reply, Reply) and reply.stop_reason in USUAL and not reply.text.strip()
        ]

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
            if fresh is not None and isinstance(effect, Round) and fresh():
                effect = effect._replace(fresh=True)
            sent = yield effect
            if isinstance(effect, Round) and isinstance(sent, tuple):
                calls.add(effect.calls, sent)
            effect = flow.send(sent)
    except StopIteration:
        return
