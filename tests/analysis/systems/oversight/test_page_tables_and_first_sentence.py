import json
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from tests.analysis.made import answered_by, tables_of
from tests.analysis.systems.oversight.conftest import debated, make_run
from tests.reference.opinions import labels
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.document_as_json_and_as_claims import to_value
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.systems.oversight import VIEW
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    RULES,
)
from tutorsim.analysis.systems.oversight.episode_messages_and_telling_episodes import TELLING, trace
from tutorsim.analysis.systems.oversight.label_accuracy import baselines, pair_of
from tutorsim.analysis.systems.oversight.page_data_and_strict_or_lenient_rereading import Evidence
from tutorsim.analysis.systems.oversight.page_tables_and_first_sentence import (
    _same_text,
    _shown,
    aggregation,
    below_trivial,
    document,
    recount,
)
from tutorsim.errors import UsageError
from tutorsim.records import to_line
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import CONDITIONS
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import read_mrbench_text


@pytest.fixture(scope="module")
def report(played):
    return document(played, False)


@pytest.fixture(scope="module")
def beside(played):
    """The report as if a relay had answered."""
    return document(replace(played, head=answered_by(played.head, "relay")), False)


def tables(found):
    return {name: table.data for name, table in tables_of(found).items()}


def unlabelled():
    rows = [
        {
            "conversation_id": f"c{i}",
            "conversation_history": "Tutor: 2 + 2?\nStudent: 5",
            "tutor_responses": {"GPT4": {"response": "Is it? Count again."}},
        }
        for i in range(3)
    ]
    return read_mrbench_text(json.dumps(rows), "test.json")


def test_a_report_has_every_table_and_a_summary_only_what_a_terminal_needs(played, report):
    assert set(tables(report)) == {
        *("items", "scores", "differences", "official", "ablation", "confusion"),
        *("aggregation", "adaptive", "diagnostics", "calibration", "cost"),
    }
    assert [one.id for one in report.sections] == [*("scores", "aggregation", "debates", "cost")]
    assert set(tables(document(played, True))) == {"items", "scores", "cost"}


def test_a_run_that_audits_nothing_has_no_section_of_an_audit(report):
    assert [one.id for one in report.sections][:2] == ["scores", "aggregation"]


def test_trivial_baselines_stand_below_the_conditions(report):
    names = tables(report)["scores"]["condition"].to_list()
    assert names[: len(CONDITIONS)] == list(CONDITIONS)
    values = names[len(CONDITIONS) :]
    assert values == ["always yes (mistake = 1)", "always effective (guidance = 2)"]


def test_an_accuracy_below_a_trivial_baseline_is_said_where_it_stands(played):
    """Of the better and the worse of two conditions, the worse alone is below."""
    of = Evidence(played)
    trivial = baselines(max(of.judged.values(), key=len))["always effective"]
    accuracy = trivial.metrics["guidance_accuracy"].value
    ends = {"good": accuracy, "bad": accuracy - 0.01}
    scores = {
        name: SimpleNamespace(
            metrics={
                "mistake_accuracy": Estimate(1.0, 9, NotEstimable("few")),
                "guidance_accuracy": Estimate(value, 9, NotEstimable("few")),
            }
        )
        for name, value in ends.items()
    }
    said = below_trivial(SimpleNamespace(trivial=of.trivial, scores=scores))
    assert said.startswith(" Labels of guidance are right less often than “always effective”, 0.")
    assert said.endswith(" under bad.")


def test_exact_scores_of_the_mistake_are_not_printed(report):
    official = tables(report)["official"]
    kinds = set(official.select("label", "setting").iter_rows())
    assert kinds == {("guidance", "exact"), ("guidance", "lenient"), ("mistake", "lenient")}


def test_dialogues_of_one_text_under_several_ids_are_counted():
    def of(*names):
        return [SimpleNamespace(conversation=name) for name in names]

    found = SimpleNamespace(run=SimpleNamespace(episodes=of("a", "b", "c")), records=of(*"aac"))
    assert _same_text(found) == " 1 dialogue of these under several ids."
    assert _same_text(SimpleNamespace(run=found.run, records=found.run.episodes)) == ""


@pytest.mark.parametrize(
    ("points", "shown"),
    [(1, [0]), (24, [*range(24)]), (25, [*range(0, 25, 2)]), (50, [*range(0, 50, 3), 49])],
)
def test_of_a_long_curve_points_at_equal_steps_are_shown_and_the_last(points, shown):
    assert _shown(SimpleNamespace(points=range(points))) == shown


def test_the_confusion_matrix_counts_every_item(report):
    confusion = tables(report)["confusion"].filter(condition="hpo", label="guidance")
    counts = confusion.select(pl.exclude("condition", "label", "actual")).sum_horizontal()
    assert counts.sum() == 16


def test_nothing_is_said_of_the_study_beside_a_stand_in(report, beside):
    words = ("Printed", "printed", "oversight study", "best accuracy", "best results")
    said, told = to_markdown(report), to_markdown(beside)
    assert [word for word in words if word in told] == list(words)
    assert not [word for word in words if word in said]


def test_printed_figures_stand_beside_conditions_of_their_name_only(beside):
    printed = tables(beside)["printed"]
    value = printed.filter(condition="hpo", score="guidance accuracy")["printed"].item()
    assert value == 0.87
    assert "no_debate" not in printed["condition"].to_list()
    ablation = dict(tables(beside)["ablation"].select("condition", "printed").iter_rows())
    stated = {"no_briefing": 0.762, "no_advocate": 0.803, "no_debate": 0.815, "hpo": 0.825}
    assert ablation == stated


def test_differences_have_intervals_and_one_correction_a_table(played, report):
    found = tables(report)["differences"]
    assert found.height == len(CONDITIONS) * (len(CONDITIONS) - 1) // 2
    assert all("[" in cell for cell in found["difference"])
    others = tables(report)["aggregation"]
    lead = pl.col("rule") == "lead"
    assert set(others.filter(lead)["difference"]) == {"–"}
    assert all("[" in cell for cell in others.filter(~lead)["difference"])
    alone = Evidence(replace(played, episodes=[r for r in played.episodes if r.condition == "hpo"]))
    least = {"condition": "hpo", "rule": "most_cautious"}  # p of 4 of 256 swaps: 1/64
    [among_six] = aggregation(alone).data.filter(**least)["p (Holm)"]
    [among_all] = others.filter(**least)["p (Holm)"]
    assert (among_six, among_all) == ("0.094", "0.562")
    assert others.filter(~lead).height == 36


def test_the_judge_s_two_orders_are_compared(report):
    what = tables(report)["diagnostics"]["what"].to_list()
    assert "judge: another winner in the other order" in what
    assert "judge: the side shown first wins" in what


@pytest.mark.costly
def test_a_document_is_the_same_in_every_rendering_each_time(played, report):
    again = document(played, False)
    assert to_markdown(again) == to_markdown(report)
    assert to_html(again) == to_html(report)
    json.dumps(to_value(report))


def test_the_telling_items_are_shown_act_by_act(report):
    assert len(report.episodes) == report.episodes.total
    first = report.episodes[0]
    assert first.why
    assert first.outcome.startswith("mistake ")
    notes = [message.note for message in first.parts]
    assert any(note.startswith("saw ") for note in notes)
    assert dict(first.facts)["Gold"]


@pytest.mark.parametrize(
    ("lead", "confidence", "told"),
    [
        ((0, 0), 0.9, True),
        ((0, 0), 1.0, True),
        ((1, 0), 0.9, True),
        ((0, 0), 0.89, False),
        ((1, 2), 1.0, False),
        (None, 1.0, False),
    ],
)
def test_who_is_wrong_and_sure_to_nine_tenths_is_confident_and_wrong(lead, confidence, told):
    record = debated((1, 2), (1, 2), (1, 2), (1, 2), lead, gold=(1, 2), sure=(80, confidence))
    assert TELLING["confident and wrong"](record) is told


def test_an_unlabelled_file_is_run_and_scored_by_nobody():
    run = make_run(["single", "hpo"], unlabelled())
    found = document(run, False)
    assert "scores" not in tables(found)
    assert "not scored" in next(s for s in found.sections if s.id == "scores").lead
    assert not any(answer.question.startswith("Which condition") for answer in found.answers)
    assert tables(found)["aggregation"]["changed"].sum() >= 0


@pytest.mark.costly
def test_a_recount_can_draw_items_and_says_that_this_is_too_narrow(played):
    over = recount(played, {"over": ("items",)})
    assert set(tables(over)) == {"aggregation", "adaptive", "readings"}
    with pytest.raises(UsageError, match="over=rows"):
        recount(played, {"over": ("rows",)})
    with pytest.raises(UsageError, match="samples=3"):
        recount(played, {"samples": ("3",)})


def test_two_conditions_are_enough_to_ask_whether_the_debate_is_better():
    asked = [one.question for one in document(make_run(["single", "hpo"]), True).answers]
    assert "Is the debate better than the lead alone?" in asked
    alone = [one.question for one in document(make_run(["hpo"]), True).answers]
    assert "Is the debate better than the lead alone?" not in alone


def test_nothing_at_all_has_a_document(played):
    for brief in (True, False):
        found = document(replace(played, episodes=()), brief)
        assert tables(found) == {}


def test_outcomes_of_an_item_are_numbers_or_none(played):
    [record, *_] = played.episodes
    for outcome in VIEW.outcomes.values():
        assert outcome(record) in (0.0, 1.0)
    bare = make_run(["single"], unlabelled()).episodes[0]
    assert all(outcome(bare) is None for outcome in VIEW.outcomes.values())


def test_each_item_has_its_labels_under_each_reading_and_rule(played):
    """As run they are those of the log; a rule is what the table of aggregations counts."""
    frame = VIEW.tables["outcomes"].frame(played.episodes, played.head)
    logged = frame.filter((pl.col("reading") == "standard") & (pl.col("rule") == "as_run"))
    assert logged.height == len(played.episodes)
    for record, row in zip(played.episodes, logged.to_dicts(), strict=True):
        assert (row["mistake"], row["guidance"]) == pair_of(record.label)
        assert row["mistake_correct"] == record.scores["mistake"]
    debated = frame.filter((pl.col("condition") == "hpo") & (pl.col("reading") == "standard"))
    assert set(debated["rule"]) == {"as_run", "quick", *RULES} - {"lead"}
    shown = tables(recount(played, {}))["aggregation"].filter(pl.col("condition") == "hpo")
    for rule, changed in shown.select("rule", "changed").iter_rows():
        if rule != "lead":
            ours = debated.filter(pl.col("rule") == rule)
            theirs = logged.filter(pl.col("condition") == "hpo")
            apart = sum(int((ours[n] != theirs[n]).sum()) for n in ("mistake", "guidance"))
            assert apart == changed
    strict = VIEW.outcomes_under({"reading": ("strict",)}).frame(played.episodes, played.head)
    assert set(strict["reading"]) == {"strict"}
    bare = make_run(["single"], unlabelled())
    unscored = VIEW.tables["outcomes"].frame(bare.episodes, bare.head)
    assert unscored["mistake_correct"].null_count() == unscored.height
    with pytest.raises(UsageError, match="samples=3"):
        VIEW.outcomes_under({"samples": ("3",)})


def test_labels_of_an_item_are_those_of_the_plain_computation_from_the_log(played):
    frame = VIEW.tables["outcomes"].frame(played.episodes, played.head)
    debated = [record for record in played.episodes if record.condition == "hpo"]
    assert len(debated) > 5
    for record in debated:
        raw = json.loads(to_line(record))
        mine = frame.filter(pl.col("episode_id") == record.episode_id)
        for reading in ("strict", "standard", "lenient"):
            read = mine.filter(pl.col("reading") == reading).select("rule", "mistake", "guidance")
            found = {rule: pair for rule, *pair in read.iter_rows()}
            expected = labels(raw, reading)
            assert found == {rule: [*expected[rule]] for rule in found}
            assert set(found) == set(expected) - ({"quick"} if record.skipped else set())


def test_a_failed_item_is_told_as_failed_and_others_by_their_label(played):
    first = played.episodes[0]
    failed = first.model_copy(update={"status": "failed", "scores": None})
    assert trace(played, failed).outcome == "failed"
    assert trace(played, first).outcome.endswith(("right", "wrong"))
