"""Ballots, tallies, ties and decisions. Pure: no input, no output, no clock, no chance."""

from tutorsim.voting.ballots import (
    RULES,
    Choice,
    ProtocolRule,
    masses_of,
    read_ballot,
    repair_points,
    resolve,
)
from tutorsim.voting.decision import Decision, Step, decide
from tutorsim.voting.tally import first_in_order, leaders, tally

__all__ = [
    "RULES",
    "Choice",
    "Decision",
    "ProtocolRule",
    "Step",
    "decide",
    "first_in_order",
    "leaders",
    "masses_of",
    "read_ballot",
    "repair_points",
    "resolve",
    "tally",
]
