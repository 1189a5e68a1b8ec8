"""A run of two simple votes, small enough to count by hand."""

from typing import Any

import pytest

from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


@pytest.fixture
def two_votes(panel_turn: Any, panel_episode: Any, panel_source: Any) -> Any:
    """S wins the first turn 3 to 1; S and MI tie 2 to 2 in the second, twice: the order decides.

    First votes are as the final ones.
    """
    clear = {S: S, MI: S, MO: S, ME: MI}
    tied = {S: S, MI: S, MO: MI, ME: MI}
    turns = panel_turn("simple", clear), panel_turn("simple", tied, tie=tied, turn=2)
    return panel_source(panel_episode(*turns, scores=(0.2, 0.4, 0.8)))
