"""`tutorsim recount` and `tutorsim diverge`: counterfactuals, each with what it holds fixed."""

import csv
import json
import re

import polars as pl
import pytest

from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.vocabularies import DEFAULT_ROLES

COLUMNS = frozenset(
    {"episode_id", "turn", "logged_protocol", "logged_winner", "target", "fallback_order"}
    | {"tied_set", "possible_winners", "necessary_winner", "point_winner", "projection"}
    | {"exempt", "breakdown", "breakdown_state", "point_state", "settled", "provenance"}
)

FOREIGN = "episode_id,turn,stage,voter,candidate,mass,protocol\n" + "".join(
    f"e,1,final,{voter},{candidate},{mass},ranked\n"
    for voter, order in (("v", "abc"), ("w", "bca"), ("x", "bac"))
    for mass, candidate in enumerate(reversed(order))
)


def value_of(shell, command, run, *options):
    value = shell(command, run, "--json", *options).json()
    return value["values"] if command == "diverge" else value


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """One ranked vote of three voters from elsewhere: b wins with 5, a has 3, c has 1."""
    path = tmp_path_factory.mktemp("foreign") / "ballots.csv"
    path.write_text(FOREIGN)
    return path


def test_the_logged_rule_gives_the_logged_winners(shell, built):
    protocols = ("simple", "ranked", "cumulative", "approval")
    options = ("--targets", ",".join(protocols), "--exempt", "0")
    value = value_of(shell, "recount", built.folder, *options)
    own = [row for row in value["rules"] if row["logged_protocol"] == row["target"]]
    assert {row["target"] for row in own} == set(protocols)
    for row in own:
        assert row["agreement"] == dict.fromkeys(("lower", "point", "upper"), row["turns"])


def test_every_order_has_every_turn_won_once(shell, built):
    value = value_of(shell, "recount", built.folder, "--targets", "simple", "--exempt", "0")
    for orders in value["orders"]:
        assert len(orders["listed"]) == orders["orders"] == 24
        assert {sum(row["wins"].values()) for row in orders["listed"]} == {orders["turns"]}


def test_every_table_says_what_is_held_fixed(shell, built):
    done = shell("recount", built.folder, "--targets", "ranked", "--threshold", "0.5", "--full")
    lines = done.out.splitlines()
    tables = [at for at, line in enumerate(lines) if line.startswith("─")]
    captions = [
        at for at, line in enumerate(lines) if line.endswith("before a vote is held fixed.")
    ]
    assert len(tables) > 8
    for at, following in zip(tables, [*tables[1:], len(lines)], strict=True):
        assert any(at < caption < following for caption in captions), lines[at - 2]


def test_provenance_comes_first(shell, built):
    for command in (("recount", "--targets", "simple"), ("diverge", "--rule", "simple")):
        done = shell(command[0], built.folder, *command[1:])
        assert any("stand-in" in line for line in done.out.splitlines()[:3])
        assert "say nothing about any language model" in done.out


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_turns_go_to_a_file_by_its_ending(shell, built, tmp_path, ending):
    path = tmp_path / f"turns.{ending}"
    done = shell("recount", built.folder, "--targets", "ranked,simple", "--turns", path)
    turns = sum(turn.decision is not None for r in built.episodes for turn in r.turns)
    assert done.code == 0
    assert f"{turns * 2 * 3 * 2} rows written" in done.err
    assert path.stat().st_size > 0
    if ending == "csv":
        rows = rows_of(path)
        assert len(rows) == turns * 2 * 3 * 2
        assert set(rows[0]) == COLUMNS
        orders = {row["fallback_order"] for row in rows}
        assert {tuple(json.loads(order)) for order in orders if order} == {DEFAULT_ROLES}
        assert sum(not row["fallback_order"] for row in rows) == len(rows) / 2


def test_ballots_from_elsewhere_are_recounted(shell, foreign):
    value = value_of(shell, "recount", foreign, "--targets", "simple,condorcet")
    wins = {
        row["target"]: row["wins"]
        for row in value["rules"]
        if (row["exempt"], row["reading"]) == (0, "set")
    }
    assert wins["simple"]["b"] == {"lower": 1, "point": 1, "upper": 1}
    assert wins["condorcet"]["b"] == {"lower": 1, "point": 1, "upper": 1}
    assert value["readings"] == []


def test_of_ballots_from_elsewhere_nothing_is_said_of_a_student(shell, foreign):
    """No dialogue came before these votes, and nobody read what won."""
    for more in ("--full", "--json"):
        said = shell("recount", foreign, more).out
        assert "came before its vote is held fixed" in said
        assert "student" not in said
        assert "dialogue" not in said


def test_what_is_single_names_the_convention_under_which_it_is(shell, foreign, built):
    asked = ("--targets", "simple,instant_runoff", "--exempt", "0")
    value = value_of(shell, "recount", foreign, *asked)
    said = {row["target"]: row["convention"] for row in value["rules"]}
    assert said["simple"] is None
    assert "all with the fewest first places leave together" in said["instant_runoff"]
    pages = [
        shell("recount", foreign, *asked, "--section", "rules"),
        shell("diverge", built.folder, "--rule", "instant_runoff"),
    ]
    for page in pages:
        assert "fewest first places leave together" in " ".join(page.out.split())


def test_approval_is_answered_along_how_many_a_voter_approves_of(shell, foreign):
    value = value_of(shell, "recount", foreign, "--targets", "approval", "--exempt", "0")
    assert [row["approves"] for row in value["approvals"]] == [[1, 1], [1, 2], [1, None]]
    assert "approves" not in value["rules"][0]
    shown = shell("recount", foreign, "--targets", "approval").out
    assert "Approval voting, by how many candidates each voter approves of" in shown
    one = value_of(shell, "recount", foreign, "--targets", "approval", "--approves", "1")
    assert [row["approves"] for row in one["rules"]] == [[1, 1]] * len(one["rules"])
    assert one["rules"][0]["identified"] == value["approvals"][0]["identified"]


def test_scores_by_rank_are_counted_beside_the_targets(shell, foreign, tmp_path):
    turns = tmp_path / "turns.csv"
    options = ("--targets", "ranked", "--exempt", "0", "--turns", turns)
    scores = ("--score", "borda = 2, 1, 0", "--score", "veto=1,1,0", "--score", "odd=1,0.5,1/3")
    value = value_of(shell, "recount", foreign, *options, *scores)
    rows = {row["target"]: row for row in value["rules"]}
    assert list(rows) == ["ranked", "borda", "veto", "odd"]
    assert rows["veto"]["convention"] == "veto: 1, 1, 0 by rank."
    assert rows["odd"]["convention"] == "odd: 1, 1/2, 1/3 by rank."
    assert not any("point_only" in row for row in rows.values())
    # Last places: c, a and c; b has none.
    assert rows["veto"]["wins"]["b"] == {"lower": 1, "point": 1, "upper": 1}
    own = {**rows["borda"], "target": "ranked", "convention": None}
    assert own == rows["ranked"]
    assert [row["target"] for row in rows_of(turns)] == list(rows)
    alone = value_of(shell, "recount", foreign, "--targets", "veto", *scores[2:4])
    assert {row["target"] for row in alone["rules"]} == {"veto"}


@pytest.mark.parametrize("ordered", [(), ("--fallback-order", "b,a,c")])
def test_scores_by_rank_are_in_every_table(shell, foreign, ordered):
    scores = ("--targets", "veto", "--score", "veto=1,1,0", "--exempt", "0,1", *ordered)
    brief = shell("recount", foreign, *scores).out
    assert "The rule veto surely keeps the winner of " in brief
    assert "Under other rules" in brief
    full = shell("recount", foreign, *scores, "--full").out
    tables = 4 + bool(ordered)  # by reading of ties, with exempt voters, what loses them, wins
    assert len(re.findall("^ranked +veto ", full, re.MULTILINE)) == tables
    assert full.count("veto: 1, 1, 0 by rank.") == tables - 1
    assert "ranked as veto by as cast" in " ".join(full.split())


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("veto", "names no rule"),
        ("=1,0", "names no rule"),
        ("veto=", "names no rule"),
        ("veto=1,,0", "'' is no score"),
        ("veto=1,x,0", "'x' is no score"),
        ("veto=0,1,1", "rise from rank 1 to 2"),
        ("veto=1,1,0,0", "4 scores for 3 candidates"),
        ("ranked=2,1,0", "cannot be called 'ranked'"),
    ],
)
def test_scores_that_are_none_are_usage_errors(shell, foreign, score, message):
    done = shell("recount", foreign, "--score", score)
    assert done.code == 2
    told = " ".join(done.err.split())
    assert message in told
    assert score.partition("=")[0] in told


def test_a_rule_is_given_once(shell, foreign):
    said = shell("recount", foreign, "--score", "a=2,1,0", "--score", "a=1,1,0")
    said.fails(2, "gives 'a' twice")


def test_another_order_is_counted_against_the_logged_winners(shell, built):
    options = ("--targets", "simple", "--exempt", "0", "--fallback-order", "metacognitive")
    value = value_of(shell, "recount", built.folder, *options)
    assert value["fallback_order"][0] == "metacognitive"
    again = next(row for row in value["policies"] if row["policy"] == "tie_round")
    listed = value["orders"][0]["listed"]
    order = next(row for row in listed if row["order"] == value["fallback_order"])
    assert again["changed"] == order["changed"]


def test_json_has_one_shape_whatever_the_system(shell, built):
    """What a system does not have is empty or null, and tables are frames of one kind a column."""
    of_panel = value_of(shell, "recount", built.folder, "--targets", "simple")
    assert of_panel["episodes"] is None
    for name in ("debate", "group", "oversight-audit"):
        value = value_of(shell, "recount", bundled_recording(name))
        assert list(value) == list(of_panel)
        assert {"sections", "outcomes"} <= value["episodes"].keys()
        assert (value["turns"] == 0) == (value["rules"] == [])
        for table in ("orders", "policies", "electorates", "rules"):
            assert pl.DataFrame(value[table], infer_schema_length=None).height == len(value[table])


def test_thresholds_are_exact_downwards(shell, built):
    options = ("--targets", "simple", "--exempt", "0", "--threshold", "0.7")
    value = value_of(shell, "recount", built.folder, *options)
    assert all(row["exact"] == row["episodes"] for row in value["thresholds"])


def test_sections_choose_what_is_shown(shell, built):
    done = shell("recount", built.folder, "--targets", "simple", "--section", "readings")
    assert "Ballots read again" in done.out
    assert "Wins under every fallback order" not in done.out


def test_an_empty_run_has_nothing_to_recount(shell, empty_run):
    shell("recount", empty_run.folder).tells("no voting turn")
    assert value_of(shell, "recount", empty_run.folder)["turns"] == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--targets", "plurality"),
        ("--exempt", "one"),
        ("--approves", "0"),
        ("--approves", "3..2"),
        ("--approves", "few"),
        ("--fallback-order", "nobody"),
        ("--threshold", "2"),
        ("--budget", "10"),  # a run says itself what its ballots sum to
        ("--turns", "turns.xls"),
        ("-o", "out.csv"),
    ],
)
def test_wrong_options_are_usage_errors(shell, built, options):
    done = shell("recount", built.folder, *options)
    assert done.code == 2
    assert done.out == ""


def test_the_logged_rule_covers_every_episode(shell, one_episode):
    value = value_of(shell, "diverge", one_episode.folder, "--rule", "approval")
    [row] = value["coverage"]
    assert row["covered"] == row["episodes"] == 1
    assert row["on_covered"]["success"] == row["logged"]["success"]


def test_an_order_diverges_where_the_order_decided(shell, built):
    order = ("metacognitive", "motivation", "misconception", "scaffolding")
    value = value_of(shell, "diverge", built.folder, "--fallback-order", ",".join(order))
    voted = [record for record in built.episodes if record.condition != "baseline"]

    def moved(said):
        return said is not None and min(said.undecided, key=order.index) != said.winner

    first = {
        record.episode_id: next((t.turn for t in record.turns if moved(t.decision)), None)
        for record in voted
    }
    assert {row["episode_id"]: row["first_certain"] for row in value["episodes"]} == first
    assert any(turn is not None for turn in first.values())


def test_uncovered_outcomes_are_bounded(shell, built):
    value = value_of(shell, "diverge", built.folder, "--tie-policy", "random")
    for row in value["coverage"]:
        bounds = row["bounds"]["success"]
        assert bounds["high"] - bounds["low"] == pytest.approx(1 - row["covered"] / row["episodes"])


def test_episodes_of_a_divergence_go_to_a_file(shell, built, tmp_path):
    path = tmp_path / "episodes.csv"
    done = shell("diverge", built.folder, "--tie-policy", "no_tie_round", "--episodes", path)
    assert done.code == 0
    assert len(rows_of(path)) == 16


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--rule", "simple", "--tie-policy", "random"),
        ("--rule", "x"),
        ("--tie-policy", "random", "--exempt", "2"),
        ("--tie-policy", "random", "--ties", "fallback"),
    ],
)
def test_a_divergence_needs_one_alternative(shell, built, options):
    assert shell("diverge", built.folder, *options).code == 2


def test_ballots_from_elsewhere_diverge_without_outcomes(shell, foreign):
    shell("diverge", foreign, "--rule", "approval").tells("No outcome is logged")


@pytest.mark.costly
def test_tables_keep_to_eighty_columns(shell, one_episode):
    for command in (("recount", "--full"), ("diverge", "--rule", "simple")):
        shown = shell(command[0], one_episode.folder, *command[1:], columns=80).out
        rules = [line for line in shown.splitlines() if line.startswith("─")]
        assert max(map(len, rules)) <= 80
        assert "…" not in shown


@pytest.mark.parametrize(
    "command",
    [("summary",), ("recount", "--full"), ("diverge", "--rule", "ranked", "--exempt", "2")],
)
def test_hostile_names_reach_the_terminal_only_escaped(shell, tmp_path, command):
    path = tmp_path / "ballots.jsonl"
    bad = "\x1b[31m\u202e[bold]x[/bold] " + "w" * 300
    row = {"episode_id": bad, "turn": 1, "stage": "final", "protocol": "approval"}
    rows = [
        {**row, "voter": voter, "candidate": candidate, "mass": int(candidate == bad)}
        for voter in (bad, "v")
        for candidate in (bad, "b", "c")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for options in ((), ("--json",)):
        done = shell(command[0], path, *command[1:], *options, columns=80)
        assert done.code == 0, done.err
        assert not set("\x1b\u202e") & set(done.out)
        assert "[bold]x[/bold]" in done.out
