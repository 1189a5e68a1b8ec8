"""`tutorsim summary` says what answered first, and never shows a missing figure as a number."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tutorsim.cli.conftest import ask_again
from tests.tutorsim.conftest import loaded_by
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import numbers_in
from tutorsim.analysis.systems.system_view_opened_run_and_cost import usage
from tutorsim.kernel.cost_plan import Price, PriceTable
from tutorsim.runner.find_and_check_recording import bundled_recording


def value_of(shell, run, *options):
    return shell("summary", run, "--json", *options).json()["values"]


def test_the_summary_of_a_run_loads_no_reader_of_ballots_from_elsewhere():
    readers = (
        "read_ballot_files_into_typed_columns",
        "convert_to_long_format",
        "ambiguous_columns_and_cells_with_proposed_options",
    )
    loaded = loaded_by("import tutorsim.cli.summary")
    assert [name for name in loaded if name.endswith(readers)] == []


ONLY_A_NUMBER = re.compile(
    r"[<>≤≥~±]? ?[+−-]?[\d,.]+ ?%?( \[.*\]| to [\d.]+ ?%?| (\+|of) \d+|/\d+)?"
)


def texts(value, place=""):
    """Every text of a JSON value at its place."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(item, f"{place}/{key}")
    elif isinstance(value, str):
        yield place, value


@pytest.mark.parametrize("command", ["summary", "recount", "compare", "report"])
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.costly) for name in ("claude", "demo", "oversight")),
        *("debate", "group", "oversight-audit"),
    ],
)
def test_no_number_is_a_text_in_json(shell, name, command, tmp_path):
    """Headlines are words, and versions names."""
    where = ("-o", tmp_path / "page.html") if command == "report" else ()
    value = shell(command, bundled_recording(name), "--json", *where).json()
    numbers = {k: v for k, v in texts(value) if ONLY_A_NUMBER.fullmatch(v)}
    words = re.compile(r".*/(facts/Package .*|headline)")
    assert {k: v for k, v in numbers.items() if not words.fullmatch(k)} == {}


@pytest.mark.parametrize("command", ["summary", "recount", "report"])
def test_of_ballots_only_a_name_is_a_text_with_digits(shell, command, tmp_path):
    """Thirds of a vote and shares of a place are numbers, the voters are 1 to 3."""
    ballots = tmp_path / "ballots.csv"
    rows = [f"{voter},{name}\n" for voter, name in enumerate("aabc", start=1)]
    ballots.write_text("voter,vote\n" + "".join(rows) + "5,b\n6,c\n")
    where = ("-o", tmp_path / "page.html") if command == "report" else ()
    value = shell(command, ballots, "--json", *where).json()
    named = {k for k, v in texts(value) if ONLY_A_NUMBER.fullmatch(v)}
    assert all(place.endswith("/voter") for place in named)
    if command == "recount":
        [lot, _] = [row for row in value["policies"] if row["policy"] == "random"]
        assert lot["wins"] == {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


def test_provenance_stands_before_every_figure(shell, built):
    lines = shell("summary", built.folder).out.splitlines()
    assert lines[2].startswith("Answered by: stand-in (built by a test)")
    assert "say nothing about any language model" in lines[3]


@pytest.fixture
def one_vote(tmp_path):
    path = tmp_path / "ballots.csv"
    path.write_text(
        "episode_id,turn,stage,voter,candidate,mass,protocol\n"
        "e,1,final,x,a,1,simple\ne,1,final,x,b,0,simple\n"
    )
    return path


def test_a_section_with_nothing_in_it_says_so(shell, one_vote):
    said = shell("summary", one_vote, "--section", "contrasts").out
    assert "Section contrasts: there is nothing for it." in said
    assert "there is nothing" not in shell("summary", one_vote, "--full").out


def test_the_grid_counts_episodes(shell, built):
    grid = value_of(shell, built.folder)["grid"]
    assert grid["episodes"] == grid["complete"] == 20
    assert grid["failed"] == 0
    assert grid["tasks"] == {"humaneval": 1, "sciq": 1}


def test_wins_add_up_to_turns_and_to_their_steps(shell, built):
    value = value_of(shell, built.folder)
    wins: Counter[str] = Counter()
    for row in value["winning_roles"]:
        assert row["wins"] == row["by_vote"] + row["by_tie_round"] + row["by_fallback"]
        wins[row["protocol"]] += row["wins"]
    assert wins == {row["protocol"]: row["turns"] for row in value["diagnostics"]}


def test_winning_roles_are_the_logged_winners(shell, built):
    logged = Counter(
        (record.condition, turn.decision.winner)
        for record in built.episodes
        for turn in record.turns
        if turn.decision
    )
    rows = value_of(shell, built.folder)["winning_roles"]
    assert {(r["protocol"], r["role"]): r["wins"] for r in rows if r["wins"]} == logged


def test_ballots_are_counted_by_status(shell, built):
    logged: Counter[str] = Counter()
    for record in built.episodes:
        for turn in record.turns:
            tie = turn.tie_round.ballots if turn.tie_round else ()
            every = (*turn.ballots_initial, *turn.ballots_final, *tie)
            logged.update(ballot.ballot_status for ballot in every)
    rows = value_of(shell, built.folder)["ballots"]
    assert {s: sum(row[s] for row in rows) for s in logged} == logged
    assert logged["abstained"] > 0
    assert logged["repaired"] > 0


def test_success_is_shown_for_every_condition(shell, built):
    value = value_of(shell, built.folder)
    won = {(row["benchmark"], row["condition"]): row["rate"]["value"] for row in value["success"]}
    for (benchmark, condition), rate in won.items():
        outcomes = [
            record.success
            for record in built.episodes
            if (record.benchmark, record.condition) == (benchmark, condition)
        ]
        assert rate == pytest.approx(sum(outcomes) / len(outcomes))


def test_failed_episodes_are_named_and_left_out(shell, with_failures):
    value = value_of(shell, with_failures.folder)
    assert value["grid"]["failed"] == 10
    assert sum(row["episodes"] for row in value["success"]) == 10
    shown = shell("summary", with_failures.folder, "--full").out
    assert "10 complete and 10 failed" in shown
    assert all(e.episode_id in shown for e in with_failures.episodes if e.failure is not None)


def test_an_empty_run_is_summarised_without_a_number(shell, empty_run):
    shell("summary", empty_run.folder).tells("The run has no episode.")
    value = value_of(shell, empty_run.folder)
    assert value["success"] == value["diagnostics"] == value["winning_roles"] == []
    assert value["usage"]["cost_usd"] == 0


def test_one_episode_has_no_interval_over_tasks(shell, one_episode):
    [row] = value_of(shell, one_episode.folder)["success"]
    assert "not_estimable" in row["rate"]["interval"]


def test_ballots_from_elsewhere_are_summarised(shell, one_vote):
    shell("summary", one_vote).tells("The file says how voters voted, and nothing of what was said")
    value = value_of(shell, one_vote)
    assert value["study"] is None
    assert [row["turns"] for row in value["diagnostics"]] == [1]
    assert "no order is logged" in value["diagnostics"][0]["flip"]["not_estimable"]
    assert value["diagnostics"][0]["decided_by"] == {"vote": 1, "tie_round": 0, "open": 0}


def test_cost_comes_from_the_price_table(built):
    prices = PriceTable(
        as_of="2026-01-01", models={"claude-sonnet-4-5": Price(input=1_000_000, output=0)}
    )
    found = usage([call for one in built.episodes for call in one.calls], prices)
    sonnet = found["models"]["claude-sonnet-4-5"]
    assert sonnet["cost_usd"] == sonnet["input_tokens"]
    assert found["models"]["claude-haiku-4-5"]["cost_usd"] is None
    assert found["cost_usd"] is None
    assert found["calls"] == sum(len(record.calls) for record in built.episodes)


def test_a_missing_price_is_shown_as_unknown(shell, built, tmp_path):
    table = tmp_path / "prices.toml"
    table.write_text('as_of = "2026-01-01"\n[models.other]\ninput = 1\noutput = 1\n')
    last = shell("summary", built.folder, "--full", "--prices", table).out.splitlines()
    values = [line.split()[-1] for line in last if line.startswith("claude-")]
    assert values == ["unknown", "unknown"]


def test_output_goes_to_a_file_by_its_ending(shell, built, tmp_path):
    for name in ("a.json", "a.txt"):
        done = shell("summary", built.folder, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, "")
    written = json.loads((tmp_path / "a.json").read_text())
    assert written["values"] == value_of(shell, built.folder)
    assert (tmp_path / "a.txt").read_text() == shell("summary", built.folder).out


def test_an_unknown_ending_is_a_usage_error(shell, built, tmp_path):
    done = shell("summary", built.folder, "-o", tmp_path / "a.doc")
    assert done.code == 2
    assert not (tmp_path / "a.doc").exists()
    both = shell("summary", built.folder, "--json", "-o", tmp_path / "a.txt")
    both.fails(2, "--json does not go with", "Name a .json file")
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.costly
def test_figures_have_the_same_last_digit_on_every_processor():
    """NumPy's library for products of matrices adds in another order on another processor."""
    words = [sys.executable, "-m", "tutorsim", "summary", bundled_recording("demo"), "--json"]
    said = {
        subprocess.run(
            words, env={**os.environ, "OPENBLAS_CORETYPE": kind}, capture_output=True, check=True
        ).stdout
        for kind in ("Prescott", "Haswell", "SkylakeX")
    }
    assert len(said) == 1


@pytest.mark.costly
@pytest.mark.parametrize("name", ["debate", "group", "oversight", "oversight-audit"])
def test_no_number_of_a_system_s_summary_is_a_text(shell, name):
    """Cells are values in JSON; what has digits and is text is a name."""
    value = shell("summary", bundled_recording(name), "--json").json()
    assert value["schema_version"] == 3
    texts = {
        cell
        for section in value["sections"]
        for part in (*section["tables"], *section["figures"])
        for row in part["rows"]
        for cell in row.values()
        if isinstance(cell, str) and any(numbers_in(cell))
    }
    assert texts <= {"always yes (mistake = 1)", "always effective (guidance = 2)"}


# --- The summary sets what was logged beside what re-asking changes, and says which is which ------


@pytest.fixture
def retested(built, tmp_path):
    """A run of which every first vote was asked again, with the same answers in another order."""
    folder = Path(shutil.copytree(built.folder, tmp_path / "retested"))
    return ask_again(replace(built, folder=folder))


def test_without_a_retest_the_floor_is_said_to_be_unknown(shell, built):
    assert (
        "the noise floor, is unknown: each vote was asked for once."
        in shell("summary", built.folder, "--full").out
    )
    value = shell("summary", built.folder, "--json").json()["values"]
    assert "not_estimable" in value["noise_floor"]


def test_logged_and_re_asked_figures_have_columns_of_their_own(shell, retested):
    text = shell("summary", retested, "--full").out
    assert "is unknown" not in text
    [heads] = [line for line in text.splitlines() if "re-asked" in line and "left" in line]
    assert " ".join(heads.split()) == "protocol what turns asked again logged re-asked left"
    assert "Asked again 1 × by stand-in: asked again, model-c." in text


def test_the_floor_is_in_the_summarys_json(shell, retested):
    floor = shell("summary", retested, "--json").json()["values"]["noise_floor"]
    assert (floor["repeats"], floor["stages"]) == (1, ["vote_initial"])
    assert {row["quantity"] for row in floor["beside"]} == {"flip", "flip_set", "leader", "shift"}
    for row in floor["beside"]:
        if row["turns"]:
            left = row["logged"]["value"] - row["floor"]["value"]
            assert row["left"]["value"] == pytest.approx(left)
