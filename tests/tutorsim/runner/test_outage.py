"""While nothing answers a recording waits; where nothing ever works it ends early."""

import asyncio
import time
from itertools import pairwise

import pytest

from tutorsim.errors import CallFailed, Interrupted, TutorsimError
from tutorsim.runner import stops as module
from tutorsim.runner.stops import ALIKE, Attempts, Outage, Stop

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

    monkeypatch.setattr(Stop, "pause", pause)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return lambda: now[0]


def outage(limit=600.0):
    said: list[str] = []
    return Outage(limit, Stop(), said.append), said


def again(one, error, attempts=None):
    """Whether a call is made again; without attempts, one since whose making nobody answered."""
    return asyncio.run(one.may_be_over(error, attempts or Attempts(one.answers)))


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
    assert again(one, error, Attempts(0))
    assert (clock(), said) == (1, [])
    assert again(one, error)
    assert len(said) == 1


def test_a_call_that_fails_twice_while_others_are_answered_fails_on_its_own(clock):
    """Failures while nobody was answered say nothing of the call."""
    one, _ = outage()
    one.answered()
    call = Attempts(one.answers)
    assert [again(one, BROKEN, call) for _ in range(3)] == [True] * 3
    call.answers_before -= 1
    assert [again(one, BROKEN, call) for _ in range(2)] == [True, False]
    assert not again(one, ODD, Attempts(0))


def test_an_endpoint_with_too_much_to_do_is_asked_for_as_long_as_an_outage_may_last(clock):
    one, said = outage(limit=100)
    assert again(one, BUSY)  # from the start too: it answers, if only that
    assert said == ["HTTP 529. Waiting for it, at most 100 seconds."]
    one.answered()
    one.answered()
    call = Attempts(1)
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
    assert [again(one, error) for _ in range(ALIKE - 1)] == [meanwhile] * (ALIKE - 1)
    with pytest.raises(TutorsimError, match=error.what):
        again(one, error)
    mixed, _ = outage()
    for number in range(2 * ALIKE):
        assert not again(mixed, CallFailed(f"HTTP {400 + number % 2}."))


def test_a_stop_ends_a_pause():
    one, _ = outage()
    one.answered()
    one.stop.because(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        again(one, AWAY)


# --- Whole recordings ----------------------------------------------------------------------------

FOLDERS = ("--log-dir", "{tmp}/log", "--cassette-dir", "{tmp}/cassettes")


@pytest.fixture
def run(shell, tmp_path):
    def record(study, *options):
        folders = [word.format(tmp=tmp_path) for word in FOLDERS]
        return shell("run", study, *folders, *options)

    return record


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.parametrize("kind", ["529", "500", "429", "503", "drop", "reset"])
def test_an_outage_in_the_middle_fails_no_episode(
    kind, endpoint, write_grid, run, monkeypatch, files, recorded_once, tmp_path
):
    monkeypatch.setattr(module, "SHORTEST", 0.05)
    began: list[float] = []

    def away(call, attempt):
        if len(endpoint.sent) == 9:
            began.append(time.monotonic())
        return kind if began and time.monotonic() < began[0] + 1 else None

    endpoint.fault = away
    said = run(write_grid(), "--max-retries", 0, "--max-outage", 60)
    assert said.code == 0, said.err
    assert "Waiting for it, at most 60 seconds" in said.err.replace("\n", " ")
    assert "the endpoint answers again" in said.err
    assert files(tmp_path / "log", tmp_path / "cassettes") == files(
        recorded_once.log, recorded_once.cassettes
    )


@pytest.mark.loopback
def test_an_outage_fails_no_call_that_was_under_way_when_it_began(endpoint, write_grid, run):
    """Other calls are answered between the two attempts, both of which fail."""
    early = "sciq.ice.help_avoidant.simple/0/student/student/1"
    endpoint.fault = lambda call, attempt: "500" if call == early and attempt < 2 else None
    said = run(write_grid(), "--max-retries", 1)
    assert said.code == 0, said.err
    assert endpoint.counts()[early] == 3


@pytest.mark.loopback
@pytest.mark.parametrize("kind", ["503", "529", "500", "429", "drop"])
def test_what_an_outage_failed_is_taken_up_by_the_same_command(kind, endpoint, write_grid, run):
    endpoint.fault = lambda call, attempt: kind if "ice" in call else None
    study = write_grid()
    assert run(study, "--max-retries", 0, "--max-outage", 0).code == 1
    endpoint.fault = lambda call, attempt: None
    endpoint.sent.clear()
    assert run(study).code == 0
    assert {call.split(".")[1] for call in endpoint.sent} == {"ice"}


@pytest.mark.loopback
def test_a_key_with_a_line_break_is_refused_before_anything_is_sent(
    endpoint, write_grid, run, monkeypatch, tmp_path
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789\n")
    said = run(write_grid())
    assert said.code == 2
    assert r"It contains '\n'" in said.err
    assert "sk-ant-test" not in said.err
    assert not (tmp_path / "cassettes").exists()


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8808", "api.anthropic.com", "ftp://host", "http://"),
        *("u:pa55word@host", "htps://u:pa55word@host", "https://u:pa55word@", "//u:pa55word@host"),
        *("https://u:pa55word@host:port", "https://u:pa55word@[::1", "https://u:pa55word\x01@host"),
    ],
)
def test_a_base_url_that_is_none_is_refused(url, write_grid, run, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    said = run(write_grid())
    assert said.code == 2
    assert said.err.startswith("Error: The base URL")
    assert "pa55word" not in said.err


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("garbage", "The reply is not a message but a page."),
        ("cut", "The connection failed: the reply was cut off."),
        ("drop", "The connection failed: it was closed without a reply."),
        ("500", "HTTP 500"),
    ],
)
def test_where_no_call_works_the_cause_is_named_and_little_is_sent(
    kind, words, endpoint, write_grid, run, tmp_path
):
    endpoint.fault = lambda call, attempt: kind
    said = run(write_grid(repeats=9), "--max-retries", 0, "--max-connections", 2)
    assert said.code == 1
    assert words in said.err
    assert "The first 8 calls all failed like this" in said.err
    assert len(endpoint.sent) < 12
    assert not (tmp_path / "cassettes" / "manifest.json").exists()


@pytest.mark.loopback
def test_a_dead_server_ends_it_at_once(endpoint, write_grid, run, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    said = run(write_grid(), "--max-retries", 0)
    assert said.code == 1
    assert "nothing answers at the endpoint's address" in said.err
    assert "No call has been answered" in said.err
