"""Closed vocabularies of the study, each in one place.

Every name here appears in logs, study files, table columns and command output,
so a change is a change of the log format.
"""

from typing import Final, Literal, get_args

PublishedProtocol = Literal["simple", "ranked", "cumulative", "approval"]
"""A protocol of the published study."""

Protocol = Literal["simple", "ranked", "cumulative", "approval", "score"]
"""How a ballot is cast and counted."""

BallotFormat = Literal["simple", "ranked", "cumulative", "approval", "rich", "score"]
"""How a ballot is asked for: a protocol's own form, or `rich`, which determines those of the
published study."""

Condition = Literal["baseline", "simple", "ranked", "cumulative", "approval", "rich", "score"]
"""One column of the grid: the single tutor, or a panel that votes in one format."""

Benchmark = Literal["sciq", "humaneval"]
"""Open-response science questions, or small programming problems with unit tests."""

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

Placebo = Literal["copied", "random"]
"""A panel to compare chosen roles with: one role several times, or roles drawn by lot."""

VotingStage = Literal[
    "vote_initial",
    "vote_final",
    "vote_as_simple",
    "vote_as_ranked",
    "vote_as_cumulative",
    "vote_as_approval",
    "vote_as_rich",
    "vote_as_score",
    "tie_vote",
    "vote_held",
    "vote_opinion",
]
"""Stages whose replies are ballots, in every system.

A vote is `vote_final` if and only if its winner was delivered. Others decided nothing:
`vote_initial` before a revision, `vote_as_…` in a further format on the same candidates,
`vote_held` one that tied and was followed by another, `vote_opinion` a view that was not a vote.
"""

LabelOrder = Literal["per_reader", "shared", "listed"]
"""Orders of labels: those of `Blinding`, and the candidates' given order for everybody."""

Reading = Literal["strict", "standard", "lenient"]
"""How much a ballot reader forgives. Runs use `standard`; the others are counterfactuals."""

AnswerKind = Literal["choice", "names", "passage"]
"""How a task is answered: by a lettered option, one of several names, or words of a passage."""

Scoring = Literal["standard", "mallm"]
"""Whose rules score an answer: this package's, or those of the program MALLM."""

EpisodeStatus = Literal["complete", "failed"]

ProvenanceKind = Literal["api", "stand-in", "relay", "imported"]
"""What answered the calls: the real endpoint, the scripted model, what the user names, or whatever
answered another program whose logs were imported."""

PROTOCOLS: Final[tuple[PublishedProtocol, ...]] = get_args(PublishedProtocol)
"""The protocols of the published study."""
BALLOT_FORMATS: Final[tuple[BallotFormat, ...]] = get_args(BallotFormat)
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
PUBLISHED_CONDITIONS: Final[tuple[Condition, ...]] = ("baseline", *PROTOCOLS)
"""The conditions of the published study."""
BENCHMARKS: Final[tuple[Benchmark, ...]] = get_args(Benchmark)
BALLOT_STATUSES: Final[tuple[BallotStatus, ...]] = get_args(BallotStatus)
VOTING_STAGES: Final[tuple[VotingStage, ...]] = get_args(VotingStage)
TURN_VOTES: Final[tuple[VotingStage, ...]] = ("vote_initial", "vote_final")
"""The votes that a turn holds: before a revision, and the one whose winner was delivered."""
DECIDED_BY: Final[tuple[DecidedBy, ...]] = get_args(DecidedBy)
BLINDINGS: Final[tuple[Blinding, ...]] = get_args(Blinding)
PLACEBOS: Final[tuple[Placebo, ...]] = get_args(Placebo)
READINGS: Final[tuple[Reading, ...]] = get_args(Reading)
SCORINGS: Final[tuple[Scoring, ...]] = get_args(Scoring)

DEFAULT_ROLES: Final = ("scaffolding", "misconception", "motivation", "metacognitive")
"""The four roles of the published study, in its fallback order."""

CUMULATIVE_BUDGET: Final = 25
"""Points that a cumulative ballot distributes."""

TOP_SCORE: Final = 10
"""The top of the scale of a study's score ballots, which begins at 0."""

MIN_ROLES: Final = 3
MAX_ROLES: Final = 8
LABELS: Final = "ABCDEFGH"
"""Labels shown instead of role names; a panel of `m` uses the first `m`."""
