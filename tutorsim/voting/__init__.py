"""Ballots, tallies, ties and decisions. Pure: no input, no output, no clock, no chance."""

from tutorsim.voting.ballot_masses import Choice, RichBallot, cast_as, masses_of, resolve
from tutorsim.voting.ballot_parsing import RULES, FormatRule, read_ballot, repair_ballot
from tutorsim.voting.decide_winner import Decision, Step, decide
from tutorsim.voting.discussion_consensus import (
    CONSENSUS_RULES,
    MAJORITIES,
    Agreement,
    AgreementReading,
    ConsensusRule,
    Majority,
    Support,
    agreed,
    newest_proposal,
    read_agreement,
    support,
)
from tutorsim.voting.tally import first_in_order, leaders, tally

__all__ = [
    "CONSENSUS_RULES",
    "MAJORITIES",
    "RULES",
    "Agreement",
    "AgreementReading",
    "Choice",
    "ConsensusRule",
    "Decision",
    "FormatRule",
    "Majority",
    "RichBallot",
    "Step",
    "Support",
    "agreed",
    "cast_as",
    "decide",
    "first_in_order",
    "leaders",
    "masses_of",
    "newest_proposal",
    "read_agreement",
    "read_ballot",
    "repair_ballot",
    "resolve",
    "support",
    "tally",
]
