"""The first screen against hand counts."""

import re
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest

import analysis.recount as recount_module
from analysis.report.answers import answers
from analysis.report.evidence import Evidence
from analysis.rules import TARGETS
from analysis.sources import open_votes

RANKINGS = list(permutations((2, 1, 0)))
S, I, O, E = ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")  # noqa: E741


def cast(*choices):
    return dict(zip(ROLES, choices, strict=True))


def screen(source):
    return {a.question: a for a in answers(Evidence(source))}


def test_what_was_run_counts_the_grid(rich_source):
    ran = screen(rich_source)["What was run?"]
    assert ran.headline == "4 episodes, 3 voting turns"
    assert "2 tasks × 2 student personas × 5 conditions" in ran.detail


def test_the_order_decided_what_counting_left_tied(rich_source):
    """One turn of three: scaffolding and misconception stay tied. Either may win it.

    Random order: ½ a turn changes. Scaffolding wins 1 turn as logged, 0 or 1 over all orders;
    misconception 1 (the tie round's) as logged, 1 or 2.
    """
    decided = screen(rich_source)["What did the fallback order decide?"]
    assert decided.headline == "1 of 3 turns"
    assert "a random one would change 0.5 on average" in decided.detail
    assert "scaffolding wins 0 to 1 turn depending on the order, and 1 as logged" in decided.detail


def test_rules_surely_agree_where_all_voters_rank_one_candidate_first(
    panel_turn, panel_episode, panel_source
):
    """Four equal rankings: first everywhere under simple, ranked and cumulative voting is
    possible for the top alone only under simple; approving of the top two ties them, and the
    order then decides. With the top first in the order too, all four protocols agree for sure.
    """
    same = panel_turn("ranked", cast(*[(S, I, O, E)] * 4))
    agreed = screen(panel_source(panel_episode(same)))["What do the rules agree on?"]
    assert agreed.headline == "All four protocols surely agree in 1 of 1 turn"
    assert "In 0 of 1 turn at least one other protocol would surely elect another" in agreed.detail


def test_rules_disagree_for_sure_where_first_places_and_points_part(
    panel_turn, panel_episode, panel_source
):
    """Borda: s 3+3+0+0 = 6, i 2+2+3+2 = 9. First places: s 2, i 1, o 1, so s under simple."""
    split = panel_turn("ranked", cast((S, I, O, E), (S, I, E, O), (I, O, E, S), (O, I, E, S)))
    agreed = screen(panel_source(panel_episode(split)))["What do the rules agree on?"]
    assert agreed.headline == "All four protocols surely agree in 0 of 1 turn"
    assert "In 1 of 1 turn at least one other protocol would surely elect another" in agreed.detail


def test_nothing_is_claimed_without_votes(panel_source):
    found = screen(panel_source())
    assert found["What do the rules agree on?"].headline == "Not estimable"
    assert found["What did the fallback order decide?"].headline == "Not estimable"


def test_turns_too_many_to_list_are_summed_within_bounds_of_what_each_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summed report says the same, but for what takes each turn on its own."""
    rows = [
        (f"e{e}", 1, stage, voter, candidate, mass, "ranked")
        for e in range(12)
        for stage in ("initial", "final")
        for v, voter in enumerate("xyz")
        for candidate, mass in zip("abc", RANKINGS[(e * (v + 1) + len(stage)) % 6], strict=True)
    ]
    names = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(tmp_path / "votes.parquet")
    each = Evidence(open_votes(tmp_path / "votes.parquet"))
    assert not each.sums_only
    exact = answers(each)
    kept = each.rule_rows, each.orders, each.recount.policies, each.recount.electorates
    monkeypatch.setattr("analysis.sources.MOST_LISTED", 11)
    summed = Evidence(open_votes(tmp_path / "votes.parquet"))
    assert summed.sums_only
    assert summed.source.ballots.is_empty()
    assert kept == (
        summed.rule_rows,
        summed.orders,
        summed.recount.policies,
        summed.recount.electorates,
    )
    assert summed.divergences == []
    bounded = answers(summed)
    assert [a for a in exact if a.question != "What do the rules agree on?"] == [
        a for a in bounded if a.question != "What do the rules agree on?"
    ]

    def first_number(text: str) -> int:
        return int(re.findall(r"[0-9]+", text)[0])

    assert first_number(exact[2].headline) <= first_number(bounded[2].headline)
    assert first_number(bounded[2].detail) <= first_number(exact[2].detail)


def test_a_report_reads_replies_again_once_for_all_rules(rich_source, monkeypatch):
    asked = []
    once = recount_module.reading_rows
    monkeypatch.setattr(
        recount_module, "reading_rows", lambda e, **kw: asked.append(e) or once(e, **kw)
    )
    evidence = Evidence(rich_source)
    assert {row.target for row in evidence.rule_rows} == set(TARGETS)
    assert evidence.recount.readings
    assert len(asked) == 1
