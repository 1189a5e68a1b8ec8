"""Answers gathered from distinct panels, held to turns asked alone: `tests.reference.rules`."""

from random import Random

import pytest

from tests.reference.cases import gather
from tests.reference.drawn import drawn_turns
from tests.reference.identifier import Identifier
from tests.reference.rules import Recounter, gather_named
from tests.reference.turns import read_turns
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.identify.possible_winners import NEVER, NOT_SETTLED
from tutorsim.analysis.identify.win_conditions import NOBODY
from tutorsim.analysis.recount import recount

ORDER = ("bob", "cyd", "ann")


@pytest.mark.parametrize(
    "target",
    [
        t if t in ("ranked", "condorcet") else pytest.param(t, marks=pytest.mark.costly)
        for t in TARGETS
    ],
)
def test_every_turn_is_answered_as_it_is_alone(target):
    frame = drawn_turns(Random(target), 24)
    source = Source("drawn", frame, ORDER, 6, None, ())
    cases = gather(read_turns(frame, fallback_order=ORDER))
    named = gather_named(cases, dict.fromkeys(cases, ""))
    plain = Recounter(budget=6, identifier=Identifier(budget=6))
    turns = {(key.episode_id, key.turn): one for one, keys in named.items() for key in keys}
    rows = recount(source, targets=[target], exempt=[0, 1]).per_turn.rows(named=True)
    assert len(rows) == 24 * 2 * 2
    for row in rows:
        one = turns[row["episode_id"], row["turn"]]
        answer = plain.answer(one.shape, target, exempt=row["exempt"], reading=row["reading"])

        def names(outcomes, one=one):
            return ["none" if c == NOBODY else one.candidates[c] for c in outcomes]

        assert row["possible_winners"] == names(answer.possible.winners)
        assert row["settled"]
        assert row["tied_set"] == names(answer.projected.tied)
        assert (row["point_state"] == "impossible") == answer.projected.impossible
        if row["point_state"] == "winner":
            assert [row["point_winner"]] == names(answer.projected.outcome)
        states = {NEVER: "never", NOT_SETTLED: "not_settled"}
        assert row["breakdown_state"] == states.get(answer.breakdown, "number")
        assert row["breakdown"] == (answer.breakdown if answer.breakdown >= 0 else None)
