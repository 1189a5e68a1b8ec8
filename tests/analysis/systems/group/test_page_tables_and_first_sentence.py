"""Tables of lessons and duels: conditions apart, intervals over lessons, duels by hand counts."""

from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from tests.analysis.made import answered_by
from tests.analysis.systems.group.conftest import RUN
from tests.tutorsim.systems.group.conftest import play, standin
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.pages.numbers_printed_in_studies import figures_in
from tutorsim.analysis.systems.group.charts_of_speakers_thresholds_and_acts import _most_said
from tutorsim.analysis.systems.group.exported_tables_messages_to_rate import TABLES
from tutorsim.analysis.systems.group.page_data_and_shares_of_coded_talk import (
    PUBLISHED,
    WINDOW,
    Evidence,
)
from tutorsim.analysis.systems.group.page_tables_and_first_sentence import (
    agreement,
    balance,
    best_system,
    categories,
    document,
    duels,
    hits,
    participation,
    phases,
    quality,
    reasons,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run
from tutorsim.records.group import (
    CodeRecord,
    CycleRecord,
    DuelRecord,
    EventRecord,
    PredictionRecord,
    RatingRecord,
    StepRecord,
    UtteranceRecord,
)
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import builtin_lessons

HEAD = SimpleNamespace(study=SimpleNamespace(seed=1), kinds=("relay",))


def of(records):
    """What the tables are of."""
    return Evidence(records, HEAD)


@pytest.fixture(scope="module")
def lessons():
    """Two lessons of each shipped problem under both conditions."""
    return [
        play(lesson, standin(seed), condition=condition).record.model_copy(
            update={"episode_id": f"{lesson.id}.{condition}.{seed}"}
        )
        for condition in ("self_select", "next_speaker")
        for lesson in builtin_lessons()
        for seed in (1, 2)
    ]


def test_an_interruption_is_the_choice_of_somebody_whom_the_rule_let_back_in(lessons):
    """Of three cycles in which it applied, its agent was chosen in the first alone."""
    lesson = lessons[0]
    [event, *_] = [e for e in lesson.events if e.cycle is not None and e.cycle.thoughts]
    steps = (StepRecord(rule="floor", kept=()), StepRecord(rule="interruption", kept=("bob",)))
    events = tuple(
        event.model_copy(
            update={"cycle": event.cycle.model_copy(update={"chosen": who, "steps": steps})}
        )
        for who in ("bob", "alice", None)
    )
    [row] = reasons(of([lesson.model_copy(update={"events": events})])).data.to_dicts()
    assert (row["cycles"], row["floor"], row["interruptions"]) == (3, 3, 1)


@pytest.mark.parametrize("table", [categories, phases])
def test_the_baseline_stands_apart_and_printed_figures_beside_self_selection(lessons, table):
    whole = table(of(lessons)).data
    for condition in ("self_select", "next_speaker"):
        alone = table(of([one for one in lessons if one.condition == condition]))
        own = whole.filter(whole["condition"] == condition)
        beside = condition == "self_select"
        assert own["printed"].is_not_null().any() == beside
        assert ("Printed" in alone.caption, "printed" in alone.data.columns) == (beside, beside)
        assert own.select(alone.data.columns).to_dicts() == alone.data.to_dicts()


def test_the_interval_of_a_slope_is_over_lessons(lessons):
    for row in balance(of(lessons)).data.iter_rows(named=True):
        assert row["lessons"] > len(builtin_lessons()) == 4
        assert row["low"] < row["change"] < row["high"]
    [three_problems] = balance(of(lessons[:6])).data.to_dicts()
    assert three_problems["low"] < three_problems["change"] < three_problems["high"]
    [three_lessons] = balance(of(lessons[:3])).data.to_dicts()
    assert three_lessons["low"] is None


def test_a_share_of_task_acts_is_told_at_both_ends_of_a_lesson(lessons):
    """The first window is all task acts; what comes after them is social-emotional."""
    lesson = lessons[0]
    said = [event.number for event in lesson.events if event.kind == "message"]
    assert len(said) > WINDOW + 1
    codes = tuple(
        CodeRecord(event=number, coder="coder_1", category=4 if place < WINDOW else 1)
        for place, number in enumerate(said)
    )
    [row] = balance(of([lesson.model_copy(update={"codes": codes})])).data.to_dicts()
    assert row["task_share_first"] == 1
    assert row["task_share_last"] == max(2 * WINDOW - len(said), 0) / WINDOW < 1
    assert row["change"] < 0
    assert participation(of([lesson])).data.height == len(lesson.agents) + 1


def test_coders_agree_over_the_messages_that_both_gave_a_category(lessons):
    """Two of four in the same of twelve, all four in the same area; one that one coder left."""
    lesson = lessons[0]
    said = [event.number for event in lesson.events if event.kind == "message"]
    given = {"coder_1": (4, 4, 1, None, 12), "coder_2": (4, 5, 1, 4, 10)}
    codes = tuple(
        CodeRecord(event=event, coder=coder, category=category)
        for coder, categories in given.items()
        for event, category in zip(said, categories, strict=False)
    )
    uncoded = lesson.model_copy(update={"codes": ()})
    made = agreement(of([lesson.model_copy(update={"codes": codes}), uncoded]))
    assert f"{len(said) - 4} messages that a coder" in made.caption
    # By chance 3/16 of twelve categories: (1/2 - 3/16) / (1 - 3/16).
    rows = made.data.rows()
    assert rows == [("twelve", 4, 0.5, pytest.approx(5 / 13)), ("two areas", 4, 1.0, 1.0)]


def test_the_one_who_writes_most_is_named_wherever_their_row_stands():
    rows = pl.DataFrame({"condition": "a", "who": ["x", "y"], "share": [0.6, 0.4], "even": 0.5})
    said = "x writes 60 % of messages under a; an even share is 50 %"
    assert [_most_said(table, of([])) for table in (rows, rows.reverse())] == [said, said]


# --- Duels ----------------------------------------------------------------------------------------


def duel(
    result, *, task="t", dependent=False, first=None, spoke="alice", predicted="bob", ratings=()
):
    utterance = UtteranceRecord(agent=spoke, status="valid", text="x", to=(), continues=False)
    event = EventRecord(
        number=9, kind="message", at_s=72, stage=0, who="bob",
        cycle=CycleRecord(utterance=utterance),
    )  # fmt: skip
    return DuelRecord(
        episode_id="e", benchmark="scenario", task_id=task, variant="none", condition="duel",
        agents=("bob", "alice"), learner_name="Tom", problem="p", kind="role_division",
        difficulty="easy", expected_speaker="alice", events=(event,), result=result,
        order_dependent=dependent, first_order=first or result, ratings=ratings,
        prediction=PredictionRecord(status="valid", named=predicted),
    )  # fmt: skip


def test_wins_draws_and_losses_with_intervals_over_scenarios():
    some = [
        *(duel("win", task="ab"[i]) for i in range(2)),
        duel("draw", task="c", dependent=True, first="win"),
        duel("loss", task="d"),
    ]
    none = duels(of([duel(None)])).data.select("duels", "share", "low", "high").rows()
    assert none == [(0, None, None, None)] * 3
    table = duels(of([*some, duel(None)]))
    rows = {row["result"]: row for row in table.data.iter_rows(named=True)}
    assert {name: row["duels"] for name, row in rows.items()} == {"win": 2, "draw": 1, "loss": 1}
    assert rows["win"]["first_order_only"] == 3
    # Two of four scenarios: variance (3 · 1/12 + ½ · 1/16) / 3.5, so 3.11 duels; t of 3 is 3.182.
    half = (3.182**2 / 3.111 * 0.25 + (3.182**2 / 3.111) ** 2 / 4) ** 0.5 / (1 + 3.182**2 / 3.111)
    assert rows["win"]["low"] == pytest.approx(0.5 - half, abs=1e-3)
    assert rows["win"]["high"] == pytest.approx(0.5 + half, abs=1e-3)
    assert "opposite verdicts in the two orders gave 1 draw" in table.caption
    assert "1 duel without a readable verdict" in table.caption
    assert (rows["win"]["printed"], rows["win"]["public_files"]) == pytest.approx((0.623, 0.571))


@pytest.mark.parametrize(
    ("results", "said"),
    [
        # all of 2^n sign changes: 2 of 64 are as far from zero as six wins, p 0.031
        ("wwwwww", "Yes|Duels won: 6, lost: 0. Drawn: 0. Tested over 6 scenarios by flipping"),
        ("llllll", "No, worse|Duels won: 0, lost: 6. Drawn: 0. "),
        ("wwwww", "Not known|5 scenarios cannot show it"),
        ("wwwwl?d", "Not shown|Drawn: 1. Tested over 6 scenarios by flipping signs, p = 0.375."),
        ("w", "Not known|1 scenario cannot show it, 6 are"),
        ("?", "Not shown|The judge's verdict could not be read in 1 duel."),
    ],
)
def test_whether_self_selection_is_better_is_said(results, said):
    kinds = {"w": "win", "l": "loss", "d": "draw", "?": None}
    some = [duel(kinds[result], task=str(i)) for i, result in enumerate(results)]
    answer = best_system(of(some))
    headline, detail = said.split("|")
    assert answer.headline == headline
    assert detail in answer.detail
    twice = best_system(of([*some, *some]))
    assert twice.headline == headline, "repeats are no more scenarios"


def test_hits_need_no_judge():
    table = hits(of([duel("win"), duel("loss", spoke="bob", predicted="alice"), duel(None)]))
    rows = [row for row in table.data.iter_rows(named=True) if row["kind"] == "all"]
    assert [(row["system"], row["hits"]) for row in rows] == [
        ("self_select", 2), ("next_speaker", 1),
    ]  # fmt: skip


def test_quality_is_a_mean_over_raters_and_their_spread():
    ratings = tuple(
        RatingRecord(system="self_select", rater=f"rater_{n}", scores={"a": score, "b": score})
        for n, score in enumerate((6.0, 8.0), start=1)
    )
    [row] = quality(of([duel("win", ratings=ratings)])).data.iter_rows(named=True)
    # raters give 6 and 8: mean 7, standard deviation √2
    assert (row["mean"], row["replies"]) == (7, 1)
    assert row["spread_of_raters"] == pytest.approx(2**0.5)
    assert row["printed"] == 4.25
    assert quality(of([duel("win")])) is None
    unread = RatingRecord(system="next_speaker", rater="rater_2", scores=None)
    rows = TABLES["ratings"].frame((duel("win", ratings=(ratings[0], unread)),), RUN)
    assert rows.select("rater", "criterion", "score").rows() == [
        ("rater_1", "a", 6), ("rater_1", "b", 6), ("rater_2", "", None),
    ]  # fmt: skip


def test_printed_figures_are_told_apart_from_computed_ones():
    assert len(figures_in(PUBLISHED)) == 42
    assert of([]).printed("duel", result="win") == 62.3
    assert of([]).printed("duel", public=True, result="win") == 57.1
    assert of([]).printed("duel", result="tie") is None


def test_nothing_is_said_of_the_study_beside_a_stand_in(tmp_path):
    """The bundled lessons and duels, and as if a relay had answered them."""
    replay(bundled_recording("group"), log_dir=tmp_path / "run")
    played = open_run(tmp_path / "run")
    by_relay = replace(played, head=answered_by(played.head, "relay"))
    said, beside = (to_markdown(document(run, False)) for run in (played, by_relay))
    words = ("Printed", "printed", "public files", "Public files")
    assert not [word for word in words if word in said]
    assert [word for word in words if word in beside] == list(words)
    charts = [[f.data for f in document(run, False).figures()] for run in (played, by_relay)]
    sources = [{*one["source"]} for some in charts for one in some if "source" in one.columns]
    assert sources == [{"this run"}, {"this run", "public files"}]
