"""What asking the same votes again changes by itself: ballots, winners, flips and shift."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations, product
from math import fsum, isnan, prod
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.recount_source import Source, answered_by
from tutorsim.analysis.ballots.vote_arrays_and_profiles import TURN, Place, TurnKey, first_of
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import (
    Cluster,
    places_of,
    turn_table,
)
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import leaders_of
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    SEED,
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.ballot_reading_and_decisions import RichBallot, masses_of
from tutorsim.errors import LogError
from tutorsim.records import BallotRecord, EpisodeLine, RetestHead, RetestVote
from tutorsim.vocabularies import BALLOT_FORMATS, BallotFormat

# --- Repeated votes ------------------------------------------------------------------------------

Quantity = Literal["flip", "flip_set", "leader", "shift"]
"""`flip` and `flip_set` as in the diagnostics, of the delivered winner; `leader`: the leaders of
the first and of the final vote differ, so without tie rounds, as in the floor; `shift`."""


class AskedVote(NamedTuple):
    """One vote of one turn, with every answer of its voters."""

    key: TurnKey
    place: Place
    candidates: tuple[str, ...]
    """Everybody who stands, in the fallback order that the turn was decided under."""
    logged: Mapping[Quantity, float]
    """Quantities of the turn that are defined; none where no first vote was held."""
    stage: str
    """`vote_initial` or `vote_final`."""
    form: BallotFormat
    askings: tuple[tuple[BallotRecord, ...], ...]
    """Per voter, in the log's order: the logged ballot, then the re-asked ones."""

    @property
    def cluster(self) -> Cluster:
        """The turn's task; its episode where ballots from elsewhere do not name tasks."""
        return self.place.benchmark, self.place.task or self.key.episode_id

    def masses(self) -> list[list[tuple[int, ...]]]:
        """Per voter, the masses of each answer by candidate; zeros for an abstention."""
        return [
            [tuple(ballot.mass.get(c, 0) for c in self.candidates) for ballot in asked]
            for asked in self.askings
        ]


def asked_votes(source: Source, episodes: Sequence[EpisodeLine] | None = None) -> list[AskedVote]:
    """The votes of complete episodes that were asked again, in the order of the retest.

    `episodes`: its log; the source's own where it is left out, which is a panel's. Raises
    `LogError` if the retest is of votes that the log does not hold.
    """
    if source.retest is None:
        return []
    turns = {(turn[0].episode_id, turn[0].turn): turn for turn in _turns(source)}
    records: Sequence[EpisodeLine] = source.episodes if episodes is None else episodes
    logged = {e.episode_id: e for e in records}
    found = []
    for record in source.retest.episodes:
        episode = logged.get(record.episode_id)
        if episode is None:
            raise _not_logged(source, record.episode_id)
        if episode.status == "complete":
            found += [
                _asked(source, episode, vote, turns[episode.episode_id, vote.turn])
                for vote in record.votes
                if isinstance(vote, RetestVote)
                and vote.repeats
                and (episode.episode_id, vote.turn) in turns
            ]
    return found


_Turn = tuple[TurnKey, Place, tuple[str, ...], Mapping[Quantity, float]]
"""The first fields of an `AskedVote`."""


def _turns(source: Source) -> Iterator[_Turn]:
    """Every turn as it was logged."""
    table = turn_table(source)
    keys = list(table.votes.turns.select(TURN).iter_rows())
    places = list(places_of(table.votes).select(Place._fields).iter_rows())
    for panel in table.panels:
        led = first_of(leaders_of(panel.final)).tolist()
        standing = panel.final.candidates.tolist()
        for turn, own, first in zip(panel.final.turn.tolist(), standing, led, strict=True):
            leader, shift = int(table.leader[turn]), float(table.shift[turn])
            logged: dict[Quantity, float] = {
                "flip": float(table.winner[turn] != leader),
                "flip_set": float(table.outside[turn]),
                "leader": float(own[first] != leader),
                **({} if isnan(shift) else {"shift": shift}),
            }
            key, place = TurnKey(*keys[turn]), Place(*places[turn])
            candidates = tuple(table.order[c] for c in own)
            yield key, place, candidates, logged if leader >= 0 else {}


def _asked(source: Source, episode: EpisodeLine, vote: RetestVote, turn: _Turn) -> AskedVote:
    [record] = [t for t in episode.turns if t.turn == vote.turn]
    first = record.ballots_initial if vote.stage == "vote_initial" else record.ballots_final
    again = [{ballot.voter: ballot for ballot in repeat} for repeat in vote.repeats]
    if any(len(r) != len(first) for r in again) or not all(
        b.voter in r for r in again for b in first
    ):
        raise _not_logged(source, f"{episode.episode_id}, turn {vote.turn}, {vote.stage}")
    askings = tuple((ballot, *(repeat[ballot.voter] for repeat in again)) for ballot in first)
    return AskedVote(*turn, vote.stage, first[0].protocol, askings)


def _not_logged(source: Source, what: str) -> LogError:
    return LogError(
        f"{source.name}: the retest and the log do not belong together.",
        why=f"The retest has other voters than the log, or none, for {what}.",
        hint="Write both again from their recording with `tutorsim replay`.",
    )


def said(ballot: BallotRecord) -> Hashable | None:
    """What a ballot says; equal for ballots that say the same, `None` for an abstention."""
    choice = ballot.parsed
    if isinstance(choice, RichBallot):
        return (*sorted(choice.points.items()), choice.order, choice.approved)
    if isinstance(choice, dict):
        return tuple(sorted(choice.items()))
    if isinstance(choice, tuple) and FORMATS[ballot.rule].listed == "set":
        return frozenset(choice)
    return choice


def top_of(ballot: BallotRecord, candidates: Sequence[str]) -> frozenset[str]:
    """Whom a ballot puts first: several where it gives them equal mass, nobody where it gives none.

    A rich ballot says by its order who is first.
    """
    if isinstance(ballot.parsed, RichBallot):
        return frozenset(ballot.parsed.order[:1])
    if ballot.parsed is None or ballot.protocol == "rich":
        return frozenset()
    mass = masses_of(ballot.parsed, candidates, protocol=ballot.protocol)
    most = max(mass.values(), default=0)
    return frozenset(c for c, own in mass.items() if own == most > 0)


# --- Redrawn panels ------------------------------------------------------------------------------

Answer = tuple[int, ...]
"""Masses of one answer, candidates in the fallback order; zeros for an abstention."""
Askings = Sequence[Sequence[Answer]]
"""Per voter, every answer to one prompt."""

ENUMERATED: Final = 50_000
"""Combinations of different ballots up to which all panels are enumerated."""

DRAWS: Final = 10_000
"""Panels drawn where they are not enumerated."""

_LARGEST_WEIGHT: Final = 2**62


def leader_of(answers: Sequence[Answer]) -> int:
    """Who leads a panel's ballots, a tie going to the order: the place of the candidate."""
    totals = [sum(column) for column in zip(*answers, strict=True)]
    return totals.index(max(totals))


def stability_of(askings: Askings, *, seed: int) -> tuple[float, float, bool]:
    """How far one vote's winner hangs on the answers that voters happened to give.

    Each voter's answers are equally likely; the logged one, the first, is among them. Returns the
    probability that a panel elects the leader of the logged ballots, the probability that two
    panels, drawn independently, elect the same, and whether all panels were enumerated.
    """
    totals, chances, exact = _panels([Counter(asked) for asked in askings], seed)
    elected = np.bincount(totals.argmax(axis=1), weights=chances)
    first = leader_of([asked[0] for asked in askings])
    logged = float(elected[first]) if first < len(elected) else 0.0
    return min(logged, 1.0), min(float((elected**2).sum()), 1.0), exact


def noise_floor_of(askings: Askings, *, seed: int) -> tuple[dict[Quantity, float], bool]:
    """What re-asking alone changes: each voter gives two different answers of its own.

    Every ordered pair of two askings of a voter is equally likely, and voters are independent.
    Returns the probability that the leaders of two such panels differ, that the second's leader is
    outside the set of the first's, and the expected distance of vote shares, if both panels ever
    have mass; and whether all panels were enumerated.
    """
    pairs = [Counter(a + b for a, b in permutations(asked, 2)) for asked in askings]
    totals, chances, exact = _panels(pairs, seed)
    first, second = np.hsplit(totals, 2)
    won = second.argmax(axis=1)
    led = first == first.max(axis=1, keepdims=True)
    outside = ~led[np.arange(len(won)), won]
    flip, shift = float(chances[first.argmax(axis=1) != won].sum()), _shift(first, second, chances)
    found: dict[Quantity, float] = {
        "flip": flip,
        "flip_set": float(chances[outside].sum()),
        "leader": flip,
        **({} if shift is None else {"shift": shift}),
    }
    return found, exact


def _panels(options: Sequence[Counter[Answer]], seed: int) -> tuple[Ints, Floats, bool]:
    """The totals of every combination of one option per voter, or of drawn ones.

    Returns totals, shape (combinations, m), probabilities, shape (combinations,), and whether all
    are there.
    """
    ordered = [sorted(counts.items()) for counts in options]  # the askings' order has no part in it
    rows = [np.array([row for row, _ in one], dtype=np.int64) for one in ordered]
    counts = [np.array([n for _, n in one], dtype=np.int64) for one in ordered]
    ways = prod(one.total() for one in options)
    if prod(map(len, options)) > ENUMERATED or ways > _LARGEST_WEIGHT:
        rng = np.random.default_rng(seed)
        drawn = [
            own[rng.choice(len(own), size=DRAWS, p=n / n.sum())]
            for own, n in zip(rows, counts, strict=True)
        ]
        return np.sum(drawn, axis=0), np.full(DRAWS, 1 / DRAWS), False
    totals, weights = np.zeros((1, rows[0].shape[1]), dtype=np.int64), np.ones(1, dtype=np.int64)
    for own, n in zip(rows, counts, strict=True):
        totals = (totals[:, None, :] + own[None, :, :]).reshape(-1, own.shape[1])
        weights = (weights[:, None] * n[None, :]).reshape(-1)
    return totals, weights / ways, True


def _shift(first: Ints, second: Ints, chances: Floats) -> float | None:
    """Expected distance of shares. Totals: shape (combinations, m); `chances`: (combinations,)."""
    before, after = first.sum(axis=1), second.sum(axis=1)
    defined = (before > 0) & (after > 0)
    if not defined.any():
        return None
    shares = first[defined] / before[defined, None] - second[defined] / after[defined, None]
    weights = chances[defined]
    apart = np.abs(shares).sum(axis=1) / 2
    return fsum(apart * weights) / fsum(weights)  # the same sums on every processor


# --- Noise floor ---------------------------------------------------------------------------------

QUANTITIES: Final[tuple[Quantity, ...]] = get_args(Quantity)
STAGES: Final[tuple[str, ...]] = ("vote_initial", "vote_final")
Floor = tuple[dict[Quantity, float], bool]
"""What `noise_floor_of` gives."""
Row = Mapping[str, Any]
"""Name → figure of one format: an estimate, a count, or what the figures are of."""


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
    ballots: list[Row]
    """How often one voter says the same when it is asked the same again, by format and stage."""
    winners: list[Row]
    """How far winners hang on the answers that voters happened to give, likewise."""
    beside: list[Row]
    """Each quantity as logged, beside what re-asking alone gives, over the same turns."""


def noise_floor(source: Source) -> NoiseFloor | NotEstimable:
    """The noise floor of a run's votes; not estimable without a retest.

    Raises `LogError` if the retest does not belong to the log.
    """
    if source.retest is None:
        return NotEstimable(
            f"{source.name} holds each vote once; only a retest shows what re-asking alone changes"
        )
    votes = asked_votes(source)
    if not votes:
        return NotEstimable("no vote of a complete episode was asked again")
    head, order = source.retest.head, list(product(BALLOT_FORMATS, STAGES))
    cells = by_key(((vote.form, vote.stage), vote) for vote in votes)
    every = [cells[cell] for cell in sorted(cells, key=order.index)]
    beside = []
    for first, *_ in by_key((own[0].form, own) for own in every).values():
        floors = [noise_floor_of(vote.masses(), seed=SEED) for vote in first]
        beside += [_beside(quantity, first, floors) for quantity in QUANTITIES]
    return NoiseFloor(
        repeats=head.repeats,
        stages=head.stages,
        sample=head.sample,
        failed=sum(len(v.failures) for e in source.retest.episodes for v in e.votes),
        answered_by=answered_by(head.provenance),
        ballots=[ballot_agreement(own) for own in every],
        winners=[winner_stability(own, seed=SEED) for own in every],
        beside=beside,
    )


def asked_again(head: RetestHead) -> str:
    """How often votes were asked again, and what answered, as a sentence."""
    drawn = "" if head.sample is None else f", in {head.sample} turns drawn for it"
    return f"Asked again {head.repeats} × by {answered_by(head.provenance)}{drawn}."


def ballot_agreement(votes: Sequence[AskedVote]) -> Row:
    """The agreement of single ballots over votes in one format, at least one."""
    pairs = [
        (one, other, vote.cluster)
        for vote in votes
        for asked in vote.askings
        for one, other in combinations([_answer(b, vote.candidates) for b in asked], 2)
    ]
    kinds = Counter((one is None) + (other is None) for one, other, _ in pairs)
    cast = [(one, other, cluster) for one, other, cluster in pairs if one and other]
    clusters = [cluster for _, _, cluster in cast]
    return {
        "form": votes[0].form,
        "stage": votes[0].stage,
        "votes": len(votes),
        "pairs": len(pairs),  # of askings of one prompt
        "one_abstained": kinds[1],  # pairs in no share; so are the next
        "both_abstained": kinds[2],
        "same": _share([one[0] == other[0] for one, other, _ in cast], clusters),
        "same_top": _share([one[1] == other[1] for one, other, _ in cast], clusters),
        "chance": _chance(votes),  # that two ballots of one voter in different turns are the same
    }


def _answer(
    ballot: BallotRecord, candidates: Sequence[str]
) -> tuple[Hashable, frozenset[str]] | None:
    """What a ballot says, and whom it puts first; `None` for an abstention."""
    return None if ballot.parsed is None else (said(ballot), top_of(ballot, candidates))


def _share(alike: Sequence[bool], clusters: Sequence[Cluster]) -> Estimate | NotEstimable:
    if not alike:
        return NotEstimable("no two askings of one prompt gave a ballot each")
    return share_over_tasks(alike, clusters)


def _chance(votes: Sequence[AskedVote]) -> float | NotEstimable:
    """Over pairs of one voter's ballots in different turns, abstentions left out.

    Only turns with the same candidates are set side by side. All pairs are counted at once:
    those of all turns together less those within one turn.
    """
    within = by_key(
        (
            (vote.stage, asked[0].voter, vote.candidates),
            Counter(said(ballot) for ballot in asked if ballot.parsed is not None),
        )
        for vote in votes
        for asked in vote.askings
    )
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


def winner_stability(votes: Sequence[AskedVote], *, seed: int) -> Row:
    """How far winners hang on the answers given, over votes in one format, at least one."""
    found = (stability_of(vote.masses(), seed=seed) for vote in votes)
    elects, agree, exact = zip(*found, strict=True)
    clusters = [vote.cluster for vote in votes]
    return {
        "form": votes[0].form,
        "stage": votes[0].stage,
        "turns": len(votes),
        "elects_logged": share_over_tasks(elects, clusters),
        "agree": share_over_tasks(agree, clusters),
        "sampled": exact.count(False),  # turns whose panels were drawn
    }


def _beside(quantity: Quantity, votes: Sequence[AskedVote], floors: Sequence[Floor]) -> Row:
    rows = [
        (vote.logged[quantity], expected[quantity], vote.cluster, exact)
        for vote, (expected, exact) in zip(votes, floors, strict=True)
        if quantity in vote.logged and quantity in expected
    ]
    clusters = [cluster for _, _, cluster, _ in rows]
    of_shares = partial(mean_over_tasks, tasks=clusters, ends=(0, 1))
    mean = of_shares if quantity == "shift" else partial(share_over_tasks, tasks=clusters)
    left = [seen - expected for seen, expected, _, _ in rows]
    return {
        "form": votes[0].form,
        "quantity": quantity,
        "stage": votes[0].stage,  # of the vote that was asked again
        "turns": len(rows),  # with both figures
        "logged": mean([seen for seen, _, _, _ in rows]),
        "floor": mean([expected for _, expected, _, _ in rows]),
        "left": mean_over_tasks(left, clusters, ends=(-1, 1)),
        "sampled": sum(not exact for *_, exact in rows),  # turns whose panels were drawn
    }
