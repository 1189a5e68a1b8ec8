"""Drivers run the same flow to the same value."""

import asyncio

import pytest

from tutorsim.errors import CallFailed
from tutorsim.kernel.flow import CodeRun, Round, at_once, drive, drive_async, scripted
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.systems.panel.study import episode

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


def test_a_coroutine_that_waits_is_refused_where_nothing_can_wait():
    async def waits():
        await asyncio.sleep(0)

    async def answers():
        return 7

    assert at_once(answers()) == 7
    with pytest.raises(RuntimeError, match="has waited"):
        at_once(waits())
