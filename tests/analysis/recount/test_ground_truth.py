"""Voters whose preferences are known: invariant under every format, or with moods and slips."""

import pytest

from tests.analysis.panel_runs import panel_source
from tutorsim.analysis.recount.same_voter_in_two_formats import format_invariance
from tutorsim.kernel.flow import drive, scripted
from tutorsim.kernel.system import Chance
from tutorsim.standin.endpoint import think
from tutorsim.systems.panel.study import episode

FORMATS = ["simple", "ranked", "cumulative", "approval", "rich"]


@pytest.fixture
def shares(make_scene):
    """`shares(condition, steady)`: the shares of consistent pairs in one played episode."""

    def play(condition, steady):
        scene = make_scene(conditions=[condition], vote_formats=FORMATS, success_threshold=1.0)
        steady_chance = Chance(3, "steady") if steady else None

        def reply(call):
            return think(call.request.body(), Chance(3, str(call.key)), steady=steady_chance).text

        found = format_invariance(panel_source(drive(episode(scene), scripted(reply))))
        assert len(found.pairs) == 16
        return [pair.consistent.value for pair in found.pairs], found.from_vote.value

    return play


@pytest.mark.parametrize("condition", ["cumulative", "rich"])
def test_voters_who_prefer_the_same_in_every_format_are_always_consistent(condition, shares):
    assert shares(condition, steady=True) == ([1.0] * 16, 1.0)


def test_moods_and_slips_are_found(shares):
    pairs, from_vote = shares("ranked", steady=False)
    assert min(pairs) < from_vote < 1.0
