"""`tutorsim recount` and `tutorsim diverge`: counterfactuals, each with what it holds fixed."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tutorsim.types import DEFAULT_ROLES

COLUMNS = frozenset(
    {"episode_id", "turn", "logged_protocol", "logged_winner", "target", "fallback_order"}
    | {"tied_set", "possible_winners", "necessary_winner", "point_winner", "projection"}
    | {"exempt", "breakdown", "settled"}
)

FOREIGN = "episode_id,turn,stage,voter,candidate,mass,protocol\n" + "".join(
    f"e,1,final,{voter},{candidate},{mass},ranked\n"
    for voter, order in (("v", "abc"), ("w", "bca"), ("x", "bac"))
    for mass, candidate in enumerate(reversed(order))
)


def value_of(tutorsim: Any, command: str, run: Path, *options: Any) -> dict[str, Any]:
    done = tutorsim(command, run, "--json", *options)
    assert done.exit_code == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One ranked vote of three voters from elsewhere: b wins with 5, a has 3, c has 1."""
    path = tmp_path_factory.mktemp("foreign") / "ballots.csv"
    path.write_text(FOREIGN)
    return path


def test_the_logged_rule_gives_the_logged_winners(tutorsim: Any, built: Any) -> None:
    protocols = ("simple", "ranked", "cumulative", "approval")
    options = ("--targets", ",".join(protocols), "--exempt", "0")
    value = value_of(tutorsim, "recount", built.folder, *options)
    own = [row for row in value["rules"] if row["logged_protocol"] == row["target"]]
    assert {row["target"] for row in own} == set(protocols)
    for row in own:
        assert row["agreement"] == dict.fromkeys(("lower", "point", "upper"), row["turns"])


def test_every_order_has_every_turn_won_once(tutorsim: Any, built: Any) -> None:
    value = value_of(tutorsim, "recount", built.folder, "--targets", "simple", "--exempt", "0")
    for orders in value["orders"]:
        assert len(orders["listed"]) == orders["orders"] == 24
        assert {sum(row["wins"].values()) for row in orders["listed"]} == {orders["turns"]}


def test_every_table_says_that_the_dialogue_is_held_fixed(tutorsim: Any, built: Any) -> None:
    done = tutorsim("recount", built.folder, "--targets", "ranked", "--threshold", "0.5", "--full")
    lines = done.stdout.splitlines()
    tables = [at for at, line in enumerate(lines) if line.startswith("─")]
    captions = [at for at, line in enumerate(lines) if line.endswith("dialogue is held fixed.")]
    assert len(tables) > 8
    for at, following in zip(tables, [*tables[1:], len(lines)], strict=True):
        assert any(at < caption < following for caption in captions), lines[at - 2]


def test_provenance_comes_first(tutorsim: Any, built: Any) -> None:
    for command in (("recount", "--targets", "simple"), ("diverge", "--rule", "simple")):
        done = tutorsim(command[0], built.folder, *command[1:])
        assert "stand-in" in done.stdout.splitlines()[1]
        assert "say nothing about any language model" in done.stdout


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_turns_go_to_a_file_by_its_ending(
    tutorsim: Any, built: Any, tmp_path: Path, ending: str
) -> None:
    from analysis.export import EXPORT_FORMATS

    assert ending in EXPORT_FORMATS
    path = tmp_path / f"turns.{ending}"
    done = tutorsim("recount", built.folder, "--targets", "ranked,simple", "--turns", path)
    turns = sum(turn.decision is not None for r in built.episodes for turn in r.turns)
    assert done.exit_code == 0
    assert f"{turns * 2 * 3 * 2} rows written" in done.stderr
    assert path.stat().st_size > 0
    if ending == "csv":
        rows = rows_of(path)
        assert len(rows) == turns * 2 * 3 * 2
        assert set(rows[0]) == COLUMNS
        orders = {row["fallback_order"] for row in rows}
        assert {tuple(json.loads(order)) for order in orders if order} == {DEFAULT_ROLES}
        assert sum(not row["fallback_order"] for row in rows) == len(rows) / 2


def test_ballots_from_elsewhere_are_recounted(tutorsim: Any, foreign: Path) -> None:
    value = value_of(tutorsim, "recount", foreign, "--targets", "simple,condorcet")
    wins = {
        row["target"]: row["wins"]
        for row in value["rules"]
        if (row["exempt"], row["reading"]) == (0, "set")
    }
    assert wins["simple"]["b"] == {"lower": 1, "point": 1, "upper": 1}
    assert wins["condorcet"]["b"] == {"lower": 1, "point": 1, "upper": 1}
    assert value["readings"] == []


def test_another_order_is_counted_against_the_logged_winners(tutorsim: Any, built: Any) -> None:
    options = ("--targets", "simple", "--exempt", "0", "--fallback-order", "metacognitive")
    value = value_of(tutorsim, "recount", built.folder, *options)
    assert value["fallback_order"][0] == "metacognitive"
    again = next(row for row in value["policies"] if row["policy"] == "tie_round")
    listed = value["orders"][0]["listed"]
    order = next(row for row in listed if row["order"] == value["fallback_order"])
    assert again["changed"]["value"] == order["changed"]


def test_thresholds_are_exact_downwards(tutorsim: Any, built: Any) -> None:
    options = ("--targets", "simple", "--exempt", "0", "--threshold", "0.7")
    value = value_of(tutorsim, "recount", built.folder, *options)
    assert all(row["exact"] == row["episodes"] for row in value["thresholds"])


def test_sections_choose_what_is_shown(tutorsim: Any, built: Any) -> None:
    done = tutorsim("recount", built.folder, "--targets", "simple", "--section", "readings")
    assert "Ballots read again" in done.stdout
    assert "Every fallback order" not in done.stdout


def test_an_empty_run_has_nothing_to_recount(tutorsim: Any, empty_run: Any) -> None:
    done = tutorsim("recount", empty_run.folder)
    assert done.exit_code == 0
    assert "no voting turn" in done.stdout
    assert value_of(tutorsim, "recount", empty_run.folder)["turns"] == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--targets", "plurality"),
        ("--exempt", "one"),
        ("--fallback-order", "nobody"),
        ("--threshold", "2"),
        ("--budget", "10"),  # a run says itself what its ballots sum to
        ("--turns", "turns.xls"),
        ("-o", "out.csv"),
    ],
)
def test_wrong_options_are_usage_errors(tutorsim: Any, built: Any, options: Any) -> None:
    done = tutorsim("recount", built.folder, *options)
    assert done.exit_code == 2
    assert done.stdout == ""


def test_the_logged_rule_covers_every_episode(tutorsim: Any, one_episode: Any) -> None:
    value = value_of(tutorsim, "diverge", one_episode.folder, "--rule", "approval")
    [row] = value["coverage"]
    assert row["covered"] == row["episodes"] == 1
    assert row["on_covered"]["success"] == row["logged"]["success"]


def test_an_order_diverges_where_the_order_decided(tutorsim: Any, built: Any) -> None:
    order = ("metacognitive", "motivation", "misconception", "scaffolding")
    value = value_of(tutorsim, "diverge", built.folder, "--fallback-order", ",".join(order))
    first = {
        record.episode_id: next(
            (
                turn.turn
                for turn in record.turns
                if turn.decision
                and min(turn.decision.undecided, key=order.index) != turn.decision.winner
            ),
            None,
        )
        for record in built.episodes
        if record.condition != "baseline"
    }
    assert {row["episode_id"]: row["first_certain"] for row in value["episodes"]} == first
    assert any(turn is not None for turn in first.values())


def test_uncovered_outcomes_are_bounded(tutorsim: Any, built: Any) -> None:
    value = value_of(tutorsim, "diverge", built.folder, "--tie-policy", "random")
    for row in value["coverage"]:
        bounds = row["bounds"]["success"]
        assert bounds["high"] - bounds["low"] == pytest.approx(1 - row["covered"] / row["episodes"])


def test_episodes_of_a_divergence_go_to_a_file(tutorsim: Any, built: Any, tmp_path: Path) -> None:
    path = tmp_path / "episodes.csv"
    done = tutorsim("diverge", built.folder, "--tie-policy", "no_tie_round", "--episodes", path)
    assert done.exit_code == 0
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
def test_a_divergence_needs_one_alternative(tutorsim: Any, built: Any, options: Any) -> None:
    assert tutorsim("diverge", built.folder, *options).exit_code == 2


def test_ballots_from_elsewhere_diverge_without_outcomes(tutorsim: Any, foreign: Path) -> None:
    done = tutorsim("diverge", foreign, "--rule", "approval")
    assert done.exit_code == 0
    assert "No outcome is logged" in done.stdout


@pytest.mark.costly
def test_tables_keep_to_eighty_columns(tutorsim: Any, one_episode: Any) -> None:
    for command in (("recount", "--full"), ("diverge", "--rule", "simple")):
        shown = tutorsim(command[0], one_episode.folder, *command[1:], columns=80).stdout
        rules = [line for line in shown.splitlines() if line.startswith("─")]
        assert max(map(len, rules)) <= 80
        assert "…" not in shown


@pytest.mark.parametrize("command", [("recount",), ("diverge", "--rule", "simple")])
def test_hostile_names_reach_the_terminal_only_escaped(
    tutorsim: Any, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "ballots.jsonl"
    bad = "\x1b[31m\u202e[bold]x[/bold] " + "w" * 300
    row = {"episode_id": bad, "turn": 1, "stage": "final", "protocol": "approval"}
    rows = [
        {**row, "voter": voter, "candidate": candidate, "mass": int(candidate != "b")}
        for voter in (bad, "v")
        for candidate in (bad, "b", "c")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for options in ((), ("--json",)):
        done = tutorsim(command[0], path, *command[1:], *options, columns=80)
        assert done.exit_code == 0, done.stderr
        assert not set("\x1b\u202e") & set(done.stdout)
        assert "[bold]x[/bold]" in done.stdout
