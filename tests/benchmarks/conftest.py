"""Benchmarks: outside the default run; `pytest tests/benchmarks -n 0 --benchmark-json FILE`.

The JSON file is pytest-benchmark's own; the table for readers is written beside it as Markdown.
"""

from pathlib import Path

import pytest

from tests.benchmarks.ballots import ballots_frame
from tests.benchmarks.making import Made, published, record_stand_in
from tests.benchmarks.sides import SideBySide
from tests.benchmarks.table import write_table
from tutorsim.sandbox import Sandbox


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config, benchmarks, output_json):
    named = config.getoption("benchmark_json")
    if named is not None:
        write_table(output_json["benchmarks"], Path(named).with_suffix(".md"))


@pytest.fixture
def side_by_side(benchmark):
    """Measures both sides of a ratio."""
    return SideBySide(benchmark)


@pytest.fixture(scope="session")
def million(tmp_path_factory):
    """Ballots of a million turns: 4 × 4, first votes and tie rounds, a quarter per protocol."""
    path = tmp_path_factory.mktemp("million") / "ballots.parquet"
    ballots_frame(1_000_000, seed=1).write_parquet(path)
    return path


@pytest.fixture(scope="session")
def make_recording(tmp_path_factory):
    """Record the published grid over some tasks of each benchmark; one of a size is made once."""
    made: dict[tuple[int, int], Made] = {}
    with Sandbox("auto") as sandbox:

        def make(*, tasks=20, repeats=1):
            if (tasks, repeats) not in made:
                folder = tmp_path_factory.mktemp("recording") / f"{tasks}x{repeats}"
                loaded = published(tasks=tasks, repeats=repeats)
                made[tasks, repeats] = record_stand_in(folder, loaded, sandbox)
            return made[tasks, repeats]

        yield make
