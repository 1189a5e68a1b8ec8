from dataclasses import replace

import pytest

from tests.analysis.panel_runs import panel_episode, panel_turn, run_record, votes
from tutorsim.analysis.pages.shown_episodes import Episodes, Grid, Group, Message, Run
from tutorsim.analysis.pages.words_and_safe_text import step_sentence
from tutorsim.analysis.systems.panel.episode_messages_and_telling_episodes import (
    ballots_grid,
    telling,
    trace,
)
from tutorsim.ballot_reading_and_decisions import RichBallot
from tutorsim.records import Branch, BranchPoint, Proposal, RunRecord, VerdictRecord

RUN = Run(RunRecord())
S, I, O, E = ("scaffolding", "misconception", "motivation", "metacognitive")  # noqa: E741


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
    return Episodes(records, lambda record: trace(RUN, record), telling(set(flipped)))


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
    one = trace(RUN, episodes[0])
    assert one.outcome == "no success"
    assert one.line.endswith("; scaffolding won")
    assert one.marks["Decided by"] == ("fallback",)
    assert one.marks["Won a turn"] == (S,)
    assert one.marks["Condition"] == ("simple",)


def test_a_branch_s_own_order_is_told_from_the_turn_on_that_it_decides(episodes):
    branch = Branch(parent="p", parent_study="s", parent_recording="r", fallback_order=(E, O, I, S))
    run = Run(run_record(branch=branch))
    for turn, order in ((1, (E, O, I, S)), (2, (S, I, O, E))):
        point = BranchPoint(parent_episode="e", turn=turn, continuation=1, left=None)
        parts = trace(run, episodes[0].model_copy(update={"branch": point})).parts
        [decided] = [one for one in parts if isinstance(one, Message) and one.chosen]
        assert f"Fallback order ({' > '.join(order)})" in decided.text


def test_a_turn_is_told_in_the_order_in_which_it_happened(episodes):
    parts = trace(RUN, episodes[0]).parts
    titles = [one.speaker if isinstance(one, Message) else one.title for one in parts]
    assert titles == [
        "Student", "Turn 1", "First drafts", "Reviews of the first drafts",
        "First vote, on the drafts (diagnostic)", "Revised drafts",
        "Final vote, on the revised drafts",
        "Reviews of the tied drafts, scaffolding, misconception", "Tie round",
        "scaffolding wins", "The student reads", "Student",
    ]  # fmt: skip
    folded = [one.title for one in parts if isinstance(one, Group) and one.folded]
    assert folded == [title for title in titles if title.startswith(("First drafts", "Reviews"))]
    [revised] = [one for one in parts if isinstance(one, Group) and one.title == "Revised drafts"]
    assert [one.speaker for one in revised.messages if one.chosen] == [S]


def test_a_draft_says_why_how_sure_it_is_and_how_it_was_read():
    turn = panel_turn("simple", votes(S, S, S, S))
    draft = Proposal(text="Try.", rationale="A step.", confidence=70, status="repaired", attempts=2)
    turn = turn.model_copy(update={"proposals_initial": {S: draft}})
    [drafts] = [one for one in trace(RUN, panel_episode(turn)).parts if _is(one, "First drafts")]
    note = "confidence 70, not in the form asked for, asked 2 times"
    assert drafts.messages == (Message(S, "Try.", note, aside="why: A step."),)


def _is(part, title):
    return not isinstance(part, Message) and part.title == title


def test_tests_of_a_program_are_told_with_their_reason():
    verdict = VerdictRecord(outcome="fail", reason="wrong answer", near_limit=True, unsafe=True)
    record = panel_episode(condition="baseline", benchmark="humaneval", codes=(False, True))
    first, last = record.attempts
    attempts = (first.model_copy(update={"verdict": verdict}), last)
    said = trace(RUN, record.model_copy(update={"attempts": attempts})).parts
    assert [one.note for one in said if isinstance(one, Message)] == [
        "before any tutoring, judge: 0.10, tests: fail (wrong answer), near its limit, "
        "run without the sandbox",
        "after turn 1, judge: 0.40, tests: pass",
    ]


def test_labels_are_resolved_for_each_voter():
    """The voter saw misconception as A and scaffolding as B."""
    turn = panel_turn("simple", votes(S, I, O, E), shown={S: (I, S, O, E)})
    made = ballots_grid("Vote", turn.ballots_final)
    assert isinstance(made, Grid)
    assert made.columns == ("voter", "ballot", "in roles", "status")
    assert made.rows[0] == (S, "as cast", S, "valid")
    assert made.notes[:3] == (
        "simple count: scaffolding 1, misconception 1, motivation 1, metacognitive 1 — tied: "
        "scaffolding, misconception, motivation, metacognitive",
        "scaffolding saw A=misconception, B=scaffolding, C=motivation, D=metacognitive",
        "misconception saw A=scaffolding, B=misconception, C=motivation, D=metacognitive",
    )


def test_a_ballot_that_ranks_every_candidate_needs_no_legend():
    turn = panel_turn("ranked", votes((E, S, I, O), (E, S, I, O), (E, S, I, O), (E, S)))
    made = ballots_grid("Vote", turn.ballots_final)
    assert made.rows[0][2] == "metacognitive > scaffolding > misconception > motivation"
    assert made.notes[0].endswith(" — metacognitive leads")
    assert [note.partition(" ")[0] for note in made.notes] == ["ranked", E]  # it abstained


def test_an_abstention_is_no_approval_of_nobody():
    turn = panel_turn("approval", votes((S,), (), None, (S, E)))
    rows = ballots_grid("Vote", turn.ballots_final).rows
    assert [row[2] for row in rows] == [S, "(nobody)", "(abstained)", "scaffolding, metacognitive"]
    assert rows[2][3] == "abstained, asked twice"


def test_a_rich_ballot_has_a_bar_below_the_approved():
    ballot = RichBallot(order=(S, I, O, E), points={S: 10, I: 9, O: 5, E: 1}, approved=(S, I))
    made = ballots_grid(
        "Vote", panel_turn("rich", dict.fromkeys((S, I, O, E), ballot)).ballots_final
    )
    assert made.rows[0][2] == "scaffolding 10 > misconception 9 | motivation 5 > metacognitive 1"
    assert made.notes[0].startswith("cumulative count: scaffolding 40")


def test_what_a_row_of_ballots_has_no_room_for_stands_below_it():
    [ballot, *_] = panel_turn("ranked", votes(*[(E, S, I, O)] * 4)).ballots_final
    raw = "I thought about it for a long time, and then chose:\nD, A, B, C"
    made = ballots_grid("Vote", [replace(ballot, raw=raw, raw_first="Hm.")])
    assert made.rows[0][1] == "I thought about it for a long time, and…"
    assert made.notes[1:] == (f"{S}, first reply: Hm.", f"{S}, whole reply: {raw}")


def test_a_vote_that_came_to_nothing_says_so():
    assert ballots_grid("Vote", ()).notes == ("not in this log",)
    silent = panel_turn("approval", votes(None, None, None, None)).ballots_final
    assert ballots_grid("Vote", silent).notes[0] == "every voter abstained"


def test_a_decision_is_told_step_by_step(episodes):
    [turn] = episodes[0].turns
    assert [step_sentence(step) for step in turn.decision.steps] == [
        "Final vote: scaffolding 2, misconception 2, motivation 0, metacognitive 0 — "
        "tied: scaffolding, misconception.",
        "Tie round: scaffolding 2, misconception 2 — tied: scaffolding, misconception.",
        "Fallback order: the first of the tied candidates is scaffolding.",
    ]
