"""Closed vocabularies of the study, each in one place.

Every name here appears in logs, study files, table columns and command output,
so a change is a change of the log format.
"""

from typing import Final, Literal, get_args

__all__ = [
    "BALLOT_FORMATS",
    "BALLOT_STATUSES",
    "BENCHMARKS",
    "BLINDINGS",
    "CONDITIONS",
    "CUMULATIVE_BUDGET",
    "DECIDED_BY",
    "DEFAULT_ROLES",
    "LABELS",
    "MAX_ROLES",
    "MIN_ROLES",
    "PROTOCOLS",
    "PUBLISHED_CONDITIONS",
    "READINGS",
    "STAGES",
    "BallotFormat",
    "BallotStatus",
    "Benchmark",
    "Blinding",
    "Condition",
    "DecidedBy",
    "EpisodeStatus",
    "Protocol",
    "ProvenanceKind",
    "ReadStatus",
    "Reading",
    "Stage",
    "TiePolicy",
]

Protocol = Literal["simple", "ranked", "cumulative", "approval"]
"""How a ballot is cast and counted."""

BallotFormat = Literal["simple", "ranked", "cumulative", "approval", "rich"]
"""How a ballot is asked for: a protocol's own form, or `rich`, which determines all four."""

Condition = Literal["baseline", "simple", "ranked", "cumulative", "approval", "rich"]
"""One column of the grid: the single tutor, or a panel that votes in one format."""

Benchmark = Literal["sciq", "humaneval"]
"""Open-response science questions, or small programming problems with unit tests."""

Stage = Literal[
    "student",
    "judge",
    "propose",
    "critique",
    "vote_initial",
    "revise",
    "vote_final",
    "vote_as_simple",
    "vote_as_ranked",
    "vote_as_cumulative",
    "vote_as_approval",
    "vote_as_rich",
    "tie_critique",
    "tie_vote",
]
"""What a model call is for. The second part of a call key.

`vote_as_…` asks for a ballot on the final proposals in a format that the vote itself did not have:
diagnostic ballots, and those that a branch of a recording needs to decide under another rule.
"""

BallotStatus = Literal["valid", "repaired", "abstained"]
"""`valid` as cast; `repaired` rescaled to the budget; `abstained` never readable, no mass."""

ReadStatus = Literal["valid", "repaired", "missing"]
"""How a proposal, review or score was read: in format, out of format but usable, or not at all."""

DecidedBy = Literal["vote", "tie_round", "fallback"]
"""Which step left one winner."""

TiePolicy = Literal["tie_round", "no_tie_round"]
"""What a tied final vote goes to: another round among the tied, or straight to the order."""

Blinding = Literal["per_reader", "shared"]
"""Labels drawn for each reader, stage and turn, or once a turn for everybody."""

Reading = Literal["strict", "standard", "lenient"]
"""How much a ballot reader forgives. Runs use `standard`; the others are counterfactuals."""

EpisodeStatus = Literal["complete", "failed"]

ProvenanceKind = Literal["api", "stand-in", "relay"]
"""What answered the calls: the real endpoint, the scripted model, or what the user names."""

PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)
BALLOT_FORMATS: Final[tuple[BallotFormat, ...]] = get_args(BallotFormat)
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
PUBLISHED_CONDITIONS: Final[tuple[Condition, ...]] = ("baseline", *PROTOCOLS)
"""The conditions of the published study."""
BENCHMARKS: Final[tuple[Benchmark, ...]] = get_args(Benchmark)
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
BALLOT_STATUSES: Final[tuple[BallotStatus, ...]] = get_args(BallotStatus)
DECIDED_BY: Final[tuple[DecidedBy, ...]] = get_args(DecidedBy)
BLINDINGS: Final[tuple[Blinding, ...]] = get_args(Blinding)
READINGS: Final[tuple[Reading, ...]] = get_args(Reading)

DEFAULT_ROLES: Final = ("scaffolding", "misconception", "motivation", "metacognitive")
"""The four roles of the published study, in its role-priority order."""

CUMULATIVE_BUDGET: Final = 25
"""Points that a cumulative ballot distributes."""

MIN_ROLES: Final = 3
MAX_ROLES: Final = 8
LABELS: Final = "ABCDEFGH"
"""Labels shown instead of role names; a panel of `m` uses the first `m`."""
