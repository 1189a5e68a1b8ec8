"""Ballots without a logged order: a tie that counting leaves is nobody's win."""

from fractions import Fraction

import polars as pl
import pytest

from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import turn_table
from tutorsim.analysis.recount import NO_ORDER, recount
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    LEFT_TIED,
    diagnostics,
    winning_roles,
)

HEAD = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]

# Turn 1: a 2, b 1: a wins. Turn 2: a 1, b 1, c 1: tied.
# First votes: b led turn 1 with 2, a led turn 2 with 2.
CHOICES = {
    (1, "vote_initial"): "bba",
    (1, "vote_final"): "aab",
    (2, "vote_initial"): "aab",
    (2, "vote_final"): "abc",
}


@pytest.fixture
def file(tmp_path):
    rows = [
        ("e", turn, stage, voter, name, int(name == choice), "simple")
        for (turn, stage), choices in CHOICES.items()
        for voter, choice in zip("uvw", choices, strict=True)
        for name in "abc"
    ]
    path = tmp_path / "b.csv"
    pl.DataFrame(rows, schema=HEAD, orient="row").write_csv(path)
    return path


def test_a_tied_turn_has_no_logged_winner(file):
    found = recount(open_source(file), targets=["simple", "ranked"], exempt=[0])
    assert found.fallback_order == ()
    assert NO_ORDER in found.notes
    assert {row.reading for row in found.rules} == {"set"}
    for row in found.rules:
        assert (row.turns, row.compared) == (2, 1)
        assert row.agreement.upper <= 1
    winners = found.per_turn.select("turn", "logged_winner").unique().sort("turn")
    assert winners.rows() == [(1, "a"), (2, None)]
    any_voter = [r for r in found.electorates if (r.scenario, r.voter) == ("leave_one_out", None)]
    assert {(row.changed.upper, row.compared) for row in any_voter} == {(1, 1)}  # 1 without w


def test_under_the_own_rule_a_tie_stays_one(file):
    found = recount(open_source(file), targets=["simple"], exempt=[0])
    [row] = found.rules
    # turn 1 is a's; in turn 2 each may have won, and nobody did for certain
    assert (row.identified, row.widths, row.point_ties) == (1, {1: 1, 3: 1}, 1)
    values = {name: (won.lower, won.point, won.upper) for name, won in row.wins.items()}
    assert values == {"a": (1, 1, 2), "b": (0, 0, 1), "c": (0, 0, 1)}
    [_, tied] = found.per_turn.iter_rows(named=True)
    values = (tied["possible_winners"], tied["point_state"], tied["breakdown"])
    assert values == (["a", "b", "c"], "tie", 0)


def test_only_lots_break_ties(file):
    found = recount(open_source(file), targets=["simple"], exempt=[0])
    assert {row.policy for row in found.policies} == {"random", "random_no_tie_round"}
    row = next(row for row in found.policies if row.protocol is None and row.policy == "random")
    # turn 1 is a's; of turn 2 each has a third
    assert row.wins == {"a": Fraction(4, 3), "b": Fraction(1, 3), "c": Fraction(1, 3)}
    assert (row.changed, row.compared) == (0, 1)


def test_orders_are_counted_against_none(file):
    [every, _] = recount(open_source(file), targets=["simple"], exempt=[0]).orders
    assert (every.logged_order, every.changed_expected, every.changed_most) == ((), None, None)
    spans = {row.candidate: (row.least, row.most, row.logged) for row in every.candidates}
    assert spans == {"a": (1, 2, None), "b": (0, 1, None), "c": (0, 1, None)}


def test_diagnostics_leave_the_tie_open(file):
    source = open_source(file)
    [row] = diagnostics(source)
    assert row.decided_by == {"vote": 1, "tie_round": 0, "open": 1}
    # the one turn that counting decided: b led the first vote alone, a won
    assert (row.flip_set.value, row.flip_set.n) == (1.0, 1)  # type: ignore[union-attr]
    wins = winning_roles(source).select("role", "wins", "by_vote", "by_tie_round", "by_fallback")
    never = [("b", 0, 0, 0, 0), ("c", 0, 0, 0, 0)]
    assert wins.rows() == [("a", 1, 1, 0, 0), *never, (LEFT_TIED, 1, 0, 0, 0)]
    turns = (
        turn_table(source).turns(ordered=False).select("turn", "initial_leader", "winner", "flip")
    )
    assert turns.rows() == [(1, "b", "a", True), (2, "a", None, False)]


def test_an_order_that_the_user_gives_decides(tutorsim_json, file):
    given = open_source(file, hints=Hints(fallback_order=("c",)))
    assert given.fallback_order == ("c", "a", "b")
    value = tutorsim_json("recount", file, "--targets", "simple", "--fallback-order", "c")
    assert value["orders"][0]["logged_order"] == ["c", "a", "b"]
    logged = {row["candidate"]: row["logged"] for row in value["orders"][0]["candidates"]}
    assert logged == {"c": 1, "a": 1, "b": 0}
    assert "compared" not in value["rules"][0]


@pytest.mark.parametrize("command", ["recount", "summary"])
def test_the_sequence_of_rows_changes_no_answer(tutorsim_json, file, command):
    table = pl.read_csv(file, infer_schema=False)
    expected = tutorsim_json(command, file)
    for changed in (table.reverse(), table.sample(fraction=1, shuffle=True, seed=4)):
        changed.write_csv(file)
        assert tutorsim_json(command, file) == expected


@pytest.fixture
def tutorsim_json():
    """Runs a command and gives its JSON."""
    import json

    from click.testing import CliRunner

    from tutorsim.cli import cli

    def run(*arguments):
        done = CliRunner().invoke(cli, [*map(str, arguments), "--json"], catch_exceptions=False)
        assert done.exit_code == 0
        value: dict[str, object] = json.loads(done.stdout)
        return value

    return run
