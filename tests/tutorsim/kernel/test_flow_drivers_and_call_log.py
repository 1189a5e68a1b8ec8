"""Asking once more."""

import asyncio

import pytest

from tutorsim.errors import CallFailed
from tutorsim.kernel.flow_drivers_and_call_log import (
    CallLog,
    CodeRun,
    Round,
    at_once,
    drive,
    drive_async,
    run_to_failure,
    scripted,
)
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask
from tutorsim.model import Answer, Call, CallKey, Question, Reply, Request
from tutorsim.systems.panel.episode_flow_and_study import episode

CUT = " …"
"""Behind a reply that reached its limit of length."""


def question(agent, *, salvage=lambda _: None, if_cut_off=None):
    request = Request("m", "system", "user", 9)
    call = Call(CallKey(1, "vote_final", agent, 1), request, if_cut_off)
    return Question(call, lambda text: text if text.startswith("ok") else None, "REMINDER", salvage)


def play(flow, replies):
    """Run a flow with canned replies by key; the rounds that it asked for, and its value."""
    rounds, sent = [], None
    try:
        while True:
            effect = flow.send(sent)
            assert isinstance(effect, Round)
            rounds.append(effect.calls)
            sent = tuple(
                Reply(
                    text.removesuffix(CUT), "m", "max_tokens" if CUT in text else "end_turn", 1, 1
                )
                for text in (replies[str(call.key)] for call in effect.calls)
            )
    except StopIteration as stop:
        return rounds, stop.value


def test_what_cannot_be_read_is_asked_for_once_more_in_one_round():
    rounds, answers = play(
        ask([question("a"), question("b"), question("c")]),
        {"1/vote_final/a/1": "no", "1/vote_final/b/1": "ok b", "1/vote_final/c/1": "",
         "1/vote_final/a/2": "ok a", "1/vote_final/c/2": "never"},
    )  # fmt: skip
    assert [[str(call.key) for call in calls] for calls in rounds] == [
        ["1/vote_final/a/1", "1/vote_final/b/1", "1/vote_final/c/1"],
        ["1/vote_final/a/2", "1/vote_final/c/2"],
    ]
    assert answers == [
        Answer("ok a", "ok a", "no", salvaged=False, attempts=2),
        Answer("ok b", "ok b", None, salvaged=False, attempts=1),
        Answer(None, "never", "", salvaged=False, attempts=2),
    ]


def test_the_second_asking_adds_the_reminder_and_nothing_else():
    rounds, _ = play(ask([question("a")]), {"1/vote_final/a/1": "no", "1/vote_final/a/2": "ok"})
    first, second = rounds[0][0].request, rounds[1][0].request
    assert second.user == "user\n\nREMINDER"
    values = (second.system, second.model, second.max_tokens)
    assert values == (first.system, first.model, first.max_tokens)


@pytest.mark.parametrize(("first", "asked"), [("ok", 1), ("no", 2)])
def test_only_a_second_reply_is_salvaged(first, asked):
    kept = question("a", salvage=lambda text: f"saved {text}")
    rounds, [answer] = play(ask([kept]), {"1/vote_final/a/1": first, "1/vote_final/a/2": "bad"})
    assert len(rounds) == asked
    assert answer.salvaged == (asked == 2)
    assert answer.value == ("ok" if asked == 1 else "saved bad")


def test_no_question_is_no_round():
    assert play(ask([]), {}) == ([], [])


def test_a_reply_that_was_cut_off_is_asked_for_once_more_in_other_words_than_an_unreadable_one():
    asked = [question(agent, if_cut_off="SHORTER") for agent in ("a", "b", "c")]
    rounds, answers = play(
        ask(asked),
        {"1/vote_final/a/1": f"ok a{CUT}", "1/vote_final/b/1": "no", "1/vote_final/c/1": "ok c",
         "1/vote_final/a/2": "ok whole", "1/vote_final/b/2": "ok b"},
    )  # fmt: skip
    assert [call.request.user for call in rounds[1]] == ["user\n\nSHORTER", "user\n\nREMINDER"]
    assert answers == [
        Answer("ok whole", "ok whole", "ok a", salvaged=False, attempts=2),
        Answer("ok b", "ok b", "no", salvaged=False, attempts=2),
        Answer("ok c", "ok c", None, salvaged=False, attempts=1),
    ]


def test_where_the_second_reply_cannot_be_read_the_one_that_was_cut_off_counts():
    _, [answer] = play(
        ask([question("a", if_cut_off="SHORTER")]),
        {"1/vote_final/a/1": f"ok a{CUT}", "1/vote_final/a/2": "no"},
    )
    assert answer == Answer("ok a", "no", "ok a", salvaged=True, attempts=2)


def test_a_call_that_does_not_say_how_takes_a_reply_that_was_cut_off_as_it_is():
    rounds, [answer] = play(ask([question("a")]), {"1/vote_final/a/1": f"ok a{CUT}"})
    assert (len(rounds), answer.attempts) == (1, 1)
    rounds, _ = play(
        ask([question("a")]), {"1/vote_final/a/1": f"no{CUT}", "1/vote_final/a/2": "ok"}
    )
    assert rounds[1][0].request.user == "user\n\nREMINDER"


# --- Drivers run the same flow to the same value --------------------------------------------------

CALL = Call(CallKey(0, "judge", "judge", 1), Request("model", "sys", "user", 5))


def one_round():
    replies = yield Round((CALL,))
    return replies[0].text


def test_a_world_that_waits_gives_the_same_record(make_scene, script):
    scene = make_scene()
    world = scripted(script())

    async def waiting(effect):
        await asyncio.sleep(0)
        return world(effect)

    now = drive(episode(scene), scripted(script()))
    assert asyncio.run(drive_async(episode(scene), waiting)) == now


def test_canned_replies_can_be_a_table_by_key():
    assert drive(one_round(), scripted({"0/judge/judge/1": "text"})) == "text"


def test_a_canned_reply_that_is_missing_is_an_error():
    with pytest.raises(KeyError, match="0/judge/judge/1"):
        drive(one_round(), scripted({}))


def test_scripted_replies_have_a_size_in_tokens():
    world = scripted({"0/judge/judge/1": "12345"})
    assert world(Round((CALL,))) == (Reply("12345", "model", "end_turn", 2, 2),)


def test_scripted_programs_fail_unless_a_judge_is_given():
    result = scripted({})(CodeRun(0, "message", "prompt", "f", "test"))
    assert (result.code, result.verdict.outcome) == (None, "fail")


def test_a_failed_call_is_thrown_into_the_flow():
    def flow():
        try:
            yield Round((CALL,))
        except CallFailed as error:
            return f"kept {error.what}"

    def fails(effect):
        raise CallFailed("500")

    assert drive(flow(), fails) == "kept 500"
    with pytest.raises(CallFailed, match="500"):
        drive(one_round(), fails)


def test_a_flow_is_closed_when_its_world_breaks():
    closed = []

    def flow():
        try:
            yield Round((CALL,))
        finally:
            closed.append(True)

    with pytest.raises(ZeroDivisionError):
        drive(flow(), lambda effect: 1 // 0)
    assert closed == [True]


def test_a_call_key_that_comes_twice_in_an_episode_is_refused_before_it_is_asked():
    asked, twice = [], "1/vote_final/first/1"

    def greets_twice():
        yield from ask([question("first"), question("second")])
        yield from ask([question("first")])

    world = scripted(lambda call: asked.append(str(call.key)) or "ok")
    with pytest.raises(ValueError, match=f"the call {twice} is asked twice in one episode"):
        drive(run_to_failure(greets_twice(), CallLog()), world)
    assert asked == [twice, "1/vote_final/second/1"]


def test_a_coroutine_that_waits_is_refused_where_nothing_can_wait():
    async def waits():
        await asyncio.sleep(0)

    async def answers():
        return 7

    assert at_once(answers()) == 7
    with pytest.raises(RuntimeError, match="has waited"):
        at_once(waits())
