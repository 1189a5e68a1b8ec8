"""Approval voting along how many candidates each voter approves of; what logged ones say of it."""

import polars as pl
import pytest

from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.counting.names_and_parameters_of_rules import ANY_NUMBER, Approvals
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import (
    recount_verdict,
    verdict_table,
)
from tutorsim.analysis.recount.tables import approvals_table
from tutorsim.errors import UsageError

HEAD = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
RANKINGS = ("abcd", "abdc", "bacd")
"""a leads with 3 + 3 + 2 points, and is first twice. With two approvals a voter, a and b have three
each, so that a and b may tie; with three, anybody but the last may."""
APPROVALS = ("a", "ab", "abcd")


@pytest.fixture
def source(tmp_path):
    ranked = [
        ("r", 1, "vote_final", voter, name, 3 - order.index(name), "ranked")
        for voter, order in zip("uvw", RANKINGS, strict=True)
        for name in "abcd"
    ]
    approved = [
        ("s", 1, "vote_final", voter, name, int(name in names), "approval")
        for voter, names in zip("uvw", APPROVALS, strict=True)
        for name in "abcd"
    ]
    path = tmp_path / "b.csv"
    pl.DataFrame([*ranked, *approved], schema=HEAD, orient="row").write_csv(path)
    return open_source(path)


def rows_of(found, protocol="ranked"):
    return [row for row in found.approvals if row.logged_protocol == protocol and not row.exempt]


def test_one_alone_keeps_the_winner_and_more_leave_it_open(source):
    found = recount(source, targets=["approval"], exempt=[0])
    told = [(row.approves, row.agreement.lower, row.changes) for row in rows_of(found)]
    assert told == [
        (Approvals(1, 1), 1, 0),
        (Approvals(1, 2), 0, 0),
        (Approvals(1, 3), 0, 0),
        (ANY_NUMBER, 0, 0),
    ]
    sets = {row.approves: row.widths for row in rows_of(found)}
    assert sets[Approvals(1, 1)] == {1: 1}
    assert sets[Approvals(1, 2)] == {2: 1}  # a or b
    assert sets[ANY_NUMBER] == {4: 1}


def test_what_was_logged_as_approvals_is_as_logged_with_any_number(source):
    found = recount(source, targets=["approval"], exempt=[0])
    assert {row.agreement.lower for row in rows_of(found, "approval")} == {1}
    assert found.approved == {1: 1, 2: 1, 4: 1}


def test_a_range_that_is_given_holds_in_every_table(source):
    one = recount(source, targets=["approval", "simple"], exempt=[0], approves=Approvals(1, 1))
    [row] = [r for r in one.rules if (r.target, r.logged_protocol) == ("approval", "ranked")]
    assert (row.approves, row.agreement.lower) == (Approvals(1, 1), 1)
    assert row.convention == "Approval: each voter approves of exactly 1."
    assert [r.approves for r in rows_of(one)] == [Approvals(1, 1)]
    turns = one.per_turn.filter(target="approval", logged_protocol="ranked")
    assert turns["necessary_winner"].to_list() == ["a"]
    assert approvals_table(one) is None
    assert "approve of exactly 1." in " ".join(recount_verdict(one))


def test_the_tables_say_the_answer_along_the_number(source):
    found = recount(source, targets=["approval"], exempt=[0])
    kept = verdict_table(found)
    assert kept is not None
    numbers = ("exactly 1", "up to 2", "up to 3", "any number")
    assert kept.data["rule"].to_list() == [f"approval, {number}" for number in numbers]
    assert kept.data["surely kept"].to_list() == [1, 0, 0, 0]
    table = approvals_table(found)
    assert table.data["logged ballots"].to_list() == ["1 of 3", "2 of 3", "2 of 3", "3 of 3"]
    assert "logged approval ballots: 3 approve of 1 to 4." in table.caption


def test_few_candidates_have_few_numbers(source, tmp_path):
    assert recount(source, targets=["simple"]).approvals == ()
    path = tmp_path / "two.csv"
    path.write_text("question,voter,ranking\nq,u,a > b\nq,v,b > a\n")
    found = recount(open_source(path), targets=["approval"])
    assert {row.approves for row in found.approvals} == {Approvals(1, 1), ANY_NUMBER}
    assert approvals_table(found) is None  # a tie: no winner is there to be kept


def test_a_range_that_is_none_is_refused(source):
    with pytest.raises(UsageError):
        recount(source, approves=Approvals(3, 2))


def test_nobody_is_no_other_winner(tmp_path):
    """Three rankings in a circle: a leads with a tie, and no candidate beats every other one."""
    rows = [
        ("e", 1, "vote_final", voter, name, 2 - order.index(name), "ranked")
        for voter, order in zip("uvwx", ("abc", "bca", "cab", "abc"), strict=True)
        for name in "abc"
    ]
    circle = [row for row in rows if row[3] != "x"] + [("f", *row[1:]) for row in rows]
    path = tmp_path / "c.csv"
    pl.DataFrame(circle, schema=HEAD, orient="row").write_csv(path)
    found = recount(open_source(path), targets=["condorcet"], exempt=[0], order=["a", "b", "c"])
    [row] = [r for r in found.rules if r.reading == "set"]
    # e is tied three ways, a circle; f is a's: a beats b 3 to 1, and ties c 2 to 2
    assert (row.agreement.upper, row.wins["none"].lower, row.changes) == (0, 2, 0)
    assert found.agreed("set")[1] == 0
    # f's winner stands last in this order; nobody keeps it all the same
    last = recount(open_source(path), targets=["condorcet"], exempt=[0], order=["c", "b", "a"])
    assert last.agreed("set") == (0, 0, 2)


@pytest.mark.parametrize("asked", [Approvals(1, 9), Approvals(5, None), Approvals(5, 5)])
def test_more_approvals_than_candidates_are_refused(source, asked):
    with pytest.raises(UsageError, match="Nobody can approve of"):
        recount(source, approves=asked)
