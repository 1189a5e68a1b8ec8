"""Speakers over arrays, held to the definition in `tutorsim.systems.group.speaker_selection`."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.systems.group.conftest import thoughts
from tutorsim.analysis.systems.group.other_speakers import NOBODY, cycles_of, speakers
from tutorsim.systems.group.speaker_selection import CRITERIA, Bid, Moment, Rule, select_speaker

AGENTS = ("alice", "bob", "charlie")
EMPTY = thoughts([])

scores = st.one_of(
    st.none(),
    st.fixed_dictionaries(dict.fromkeys(CRITERIA, st.integers(10, 50))),
    st.sampled_from([30, 35, 40]).map(lambda x: dict.fromkeys(CRITERIA, x)),
    st.fixed_dictionaries(dict.fromkeys(("internal", "external"), st.integers(10, 50))),
)
bids = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.integers(0, 30), scores), min_size=1, max_size=3
)
moments = st.builds(
    Moment,
    st.sampled_from([*AGENTS, "learner", None]),
    st.booleans(),
    st.lists(st.sampled_from([*AGENTS, "learner"]), unique=True, max_size=2).map(tuple),
)
rules = st.builds(
    Rule,
    weight=st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(3, 5), Fraction(1)]),
    threshold=st.sampled_from([Fraction(1), Fraction(5, 2), Fraction(7, 2), Fraction(3501, 1000)]),
    interrupt_threshold=st.sampled_from([Fraction(3), Fraction(4)]),
    silence=st.sampled_from(["raise", "decay", "off"]),
    selection=st.sampled_from(["prism", "inner_thoughts"]),
    criteria=st.sampled_from([CRITERIA, CRITERIA[:3], ("relevance", "balance")]),
)


def rows(episode, event, made, moment):
    for one in made:
        tenths = one.scores or {}
        yield {
            **dict.fromkeys(EMPTY.columns),
            "episode_id": episode,
            "event": event,
            "agent": one.agent,
            "action": "speak" if one.wants else "listen",
            "corrects": one.corrects,
            "silent": one.silent,
            "speaker": moment.speaker,
            "floor": moment.continues,
            "addressed": one.agent in moment.addressed,
            "any_addressed": bool(moment.addressed),
            **{name: x / 10 for name, x in tenths.items()},
            "chosen": False,
        }


@pytest.mark.costly
@settings(max_examples=150)
@given(st.lists(st.tuples(bids, moments), min_size=1, max_size=4), rules)
def test_arrays_choose_as_the_definition_does(cycles, rule):
    table, expected = [], []
    for event, (values, moment) in enumerate(cycles, start=1):
        made = [
            Bid(agent, wants, corrects, silent, found)
            for agent, (wants, corrects, silent, found) in zip(AGENTS, values, strict=False)
        ]
        table += rows("e", event, made, moment)
        chosen = select_speaker(made, moment, rule).chosen
        expected.append(NOBODY if chosen is None else AGENTS.index(chosen))
    arrays = cycles_of(pl.DataFrame(table, schema=EMPTY.schema))
    assert speakers(arrays, rule).tolist() == expected


def test_no_thought_is_no_cycle():
    arrays = cycles_of(EMPTY)
    assert speakers(arrays, Rule()).tolist() == []
