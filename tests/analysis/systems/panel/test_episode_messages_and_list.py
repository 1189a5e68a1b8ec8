import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes
from tutorsim.analysis.pages.shown_episodes import Episodes, Grid, Group, Message
from tutorsim.analysis.pages.words_and_safe_text import step_sentence
from tutorsim.analysis.systems.panel.episode_messages_and_list import (
    ballots_grid,
    episode_rows,
    telling,
    trace,
)
from tutorsim.records import CallRecord

S, I, O, E = ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")  # noqa: E741


@pytest.fixture
def episodes():
    """A fallback, a tie round, an abstention, a single tutor."""
    split = votes(S, S, I, I)
    ranking = (E, S, I, O)
    return [
        panel_episode(panel_turn("simple", split, tie=split), task="t1"),
        panel_episode(panel_turn("simple", split, tie=votes(I, S, I, I)), task="t2"),
        panel_episode(panel_turn("ranked", votes(ranking, ranking, ranking, None)), task="t3"),
        panel_episode(task="t1", scores=(0.9,)),
    ]


def of(records, flipped=()):
    return Episodes(records, lambda record: trace(None, record), telling(set(flipped)))


def test_one_episode_is_chosen_for_each_thing_worth_a_look(episodes):
    first, second, third, last = episodes
    shown = of(episodes, [first.episode_id])
    assert [(one.id, one.why) for one in shown] == [
        (first.episode_id, "the fallback order decided a turn; deliberation changed a winner"),
        (second.episode_id, "a tie round broke a tie"),
        (third.episode_id, "a voter abstained"),
        (last.episode_id, ""),
    ]
    assert [one.id for one in shown.told()] == [one.episode_id for one in episodes[:3]]


def test_a_failed_episode_is_never_an_example():
    split = votes(S, S, I, I)
    failed = panel_episode(panel_turn("simple", split, tie=split), status="failed")
    fine = panel_episode(panel_turn("simple", votes(S, S, S, S)), task="t2")
    assert [one.why for one in of([failed, fine])] == ["", ""]


def test_the_head_says_what_came_of_it_and_what_it_is_found_by(episodes):
    one = trace(None, episodes[0])
    assert one.outcome == "no success"
    assert one.line.endswith("; scaffolding won")
    assert one.marks["Decided by"] == ("fallback",)
    assert one.marks["Won a turn"] == (S,)
    assert one.marks["Condition"] == ("simple",)


def test_a_turn_is_told_in_the_order_in_which_it_happened(episodes):
    parts = trace(None, episodes[0]).parts
    titles = [one.title for one in parts if not isinstance(one, Message)]
    assert titles == [
        "Turn 1", "First drafts", "Reviews of the first drafts",
        "First vote, on the drafts (diagnostic)", "Revised drafts",
        "Final vote, on the revised drafts", "Reviews of the tied drafts", "Tie round", "Decision",
    ]  # fmt: skip
    folded = [one.title for one in parts if isinstance(one, Group) and one.folded]
    assert folded == [title for title in titles if title.startswith(("First drafts", "Reviews"))]
    [revised] = [one for one in parts if isinstance(one, Group) and one.title == "Revised drafts"]
    assert [one.speaker for one in revised.messages if one.chosen] == [S]


def test_labels_are_resolved_for_each_voter():
    """The voter saw misconception as A and scaffolding as B."""
    turn = panel_turn("simple", votes(S, I, O, E), shown={S: (I, S, O, E)})
    made = ballots_grid("Vote", turn.ballots_final, ROLES)
    assert isinstance(made, Grid)
    assert made.columns == ("voter", *ROLES, "ballot", "as written")
    assert made.rows[0][:5] == (S, "1 B", "0 A", "0 C", "0 D")
    assert made.rows[1][1:5] == ("0 A", "1 B", "0 C", "0 D")


def test_an_abstention_has_dashes_and_no_zeros():
    turn = panel_turn("approval", votes((S,), (), None, (E,)))
    _, nobody, absent, _ = ballots_grid("Vote", turn.ballots_final, ROLES).rows
    assert [cell[0] for cell in nobody[1:5]] == ["0"] * 4
    assert [cell[0] for cell in absent[1:5]] == ["–"] * 4
    assert absent[5] == "abstained, asked 2 times"


def test_a_decision_is_told_step_by_step(episodes):
    [turn] = episodes[0].turns
    assert [step_sentence(step) for step in turn.decision.steps] == [
        "Final vote: scaffolding 2, misconception 2, motivation 0, metacognitive 0 — "
        "tied: scaffolding, misconception.",
        "Tie round: scaffolding 2, misconception 2 — tied: scaffolding, misconception.",
        "Fallback order: the first of the tied candidates is scaffolding.",
    ]


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
