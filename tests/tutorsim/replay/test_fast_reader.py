"""Both readers: the same answers and the same errors, and no socket."""

import asyncio

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference.replay_through_sdk import SdkReader
from tutorsim.errors import ChangedCallError, MissingCallError, RecordingError, UnusedCallError
from tutorsim.kernel.flow import at_once
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.replay import FastReader, check_all_used


def play_fast(folder, episode, calls):
    async def run():
        reader = FastReader(folder)
        playback = reader.open(episode)
        outcome = [await _outcome(playback.reply(episode, one)) for one in calls]
        reader.close(playback)
        return outcome, playback.unused()

    return asyncio.run(run())


def play_sdk(folder, episode, calls):
    async def run():
        async with SdkReader(folder) as reader:
            playback = reader.open(episode)
            outcome = [await _outcome(playback.reply(episode, one)) for one in calls]
            reader.close(playback)
            return outcome, playback.unused()

    return asyncio.run(run())


async def _outcome(coroutine):
    try:
        reply: Reply = await coroutine
        return reply
    except (MissingCallError, ChangedCallError, RecordingError) as error:
        return type(error), str(error)


@pytest.fixture(params=[play_fast, play_sdk], ids=["fast", "sdk"])
def play(request, monkeypatch):
    """One of the readers, in an environment without credentials or a reachable endpoint."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    return request.param


@pytest.fixture
def two(call, interaction, message, write, tmp_path):
    """Two recorded calls."""
    calls = [call("first prompt, é", agent="a"), call("second prompt", agent="b")]
    write(tmp_path, [interaction(one, message(f"reply {n}")) for n, one in enumerate(calls)])
    return calls


def test_a_replay_gives_the_recorded_replies_in_any_order(play, tmp_path, episode, two):
    outcome, unused = play(tmp_path, episode, two[::-1])

    assert outcome == [
        Reply("reply 1", "model-1", "end_turn", 7, 3),
        Reply("reply 0", "model-1", "end_turn", 7, 3),
    ]
    assert unused == ()


def test_what_was_not_asked_for_is_told(play, tmp_path, episode, two):
    _, unused = play(tmp_path, episode, two[1:])

    assert unused == ("1/propose/a/1",)


def test_a_key_that_is_not_in_the_recording_is_missing(play, tmp_path, episode, two, call):
    [(kind, text)], unused = play(tmp_path, episode, [call("third", agent="c")])

    assert kind is MissingCallError
    assert f"{episode}.json: call 1/propose/c/1 is not in the recording." in text
    assert "2 calls: 1/propose/a/1, 1/propose/b/1" in text
    assert len(unused) == 2


def test_a_reply_is_given_once(play, tmp_path, episode, two):
    [first, (kind, text)], _ = play(tmp_path, episode, [two[0], two[0]])

    assert isinstance(first, Reply)
    assert kind is MissingCallError
    assert "already used" in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"user": "first prompt, è"},
            "messages[0].content differs at character 14 (of 15 recorded, 15 in this call): "
            "recorded 'first prompt, é', now 'first prompt, è'.",
        ),
        ({"user": "first prompt, é!"}, "differs at character 15 (of 15 recorded, 16 in this call)"),
        ({"model": "model-2"}, "model differs at character 6"),
        ({"max_tokens": 65}, "max_tokens: recorded 64, now 65."),
        ({"extra": ()}, "temperature is in the recording only: 0.5."),
        ({"extra": (("temperature", 0.5), ("top_p", 0.9))}, "top_p is in this call only: 0.9."),
    ],
)
def test_a_changed_call_names_cassette_key_field_and_place(
    change, why, play, tmp_path, episode, two
):
    changed = Call(two[0].key, two[0].request._replace(**change))

    [(kind, text), second], unused = play(tmp_path, episode, [changed, two[1]])

    assert kind is ChangedCallError
    assert text.startswith(f"{episode}.json: call 1/propose/a/1 was recorded with another request.")
    assert why in text
    assert isinstance(second, Reply)
    assert unused == ("1/propose/a/1",)


def test_a_recorded_reply_that_is_no_message_is_an_invalid_recording(
    play, tmp_path, episode, call, interaction, write
):
    write(tmp_path, [interaction(call("x"), {"type": "completion"})])

    [(kind, text)], _ = play(tmp_path, episode, [call("x")])

    assert kind is RecordingError
    assert "the reply to call 1/propose/motivation/1 cannot be read" in text


def test_a_missing_cassette_is_a_missing_call(play, tmp_path, episode):
    with pytest.raises(MissingCallError, match=f"{episode}.json: the recording has no cassette"):
        play(tmp_path, episode, [])


def test_unused_entries_fail_a_check(tmp_path, episode, two):
    playback = FastReader(tmp_path).open(episode)
    at_once(playback.reply(episode, two[0]))
    with pytest.raises(UnusedCallError, match=r"1 recorded call\(s\) .* 1/propose/b/1") as caught:
        check_all_used(playback)
    assert caught.value.exit_code == 1

    at_once(playback.reply(episode, two[1]))
    check_all_used(playback)


def requests(draw):
    text = st.text(max_size=40)
    extra = st.lists(
        st.tuples(st.sampled_from(["temperature", "top_p"]), st.floats(0, 1)),
        max_size=2,
        unique_by=lambda pair: pair[0],
    )
    key = CallKey(draw(st.integers(0, 3)), "propose", draw(st.sampled_from("abcd")), 1)
    return Call(
        key, Request("m", draw(text), draw(text), draw(st.integers(1, 99)), tuple(draw(extra)))
    )


@pytest.mark.costly
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_both_readers_agree_on_any_calls_and_any_replies(
    data, tmp_path, episode, interaction, message, write
):
    call = st.composite(requests)()
    recorded = {str(one.key): one for one in data.draw(st.lists(call, max_size=4))}
    texts = data.draw(st.lists(st.text(), min_size=len(recorded), max_size=len(recorded)))
    asked = [
        one._replace(key=data.draw(st.sampled_from([one.key, one.key._replace(attempt=2)])))
        for one in [*recorded.values(), *data.draw(st.lists(call, max_size=2))]
    ]
    write(
        tmp_path,
        [interaction(one, message(t)) for one, t in zip(recorded.values(), texts, strict=True)],
    )

    assert play_fast(tmp_path, episode, asked) == play_sdk(tmp_path, episode, asked)


def test_the_fast_reader_parses_a_file_once_and_each_body_of_an_answered_call_once(
    tmp_path, episode, call, interaction, message, write, monkeypatch
):
    """The cost of a replay grows with its calls, not with calls × entries."""
    calls = [call("x", agent=f"a{n}") for n in range(50)]
    write(tmp_path, [interaction(one, message("y")) for one in calls])
    parsed: list[int] = []
    loads = orjson.loads

    def counted(data):
        parsed.append(len(data))
        return loads(data)

    monkeypatch.setattr(orjson, "loads", counted)
    playback = FastReader(tmp_path).open(episode)
    for one in calls:
        at_once(playback.reply(episode, one))

    assert len(parsed) == 1 + 2 * len(calls)
