"""Ballots, tallies, ties and decisions. Pure: no input, no output, no clock, no chance."""

from tutorsim.voting.ballots import RULES, FormatRule, read_ballot, repair_ballot
from tutorsim.voting.choices import Choice, RichBallot, cast_as, masses_of, resolve
from tutorsim.voting.decision import Decision, Step, decide
from tutorsim.voting.tally import first_in_order, leaders, tally

__all__ = [
    "RULES",
    "Choice",
    "Decision",
    "FormatRule",
    "RichBallot",
    "Step",
    "cast_as",
    "decide",
    "first_in_order",
    "leaders",
    "masses_of",
    "read_ballot",
    "repair_ballot",
    "resolve",
    "tally",
]
