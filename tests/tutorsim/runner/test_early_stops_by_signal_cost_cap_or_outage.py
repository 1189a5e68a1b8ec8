"""While nothing answers a recording waits; where nothing ever works it ends early."""

import asyncio
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from types import SimpleNamespace

import httpx2
import pytest

from tests.tutorsim.conftest import files, folders
from tutorsim.errors import BudgetReached, CallFailed, Interrupted, TutorsimError, UsageError
from tutorsim.kernel.cost_plan import Price, PriceTable
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.runner import early_stops_by_signal_cost_cap_or_outage as stops
from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import (
    CallQueue,
    RecordingOptions,
)

AWAY = CallFailed("Nothing answers.", away="nobody")
BROKEN = CallFailed("HTTP 500.", away="broken")
BUSY = CallFailed("HTTP 529.", away="busy")
ODD = CallFailed("HTTP 400.")


@pytest.fixture
def clock(monkeypatch):
    """Pauses pass at once, on a clock of their own."""
    now = [0.0]

    async def pause(self, seconds):
        now[0] += seconds
        self.check()

    monkeypatch.setattr(stops.Stop, "pause", pause)
    monkeypatch.setattr(stops.time, "monotonic", lambda: now[0])
    return lambda: now[0]


def outage(limit=600.0):
    said: list[str] = []
    return stops.Outage(limit, stops.Stop(), said.append), said


def again(one, error, attempts=None):
    """Whether a call is made again; without attempts, one since whose making nobody answered."""
    return asyncio.run(one.may_be_over(error, attempts or stops.Attempts(one.answers)))


def test_pauses_grow_until_the_limit_and_then_the_recording_ends(clock):
    one, said = outage(limit=300)
    one.answered()
    times = [0.0]

    def all_pauses():
        while again(one, AWAY):
            times.append(clock())

    with pytest.raises(TutorsimError, match="Nothing answers") as ended:
        all_pauses()
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses[0] == 1
    assert pauses[:-1] == sorted(pauses[:-1])
    assert max(pauses) <= 60
    assert clock() == 300
    assert "goes on from here" in ended.value.hint
    assert said == ["Nothing answers. Waiting for it, at most 300 seconds."]


def test_the_end_of_an_outage_is_told_and_the_next_one_begins_anew(clock):
    one, said = outage()
    one.answered()
    assert again(one, AWAY)
    one.answered()
    assert said[-1] == "the endpoint answers again."
    assert again(one, AWAY)
    assert len(said) == 3


@pytest.mark.parametrize("error", [AWAY, BROKEN, BUSY])
def test_a_call_under_way_when_an_outage_begins_is_made_again(error, clock):
    """Others were answered between its beginning and its failure, and none afterwards."""
    one, said = outage()
    one.answered()
    assert again(one, error, stops.Attempts(0))
    assert (clock(), said) == (1, [])
    assert again(one, error)
    assert len(said) == 1


def test_a_call_that_fails_twice_while_others_are_answered_fails_on_its_own(clock):
    """Failures while nobody was answered say nothing of the call."""
    one, _ = outage()
    one.answered()
    call = stops.Attempts(one.answers)
    assert [again(one, BROKEN, call) for _ in range(3)] == [True] * 3
    call.answers_before -= 1
    assert [again(one, BROKEN, call) for _ in range(2)] == [True, False]
    assert not again(one, ODD, stops.Attempts(0))


def test_an_endpoint_with_too_much_to_do_is_asked_for_as_long_as_an_outage_may_last(clock):
    one, said = outage(limit=100)
    assert again(one, BUSY)  # from the start too: it answers, if only that
    assert said == ["HTTP 529. Waiting for it, at most 100 seconds."]
    one.answered()
    one.answered()
    call = stops.Attempts(1)
    began = clock()
    while again(one, BUSY, call):
        assert clock() <= began + 100
    assert clock() == began + 100


def test_without_a_limit_nothing_is_waited_for(clock):
    one, _ = outage(limit=0)
    one.answered()
    assert [again(one, error) for error in (AWAY, BROKEN, BUSY)] == [False] * 3


def test_where_nothing_has_answered_yet_the_first_such_failure_ends_it(clock):
    with pytest.raises(TutorsimError, match="Nothing answers") as ended:
        again(outage()[0], AWAY)
    assert "ANTHROPIC_BASE_URL" in ended.value.hint


@pytest.mark.parametrize(("error", "meanwhile"), [(ODD, False), (BROKEN, True)])
def test_where_every_call_fails_alike_it_ends_early(error, meanwhile, clock):
    one, _ = outage()
    assert [again(one, error) for _ in range(stops.ALIKE - 1)] == [meanwhile] * (stops.ALIKE - 1)
    with pytest.raises(TutorsimError, match=error.what):
        again(one, error)
    mixed, _ = outage()
    for number in range(2 * stops.ALIKE):
        assert not again(mixed, CallFailed(f"HTTP {400 + number % 2}."))


def test_a_stop_ends_a_pause():
    one, _ = outage()
    one.answered()
    one.stop.because(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        again(one, AWAY)


# --- Whole recordings ----------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.parametrize("kind", ["529", "500", "429", "503", "drop", "reset"])
def test_an_outage_in_the_middle_fails_no_episode(
    kind, endpoint, write_grid, record, monkeypatch, recorded_once, tmp_path
):
    monkeypatch.setattr(stops, "SHORTEST", 0.05)
    began: list[float] = []

    def away(call, attempt):
        if len(endpoint.sent) == 9:
            began.append(time.monotonic())
        return kind if began and time.monotonic() < began[0] + 1 else None

    endpoint.fault = away
    said = record(write_grid(), "--max-retries", 0, "--max-outage", 60)
    assert said.code == 0, said.err
    assert "Waiting for it, at most 60 seconds" in said.err.replace("\n", " ")
    assert "the endpoint answers again" in said.err
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


@pytest.mark.loopback
def test_an_outage_fails_no_call_that_was_under_way_when_it_began(endpoint, write_grid, record):
    """Other calls are answered between the two attempts, both of which fail."""
    early = "sciq.ice.help_avoidant.simple/0/student/student/1"
    endpoint.fault = lambda call, attempt: "500" if call == early and attempt < 2 else None
    said = record(write_grid(), "--max-retries", 1)
    assert said.code == 0, said.err
    assert endpoint.counts()[early] == 3


@pytest.mark.loopback
@pytest.mark.parametrize("kind", ["503", "529", "500", "429", "drop"])
def test_what_an_outage_failed_is_taken_up_by_the_same_command(kind, endpoint, write_grid, record):
    endpoint.fault = lambda call, attempt: kind if "ice" in call else None
    study = write_grid()
    assert record(study, "--max-retries", 0, "--max-outage", 0).code == 1
    endpoint.fault = lambda call, attempt: None
    endpoint.sent.clear()
    assert record(study).code == 0
    assert {call.split(".")[1] for call in endpoint.sent} == {"ice"}


@pytest.mark.loopback
def test_a_key_with_a_line_break_is_refused(endpoint, write_grid, record, monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789\n")
    said = record(write_grid())
    said.fails(2, r"It contains '\n'")
    assert "sk-ant-test" not in said.err
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8808", "api.anthropic.com", "ftp://host", "http://"),
        *("u:pa55word@host", "htps://u:pa55word@host", "https://u:pa55word@", "//u:pa55word@host"),
        *("https://u:pa55word@host:port", "https://u:pa55word@[::1", "https://u:pa55word\x01@host"),
    ],
)
def test_a_base_url_that_is_none_is_refused(url, write_grid, record, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    said = record(write_grid())
    assert said.code == 2
    assert said.err.startswith("Error: The base URL")
    assert "pa55word" not in said.err


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("garbage", "The reply is not a message but a page."),
        ("500", "HTTP 500"),
        *(
            pytest.param(kind, f"The connection failed: {words}", marks=pytest.mark.costly)
            for kind, words in (
                ("cut", "the reply was cut off."),
                ("drop", "it was closed without a reply."),
            )
        ),
    ],
)
def test_where_no_call_works_the_cause_is_named_and_little_is_sent(
    kind, words, endpoint, write_grid, record, tmp_path
):
    endpoint.fault = lambda call, attempt: kind
    said = record(write_grid(repeats=9), "--max-retries", 0, "--max-connections", 2)
    said.fails(1, words, "The first 8 calls all failed like this")
    assert len(endpoint.sent) < 12
    assert not (tmp_path / "one" / "cassettes" / "manifest.json").exists()


@pytest.mark.loopback
def test_a_dead_server_ends_it_at_once(endpoint, write_grid, record, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    said = record(write_grid(), "--max-retries", 0)
    said.fails(1, "nothing answers at the endpoint's address", "No call has been answered")


# --- The cap: what is set aside, given back and counted -------------------------------------------

PRICES = PriceTable(as_of="2026-01-01", models={"m": Price(input=1_000_000, output=2_000_000)})
"""One dollar a token in, two a token out."""


def call(text="", *, model="m", most=10):
    return Call(CallKey(1, "propose", "motivation", 1), Request(model, "", text, most))


def reply(asked, answered):
    return Reply("", "m", "end_turn", asked, answered)


def test_a_call_is_reserved_at_a_token_a_byte_and_all_that_it_may_answer():
    assert stops.Budget(PRICES, 1000).reserve(call("äb")) == (3 + 64) + 2 * 10


def test_reservations_and_payments_together_stay_below_the_cap():
    budget = stops.Budget(PRICES, 170)
    first = budget.reserve(call())  # 64 + 20 = 84
    second = budget.reserve(call())  # 168
    with pytest.raises(BudgetReached, match=r"could pass the cap of 170\.00"):
        budget.reserve(call())
    budget.release(first)
    budget.count("m", reply(10, 5), new=True)  # 20 of 84 were spent: 84 + 20 + 84 > 170
    with pytest.raises(BudgetReached):
        budget.reserve(call())
    budget.release(second)
    budget.count("m", reply(1, 1), new=True)  # 23, and 84 more is 107
    assert budget.reserve(call()) == 84
    assert (budget.calls, budget.input_tokens, budget.output_tokens) == (2, 11, 6)
    assert budget.spent == 23


def test_a_cap_below_a_cent_is_named_as_it_was_given():
    with pytest.raises(BudgetReached, match=r"the cap of 0\.001 US dollars"):
        stops.Budget(PRICES, 0.001).reserve(call())


def test_what_earlier_sessions_paid_counts_towards_the_cap_once():
    budget = stops.Budget(PRICES, 100)
    budget.count_earlier("m", reply(20, 0))
    budget.count("m", reply(20, 0), new=False)
    assert budget.spent == 20
    with pytest.raises(BudgetReached, match="could pass"):
        budget.reserve(call())  # 20 + 84


def test_without_a_cap_models_without_a_price_are_named():
    budget = stops.Budget(PRICES)
    assert budget.reserve(call(model="other")) == 0
    budget.count("other", reply(5, 5), new=True)
    assert (budget.spent, budget.unpriced, budget.calls) == (0, {"other"}, 1)


# --- The gate that holds attempts back, and the first reason to stop ------------------------------

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
    stop = stops.Stop()
    stop.check()
    stop.because(Interrupted("first"))
    stop.because(UsageError("second"))
    with pytest.raises(Interrupted, match="first"):
        stop.check()


def test_nothing_is_sent_once_there_is_a_reason():
    inner, stop = Slow(0), stops.Stop()
    gate = stops.Gate(inner, stop, 1)
    assert asyncio.run(gate.handle_async_request(REQUEST)).status_code == 200
    stop.because(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        asyncio.run(gate.handle_async_request(REQUEST))
    assert inner.asked == 1


def test_a_call_that_waits_for_the_cap_is_not_made_after_a_stop(tmp_path):
    async def made():
        inner, store = Slow(0.01), SimpleNamespace(folder=tmp_path)
        tape = SimpleNamespace(episode_id="e", reply=lambda *_: inner.handle_async_request(None))
        budget = stops.Budget(PRICES, 100)  # of which one call may take 84
        queue = CallQueue(store, study_digest="", budget=budget, options=RecordingOptions())
        asked = [queue.paid(tape, call(), failed=None) for _ in range(2)]
        asyncio.get_running_loop().call_later(0, queue._stop.because, Interrupted("stop"))
        _, stopped = await asyncio.gather(*asked, return_exceptions=True)
        return inner.asked, type(stopped)

    assert asyncio.run(made()) == (1, Interrupted)


def test_an_attempt_ends_when_its_time_is_over():
    with pytest.raises(httpx2.ReadTimeout, match="too long"):
        asyncio.run(stops.Gate(Slow(5), stops.Stop(), 0.01).handle_async_request(REQUEST))


def test_a_pause_ends_with_its_time_or_with_the_reason():
    async def pauses():
        stop = stops.Stop()
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

        monkeypatch.setattr(stops.Stop, "pause", pause)
        gate = stops.Gate(inner, stops.Stop(), 1, max_retries=4, note=said.append, **more)
        request = httpx2.Request(
            "POST", "http://x/", headers={"x-stainless-retry-count": str(retry)}
        )

        async def ask():
            for _ in range(times):
                response = await gate.handle_async_request(request)
            return response

        return pauses, said, asyncio.run(ask())

    return of


@pytest.mark.parametrize(
    ("status", "options", "wait"), [(429, {"longest_wait": 3.0}, 3), (529, {}, 300)]
)
def test_a_wait_longer_than_an_outage_may_be_is_cut_and_told(waited, status, options, wait):
    pauses, said, _ = waited(Busy(status, retry_after="7200"), **options)
    assert pauses == [wait]
    assert said == [f"the endpoint asks to wait 7,200 seconds (HTTP {status}); waiting {wait}."]


def test_a_wait_that_the_endpoint_asks_for_is_honoured_told_and_not_repeated(waited):
    pauses, said, response = waited(Busy(retry_after="90"), times=3)
    assert pauses == [90, 90, 90]
    assert said == ["the endpoint asks to wait 90 seconds (HTTP 429)."]
    assert "retry-after" not in response.headers


def test_a_wait_is_told_again_if_it_ends_more_than_a_second_later(waited):
    asked = iter(["500", "1000", "2000", "3000"])

    class Busier(Busy):
        async def handle_async_request(self, request):
            asyncio.get_running_loop().time = lambda: 1_000.0
            self.headers = {"retry-after-ms": next(asked)}
            return await super().handle_async_request(request)

    pauses, said, _ = waited(Busier(), times=4)
    assert pauses == [0.5, 1, 2, 3]
    assert said == [
        f"the endpoint asks to wait {seconds} seconds (HTTP 429)." for seconds in (1, 3)
    ]


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
    monkeypatch.setattr(stops, "GRACE", 0.05)
    said: list[str] = []
    before = signal.signal(number, signal.SIG_DFL)

    async def recording():
        stop = stops.Stop()
        with stops.stop_on_interrupt(stop, lambda: said.append("stopping")):
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
        stop = stops.Stop()
        with stops.stop_on_interrupt(stop, lambda: None):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
        return stop

    try:
        assert asyncio.run(recording()).reason is None
    finally:
        signal.signal(signal.SIGHUP, before)
