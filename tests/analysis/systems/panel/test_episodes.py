"""Episodes in a line each, with what is special about them."""

from typing import Any

from tutorsim.analysis.systems.panel.episodes import episode_rows
from tutorsim.records import CallRecord
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


def votes(*choices: Any) -> dict[str, Any]:
    return dict(zip(DEFAULT_ROLES, choices, strict=True))


def test_what_is_special_is_told(panel_turn: Any, panel_episode: Any, panel_source: Any) -> None:
    tied = panel_turn("simple", votes(S, S, MI, MI), tie=votes(S, S, MI, MI))
    broken = panel_turn("simple", votes(S, S, MI, MI), tie=votes(MI, MI, MI, S))
    changed = panel_turn("simple", votes(MI, MI, MI, None), initial=votes(S, S, S, S))
    source = panel_source(
        panel_episode(tied, task="order", scores=(0.5, 0.1)),
        panel_episode(broken, task="round"),
        panel_episode(changed, task="flip"),
        panel_episode(condition="simple", task="once", scores=(0.9,)),
        panel_episode(condition="baseline", task="plain"),
    )
    rows = {row.task: row for row in episode_rows(source)}
    assert rows["order"].special == ("the score fell", "the order decided turn 1")
    assert rows["order"].scores == "0.50 → 0.10"
    assert rows["round"].special == ("a tie round decided turn 1",)
    assert rows["flip"].special == (
        "deliberation changed the winner of turn 1",
        "1 abstained",
    )
    assert rows["once"].special == ("solved at once",)
    assert rows["plain"].special == ()
    assert (rows["flip"].winners, rows["flip"].decided_by) == (("misconception",), ("vote",))


def test_replies_that_were_cut_off_or_refused_are_counted(
    panel_episode: Any, panel_source: Any
) -> None:
    reasons = ("max_tokens", "refusal", "max_tokens", "end_turn")
    calls = tuple(
        CallRecord(
            key=f"{turn}/student/student/1",
            stage="student",
            model="m",
            stop_reason=reason,
            input_tokens=1,
            output_tokens=1,
        )
        for turn, reason in enumerate(reasons)
    )
    episode = panel_episode(condition="baseline").model_copy(update={"calls": calls})
    [row] = episode_rows(panel_source(episode))
    assert row.special == ("2 replies cut off at max_tokens", "1 reply refused")
