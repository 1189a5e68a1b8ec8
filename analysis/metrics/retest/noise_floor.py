"""The noise floor: what asking the same vote prompts again changes by itself.

Definitions:

* *agreement of a ballot*: over all pairs of askings of one prompt, the share that say the same.
  An abstention is a category of its own: pairs with one are counted and in no share.
* *stability of a winner*: each voter's answers being equally likely, the probability that a
  panel elects the leader of the logged ballots, and that two panels elect the same. The logged
  answer is among them, so few repeats flatter a winner.
* *floor*: the flip and the vote shift of two panels that answer one prompt, each voter with two
  different askings: what to expect if deliberation did nothing. Of the first vote; of the final
  one where only that was asked again.
* *left*: logged less floor, turn by turn.

In all of these a tie goes to the fallback order: a tie round was not asked again. Intervals
are over tasks.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.metrics.fallback_order_of_each_turn import Cluster
from tutorsim.analysis.metrics.retest.redrawn_panels import Floor, noise_floor_of, stability_of
from tutorsim.analysis.metrics.retest.repeated_votes import (
    AskedTurn,
    AskedVote,
    asked_votes,
    said,
    top_of,
)
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
    to_json,
)
from tutorsim.records import BallotRecord, Provenance
from tutorsim.vocabularies import BALLOT_FORMATS, BallotFormat

__all__ = [
    "BallotAgreement",
    "BesideFloor",
    "NoiseFloor",
    "Quantity",
    "WinnerStability",
    "answered_by",
    "ballot_agreement",
    "noise_floor",
    "winner_stability",
]

Quantity = Literal["flip", "flip_set", "leader", "shift"]
"""`flip` and `flip_set` as in the diagnostics, of the delivered winner; `leader`: the leaders of
the first and of the final vote differ, so without tie rounds, as in the floor; `shift`."""

QUANTITIES: Final[tuple[Quantity, ...]] = get_args(Quantity)
STAGES: Final[tuple[str, ...]] = ("vote_initial", "vote_final")


@dataclass(frozen=True)
class BallotAgreement:
    """How often one voter says the same when it is asked the same again."""

    form: BallotFormat
    stage: str
    """`vote_initial` or `vote_final`; `all` for both together."""
    votes: int
    """Votes of a panel that were asked again."""
    pairs: int
    """Pairs of askings of one prompt."""
    one_abstained: int
    """Pairs with one abstention; in no share."""
    both_abstained: int
    """Pairs of two abstentions; in no share."""
    same: Estimate | NotEstimable
    """Share of the other pairs that are the same ballot."""
    same_top: Estimate | NotEstimable
    """Share of the other pairs that put the same candidates first."""
    chance: float | NotEstimable
    """Chance that two ballots of one voter in different turns are the same."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class WinnerStability:
    """How far winners hang on the answers that voters happened to give."""

    form: BallotFormat
    stage: str
    turns: int
    elects_logged: Estimate | NotEstimable
    """Mean probability that a panel elects the leader of the logged ballots."""
    agree: Estimate | NotEstimable
    """Mean probability that two panels elect the same."""
    sampled: int
    """Turns whose panels were drawn instead of enumerated."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class BesideFloor:
    """One quantity as logged, beside what re-asking alone gives, over the same turns."""

    form: BallotFormat
    quantity: Quantity
    stage: str
    """The vote that was asked again."""
    turns: int
    """Turns with both figures."""
    logged: Estimate | NotEstimable
    floor: Estimate | NotEstimable
    """Re-asked."""
    left: Estimate | NotEstimable
    """Logged less floor."""
    sampled: int
    """Turns whose panels were drawn instead of enumerated."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class NoiseFloor:
    """What a retest says of a run."""

    repeats: int
    """Further askings of every prompt; fewer where a call failed."""
    stages: tuple[str, ...]
    sample: int | None
    """Turns drawn for the retest; `None` for all."""
    answered_by: str
    """What answered this time."""
    failed: int
    """Calls of the retest that failed for good; askings of a panel that lack one are left out."""
    ballots: list[BallotAgreement]
    winners: list[WinnerStability]
    beside: list[BesideFloor]

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def noise_floor(source: Source, *, seed: int = 0) -> NoiseFloor | NotEstimable:
    """The noise floor of a run's votes; not estimable without a retest.

    Args:
        source: The run; `source.retest` holds what was asked again.
        seed: Of panels that are drawn.

    Raises:
        LogError: If the retest does not belong to the log.
    """
    if source.retest is None:
        return NotEstimable(
            f"{source.name} holds each vote once; only a retest shows what re-asking alone changes"
        )
    votes = asked_votes(source)
    if not votes:
        return NotEstimable("no vote of a complete episode was asked again")
    head = source.retest.head
    cells = _cells(votes)
    return NoiseFloor(
        repeats=head.repeats,
        stages=head.stages,
        sample=head.sample,
        failed=sum(len(v.failures) for e in source.retest.episodes for v in e.votes),
        answered_by=answered_by(head.provenance),
        ballots=[ballot_agreement(own) for own in cells.values()],
        winners=[winner_stability(own, seed=seed) for own in cells.values()],
        beside=_beside(cells, seed),
    )


def answered_by(stated: Provenance) -> str:
    """What answered a retest, in a few words."""
    models = f", {', '.join(stated.models)}" if stated.models else ""
    return f"{stated.kind}: {stated.name}{models}"


def ballot_agreement(votes: Sequence[AskedVote]) -> BallotAgreement:
    """The agreement of single ballots over votes in one format, at least one."""
    pairs = [pair for vote in votes for pair in _pairs(vote)]
    kinds = Counter((pair.one is None) + (pair.other is None) for pair in pairs)
    cast = [(p.one, p.other, p.cluster) for p in pairs if p.one is not None and p.other is not None]
    clusters = [cluster for _, _, cluster in cast]
    stages = {vote.stage for vote in votes}
    return BallotAgreement(
        form=votes[0].form,
        stage=stages.pop() if len(stages) == 1 else "all",
        votes=len(votes),
        pairs=len(pairs),
        one_abstained=kinds[1],
        both_abstained=kinds[2],
        same=_share([one.said == other.said for one, other, _ in cast], clusters),
        same_top=_share([one.top == other.top for one, other, _ in cast], clusters),
        chance=_chance(votes),
    )


class _Answer(NamedTuple):
    """What a ballot that is no abstention says, and whom it puts first."""

    said: Hashable
    top: frozenset[str]


class _Pair(NamedTuple):
    """Two askings of one voter's prompt; `None` for an abstention."""

    one: _Answer | None
    other: _Answer | None
    cluster: Cluster


def _pairs(vote: AskedVote) -> list[_Pair]:
    candidates, cluster = vote.turn.candidates, vote.turn.cluster
    return [
        _Pair(one, other, cluster)
        for asked in vote.askings
        for one, other in combinations([_answer(ballot, candidates) for ballot in asked], 2)
    ]


def _answer(ballot: BallotRecord, candidates: Sequence[str]) -> _Answer | None:
    if ballot.parsed is None:
        return None
    return _Answer(said(ballot), top_of(ballot, candidates))


def _share(alike: Sequence[bool], clusters: Sequence[Cluster]) -> Estimate | NotEstimable:
    if not alike:
        return NotEstimable("no two askings of one prompt gave a ballot each")
    return share_over_tasks(alike, clusters)


def _chance(votes: Sequence[AskedVote]) -> float | NotEstimable:
    """Over pairs of one voter's ballots in different turns, abstentions left out.

    Only turns with the same candidates are set side by side. All pairs are counted at once:
    those of all turns together less those within one turn.
    """
    within: dict[Hashable, list[Counter[Hashable]]] = {}
    for vote in votes:
        candidates = vote.turn.candidates
        for asked in vote.askings:
            own = Counter(said(ballot) for ballot in asked if ballot.parsed is not None)
            where = (vote.stage, asked[0].voter, candidates)
            within.setdefault(where, []).append(own)
    alike = pairs = 0
    for turns in within.values():
        together: Counter[Hashable] = sum(turns, Counter())
        alike += _squares(together) - sum(map(_squares, turns))
        pairs += together.total() ** 2 - sum(own.total() ** 2 for own in turns)
    if not pairs:
        return NotEstimable("no voter has ballots in two turns")
    return alike / pairs


def _squares(counts: Counter[Hashable]) -> int:
    return sum(n * n for n in counts.values())


def winner_stability(votes: Sequence[AskedVote], *, seed: int) -> WinnerStability:
    """How far winners hang on the answers given, over votes in one format, at least one."""
    found = [stability_of(vote.masses(), seed=seed) for vote in votes]
    clusters = [vote.turn.cluster for vote in votes]
    return WinnerStability(
        form=votes[0].form,
        stage=votes[0].stage,
        turns=len(votes),
        elects_logged=share_over_tasks([f.elects_logged for f in found], clusters),
        agree=share_over_tasks([f.agree for f in found], clusters),
        sampled=sum(not f.exact for f in found),
    )


Cells = Mapping[tuple[BallotFormat, str], list[AskedVote]]


def _cells(votes: Sequence[AskedVote]) -> Cells:
    """Votes by format and stage, in the order of the vocabularies."""
    cells = {
        (form, stage): [v for v in votes if (v.form, v.stage) == (form, stage)]
        for form in BALLOT_FORMATS
        for stage in STAGES
    }
    return {cell: own for cell, own in cells.items() if own}


def _beside(cells: Cells, seed: int) -> list[BesideFloor]:
    found = []
    for form in dict.fromkeys(form for form, _ in cells):
        votes = cells.get((form, "vote_initial")) or cells[form, "vote_final"]
        floors = [noise_floor_of(vote.masses(), seed=seed) for vote in votes]
        found += [_quantity(quantity, votes, floors) for quantity in QUANTITIES]
    return found


def _quantity(
    quantity: Quantity, votes: Sequence[AskedVote], floors: Sequence[Floor]
) -> BesideFloor:
    rows = []
    for vote, of in zip(votes, floors, strict=True):
        seen = _logged(quantity, vote.turn)
        expected = of.flip if quantity == "leader" else getattr(of, quantity)
        if seen is not None and expected is not None:
            rows.append((seen, expected, vote.turn.cluster, of.exact))
    clusters = [cluster for _, _, cluster, _ in rows]

    def mean(values: Sequence[float]) -> Estimate | NotEstimable:
        if quantity == "shift":
            return mean_over_tasks(values, clusters, ends=(0, 1))
        return share_over_tasks(values, clusters)

    return BesideFloor(
        form=votes[0].form,
        quantity=quantity,
        stage=votes[0].stage,
        turns=len(rows),
        logged=mean([seen for seen, _, _, _ in rows]),
        floor=mean([expected for _, expected, _, _ in rows]),
        left=mean_over_tasks(
            [seen - expected for seen, expected, _, _ in rows], clusters, ends=(-1, 1)
        ),
        sampled=sum(not exact for *_, exact in rows),
    )


def _logged(quantity: Quantity, turn: AskedTurn) -> float | None:
    """A quantity of one turn as logged; `None` where it is not defined."""
    if turn.initial_leader is None:
        return None
    if quantity == "shift":
        return turn.shift
    if quantity == "flip_set":
        return float(turn.outside)
    chosen = turn.final_leader if quantity == "leader" else turn.winner
    return float(chosen != turn.initial_leader)
