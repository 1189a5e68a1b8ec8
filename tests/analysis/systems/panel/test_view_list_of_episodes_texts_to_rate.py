from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes
from tutorsim.analysis.systems.panel.view_list_of_episodes_texts_to_rate import episode_rows
from tutorsim.records import CallRecord

S, I, O, E = ("scaffolding", "misconception", "motivation", "metacognitive")  # noqa: E741


def test_what_is_special_is_told():
    tied = panel_turn("simple", votes(S, S, I, I), tie=votes(S, S, I, I))
    broken = panel_turn("simple", votes(S, S, I, I), tie=votes(I, I, I, S))
    changed = panel_turn("simple", votes(I, I, I, None), initial=votes(S, S, S, S))
    source = panel_source(
        panel_episode(tied, task="order", scores=(0.5, 0.1)),
        panel_episode(broken, task="round"),
        panel_episode(changed, task="flip"),
        panel_episode(condition="simple", task="once", scores=(0.9,)),
        panel_episode(condition="baseline", task="plain"),
    )
    rows = {row["task"]: row for row in episode_rows(source)}
    special = {task: row["special"] for task, row in rows.items()}
    assert special["order"] == ("the score fell", "the order decided turn 1")
    assert (rows["order"]["first_score"], rows["order"]["last_score"]) == (0.5, 0.1)
    assert special["round"] == ("a tie round decided turn 1",)
    assert special["flip"] == ("deliberation changed the winner of turn 1", "1 abstained")
    assert special["once"] == ("solved at once",)
    assert special["plain"] == ()
    assert rows["flip"]["winners"] == ("misconception",)
    assert rows["flip"]["decided_by"] == ("vote",)


def test_replies_that_were_cut_off_or_refused_are_counted():
    reasons = ("max_tokens", "refusal", "max_tokens", "end_turn")
    calls = tuple(
        CallRecord(
            key=f"{turn}/student/student/1", stage="student", model="m", stop_reason=reason,
            input_tokens=1, output_tokens=1,
        )
        for turn, reason in enumerate(reasons)
    )  # fmt: skip
    episode = panel_episode(condition="baseline").model_copy(update={"calls": calls})
    [row] = episode_rows(panel_source(episode))
    assert row["special"] == ("2 replies cut off at max_tokens", "1 reply refused")
