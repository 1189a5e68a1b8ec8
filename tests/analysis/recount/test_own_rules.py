"""Own rules beside the targets: scores by rank as every target, functions with a point alone."""

from collections import Counter
from fractions import Fraction
from random import Random

import polars as pl
import pytest

from tests.reference import scores as plain
from tests.reference.drawn import NAMES, drawn_turns
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    CastBallots,
    RankScores,
    refuse_shadowed,
)
from tutorsim.analysis.recount.result_models import RecountResult
from tutorsim.analysis.recount.tables import SECTIONS
from tutorsim.errors import UsageError

ORDER = ("bob", "cyd", "ann")


def drawn(seed, turns=24, order=ORDER):
    frame = drawn_turns(Random(seed), turns)
    return Source("drawn", frame, order, 6, None, ())


def total(ballots):
    """The largest sum of masses wins: each format's own rule."""
    return {c: sum(b[c] for b in ballots.cast.values()) for c in ballots.candidates}


@pytest.mark.parametrize(
    ("target", "scores"),
    [
        ("ranked", [2, 1, 0]),
        ("simple", [1, 0, 0]),
        ("ranked", lambda m: [Fraction(m - i, 3) for i in range(m)]),
    ],
)
def test_scores_that_are_a_targets_give_its_every_answer(target, scores):
    source = drawn("equal")
    found = recount(source, targets=[target], rules={"mine": RankScores(scores)})
    rows, own = ([r for r in found.rules if r.target == name] for name in (target, "mine"))
    assert len(rows) == len(own) == 4 * 2 * 3
    same = dict.fromkeys(("target", "projection", "convention"), None)
    assert [r.model_copy(update=same) for r in own] == [r.model_copy(update=same) for r in rows]
    turns = found.per_turn.drop("projection")
    theirs = turns.filter(target=target).drop("target")
    assert theirs.equals(turns.filter(target="mine").drop("target"))


def test_turns_under_scores_by_rank_are_answered_as_by_every_choice_of_rankings():
    source = drawn("oracle", 16)
    veto = (1, 1, 0)
    found = recount(source, targets=[], exempt=[0, 1], rules={"veto": RankScores(veto)})
    ballots = source.rows.filter(pl.col("stage") == "vote_final")
    cast = {
        key: plain_ballots(frame)
        for key, frame in ballots.group_by("episode_id", "turn", maintain_order=True)
    }
    for row in found.per_turn.rows(named=True):
        voted = cast[row["episode_id"], row["turn"]]
        winners = plain.elected(voted, veto, row["exempt"], row["reading"])
        assert row["possible_winners"] == [ORDER[c] for c in sorted(winners)]
        tied = [ORDER[c] for c in sorted(plain.point(voted, veto))]
        assert row["tied_set"] == (tied if len(tied) > 1 else [])
        if row["point_state"] == "winner":
            assert row["point_winner"] == tied[0]
        assert row["breakdown"] == plain.breakdown(voted, veto, row["reading"])


def plain_ballots(frame):
    masses = {(v, c): m for v, c, m in frame.select("voter", "candidate", "mass").rows()}
    cast = [tuple(masses[v, c] for c in ORDER) for v in NAMES]
    return tuple(None if None in ballot else ballot for ballot in cast)


def test_a_function_gives_a_point_and_nothing_else():
    found = recount(drawn("point"), targets=["simple"], exempt=[0, 1], rules={"total": total})
    rows = [row for row in found.rules if row.target == "total"]
    assert len(rows) == 4 * 2 * 2
    for row in rows:
        assert row.point_only
        assert (row.identified, row.not_settled, row.widths) == (0, row.turns, {})
        assert row.breakdown == {"point_only": row.turns}
        assert row.convention.startswith("total: a function of the ballots as cast")
        assert row.projection == "as cast"
        points = sum(wins.point for wins in row.wins.values())
        assert points == row.turns - row.point_ties
        assert row.flips.lower == 0 <= row.flips.point <= row.flips.upper == row.flip_turns
    turns = found.per_turn.filter(target="total")
    assert turns["possible_winners"].null_count() == turns.height == 24 * 2 * 2
    assert not turns["settled"].any()
    assert set(turns["breakdown_state"]) == {"point_only"}
    assert set(turns["point_state"]) == {"winner", "tie"}
    assert set(turns.filter(reading="fallback")["point_state"]) == {"winner"}
    rules = found.model_dump(mode="json")["rules"]
    assert [("point_only" in row, row["target"]) for row in rules] == [
        (row["target"] == "total", row["target"]) for row in rules
    ]
    assert RecountResult.model_validate(found.model_dump(mode="json")).rules == found.rules


def test_a_function_that_sums_masses_leads_as_the_logged_rule_does():
    source = drawn("sums")
    own = recount(source, targets=[], exempt=[0], rules={"total": total}).per_turn
    logged = recount(source, targets=["simple", "ranked", "cumulative", "approval"], exempt=[0])
    theirs = logged.per_turn.filter(pl.col("target") == pl.col("logged_protocol"))
    key = ["episode_id", "turn", "reading"]
    both = own.join(theirs, on=key, suffix="_logged")
    assert both.height == 48
    alone = both.filter(pl.col("tied_set_logged").list.len() == 0)
    assert (alone["point_winner"] == alone["point_winner_logged"]).all()
    tied = both.filter(pl.col("tied_set_logged").list.len() > 0)
    assert tied.height > 4
    assert (tied["tied_set"].list.len() > 1).all()


def test_a_function_is_asked_once_about_each_different_vote():
    asked = []

    def rule(ballots):
        asked.append(ballots)
        return total(ballots)

    source = drawn("once", 40)
    twice = pl.concat(
        [source.rows, source.rows.with_columns(episode_id="x" + pl.col("episode_id"))]
    )
    source = Source("twice", twice, ORDER, 6, None, ())
    found = recount(source, targets=[], rules={"rule": rule})
    assert found.per_turn.height == 80 * 2 * 3
    seen = Counter(repr(ballots) for ballots in asked)
    assert set(seen.values()) == {1}
    assert 30 < len(asked) < 70
    # Voters by name, abstentions left out, candidates in the order that decides ties.
    assert {tuple(ballots.candidates) for ballots in asked} == {ORDER}
    assert {ballots.format for ballots in asked} == {"simple", "ranked", "cumulative", "approval"}
    assert {voter for ballots in asked for voter in ballots.cast} == set(NAMES)
    assert any(len(ballots.cast) < 3 for ballots in asked)
    assert all(tuple(ballot) == ORDER for ballots in asked for ballot in ballots.cast.values())


def test_who_cast_a_ballot_may_matter_to_a_function():
    def dictator(ballots):
        return ballots.cast.get("ann", dict.fromkeys(ballots.candidates, 0))

    found = recount(drawn("dictator"), targets=[], exempt=[0], rules={"dictator": dictator})
    ann = drawn("dictator").rows.filter(pl.col("stage") == "vote_final", voter="ann")
    first = ann.filter(protocol="simple", mass=1)
    points = found.per_turn.filter(reading="set").join(first, on=["episode_id", "turn"])
    assert points.height > 3
    assert points["point_winner"].to_list() == points["candidate"].to_list()


def test_votes_of_other_sizes_have_scores_of_their_own():
    rows = [
        (f"e{m}", 1, "vote_final", "simple", voter, f"c{c}", int(c == vote))
        for m in (2, 3)
        for voter, vote in (("v", 0), ("w", 1), ("x", 0))
        for c in range(m)
    ]
    columns = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    source = Source("sizes", pl.DataFrame(rows, columns, orient="row"), None, 6, None, ())
    halves = RankScores(lambda m: [Fraction(1, place) for place in range(1, m + 1)])
    found = recount(source, targets=[], exempt=[0], rules={"dowdall": halves})
    assert found.rules[0].convention == "dowdall: 1, 1/2 by rank of 2; 1, 1/2, 1/3 by rank of 3."
    # Of three: 1 + 1 + 1/3 for c0 at least; c2 has 1/2 each at most.
    assert found.per_turn["possible_winners"].to_list() == [["c0"], ["c0"]]
    with pytest.raises(UsageError, match="'veto' does not fit turn 1 of e2") as refused:
        recount(source, targets=[], rules={"veto": RankScores([1, 1, 0])})
    assert "3 scores for 2 candidates" in refused.value.why
    assert "tutorsim.RankScores(lambda m: …)" in refused.value.hint


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0, 1, 2], "rise from rank 1 to 2"),
        ([], "no scores"),
        ("310", "no list of scores"),
        (3, "no list of scores"),
        ([1, float("nan")], "nan is no score"),
        ([float("inf"), 0], "inf is no score"),
        ([1, None], "None is no score"),
        ([1, "x"], "'x' is no score"),
        (["1/0", 0], "'1/0' is no score"),
    ],
)
def test_what_is_no_vector_of_scores_is_refused(scores, message):
    with pytest.raises(UsageError, match=message) as refused:
        RankScores(scores)
    assert refused.value.why
    assert refused.value.hint


def test_floats_are_the_decimals_that_they_print():
    assert RankScores([0.3, 0.1, 0]).at(3) == (Fraction(3, 10), Fraction(1, 10), Fraction(0))
    assert RankScores(["1/3", "-0.5"]).at(2) == (Fraction(1, 3), Fraction(-1, 2))
    assert hash(RankScores([2, 1])) == hash(RankScores((2, 1)))


def without_bob(ballots):
    return dict.fromkeys(("cyd", "ann"), 1)


def to_a_stranger(ballots):
    return dict.fromkeys((*ballots.candidates, "dee"), 1)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (without_bob, "no score for 'bob'"),
        (to_a_stranger, "'dee', who is no candidate"),
        (lambda b: dict.fromkeys(b.candidates, float("nan")), "not a number"),
        (lambda b: dict.fromkeys(b.candidates, "1"), "'1', which is no number"),
        (lambda b: list(b.candidates), "no mapping"),
        (lambda b: b.cast["nobody"], "KeyError: 'nobody'"),
    ],
)
def test_a_function_that_gives_no_scores_is_refused_naming_rule_and_turn(function, why):
    with pytest.raises(UsageError, match=r"The rule 'mine' .* turn 1 of e\d+") as refused:
        recount(drawn("bad", 4), targets=[], rules={"mine": function})
    assert why in refused.value.why
    assert refused.value.hint


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"ranked": RankScores([2, 1, 0])}, "cannot be called 'ranked'"),
        ({" ": RankScores([2, 1, 0])}, "cannot be called ' '"),
        ({3: RankScores([2, 1, 0])}, "cannot be called 3"),
        ({"veto": [1, 1, 0]}, r"'veto' is \[1, 1, 0\]"),
        ({"veto": RankScores(lambda m: [1] * 2)}, "'veto' does not fit"),
        ({"veto": RankScores(lambda m: 1 / 0)}, "'veto' does not fit"),
        ({"veto": RankScores(lambda m: range(m))}, "'veto' does not fit"),
    ],
)
def test_rules_that_are_none_are_refused(rules, message):
    with pytest.raises(UsageError, match=message) as refused:
        recount(drawn("bad", 4), targets=[], rules=rules)
    assert refused.value.why
    assert refused.value.hint


def test_own_rules_stand_behind_the_targets_and_may_be_named_among_them():
    rules = {"b": total, "a": RankScores([1, 1, 0])}
    every = recount(drawn("order", 4), exempt=[0], rules=rules)
    assert list(dict.fromkeys(row.target for row in every.rules)) == [*TARGETS, "b", "a"]
    named = recount(drawn("order", 4), targets=["a"], exempt=[0], rules={"a": rules["a"]})
    assert {row.target for row in named.rules} == {"a"}
    with pytest.raises(UsageError, match="'c' is not a rule"):
        recount(drawn("order", 4), targets=["c"], rules=rules)


def test_ballots_for_a_function_can_be_made_by_hand():
    ballots = CastBallots({"ann": {"x": 1, "y": 0}}, "simple", ("x", "y"))
    assert total(ballots) == {"x": 1, "y": 0}


def test_a_rule_of_another_package_is_a_target_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "veto_rule.py").write_text(
        "from tutorsim import RankScores\nVETO = RankScores(lambda m: [*[1] * (m - 1), 0])\n"
    )
    info = tmp_path / "veto_rule-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: veto-rule\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tutorsim.rules]\nveto = veto_rule:VETO\n")
    source = drawn("equal")
    with pytest.raises(UsageError, match="'veto' is not a rule"):
        recount(source, targets=["veto"])
    monkeypatch.syspath_prepend(str(tmp_path))
    veto = RankScores(lambda m: [*[1] * (m - 1), 0])
    own = recount(source, targets=["ranked"], rules={"veto": veto})
    assert recount(source, targets=["veto", "ranked"]).rules == own.rules
    with pytest.raises(UsageError) as refused:
        recount(source, targets=["vetto"])
    assert "veto" in refused.value.hint


def test_a_shipped_rule_is_refused_where_another_package_takes_its_name(tmp_path, monkeypatch):
    info = tmp_path / "own_rule-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-rule\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tutorsim.rules]\napproval = own_rule:APPROVAL\n")
    refuse_shadowed(["approval"])
    monkeypatch.syspath_prepend(str(tmp_path))
    refuse_shadowed(["ranked"])
    with pytest.raises(UsageError, match="own_rule:APPROVAL brings a rule called 'approval'") as no:
        refuse_shadowed(["approval"])
    assert "another name" in no.value.hint


def test_a_rule_of_points_has_no_cell_that_a_bound_would_fill():
    found = recount(drawn("points"), targets=["ranked"], exempt=[0, 1], rules={"mine": total})
    shown = {one.name: one for one in SECTIONS["rules"](found, "Untested.", False) if one}
    of_rule = {
        name: shown[name].data.filter(pl.col("counted as") == "mine")
        for name in ("rules-set", "dial", "breakdown")
    }
    assert set(of_rule["rules-set"]["single"]) == set(of_rule["rules-set"]["not settled"]) == {"–"}
    assert not any("[" in cell for cell in of_rule["rules-set"]["same"])
    assert of_rule["dial"].is_empty()
    assert of_rule["breakdown"].is_empty()
