"""Rich ballots: one reply holds a ballot of every protocol, so every recount is exact."""

import polars as pl
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tests.reference.turns import read_turns, under
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.recount_plan_and_own_rules import RankScores
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.analysis.runs.write_export_and_preflib_files import export
from tutorsim.ballot_reading_and_decisions import RichBallot, cast_as, decide, masses_of
from tutorsim.errors import BallotFileError
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import DEFAULT_ROLES

S, M, V, C = DEFAULT_ROLES

PANEL = {
    S: RichBallot(points={S: 7, M: 7, C: 6, V: 5}, order=(S, M, C, V), approved=(S, M, C)),
    M: RichBallot(points={S: 7, M: 7, C: 6, V: 5}, order=(S, M, C, V), approved=(S, M, C)),
    V: RichBallot(points={V: 23, M: 1, C: 1, S: 0}, order=(V, M, C, S), approved=(V, M, C)),
    C: RichBallot(points={C: 9, M: 8, V: 8, S: 0}, order=(C, M, V, S), approved=(C,)),
}
"""First places 2, 0, 1, 1; Borda points 6, 8, 4, 6; points 14, 23, 41, 22; approvals 2, 3, 1, 4
for scaffolding, misconception, motivation, metacognitive. Each rule has a winner of its own."""

WINNERS = {"simple": S, "ranked": M, "cumulative": V, "approval": C, "copeland": M}
WINNERS |= {"minimax": S, "condorcet": "none"}
"""Scaffolding stands 2 : 2 against everybody: nobody beats all, and it is as undefeated as
misconception, behind which it stands in no order used here."""


def rich_ballot(voter, choice, rule):
    return BallotRecord(
        voter=voter,
        protocol="rich",
        counted_as=rule,
        labels=dict(zip("ABCD", DEFAULT_ROLES, strict=True)),
        parsed=choice,
        mass=masses_of(choice, DEFAULT_ROLES, protocol=rule),
        ballot_status="abstained" if choice is None else "valid",
    )


def rich_source(rule, ballots=PANEL):
    """A run of one turn, counted under a rule."""
    plain = panel_turn("simple", dict.fromkeys(DEFAULT_ROLES, S))
    cast = tuple(rich_ballot(voter, choice, rule) for voter, choice in ballots.items())
    turn = plain.model_copy(
        update={
            "ballots_initial": cast,
            "ballots_final": cast,
            "decision": decide([b.mass for b in cast], DEFAULT_ROLES, order=DEFAULT_ROLES),
        }
    )
    return panel_source(panel_episode(turn, condition="rich"), rich_protocol=rule)


SCORES = {"score", "median_score"}


def winners_found(result, reading="fallback", exempt=0):
    rows = [r for r in result.rules if (r.reading, r.exempt) == (reading, exempt)]
    assert {row.logged_protocol for row in rows} == {"rich"}
    return {
        row.target: [name for name, found in row.wins.items() if found.lower]
        for row in rows
        if row.identified == row.turns
    }


@pytest.mark.parametrize("rule", ["simple", "ranked", "cumulative", "approval"])
def test_a_rich_turn_has_the_winner_of_every_rule_as_computed_by_hand(rule):
    result = recount(rich_source(rule), exempt=[0])
    found = winners_found(result)
    assert set(found) == set(TARGETS) - SCORES  # its order says nothing of how far apart they are
    for target, winner in WINNERS.items():
        assert found[target] == [winner]
    for row in (row for row in result.rules if row.target not in SCORES):
        assert row.projection == "as cast"
        assert row.widths in ({1: 1}, {4: 1}, {3: 1}, {2: 1})
        assert all(i.lower <= i.point <= i.upper for i in row.wins.values())
    logged = {row.candidate: row.logged for row in result.orders[0].candidates}
    assert logged == {role: int(role == WINNERS[rule]) for role in DEFAULT_ROLES}


@pytest.mark.parametrize("rule", ["simple", "ranked", "cumulative", "approval"])
def test_own_rules_get_the_rankings_of_rich_ballots_and_the_masses_that_count(rule):
    # Last places: motivation twice, scaffolding twice; the order decides between the others.
    vectors = {"veto": [1, 1, 1, 0], "first": [1, 0, 0, 0], "borda": [6, 4, 2, 0]}
    told = []

    def function(ballots):
        told.append(ballots)
        return {c: sum(b[c] for b in ballots.cast.values()) for c in ballots.candidates}

    rules = {name: RankScores(scores) for name, scores in vectors.items()} | {"sums": function}
    result = recount(rich_source(rule), targets=[], exempt=[0], rules=rules)
    assert winners_found(result) == {"veto": [M], "first": [S], "borda": [M]}
    assert {row.projection for row in result.rules} == {"as cast"}
    [row] = [r for r in result.rules if (r.target, r.reading) == ("sums", "fallback")]
    assert [name for name, wins in row.wins.items() if wins.point] == [WINNERS[rule]]
    assert {ballots.format for ballots in told} == {"rich"}


def test_intervals_collapse_where_the_order_decides_ties():
    result = recount(rich_source("cumulative"), exempt=[0])
    for row in result.rules:
        if row.reading == "fallback" and row.target not in SCORES:
            assert row.identified == 1
            assert all(i.lower == i.point == i.upper for i in row.wins.values())
            assert row.agreement.lower == row.agreement.upper
            assert row.flips.upper == 0


def test_exempt_voters_widen_the_answers_of_rich_ballots_too():
    result = recount(rich_source("cumulative"), targets=["approval"], exempt=[0, 4])
    [row] = [r for r in result.rules if (r.reading, r.exempt) == ("fallback", 4)]
    assert {name for name, i in row.wins.items() if i.upper} == set(DEFAULT_ROLES)


def test_the_parts_of_a_rich_ballot_are_those_that_the_voting_room_names():
    turns = read_turns(rich_source("approval").ballots, fallback_order=DEFAULT_ROLES)
    [stage] = turns.final.values()
    assert stage.profile.protocol == "approval"
    for protocol in ("simple", "ranked", "cumulative", "approval"):
        held = under(stage.profile, protocol)
        for voter, ballot in zip(stage.voters, held.ballots, strict=True):
            choice = cast_as(PANEL[voter], form="rich", protocol=protocol)
            expected = masses_of(choice, DEFAULT_ROLES, protocol=protocol)
            assert stage.named(ballot) == expected


def test_an_abstaining_voter_casts_nothing_under_any_rule():
    result = recount(rich_source("cumulative", PANEL | {V: None}), exempt=[0])
    found = winners_found(result)
    # Points 14, 22, 18, 21; approvals 2, 2, 0, 3.
    assert (found["simple"], found["cumulative"], found["approval"]) == ([S], [M], [C])


@pytest.mark.costly
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_rich_ballots_travel_through_files(form, tmp_path):
    source = rich_source("ranked")
    export(source, tmp_path, form)
    read = open_source(tmp_path / f"ballots.{form}")
    here = recount(source, exempt=[0, 1])
    there = recount(read, exempt=[0, 1], order=source.fallback_order)
    assert there.rules == here.rules
    assert [one.turns for one in there.orders] == [one.turns for one in here.orders]


def test_other_formats_leave_the_columns_of_rich_ballots_empty():
    turn = panel_turn("ranked", dict.fromkeys(DEFAULT_ROLES, DEFAULT_ROLES))
    table = panel_source(panel_episode(turn)).ballots
    assert BALLOTS_SCHEMA.names()[-3:] == ["points", "rank", "approved"]
    assert table.select(pl.col("points", "rank", "approved").is_null().all()).row(0) == (True,) * 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rank": 1}, "ranks are not 1, 2"),
        ({"points": 2}, "do not sum to 25"),
        ({"points": None}, "a rich ballot without points, rank, approved"),
        ({"approved": False}, "approves of nobody"),
        ({"points": [5, 7, 7, 6]}, "contradict its order"),
        ({"points": [7, 6, 6, 6], "approved": [True, True, False, False]}, "has no more points"),
        ({"approved": [True, False, True, False]}, "below one it does not approve of"),
        ({"mass": 2}, "masses of the rich ballots"),
    ],
)
def test_a_rich_ballot_that_contradicts_itself_is_refused(change, reason, tmp_path):
    ballot = {"points": [7, 7, 6, 5], "rank": [1, 2, 3, 4], "approved": [True, True, True, False]}
    given = {name: x if isinstance(x, list) else [x] * 4 for name, x in change.items()}
    columns = {"mass": [7, 7, 6, 5], "candidate": list("abcd")} | ballot | given
    place = {"episode_id": "e", "turn": 1, "stage": "vote_final", "voter": "v", "protocol": "rich"}
    table = pl.DataFrame(columns).with_columns(pl.lit(x).alias(name) for name, x in place.items())
    table.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(BallotFileError, match=reason):
        _ = open_source(tmp_path / "b.parquet", hints=Hints(budget=25)).votes


def test_a_rich_ballot_that_leaves_a_candidate_out_is_refused(tmp_path):
    rows = [("v", "a", 25, 1, True), ("v", "b", 0, 2, False), ("w", "a", 25, 1, True)]
    names = ["voter", "candidate", "points", "rank", "approved"]
    place = {"episode_id": "e", "turn": 1, "stage": "final", "protocol": "rich"}
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        mass="points", **{name: pl.lit(x) for name, x in place.items()}
    )
    table.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(BallotFileError, match="rich ballot of 'w' has 1 of 2 candidates"):
        _ = open_source(tmp_path / "b.parquet").votes


def test_an_approval_that_is_no_word_of_truth_is_refused(tmp_path):
    lines = ["episode_id,turn,stage,voter,candidate,mass,protocol,points,rank,approved"]
    lines += ["e,1,final,v,a,25,rich,25,1,perhaps"]
    (tmp_path / "b.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(BallotFileError, match="neither true nor false"):
        open_source(tmp_path / "b.csv")
