"""A hundred million turns through `tutorsim recount`, in parts, within four gigabytes.

Ten million are drawn, and each of their files stands under several names: what a recount does with
a part does not depend on what was in another. Fewer turns:
`TUTORSIM_BENCH_TURNS=3000000 pytest tests/benchmarks/test_scale.py -n 0 --benchmark-json FILE`.
"""

import json
import os
from typing import Final

import pytest

from tests.benchmarks.ballots import ballots_frame
from tests.benchmarks.cost import measured
from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import REQUIRED

TURNS: Final = int(os.environ.get("TUTORSIM_BENCH_TURNS", "100000000"))
PART: Final = min(TURNS, 500_000)
DRAWN: Final = 20
"""Parts that are drawn; others are these once more."""
LIMIT: Final = 4_000_000_000
ASKED: Final = ("--targets", "simple,ranked,cumulative,approval", "--exempt", "0")


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scale")
    names = [folder / f"{i:04}" / "ballots.parquet" for i in range(TURNS // PART)]
    for i, name in enumerate(names):
        name.parent.mkdir()
        if i < DRAWN:
            part = ballots_frame(PART, seed=i, start=i * PART, columns=REQUIRED)
            part.write_parquet(name, compression="lz4")
        else:
            name.hardlink_to(names[i % DRAWN])
    return folder


def test_parts_stream_through_a_recount(side_by_side, parts, tmp_path):
    """The turns of all parts are counted, and no process holds more than a part."""
    found = tmp_path / "found.json"
    cost = measured(side_by_side, "recount", parts, *ASKED, "-o", found, rounds=1)
    assert json.loads(found.read_text())["turns"] == TURNS // PART * PART
    side_by_side.note(
        what=f"{TURNS:,} turns in {TURNS // PART} parts, {min(DRAWN, TURNS // PART)} of them "
        "different, through `tutorsim recount`, four rules",
        reference=f"none ({cost.passed:,.0f} s)",
        target="under 4 GB",
        ratio=cost.memory / 1e9,
        unit="GB",
    )
    assert cost.memory < LIMIT
