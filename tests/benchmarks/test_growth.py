"""Processor time of `recount` and `report` rises with the data: no size takes another path."""

from typing import Final

import pytest

from tests.benchmarks.ballots import ballots_frame
from tests.benchmarks.cost import measured, note

SIZES: Final = (6_000, 20_000, 64_000, 1_000_000)
TARGETS: Final = "simple,ranked,cumulative,approval"
MOST: Final = {("recount", 20_000): 2.0, ("report", 20_000): 8.0}
"""Processor seconds allowed on two cores that nobody shares."""


@pytest.mark.parametrize("turns", SIZES)
@pytest.mark.parametrize("command", ["recount", "report"])
def test_processor_time_rises_with_the_turns(side_by_side, tmp_path, command, turns):
    file = tmp_path / "ballots.parquet"
    ballots_frame(turns, seed=20).write_parquet(file)
    page = ("-o", tmp_path / "page.html")
    asked = ("--targets", TARGETS, "--json") if command == "recount" else page
    rounds = 1 if turns > 100_000 else 3
    least = measured(side_by_side, command, file, *asked, rounds=rounds)
    limit = MOST.get((command, turns))
    target = f"at most {limit:.0f} s" if limit else "rises with the turns"
    note(
        side_by_side, f"`tutorsim {command}` of {turns:,} turns, four targets", least, target=target
    )
