"""Summary, report, traces and recounts of runs of debates."""

import re
import shutil
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from tests.analysis.made import answered_by, tables_of
from tests.analysis.systems.debate.conftest import make_run
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.pages.numbers_printed_in_studies import figures_in
from tutorsim.analysis.runs.exported_tables import ballots_table
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
)
from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import Embedding
from tutorsim.analysis.systems.debate import VIEW
from tutorsim.analysis.systems.debate.charts_of_protocols_vote_start_councils import rounds
from tutorsim.analysis.systems.debate.episode_messages_and_telling_episodes import trace
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    RULES,
    Contrast,
    Debate,
    Slope,
    Told,
    rounds_slopes,
)
from tutorsim.analysis.systems.debate.page_of_scores_turns_cost_challenges import (
    PUBLISHED,
    agents_slopes,
    as_printed,
    challenge,
    document,
)
from tutorsim.analysis.systems.debate.tables_of_protocols_recounted_on_same_debates import (
    Evidence,
    Variant,
    best_protocol,
    differing,
    protocol_chance,
    recount_document,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run
from tutorsim.errors import UsageError
from tutorsim.records import EPISODES_FILE


@pytest.fixture(scope="module")
def by_relay(bundled):
    """The bundled debates as if a relay had answered them."""
    return replace(bundled, head=answered_by(bundled.head, "relay"))


def rows_of(table):
    return list(table.data.iter_rows(named=True))


def test_a_summary_has_the_parts_of_a_run(bundled):
    made = document(bundled, True)
    names = [section.id for section in made.sections]
    assert names == ["performance", "turns", "cost", "protocols"]
    rows = rows_of(tables_of(made)["performance"])
    assert len(rows) == 3 * 7
    assert {row["n"] for row in rows} == {6, 2}
    full = [row for row in rows if row["condition"] == "full"]
    assert all(row["score"] == "–" for row in full)


@pytest.mark.parametrize("brief", [True, False])
def test_nothing_is_said_of_the_study_beside_a_stand_in(bundled, brief):
    text = to_markdown(document(bundled, brief))
    assert not re.search(r"[Pp]rinted|[Tt]he study", text)


def test_every_printed_number_of_a_report_stands_with_its_provenance(by_relay):
    text = to_markdown(document(by_relay, False))
    sections = [part for part in text.split("\n## ") if "| printed" in part]
    assert [part.partition("\n")[0] for part in sections] == [
        *("Performance", "Turns to decision", "Similarity of answers", "Cost")
    ]
    assert all("Answered by: relay" in part for part in sections)
    assert text.count("The study prints a slope") == 1
    assert "printed" not in to_markdown(document(by_relay, True))


def test_a_column_of_printed_figures_is_there_where_one_is_printed():
    """The study has no scores of hybrids, and no factor of a model alone."""
    for condition, scores, factor in (("simple", 2, 1), ("hybrid", 0, 1), ("baseline", 2, 0)):
        found = tables_of(document(make_run([condition]), False))
        heads = [name for name in found["performance"].data.columns if "printed" in name]
        assert len(heads) == scores
        assert ("Printed" in found["performance"].caption) == bool(scores)
        assert ("printed ×" in found["cost"].data.columns) == bool(factor)
        own = condition == "simple", condition != "baseline"
        assert ("similarity" in found, "turns" in found) == own


@pytest.mark.costly
def test_a_report_has_every_section_of_its_run_and_a_page(bundled):
    made = document(bundled, False)
    assert [section.id for section in made.sections] == [
        *("protocols", "performance", "turns", "rounds", "similarity", "answerable"),
        *("cost", "deciding"),
    ]
    assert made.episodes
    page = to_html(made)
    assert "Every protocol on the same debates" in page


def test_a_model_of_sentences_stands_beside_the_words_and_is_named(by_relay):
    """All sentences alike for a model that knows one direction only."""
    one = Embedding("one direction", lambda texts: np.ones((len(texts), 1)))
    text = to_markdown(document(replace(by_relay, embedding=one), False))
    part = next(part for part in text.split("\n## ") if part.startswith("Similarity"))
    assert "| words | sentences | score |" in part
    assert "by the model one direction" in part
    own = [line.split(" | ")[5] for line in part.splitlines() if "| this run |" in line]
    assert own == ["1.000"] * 3
    printed_line = next(line for line in part.splitlines() if "| printed |" in line)
    assert "| – | 0.888 |" in printed_line


def test_the_first_sentence_says_what_its_table_says():
    """Of debates that stopped, most protocols are known within bounds, and no one is the best."""
    made = document(make_run(["simple", "hybrid"], debates=3), True)
    rows, [answer] = rows_of(tables_of(made)["protocols_default"]), made.answers
    ranges = {row["protocol"]: row["score"] for row in rows if " to " in row["score"]}
    assert {"simple", "ranked"} <= ranges.keys()
    assert answer.headline == "Not known: the recording leaves it open"
    not_tested = {"hybrid", "solution counting"}
    assert all(name in answer.detail for name in ranges.keys() - not_tested)
    assert "the same 6 debates of 3 tasks" in answer.detail
    [exact] = document(make_run(["full"], debates=2), True).answers
    assert (exact.headline, "may be" in exact.detail) == ("None, all 0.0 percent", False)


@pytest.mark.parametrize("conditions", [["baseline"], ["full"], ["unanimity"], ["self_refine"]])
def test_runs_of_one_condition_have_a_summary_and_a_report(conditions):
    run = make_run(conditions, debates=2)
    for brief in (True, False):
        made = document(run, brief)
        assert made.sections
        assert to_markdown(made)


@pytest.mark.parametrize(
    ("gold", "scores", "said"),
    [
        ("AAAB", [1, 1, 0, 0], "mmlu default simple 50.0, always A 75.0."),
        ("AAAB", [1, 1, 1, 0], ""),
        ("ABCD", [0, 0, 0, 0], "mmlu default simple 0.0, always A 25.0."),
        ("ABCD", [1, 0, 0, 0], ""),
    ],
)
def test_an_accuracy_below_a_trivial_baseline_is_said_where_it_stands(gold, scores, said):
    run = make_run(["simple"])
    episodes = [
        one.model_copy(update={"gold": (letter,), "score": float(score)})
        for one, letter, score in zip(run.episodes, gold, scores, strict=True)
    ]
    caption = tables_of(document(replace(run, episodes=tuple(episodes)), True))[
        "performance"
    ].caption
    assert caption == f"No episode failed.{f' Below a trivial baseline: {said}' if said else ''}"


def test_challenges_and_agents_have_sections_of_their_own():
    run = make_run(["majority"], challenge=["solution", "irrelevant"])
    rows = rows_of(tables_of(document(run, False))["challenge"])
    assert [row["setting"] for row in rows] == ["solution", "irrelevant"]
    more = make_run(["majority"], agents=5).episodes
    other = [one.model_copy(update={"variant": "five"}) for one in more]
    both = run.__class__(run.name, run.head, (*run.episodes, *other))
    [row] = rows_of(tables_of(document(both, False))["agents"])
    assert {"3", "5", "slope"} <= set(row)


def test_a_challenge_is_held_against_the_delivered_answer():
    """Five judgements of one setting: one rises, one falls, two stay (no answer is worth 0)."""
    judged = [  # worth of the delivered answer, whether it is challenged, worth of the other
        (0.5, True, 1.0),
        (1.0, True, 0.0),
        (1.0, True, 1.0),
        (None, True, None),
        (1.0, False, None),
        (1.0, None, None),
    ]
    complete = [
        SimpleNamespace(
            score=before,
            challenges=[SimpleNamespace(setting="solution", challenged=said, score=after)],
        )
        for before, said, after in judged
    ]
    of = Evidence((), seed=0)
    of.complete = complete
    [row] = rows_of(challenge(of))
    counts = ("judged", "unreadable", "rate", "rises", "falls", "stays")
    assert [row[name] for name in counts] == [5, 1, "80.0", 1, 1, 2]


def test_debates_of_other_settings_are_not_pooled():
    """Numbers of agents beside others that differ in the number alone; rounds by variant."""
    of = [
        one.model_copy(update={"variant": f"{agents}-{paradigm}", "score": 1.0})
        for agents, paradigm in ((3, "memory"), (5, "memory"), (3, "relay"))
        for one in make_run(["majority"], agents=agents, paradigm=paradigm).episodes
    ]
    found = agents_slopes(of)
    assert [one.name for one in found] == ["majority (paradigm = memory)"]
    unscored = [one.model_copy(update={"score": None}) for one in of]
    assert agents_slopes([*of, *unscored, *make_run(["baseline"], agents=7).episodes]) == found
    full = [
        one.model_copy(update={"variant": variant})
        for variant in ("a", "b")
        for one in make_run(["full"]).episodes
    ]
    found = rounds_slopes(list(map(Debate, full)), ("simple",))
    assert [one.name for one in found] == ["simple (a)", "simple (b)"]
    fewest = min(record.turns_taken for record in full)
    assert [list(one.points) for one in found] == [[*range(1, fewest + 1)]] * 2


def drawn_debates(seed, *, right):
    """Twelve tasks; each protocol is right with its chance, half of the time for one reason."""
    rng = Random(seed)
    for task in range(12):
        common = rng.random()
        draws = [common if rng.random() < 0.5 else rng.random() for _ in RULES]
        scores = [100.0 * (x < right.get(rule, 0.6)) for rule, x in zip(RULES, draws, strict=True)]
        yield tuple(Told(f"b.{task}", "exact", s, s, True, 2, 0) for s in scores)


def test_the_first_sentence_names_a_winner_where_there_is_one_and_else_at_most_by_chance():
    """Of 200 sets without any effect, 5 % may name one; a protocol that is always right is."""

    def headline(seed, right):
        debates = list(drawn_debates(seed, right=right))
        return best_protocol(Variant("default", debates, seed=seed)).headline

    said = [headline(seed, {}) for seed in range(200)]
    assert sum(not text.startswith(("Not ", "None")) for text in said) <= 10
    no_other = dict.fromkeys(RULES, 0.0) | {"ranked": 1.0}
    assert headline(1, no_other) == "ranked, 100.0 percent"


def test_protocols_that_differ_beyond_chance_are_named_with_points():
    """The least likely by chance first, with a real minus."""

    def contrast(second, difference, p):
        test = PermutationTest(difference, p, 20, exact=True, tasks=20)
        mean = Estimate(difference, 20, NotEstimable("not asked"))
        return Contrast(second, "approval", mean, test, "points", p_holm=p)

    rows = [contrast("ranked", 4.0, 0.5), contrast("simple", 9.0, 0.02)]
    words = protocol_chance(SimpleNamespace(contrasts=[*rows, contrast("majority", -12.25, 0.01)]))
    assert words.startswith(
        "Beyond chance over tasks: approval − majority −12.2 points, p = 0.010. "
        "approval − simple +9.0 points, p = 0.020. 3 contrasts were tested over 20 tasks"
    )


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(-3.0, 1.0), (-2.0, 2.0)], "No change of the score with later votes is beyond chance"),
        ([(-3.0, 0.0), (0.0, 2.0)], "is beyond chance, in any of 2 lines"),
        ([(-3.0, -1.0), (-2.0, 2.0)], "the score falls in 1 and rises in 0 of 2 lines"),
        ([], "cannot be said of so few tasks"),
    ],
)
def test_a_score_falls_only_where_its_interval_leaves_out_zero(ends, said):
    few = Slope("x", {1: 50.0, 2: 49.0}, Estimate(-1.0, 3, NotEstimable("too few tasks")), 3)
    known = [
        Slope("x", {1: 50.0, 2: 49.0}, Estimate(-1.0, 9, Interval(low, high, "bca")), 9)
        for low, high in ends
    ]
    assert said in rounds(SimpleNamespace(rounds=[few, *known])).finding


def test_challenges_of_a_failed_debate_are_in_no_table():
    run = make_run(["majority"], debates=1, challenge=["solution"])
    broken = [one.model_copy(update={"status": "failed"}) for one in run.episodes]
    challenges = VIEW.tables["challenges"]
    assert challenges.frame(run.episodes, run.head).height == 3
    assert challenges.frame(broken, run.head).height == 0


def test_a_run_of_failed_episodes_only_has_a_summary():
    run = make_run(["simple"], debates=1)
    broken = [one.model_copy(update={"status": "failed", "turns": ()}) for one in run.episodes]
    made = document(run.__class__(run.name, run.head, tuple(broken)), False)
    performance = tables_of(made)["performance"]
    assert "1 failed episode left out." in performance.caption
    assert performance.data["n"].to_list() == [0]


def test_a_recount_shows_every_condition_under_every_combination():
    run = make_run(["simple", "full"])
    made = recount_document(run, {"vote_from": ("1", "3"), "undecided": ("none",)})
    assert [section.title for section in made.sections] == [
        "Recorded as full, with vote_from = 1, undecided = none",
        "Recorded as simple, with vote_from = 1, undecided = none",
        "Recorded as full, with vote_from = 3, undecided = none",
        "Recorded as simple, with vote_from = 3, undecided = none",
    ]
    names = [section.id for section in made.sections[:2]]
    assert names == ["full:vote_from=1,undecided=none", "simple:vote_from=1,undecided=none"]
    exact = rows_of(made.sections[0].tables[0])
    assert "open" not in exact[0]  # every line of a full recording is exact
    assert "open" in rows_of(made.sections[1].tables[0])[0]


def test_a_recount_begins_with_the_debates_that_never_stopped(bundled):
    """One recording decided under every protocol is what a reader came for."""
    made = recount_document(bundled, {})
    [answer] = made.answers
    assert answer.section == made.sections[0].id == "full"
    asked = recount_document(bundled, {"vote_from": tuple("123456")})
    assert [one.question[-14:-1] for one in asked.answers] == [
        f"vote_from = {turn}" for turn in "12345"
    ]


def test_each_debate_has_an_outcome_under_each_protocol(bundled):
    """They come to the means that the page prints."""
    frame = VIEW.tables["outcomes"].frame(bundled.episodes, bundled.head)
    assert frame.height == 50 * 9  # 20 episodes of a model alone have nothing to decide
    full = frame.filter((pl.col("condition") == "full") & (pl.col("certainty") == "exact"))
    means = full.group_by("protocol").agg(100 * pl.col("score_least").mean())
    assert full["score_least"].equals(full["score_most"])
    shown = rows_of(recount_document(bundled, {}).sections[0].tables[0])
    scores = {row["protocol"].replace(" ", "_"): row["score"] for row in shown}
    assert all(scores[name].startswith(f"{mean:.1f} ") for name, mean in means.iter_rows())


def test_outcomes_of_a_stopped_debate_are_those_of_its_log_or_say_what_is_open(bundled):
    frame = VIEW.tables["outcomes"].frame(bundled.episodes, bundled.head)
    own = frame.filter(pl.col("condition") == pl.col("protocol")).to_dicts()
    logged = {one.episode_id: one for one in bundled.episodes}
    assert len(own) == 4 * 10
    for row in own:  # under its own protocol what was logged
        record = logged[row["episode_id"]]
        assert (row["turn"], row["decided"]) == (record.turns_taken, record.decided)
        assert (row["answers"], row["author"]) == ([record.answer], record.answer_of)
    beyond = frame.filter(pl.col("certainty") == "beyond")
    assert set(beyond.select("score_least", "score_most").iter_rows()) == {(0.0, 1.0)}
    assert beyond["turn"].null_count() == beyond.height
    inapt = frame.filter(pl.col("certainty") == "not_applicable")
    assert set(inapt["protocol"]) == {"solution_counting"}
    assert inapt["score_least"].null_count() == inapt.height


def test_outcomes_under_settings_name_every_combination():
    run = make_run(["full"], debates=1)
    made = VIEW.outcomes_under({"vote_from": ("1", "3"), "merge_identical": ("true",)})
    frame = made.frame(run.episodes, run.head)
    settings = ["vote_from = 1, merge_identical = true", "vote_from = 3, merge_identical = true"]
    assert frame["setting"].unique(maintain_order=True).to_list() == settings
    assert made.frame((), run.head).schema == frame.schema == made.schema
    with pytest.raises(UsageError, match="no setting 'colour'"):
        VIEW.outcomes_under({"colour": ("1",)})


def test_a_recount_scores_as_the_program_does_if_told_to():
    run = make_run(["baseline"], debates=1)
    record = run.episodes[0].model_copy(update={"answer": "X) or C)", "score": 1.0})
    assert record.worth(record.answer).value == 1.0  # one option letter stands before a bracket
    assert record.worth(record.answer, "mallm").value == 0.0  # the first capital does


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"colour": ("1",)}, "no setting 'colour'"),
        ({"vote_from": ("0",)}, "'0' is no value"),
        ({"undecided": ("lot",)}, "'lot' is no value"),
        ({"scoring": ("mine",)}, "'mine' is no value"),
    ],
)
def test_a_setting_that_cannot_be_recounted_is_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        recount_document(make_run(["full"], debates=1), settings)


def test_a_trace_says_who_saw_what():
    run = make_run(["simple"], debates=1, paradigm="relay")
    told = trace(run, run.episodes[0])
    second = next(one for one in told.parts if one.note.startswith("#2"))
    assert "turn 1, saw #1" in second.note
    fourth = next(one for one in told.parts if one.note.startswith("#4"))
    assert "saw #1, #3" in fourth.note  # its own, and that of the agent before it in the ring


def test_a_held_vote_is_in_no_table_of_deciding_ballots(bundled):
    """A tie that was followed by another turn decided nothing."""
    held = {
        (record.episode_id, turn.turn)
        for record in bundled.episodes
        for turn in record.turns
        if turn.held is not None
    }
    assert len(held) > 3
    frames = {
        name: VIEW.tables[name].frame(bundled.episodes, bundled.head)
        for name in ("ballots", "diagnostic_ballots")
    }
    places = {
        name: set(frame.select("episode_id", "turn", "stage").iter_rows())
        for name, frame in frames.items()
    }
    assert {(e, t) for e, t, stage in places["diagnostic_ballots"] if stage == "vote_held"} == held
    assert not {(e, t) for e, t, _ in places["ballots"]} & held
    assert {stage for *_, stage in places["ballots"]} == {"vote_final"}
    assert not any(".full" in e for e, *_ in places["ballots"])


def test_every_table_has_rows(bundled):
    for name, table in VIEW.tables.items():
        frame = table.frame(bundled.episodes, bundled.head)
        assert frame.height > 0 or name == "challenges"


def test_the_bundled_debates_show_what_can_happen(bundled):
    episodes = bundled.episodes
    turns = [turn for record in episodes for turn in record.turns]
    ballots = [one for turn in turns for one in (*turn.cast, *sum(turn.ballots_as.values(), ()))]
    assert any(turn.held for record in episodes for turn in record.turns[:-1])
    assert any(r.condition == "approval" and r.decided is False for r in episodes)
    assert any(one.agreement == "unclear" for turn in turns for one in turn.messages)
    assert any(one.ballot_status == "abstained" for one in ballots)
    assert 1_700 < sum(len(record.calls) for record in episodes) < 2_100


def test_all_printed_figures_are_there():
    of = Evidence((), seed=0, beside=figures_in(PUBLISHED))
    [one] = of.printed("accuracy", model="llama-3-8b", benchmark="mmlu", condition="simple")
    assert as_printed(one) == "53.3 ± 1.8"
    assert len(figures_in(PUBLISHED)) == 212


def test_a_recount_reads_each_debate_once_and_leaves_its_ballots(bundled, bundled_log, tmp_path):
    """Ten thousand debates are gone through once, and none is held."""
    folder = tmp_path / "run"
    shutil.copytree(bundled_log, folder)
    passing = open_run(folder, use="recount")
    told = [to_markdown(recount_document(run, {})) for run in (passing, bundled)]
    assert told[0] == told[1]
    (folder / EPISODES_FILE).unlink()
    assert passing.ballots.equals(ballots_table(bundled.episodes, run=bundled.head))
    assert passing.ballots.height > 0


def test_debates_on_which_the_protocols_differ_are_shown_one_by_one(bundled):
    made = document(bundled, False)
    rows = {row["task"]: row for row in rows_of(tables_of(made)["differing_default"])}
    assert len(rows) == 5
    assert rows["strategyqa-0003"]["right"] == "B"
    settings = rows_of(tables_of(made)["settings_default"])
    merged = [row["score"] for row in settings if row["setting"] == "merge_identical = true"]
    assert any(" to " in score for score in merged)  # a vote over fewer answers was never held
    assert rows["strategyqa-0003"]["simple"] == "B (3)"
    assert rows["strategyqa-0003"]["approval"] == "A (5*)"
    assert rows["strategyqa-0003"]["unanimity"] == "B (1)"


def test_debates_that_leave_an_outcome_open_are_neither_alike_nor_shown():
    """A debate that a vote stopped has none of its own under rules that would have gone on."""
    stopped, whole = make_run(["simple"]).episodes, make_run(["full"]).episodes
    shown = differing(Variant("v", (), seed=0, debates=[*map(Debate, (*stopped, *whole))]))
    assert "Of 8 debates, 0 end with the same answer under all" in shown.caption
    assert "; 4 leave some outcome open." in shown.caption
    assert shown.data["task"].to_list() == [one.task_id for one in whole]
    exact = differing(Variant("v", (), seed=0, debates=[*map(Debate, whole)]))
    assert "open" not in exact.caption


def test_a_collective_debate_has_no_consensus_that_could_differ():
    debates = [Debate(one) for one in make_run(["full"], paradigm="collective").episodes]
    shown = differing(Variant("v", (), seed=0, debates=debates)).data
    assert set(shown["unanimity"]) == {"–"} != set(shown["simple"])


def test_the_chart_compares_protocols_that_apply_to_every_debate(bundled):
    """Solution counting takes eight of the ten, all right, and is no best of all."""
    [section] = [one for one in document(bundled, False).sections if one.id == "protocols"]
    assert section.figures[0].finding == (
        "By protocol, 63.3 to 90.0 percent of the same 10 debates are right"
    )
