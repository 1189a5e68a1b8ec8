from collections.abc import Callable
from typing import Any

from tutorsim.analysis.systems.panel.branches import PaidCalls, Tokens, paid_calls
from tutorsim.records import BranchPoint, CallRecord

Make = Callable[..., Any]
ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
S, MI = ROLES[:2]


def call_of(key: str) -> CallRecord:
    call = {"key": key, "stage": key.split("/")[1], "model": "m", "stop_reason": "end_turn"}
    return CallRecord.model_validate({**call, "input_tokens": 100, "output_tokens": 7})


def with_calls(episode: Any, *keys: str, left: int | None = None, branched: bool = True) -> Any:
    point = BranchPoint(parent_episode="p", turn=1, continuation=1, left=left)
    calls = tuple(map(call_of, keys))
    return episode.model_copy(update={"calls": calls, "branch": point if branched else None})


START = ("0/student/student/1", "0/judge/judge/1", "1/vote_final/motivation/1")
END = ("1/student/student/1", "1/judge/judge/1", "2/propose/motivation/1")


def test_after_the_path_was_left_every_call_is_paid_for(
    panel_turn: Make, panel_episode: Make
) -> None:
    episode = panel_episode(panel_turn("simple", dict.fromkeys(ROLES, S)))
    parent = with_calls(episode, *START, *END, branched=False)
    asked = "1/vote_as_ranked/motivation/1"
    found = paid_calls(parent, with_calls(episode, *START, asked, *END, left=1))
    # Reused: the start. Paid for: the new vote, and student, judge and turn 2 after turn 1.
    assert found == PaidCalls(reused=3, paid=4, tokens={"m": Tokens(400, 28)})


def test_on_the_logged_path_only_calls_that_the_parent_lacks_are(
    panel_turn: Make, panel_episode: Make
) -> None:
    episode = panel_episode(panel_turn("simple", dict.fromkeys(ROLES, S)))
    parent = with_calls(episode, *START, *END, branched=False)
    asked = "1/vote_as_ranked/motivation/1"
    found = paid_calls(parent, with_calls(episode, *START, asked, *END))
    assert found == PaidCalls(reused=6, paid=1, tokens={"m": Tokens(100, 7)})


def test_calls_of_a_tie_round_are_the_parents_only_where_it_held_the_same_round(
    panel_turn: Make, panel_episode: Make
) -> None:
    final = dict(zip(ROLES, (S, S, MI, MI), strict=True))
    one = panel_episode(panel_turn("simple", final, tie=dict.fromkeys(ROLES, S)))
    other = panel_episode(panel_turn("simple", final, tie=dict.fromkeys(ROLES, MI)))
    keys = (*START, "1/tie_critique/motivation/1", "1/tie_vote/motivation/1")
    parent = with_calls(one, *keys, branched=False)
    assert paid_calls(parent, with_calls(one, *keys)).paid == 0
    assert paid_calls(parent, with_calls(other, *keys)).paid == 2


def test_costs_add_up() -> None:
    one = PaidCalls(1, 2, {"m": Tokens(3, 4), "n": Tokens(5, 6)})
    total = sum([one, PaidCalls(10, 20, {"m": Tokens(30, 40)})], PaidCalls())
    assert total.to_json() == {
        "reused": 11,
        "paid": 22,
        "input_tokens": 38,
        "output_tokens": 50,
        "models": {"m": {"input": 33, "output": 44}, "n": {"input": 5, "output": 6}},
    }
