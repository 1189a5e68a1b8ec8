"""The first screen against hand counts."""

import re
from dataclasses import replace
from itertools import permutations

import polars as pl
import pytest

import tutorsim.analysis.recount as recount_module
from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes
from tests.guards import systems
from tests.guards.items import said
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.charts.figures_forms_and_colours import spec
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import numbers_in
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.recount import recount
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import document_of
from tutorsim.analysis.systems.panel.first_sentence_answers_and_facts_of_summary import answers
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.analysis.systems.system_view_opened_run_and_cost import opened
from tutorsim.runner.find_and_check_recording import bundled_recordings
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_into

RANKINGS = list(permutations((2, 1, 0)))
S, I, O, E = ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")  # noqa: E741


def screen(source):
    return {a.question: a for a in answers(Evidence(source))}


def test_what_was_run_counts_the_grid(rich_source):
    ran = screen(rich_source)["What was run?"]
    assert ran.headline == "4 episodes, 3 voting turns"
    assert ran.detail.startswith("2 tasks × 2 student personas under each of the conditions base")


def test_the_order_decided_what_counting_left_tied(rich_source):
    """One turn of three: scaffolding and misconception stay tied. Either may win it.

    Random order: ½ a turn changes. Scaffolding wins 1 turn as logged, 0 or 1 over all orders;
    misconception 1 (the tie round's) as logged, 1 or 2.
    """
    decided = screen(rich_source)["What did the fallback order decide?"]
    assert decided.headline == "1 of 3 turns"
    assert "a random one would change 0.5 on average" in decided.detail
    assert "scaffolding wins 0 to 1 turn depending on the order. As logged" in decided.detail


def test_rules_surely_agree_where_all_voters_rank_one_candidate_first():
    """Four equal rankings: first everywhere under simple, ranked and cumulative voting is
    possible for the top alone only under simple; approving of the top two ties them, and the
    order then decides. With the top first in the order too, all four protocols agree, though
    not surely: the agreement is the order's.
    """
    same = panel_turn("ranked", votes(*[(S, I, O, E)] * 4))
    agreed = screen(panel_source(panel_episode(same)))["What do the rules agree on?"]
    assert agreed.headline == "All four protocols surely agree in 0 of 1 turn"
    assert "With ties given to the fallback order, all agree in 1 of 1 turn." in agreed.detail
    assert "In 0 of 1 turn at least one other protocol would surely elect somebody" in agreed.detail
    # The card beside it reads ties alike. Of the three other protocols, simple alone leaves one
    # winner while a tie stays a tie: two cases are open; the order settles both.
    open_ = screen(panel_source(panel_episode(same)))["What is not identified?"]
    assert open_.headline == "The winner under another protocol, in 2 of 3 cases"
    assert "With ties given to the fallback order it is" in open_.detail
    assert "most often in 1 of 1 turns when ranked ballots are counted as cumul" in open_.detail
    assert (
        "Least often they are in 0 of 1 turns when ranked ballots are counted as s" in open_.detail
    )


def test_rules_disagree_for_sure_where_first_places_and_points_part():
    """Borda: s 3+3+0+0 = 6, i 2+2+3+2 = 9. First places: s 2, i 1, o 1, so s under simple."""
    split = panel_turn("ranked", votes((S, I, O, E), (S, I, E, O), (I, O, E, S), (O, I, E, S)))
    agreed = screen(panel_source(panel_episode(split)))["What do the rules agree on?"]
    assert agreed.headline == "All four protocols surely agree in 0 of 1 turn"
    assert "In 1 of 1 turn at least one other protocol would surely elect somebody" in agreed.detail


def test_nothing_is_claimed_without_votes():
    found = screen(panel_source())
    assert found["What do the rules agree on?"].headline == "Not estimable"
    assert found["What did the fallback order decide?"].headline == "Not estimable"


AGREEING = ("abc",) * 5
CHANGED = ("abc",) * 3 + ("bca",) * 2
"""Points by place: a 6, b 7. Alone first: a 3, b 2."""
TIED = ("abc", "bca", "cab", "abc", "bac")


def test_agreement_is_that_of_the_per_turn_table(tmp_path):
    rows = [
        (f"e{e}", 1, "vote_final", voter, candidate, 2 - order.index(candidate), "ranked")
        for e, orders in enumerate((AGREEING, CHANGED, TIED, CHANGED))
        for voter, order in zip("vwxyz", orders, strict=True)
        for candidate in "abc"
    ]
    names = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(tmp_path / "votes.parquet")
    source = open_source(tmp_path / "votes.parquet")
    found = recount(source, targets=("simple", "ranked", "copeland"), exempt=(0, 1))
    logged = pl.col("logged_winner")
    asked = found.per_turn.filter(logged.is_not_null(), exempt=0, reading="set")
    asked = asked.filter(pl.col("target") != "ranked")
    turns = asked.group_by("episode_id").agg(
        keeps=(pl.col("necessary_winner") == logged).fill_null(value=False).all(),
        changes=pl.col("possible_winners").list.contains(logged).not_().any(),
    )
    assert found.agreed("set") == (turns["keeps"].sum(), turns["changes"].sum(), turns.height)
    assert found.agreed("set") == (1, 2, 3)


def test_a_report_reads_replies_again_once_for_all_rules(rich_source, monkeypatch):
    asked = []
    once = recount_module.reading_rows
    monkeypatch.setattr(
        recount_module, "reading_rows", lambda e, *of: asked.append(e) or once(e, *of)
    )
    evidence = Evidence(rich_source)
    assert {row.target for row in evidence.rule_rows} == set(TARGETS)
    assert evidence.recount.readings
    assert len(asked) == 1


def test_a_vote_that_ends_tied_without_an_order_is_counted_and_no_figure_denies_it(tmp_path):
    head = "episode_id,turn,stage,voter,candidate,mass,protocol\n"
    rows = "e,1,vote_final,a,x,1,simple\ne,1,vote_final,b,y,1,simple\n"
    (tmp_path / "b.csv").write_text(head + rows, encoding="utf-8")
    made = report_of(open_source(tmp_path / "b.csv"))
    assert made.answers[0].headline == "1 vote on 2 candidates"
    said = {figure.name: f"{figure.finding} {figure.caption}" for figure in made.figures()}
    assert not [name for name, text in said.items() if "Nothing was put to a vote" in text]
    assert made.answers[1].headline == "Nobody: a tie"
    # there is no winner to keep, or for a ballot to change
    assert not said.keys() & {"kept", "agreement", "margins", "pivotal"}
    agreed, order = made.answers[2:4]
    assert (agreed.question, agreed.headline) == ("What do the rules agree on?", "Not estimable")
    assert "0 of 0" not in "".join(one.detail for one in made.answers)
    assert order.question == "What would an order decide?"
    assert said["wins"].startswith("An order would decide most about x and y")
    assert made.lead == "identification"
    assert "A tie stays a tie" in said["identification"]


def test_nothing_is_said_of_other_votes_where_there_are_none(tmp_path):
    (tmp_path / "b.csv").write_text(
        "turn,voter,choice\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n", encoding="utf-8"
    )
    made = report_of(open_source(tmp_path / "b.csv"))
    [agreed] = [one for one in made.answers if one.question == "What do the rules agree on?"]
    assert agreed.headline == "All four protocols surely agree in 2 of 2 votes"
    assert "In the other" not in agreed.detail
    [kept] = [one for one in made.figures() if one.name == "kept"]
    assert kept.finding == "Another rule surely keeps 100 % of winners and surely changes 0 %"


# --- Sentences -----------------------------------------------------------------------------------


def too_many_numbers(document):
    """Sentences of the first screen with more than two numbers.

    A number is what a page cites as one: with its unit, and with an interval in brackets. So is
    `a to b`. In `3 of 47` there are two. Days, names and versions are none.
    """
    lead = [figure for figure in document.figures() if figure.name == document.lead]
    texts = [document.summary, *(f"{figure.finding}. {figure.caption}" for figure in lead)]
    texts += [f"{one.question} {one.headline}. {one.detail}" for one in document.answers]
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            spans = re.sub(r"(?<![-\d])[\d.,]+ to (?=[+−]?\d)", "", sentence)
            if len(list(numbers_in(spans))) > 2:
                yield sentence


def test_what_counts_as_a_number_of_a_sentence(rich_document):
    def refused(text):
        return list(too_many_numbers(replace(rich_document, summary=text, answers=(), lead="")))

    assert not refused("Kept are 9 to 11 of 12. On 2026-11-21 hpo had 0.7 [0.5, 0.9] of 4 % or so.")
    assert refused("Kept are 9 of 12, which is 75 %.")


@pytest.mark.parametrize("study", ["DEBATE", "GROUP", "OVERSIGHT"])
def test_no_sentence_of_a_first_screen_has_more_than_two_numbers(tmp_path, study):
    run = opened(systems.played(tmp_path / "run", getattr(systems, study)))
    for brief in (True, False):
        assert list(too_many_numbers(document_of(run, brief=brief))) == []


def test_neither_has_one_of_panels_or_of_ballots(rich_document, tmp_path):
    (tmp_path / "b.csv").write_text(
        "poll,voter,first,second,third\nlake,ann,a,b,c\nlake,ben,b,c,a\nlake,cem,a,c,b\n", "utf-8"
    )
    ballots = document_of(opened(tmp_path / "b.csv"), brief=False)
    assert list(too_many_numbers(rich_document)) == list(too_many_numbers(ballots)) == []
    rated = document_of(opened(systems.rated(tmp_path, said)), brief=False)
    assert rated.answers[-1].section == "ratings"
    assert list(too_many_numbers(rated)) == []


@pytest.mark.costly
@pytest.mark.parametrize("name", sorted(bundled_recordings()))
def test_neither_has_one_of_the_bundled_recordings(tmp_path, name):
    run = opened(replay_into(bundled_recordings()[name], tmp_path / "run"))
    for brief in (True, False):
        assert list(too_many_numbers(document_of(run, brief=brief))) == []


def test_a_page_on_ballots_from_elsewhere_has_no_word_of_dialogues(tmp_path):
    rows = "poll,voter,first,second\nlake,ann,a,b\nlake,ben,b,a\nhill,ann,a,b\nhill,ben,a,b\n"
    (tmp_path / "votes.csv").write_text(rows, encoding="utf-8")
    made = report_of(open_source(tmp_path / "votes.csv"))
    specs = [spec(one, provenance=made.answered) for one in made.figures()]
    titles = re.findall("'title': '([^']*)'", str(specs))
    told = r"(?i)\b(turns?|students?|tutors?|role|priority|answered)\b"
    assert re.findall(told, " ".join((to_markdown(made), *titles))) == []
    assert [one.headline for one in made.answers[:2]] == [
        *("2 votes on 2 candidates", "a, 1 of 2 votes"),
    ]
