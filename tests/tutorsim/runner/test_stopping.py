"""The gate that holds attempts back, and the first reason to stop."""

import asyncio

import httpx2
import pytest

from tutorsim.errors import Interrupted, UsageError
from tutorsim.runner.stopping import Gate, Stop

REQUEST = httpx2.Request("POST", "http://127.0.0.1/")


class Slow(httpx2.AsyncBaseTransport):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return httpx2.Response(200)


def test_the_first_reason_stays() -> None:
    stop = Stop()
    stop.check()
    stop.because(Interrupted("first"))
    stop.because(UsageError("second"))
    with pytest.raises(Interrupted, match="first"):
        stop.check()


def test_nothing_is_sent_once_there_is_a_reason() -> None:
    inner, stop = Slow(0), Stop()
    gate = Gate(inner, stop, 1)
    assert asyncio.run(gate.handle_async_request(REQUEST)).status_code == 200
    stop.because(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        asyncio.run(gate.handle_async_request(REQUEST))
    assert inner.asked == 1


def test_an_attempt_ends_when_its_time_is_over() -> None:
    with pytest.raises(httpx2.ReadTimeout, match="too long"):
        asyncio.run(Gate(Slow(5), Stop(), 0.01).handle_async_request(REQUEST))


def test_a_pause_ends_with_its_time_or_with_the_reason() -> None:
    async def pauses() -> None:
        stop = Stop()
        await stop.pause(0.01)
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, stop.because, Interrupted("stopped"))
        with pytest.raises(Interrupted):
            await stop.pause(30)
        with pytest.raises(Interrupted):
            await stop.pause(30)

    asyncio.run(asyncio.wait_for(pauses(), 10))
