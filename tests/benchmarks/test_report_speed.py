"""How long the report of a million turns takes, beside reading them, and how large it is."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from tests.benchmarks.ballots import ballots_frame

TURNS: Final = 1_000_000
TUTORSIM: Final = str(Path(sys.executable).with_name("tutorsim"))
LARGEST_PAGE: Final = 5_000_000


@pytest.fixture(scope="module")
def million_turns(tmp_path_factory):
    """Ballots from elsewhere: 4 × 4, with first votes and tie rounds, a quarter per protocol."""
    path = tmp_path_factory.mktemp("report") / "ballots.parquet"
    ballots_frame(TURNS, seed=3).write_parquet(path)
    return path


def test_a_million_turns_are_reported_within_a_minute(side_by_side, million_turns, tmp_path):
    page = tmp_path / "page.html"
    started = time.perf_counter()
    rows = pl.read_parquet(million_turns).height
    reading = time.perf_counter() - started
    side_by_side.benchmark.pedantic(
        subprocess.run,
        args=([TUTORSIM, "report", str(million_turns), "-o", str(page)],),
        kwargs={"check": True, "capture_output": True},
        rounds=1,
    )
    size = page.stat().st_size
    assert size < LARGEST_PAGE
    side_by_side.note(
        what=f"`tutorsim report` of 1,000,000 turns ({rows:,} rows; page of {size / 1e6:.1f} MB)",
        reference=f"none (reading the file with polars takes {reading:.1f} s)",
        target="under 60 s, page under 5 MB",
        ratio=side_by_side.benchmark.stats.stats.min,
        unit="s",
    )
