"""Made-up runs that several tests of the analysis share."""

import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


@pytest.fixture
def two_votes():
    """S wins the first turn 3 to 1; S and MI tie 2 to 2 in the second, twice: the order decides.

    First votes are as the final ones.
    """
    clear, tied = votes(S, S, S, MI), votes(S, S, MI, MI)
    turns = panel_turn("simple", clear), panel_turn("simple", tied, tie=tied, turn=2)
    return panel_source(panel_episode(*turns, scores=(0.2, 0.4, 0.8)))


@pytest.fixture
def decided_and_tied():
    """A turn that voting decides and one that the order does, in two episodes of one run."""
    clear = panel_turn("simple", votes(MI, MI, MI, S))
    tied = panel_turn("simple", votes(S, S, MI, MI), tie=votes(S, S, MI, MI))
    return panel_source(
        panel_episode(clear, task="t1", scores=(0.1, 0.8)),
        panel_episode(tied, task="t2", scores=(0.1, 0.4)),
    )
