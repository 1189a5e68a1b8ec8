"""What whole commands take: the rows of `tutorsim guide speed`."""

import json
from typing import Final

import pytest

from tests.benchmarks.cost import cost_of, measured, note
from tests.guards import sources
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.runner.find_and_check_recording import bundled_recording

TURNS: Final = 1_000_000
LARGEST_PAGE: Final = 5_000_000
EPISODE: Final = "sciq.seasons.low_confidence_novice.simple"
TEN: Final = TARGETS[:10]
MOST_OPEN: Final = 40


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    """The bundled study, replayed."""
    folder = tmp_path_factory.mktemp("demo") / "log"
    cost_of("replay", bundled_recording(), "--log-dir", folder)
    return folder


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("summary", "at most 16 s, 2.5 GB"),
        ("recount", "at most 12 s, 1.8 GB"),
        ("report", "at most 20 s, 2.5 GB"),
    ],
)
def test_a_million_turns(side_by_side, million, tmp_path, command, target):
    page = tmp_path / "page.html"
    output = ("-o", page) if command == "report" else ()
    cost = measured(side_by_side, command, million, *output, rounds=2)
    assert not output or page.stat().st_size < LARGEST_PAGE
    note(side_by_side, f"`tutorsim {command}` of {TURNS:,} turns", cost, target=target)


@pytest.mark.parametrize(
    ("command", "arguments", "target"),
    [
        ("summary", (), "at most 0.45 s"),
        ("show", (EPISODE,), "at most 1.7 × `import pydantic, click, rich`"),
        ("report", ("-o", "{}/page.html"), "at most 3.5 s"),
    ],
)
def test_the_bundled_study(side_by_side, demo_run, tmp_path, command, arguments, target):
    given = (argument.format(tmp_path) for argument in arguments)
    cost = measured(side_by_side, command, demo_run, *given)
    note(side_by_side, f"`tutorsim {command}` of the bundled study", cost, target=target)


@pytest.mark.parametrize(
    ("command", "target"), [("demo", "at most 4.2 s"), ("replay", "at most 0.42 s")]
)
def test_the_bundled_study_replayed(side_by_side, tmp_path, command, target):
    recording = (bundled_recording(),) if command == "replay" else ()
    costs = []
    side_by_side.benchmark.pedantic(
        lambda: costs.append(cost_of(command, *recording, "--log-dir", tmp_path / str(len(costs)))),
        rounds=3,
    )
    note(side_by_side, f"`tutorsim {command}` of the bundled study", min(costs), target=target)


def test_ten_targets_of_large_panels(side_by_side, tmp_path):
    """Votes that no table holds: 24 turns of eight voters and eight candidates."""
    found = tmp_path / "found.json"
    ballots = sources.drawn(tmp_path, 8, 8, 24)
    asked = ("--targets", ",".join(TEN), "-o", found)
    cost = measured(side_by_side, "recount", ballots, *asked, rounds=2)
    rows = [row for row in json.loads(found.read_text())["rules"] if row["reading"] == "set"]
    left = sum(row["not_settled"] for row in rows)
    assert left <= MOST_OPEN
    what = f"`tutorsim recount` of 24 turns of 8 voters and 8 candidates, ten targets ({left} open)"
    note(side_by_side, what, cost, target="at most 4 s on two cores")
