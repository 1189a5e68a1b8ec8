"""A hundred million turns through `tutorsim recount`, in parts, within four gigabytes.

Drawing and writing the ballots takes most of the time, and about 1.5 GB of disk. Fewer turns:
`TUTORSIM_BENCH_TURNS=3000000 pytest tests/benchmarks/test_scale.py -n 0 --benchmark-json FILE`.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from analysis.ballotfiles import REQUIRED
from tests.benchmarks.ballots import ballots_frame
from tests.benchmarks.sides import SideBySide

TURNS: Final = int(os.environ.get("TUTORSIM_BENCH_TURNS", "100000000"))
PART: Final = min(TURNS, 500_000)
LIMIT: Final = 4_000_000_000
TUTORSIM: Final = str(Path(sys.executable).with_name("tutorsim"))
ASKED: Final = ("--targets", "simple,ranked,cumulative,approval", "--exempt", "0", "--json")


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scale")
    for i in range(TURNS // PART):
        part = ballots_frame(PART, seed=i, start=i * PART, columns=REQUIRED)
        part.write_parquet(folder / f"part-{i:04}.parquet", compression="lz4")
    return folder


def test_parts_stream_through_a_recount(side_by_side: SideBySide, parts: Path) -> None:
    """The turns of all parts are counted, and no process holds more than a part."""
    figures: list[dict[str, object]] = []

    def recount() -> None:
        done = subprocess.run(
            [TUTORSIM, "recount", str(parts), *ASKED], check=True, capture_output=True
        )
        figures.append(json.loads(done.stdout))

    found = side_by_side.time(lambda: None, recount, rounds=1)
    assert figures[-1]["turns"] == TURNS // PART * PART
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    side_by_side.note(
        what=f"{TURNS:,} turns in {TURNS // PART} parts through `tutorsim recount`, four rules",
        reference=f"none ({found.candidate:,.0f} s)",
        target="under 4 GB",
        ratio=most / 1e9,
        unit="GB",
    )
    assert most < LIMIT
