"""Consensus rules, with the counts beside the flags, held against a plain reading of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.systems.debate import agreement_reading_consensus_and_end_of_debate as rules

Y, N, D = True, False, None


@pytest.mark.parametrize(
    ("flags", "agents", "expected"),
    [
        ([], 3, None),
        ([N], 3, (0, 1)),
        ([N, Y], 3, (0, 2)),
        ([N, Y, N], 3, (2, 1)),
        ([D, D, D], 3, (2, 1)),
        ([D, D, D, Y], 3, (2, 2)),
        ([N, Y, Y, Y], 3, None),  # the proposal lies before the last three messages
        ([Y, Y], 2, None),
    ],
)
def test_support_counts_from_the_newest_proposal_of_the_last_messages(flags, agents, expected):
    """The proposal and how many stand behind it, told by what agrees on it."""
    proposal, agreeing = expected or (None, 0)
    for rule, enough in (("majority", 2 * agreeing > agents), ("unanimity", agreeing == agents)):
        assert rules.agreed(flags, agents=agents, rule=rule) == (proposal if enough else None)


@pytest.mark.parametrize(
    ("rule", "needed"),
    # agents: 1 2 3 4 5 6 7
    [
        ("majority", (1, 2, 2, 3, 3, 4, 4)),
        ("supermajority", (1, 2, 2, 3, 4, 4, 5)),  # 2/3 and 4/6 pass 66/100; 3/5 and 4/7 do not
        ("unanimity", (1, 2, 3, 4, 5, 6, 7)),
        ("hybrid", (1, 2, 3, 3, 4, 5, 6)),  # from turn 5 on: 3/4, 4/5, 5/6, 6/7
    ],
)
def test_a_rule_needs_so_many_agents(rule, needed):
    for agents, least in enumerate(needed, start=1):
        reached = [
            rules.agreed([N, *[Y] * more], agents=agents, rule=rule, turn=5) is not None
            for more in range(agents)
        ]
        assert reached == [count >= least for count in range(1, agents + 1)]


def test_at_least_half_takes_half():
    assert rules.agreed([N, Y], agents=4, rule="majority", majority="at_least_half") == 0
    assert rules.agreed([N, Y], agents=4, rule="majority") is None


def test_hybrid_asks_for_all_before_the_fifth_turn():
    flags = [N, Y, Y]
    assert rules.agreed(flags, agents=4, rule="hybrid", turn=4) is None
    assert rules.agreed(flags, agents=4, rule="hybrid", turn=5) == 0
    assert rules.agreed([N, Y], agents=3, rule="hybrid", turn=9) is None


def test_agreement_counts_across_turns():
    #      turn 1     turn 2
    flags = [N, N, Y, Y]
    assert rules.agreed(flags, agents=3, rule="unanimity", turn=2) == 1


def plain(flags, agents, rule, turn, majority):
    """The rules in integers, read off the last messages one by one."""
    window = flags[-agents:]
    behind = [i for i, flag in enumerate(reversed(window), start=1) if flag is not True]
    if not behind:
        return False
    d = behind[0]
    if rule == "hybrid":
        rule = "unanimity" if agents <= 3 or turn < 5 else "three quarters"
    return {
        "majority": 2 * d >= agents if majority == "at_least_half" else 2 * d > agents,
        "supermajority": 100 * d >= 66 * agents,
        "unanimity": d == agents,
        "three quarters": 4 * d >= 3 * agents,
    }[rule]


@given(
    st.lists(st.sampled_from([Y, N, D]), max_size=40),
    st.integers(1, 10),
    st.sampled_from(rules.CONSENSUS_RULES),
    st.integers(1, 9),
    st.sampled_from(rules.MAJORITIES),
)
def test_rules_agree_with_a_plain_reading(flags, agents, rule, turn, majority):
    index = rules.agreed(flags, agents=agents, rule=rule, turn=turn, majority=majority)
    assert (index is not None) == plain(flags, agents, rule, turn, majority)
    if index is not None:
        assert index == rules.newest_proposal(flags)
