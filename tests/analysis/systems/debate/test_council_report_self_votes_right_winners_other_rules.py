"""What a council's owner is told: six questions, from the bundled rankings and from small votes."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.analysis.made import tables_of
from tests.analysis.pages.test_document_as_html_with_packed_episodes import (
    FOREIGN,
    foreign_words,
    packed,
)
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.systems.debate import VIEW
from tutorsim.analysis.systems.debate.charts_of_protocols_vote_start_councils import _kept_finding
from tutorsim.analysis.systems.debate.council_report_self_votes_right_winners_other_rules import (
    Councils,
    council_document,
    council_recount,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run
from tutorsim.errors import UsageError
from tutorsim.runner.import_logs_of_other_programs import import_logs, log_files
from tutorsim.systems.debate import DEBATE

BUNDLED = Path(__file__).parents[4] / "cassettes" / "council"
A, B, C = MODELS = ("alpha", "beta", "gamma")


def imported(paths, into):
    import_logs(DEBATE, DEBATE.logs["council"], log_files(paths), into)
    return open_run(into)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """12 rankings of four frontier models, each asked by itself."""
    return imported([BUNDLED / "rankings.json"], tmp_path_factory.mktemp("council") / "run")


@pytest.fixture
def small(tmp_path):
    """Runs of votes of three members, each vote by its rankings; the right answer is `7`."""

    def make(*votes, said=("7", "8", "8")):
        trials = [
            {
                "benchmark": "sums",
                "question_id": f"q{number}",
                "structure": "Independent → Rank → Synthesize",
                "stage1_responses": {
                    m: f"FINAL ANSWER: {text}" for m, text in zip(MODELS, said, strict=True)
                },
                "stage2_data": {
                    "rankings": dict(zip(MODELS, rankings, strict=True)),
                    "label_to_model": dict(zip("ABC", MODELS, strict=True)),
                },
                "stage3_data": {},
                "expected": "7",
                "is_correct": True,
            }
            for number, rankings in enumerate(votes)
        ]
        path = tmp_path / "trials.json"
        path.write_text(json.dumps(trials))
        return imported([path], tmp_path / "run")

    return make


def rows(document, name):
    return tables_of(document)[name].data.to_dicts()


@pytest.mark.costly
def test_a_page_of_councils_has_no_word_of_tutors(bundled):
    page = to_html(council_document(bundled, False))
    assert "12 councils" in page
    assert foreign_words(page) == []
    notes = [part[2] for one in packed(page) for part in one[1:]]
    assert notes
    assert not any(map(FOREIGN.search, notes))


def test_two_members_who_put_themselves_first_are_told_in_numbers(small):
    """A B C and B C A: B wins by mean places of 2, 1.5 and 2.5, and A without the second."""
    run = small((["A", "B", "C"], ["B", "C", "A"], []))
    answers = [(a.headline, a.detail) for a in council_document(run, True).answers]
    assert answers[1:] == [
        ("Without them 0 to 1 of 1 winners change",
         "Members place their own answer at 1.00 on average, others place the same answers at "
         "2.50. The difference is −1.50, below zero if members favour their own."),
        ("beta: 1 of 1",
         "So many winners change without that member's vote, the most of all members; a range "
         "where a tie would follow."),
        ("Sure against one wrong ballot: 0 of 1",
         "So many votes keep a single winner if any one voter may have cast any ballot; with 2 "
         "such voters: 0. A tie counts as no single winner."),
        ("0 of 1",
         "Rankings of answers: 0 of 1 under mean position. Of all replies delivered, 1 of 1 "
         "are right."),
        ("Not known",
         "No label differs from the middle beyond chance over questions. B stands best: −0.50 "
         "from the middle. Signs of questions are flipped, with Holm's correction over labels. "
         "Each label is always the same member, so the two cannot be told apart."),
    ]  # fmt: skip


def test_a_reply_that_nobody_can_score_is_in_no_share(small):
    run = small((["A", "B", "C"], ["B", "C", "A"], []), ([], [], []))
    first, second = run.episodes
    run = replace(run, episodes=(first, second.model_copy(update={"score": None})))
    right = council_document(run, True).answers[4]
    assert right.detail.endswith("Of all replies delivered, 1 of 1 are right.")


def test_where_nobody_ranked_anything_labels_are_not_known(small):
    last = council_document(small(([], [], [])), True).answers[-1]
    assert (last.headline, last.detail) == ("Not known", "No ranking has labels.")


def test_another_winner_for_certain_is_a_change(small):
    """A is first twice and last once, a mean place of 1.67, and those who rank B give it 1.5."""
    run = small((["A"], ["A", "B"], ["B", "C", "A"]))
    found = {row["rule"]: row for row in rows(council_recount(run), "rules")}["simple"]
    assert [found[name] for name in ("votes", "keeps", "changes", "open")] == [1, 0, 1, 0]


def test_a_vote_without_a_condorcet_winner_is_no_change(small):
    """A B C and C A B: A has the best mean place, beats B, and ties C."""
    run = small((["A", "B", "C"], ["C", "A", "B"], []))
    found = {row["rule"]: row for row in rows(council_recount(run), "rules")}
    counts = [found["condorcet"][name] for name in ("votes", "keeps", "changes", "nobody", "open")]
    assert counts == [1, 0, 0, 1, 0]


def test_an_incomplete_ranking_is_counted_with_every_completion(small):
    """A B C, A B C and C alone: whatever the last voter has second, A leads 4 or 5 to 3 or 2."""
    run = small((["A", "B", "C"], ["A", "B", "C"], ["C"]))
    [possible] = Councils(run).kinds[0].winners["ranked"].values()
    assert possible.winners == {A}
    [mean] = Councils(run).kinds[0].winners["mean_position"].values()
    assert mean.led == {A}  # places 1, 1; 2, 2; 3, 3, 1: A has mean 1


def test_mean_position_leaves_borda_if_rankings_leave_somebody_out(small):
    """One voter puts C first and names nobody else; two do not name C. Its mean place is 1."""
    run = small((["A", "B"], ["A", "B"], ["C"]))
    found = Councils(run).kinds[0].winners
    [mean], [borda] = found["mean_position"].values(), found["ranked"].values()
    assert mean.led == {A, C}
    assert A in (borda.winners or ())


def test_own_answers_are_set_beside_what_others_make_of_them(small):
    """Everybody puts the own answer first; each answer is second once and third once for others."""
    run = small((["A", "B", "C"], ["B", "C", "A"], ["C", "A", "B"]))
    [own] = rows(council_document(run, False), "own")
    assert (own["rankings"], own["own_place"], own["others_place"]) == (3, "1.00", "2.50")
    assert own["difference"].startswith("−1.50")


def test_whether_the_winner_is_right_is_known_under_every_rule(small):
    """Alpha says 7, which is right. It wins the first vote and comes last in the second."""
    run = small(
        (["A", "B", "C"], ["A", "C", "B"], ["A", "B", "C"]),
        (["B", "C", "A"], ["B", "C", "A"], ["B", "C", "A"]),
    )
    found = {row["rule"]: row for row in rows(council_recount(run), "right")}
    assert (found["ranked"]["votes"], found["ranked"]["right"]) == (2, "1")
    assert found["copeland"]["right"] == "1"
    assert found["approval"]["right"] == "0 to 2"  # open in both


def test_an_answer_that_cannot_be_read_may_be_right(small):
    run = small((["A", "B", "C"],) * 3, said=("", "8", "8"))
    found = {row["rule"]: row["right"] for row in rows(council_recount(run), "right")}
    assert found["ranked"] == "0 to 1"


def test_settings_of_debates_are_refused(bundled):
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import view_of

    with pytest.raises(UsageError, match="--set does not apply"):
        view_of("debate").recount(bundled, {"majority": ("at_least_half",)})


def test_each_vote_has_its_winners_under_each_rule(small):
    """Alpha says 7, which is right, and wins under every rule but those that ask for approval."""
    run = small((["A", "B", "C"], ["A", "C", "B"], ["A", "B", "C"]))
    frame = VIEW.tables["outcomes"].frame(run.episodes, run.head)
    found = {row["protocol"]: row for row in frame.to_dicts()}
    ranked, approval = found["ranked"], found["approval"]
    assert (ranked["certainty"], ranked["answers"], ranked["author"]) == ("exact", [A], A)
    assert (ranked["score_least"], ranked["score_most"]) == (1.0, 1.0)
    assert (approval["certainty"], approval["author"]) == ("open", None)
    assert (approval["score_least"], approval["score_most"]) == (0.0, 1.0)


def test_the_lead_chart_says_what_every_rule_does_to_the_winners(bundled):
    made = council_document(bundled, False)
    [chart] = [figure for figure in made.figures() if figure.name == made.lead]
    assert chart.finding == "8 of 12 other rules keep every winner; none surely changes one"
    parts = {"protocol": ["simple", "ranked"], "part": ["elects another", "keeps the winner"]}
    one = _kept_finding(pl.DataFrame(parts), Councils(bundled))
    assert one == "1 of 2 other rules keep every winner; simple surely changes one"
    assert chart.data.columns == ["rule", "part", "votes"]
    assert chart.data.filter(rule="cumulative").rows() == [
        *(("cumulative", "keeps the winner", 1), ("cumulative", "open", 10)),
    ]
    votes = chart.data.group_by("rule").agg(pl.col("votes").sum())
    assert set(votes["votes"]) == {11}  # of 12, of which one ties


def test_a_recount_has_a_section_for_what_the_logs_leave_open_also_if_that_is_nothing(small):
    document = council_recount(small({m: ["A", "B", "C"] for m in MODELS}.values()))
    told = next(section for section in document.sections if section.id == "told")
    assert (told.tables, told.title) == ((), "What was read")


def test_votes_on_one_question_are_counted_as_one_question(tmp_path):
    said = [{"model": m, "response": f"I am {m}."} for m in MODELS]
    ranked = [{"model": m, "parsed_ranking": ["A", "B", "C"]} for m in MODELS]
    vote = {"role": "assistant", "stage1": said, "stage2": ranked, "stage3": "So it is."}
    asked = [{"role": "user", "content": text} for text in ("Which?", " Which? ", "Why?")]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([message for one in asked for message in (one, vote)]))
    document = council_document(imported([path], tmp_path / "run"), brief=True)
    assert document.summary.startswith("3 councils on 2 questions.")


def test_what_many_votes_leave_open_names_three_of_them(small):
    told = rows(council_document(small(*[(["A", "B"], ["B", "C", "A"], [])] * 5), True), "told")
    three = "trials.json, vote 1; trials.json, vote 2; trials.json, vote 3; 2 more"
    assert [(row["votes"], row["files"]) for row in told] == [(5, three)] * 2
