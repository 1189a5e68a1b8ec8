"""The gate that holds attempts back, and the first reason to stop."""

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest

from tutorsim.errors import Interrupted, UsageError
from tutorsim.runner import stops as recording_stop
from tutorsim.runner.stops import Gate, Stop, stop_on_interrupt

REQUEST = httpx2.Request("POST", "http://127.0.0.1/")


class Slow(httpx2.AsyncBaseTransport):
    def __init__(self, seconds):
        self.seconds = seconds
        self.asked = 0

    async def handle_async_request(self, request):
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return httpx2.Response(200)


def test_the_first_reason_stays():
    stop = Stop()
    stop.check()
    stop.because(Interrupted("first"))
    stop.because(UsageError("second"))
    with pytest.raises(Interrupted, match="first"):
        stop.check()


def test_nothing_is_sent_once_there_is_a_reason():
    inner, stop = Slow(0), Stop()
    gate = Gate(inner, stop, 1)
    assert asyncio.run(gate.handle_async_request(REQUEST)).status_code == 200
    stop.because(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        asyncio.run(gate.handle_async_request(REQUEST))
    assert inner.asked == 1


def test_an_attempt_ends_when_its_time_is_over():
    with pytest.raises(httpx2.ReadTimeout, match="too long"):
        asyncio.run(Gate(Slow(5), Stop(), 0.01).handle_async_request(REQUEST))


def test_a_pause_ends_with_its_time_or_with_the_reason():
    async def pauses():
        stop = Stop()
        await stop.pause(0.01)
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, stop.because, Interrupted("stopped"))
        with pytest.raises(Interrupted):
            await stop.pause(30)
        with pytest.raises(Interrupted):
            await stop.pause(30)

    asyncio.run(asyncio.wait_for(pauses(), 10))


# --- Waiting as the endpoint says ----------------------------------------------------------------


class Busy(httpx2.AsyncBaseTransport):
    """Answers with headers that say when to try again."""

    def __init__(self, status=429, **headers):
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handle_async_request(self, request):
        return httpx2.Response(self.status, headers=self.headers)


@pytest.fixture
def waited(monkeypatch):
    """How long the gate waits after a reply, what it says, and the reply's headers."""

    def of(inner, *, retry=0, times=1, **more):
        pauses: list[float] = []
        said: list[str] = []

        async def pause(self, seconds):
            pauses.append(seconds)

        monkeypatch.setattr(Stop, "pause", pause)
        gate = Gate(inner, Stop(), 1, max_retries=4, note=said.append, **more)
        request = httpx2.Request(
            "POST", "http://x/", headers={"x-stainless-retry-count": str(retry)}
        )

        async def ask():
            for _ in range(times):
                response = await gate.handle_async_request(request)
            return response

        return pauses, said, asyncio.run(ask())

    return of


def test_no_wait_is_longer_than_an_outage_may_be(waited):
    pauses, said, _ = waited(Busy(retry_after="7200"), longest_wait=3.0)
    assert pauses == [3]
    assert said == ["the endpoint asks to wait 7,200 seconds (HTTP 429); waiting 3."]


def test_a_wait_that_the_endpoint_asks_for_is_honoured_told_and_not_repeated(waited):
    pauses, said, response = waited(Busy(retry_after="90"), times=3)
    assert pauses == [90, 90, 90]
    assert said == ["the endpoint asks to wait 90 seconds (HTTP 429)."]
    assert "retry-after" not in response.headers


def test_a_longer_wait_than_the_cap_is_cut_and_told(waited):
    pauses, said, _ = waited(Busy(529, retry_after="7200"))
    assert pauses == [300]
    assert said == ["the endpoint asks to wait 7,200 seconds (HTTP 529); waiting 300."]


def test_milliseconds_and_dates_are_read(waited):
    assert waited(Busy(retry_after_ms="1500", retry_after="9"))[0] == [1.5]
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    [pause] = waited(Busy(503, retry_after=soon))[0]
    assert 90 < pause <= 100


@pytest.mark.parametrize(
    "value", ["", "soon", "0", "-3", "inf", "nan", "Fri, 01 Jan 1999 00:00:00 GMT"]
)
def test_what_names_no_time_is_not_waited_for(value, waited):
    assert waited(Busy(retry_after=value))[0] == []


def test_nothing_is_waited_for_after_the_last_retry_or_a_success(waited):
    assert waited(Busy(retry_after="90"), retry=4)[0] == []
    assert waited(Busy(200, retry_after="90"))[0] == []


# --- Signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_gives_replies_under_way_seconds_and_no_more(number, monkeypatch):
    """Also where the tests were started with the signal ignored, as by nohup."""
    monkeypatch.setattr(recording_stop, "GRACE", 0.05)
    said: list[str] = []
    before = signal.signal(number, signal.SIG_DFL)

    async def recording():
        stop = Stop()
        with stop_on_interrupt(stop, lambda: said.append("stopping")):
            os.kill(os.getpid(), number)
            await asyncio.sleep(60)

    try:
        with pytest.raises(Interrupted, match="Interrupted"):
            asyncio.run(asyncio.wait_for(recording(), 10))
    finally:
        signal.signal(number, before)
    assert said == ["stopping"]


def test_a_signal_that_whoever_started_it_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def recording():
        stop = Stop()
        with stop_on_interrupt(stop, lambda: None):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
        return stop

    try:
        assert asyncio.run(recording()).reason is None
    finally:
        signal.signal(signal.SIGHUP, before)
