"""What votes follow beside what is voted on, how many votes a panel is worth, and who decides it.

Self-support and label positions are tested against the shuffles that could have been drawn. Of
power there are three measures:

* *effective number of votes*: n / (1 + (n − 1) ρ), with ρ the mean correlation of two voters'
  final ballots. A ballot counts by its deviations from its own mean, since only differences
  between candidates decide; two voters are compared over all candidates of all turns in which
  both voted.
* *pivotality* of a voter: share of turns whose winner changes when its ballot is dropped, from
  the tie round too. Where the other ballots leave a tied set that no tie round was held on,
  `pivotal` takes the fallback order's pick, and without an order nobody wins a tie; `pivotal_set`
  counts only turns whose winner is not among the tied.
* *margin*: the fewest final ballots that must change, each to any other ballot of its protocol,
  so that the winner changes, ties going to the fallback order, or to nobody without one. Where the
  final vote was tied, changing one ballot in favour of another tied candidate is enough.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from math import erfc, factorial, sqrt
from typing import Any, Final, TypeVar

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    Rounds,
    Votes,
    count,
    count_rows,
    distinct_rows,
    first_of,
    fitting,
    fold,
    own_candidates,
    rich_rule,
    sorted_rows,
    summed,
)
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import turn_table
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import DecidedTurns
from tutorsim.analysis.pages.cells_and_tables import estimate, number, p_value, plain
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.statistics.array_types import Bools, Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    SEED,
    NotEstimable,
    holm,
    share_of_numbered,
)
from tutorsim.vocabularies import BallotFormat, Blinding

# --- Ballots as seen -----------------------------------------------------------------------------

T = TypeVar("T")
_LARGEST_PANEL: Final = 8


@dataclass(frozen=True, eq=False)
class Labelled:
    """B ballots with mass under one protocol, as their voters saw the labels."""

    turn: Ints
    by_label: Ints
    """Shape (B, m): mass by label, labels in order."""
    own: Ints
    """Shape (B,): which label stood for the voter's own proposal; -1 where it made none."""
    labels: tuple[str, ...]
    """Labels in order; empty where the voters were shown different ones."""


@lru_cache(maxsize=2)
def _labelled(source: Source, *, own: bool) -> list[tuple[BallotFormat, Labelled | NotEstimable]]:
    """Final ballots with mass by protocol, or why they tell nothing; `own`: only those of voters
    that are candidates."""
    table = turn_table(source)
    rounds = table.votes.final
    return [
        (protocol, _cast(protocol, table.votes, [r.of(turns[r.turn]) for r in rounds], own=own))
        for protocol, turns in table.protocols()
        if any(turns[r.turn].any() for r in rounds)
    ]


def _cast(
    protocol: BallotFormat, votes: Votes, rounds: Sequence[Rounds], *, own: bool
) -> Labelled | NotEstimable:
    kept = [(part, rows) for part in rounds if (rows := _counted(part, votes, own=own)).any()]
    if not kept:
        who = " by voters that are candidates" if own else ""
        return NotEstimable(f"{protocol}: no ballots with mass{who}")
    if any(part.labels is None or (part.labels[rows] < 0).any() for part, rows in kept):
        return NotEstimable(f"{protocol}: the labels shown to the voters are not known")
    sizes = sorted({part.candidates.shape[1] for part, _ in kept})
    if len(sizes) > 1 or sizes[0] > _LARGEST_PANEL:
        return NotEstimable(f"{protocol}: panels of {', '.join(map(str, sizes))} candidates")
    parts = [_by_label(part, rows, votes) for part, rows in kept]
    shown = {part.labels for part in parts}
    if () in shown or len(shown) > 1:
        return NotEstimable(f"{protocol}: the voters were shown different labels")
    return Labelled(
        turn=np.concatenate([part.turn for part in parts]),
        by_label=np.concatenate([part.by_label for part in parts]),
        own=np.concatenate([part.own for part in parts]),
        labels=parts[0].labels,
    )


def _counted(part: Rounds, votes: Votes, *, own: bool) -> Bools:
    """Shape (R, n): ballots with mass, and, where asked, of voters that are candidates."""
    found = part.cast & (summed(part.masses, 2) > 0)
    return np.asarray(found & (_seats(part, votes) >= 0)) if own else found


def _seats(part: Rounds, votes: Votes) -> Ints:
    """Shape (R, n): the voter's position among the candidates; -1 where it is none of them."""
    same = own_candidates(part, votes)
    return np.where(fold(np.logical_or, same, 2), first_of(same), -1)


def _by_label(part: Rounds, rows: Bools, votes: Votes) -> Labelled:
    assert part.labels is not None
    labels, masses = part.labels[rows], part.masses[rows]
    first, number = distinct_rows(labels.T)
    order = np.argsort(labels[first], axis=1)
    shown = np.take_along_axis(labels[first], order, axis=1)
    seat = _seats(part, votes)[rows]
    own = np.where(seat < 0, -1, np.argsort(order, axis=1)[number, seat])
    same = bool((shown == shown[:1]).all())
    return Labelled(
        turn=np.repeat(part.turn, count(rows, 1)),
        by_label=np.take_along_axis(masses, order[number], axis=1),
        own=own,
        labels=tuple(votes.labels[i] for i in shown[0]) if same else (),
    )


# --- Self support and label tests ----------------------------------------------------------------

DRAWS: Final = 1999
"""Shuffles drawn where there are too many to enumerate."""
_ENUMERATED: Final = 50_000
_WORK: Final = 1_000_000
"""Numbers computed for one exact distribution."""
_FEW: Final = 1000
"""Units up to which each is shuffled on its own."""


@dataclass(frozen=True)
class SelfSupport:
    """Mass that voters gave their own proposals in final votes under one protocol."""

    protocol: BallotFormat
    ballots: int
    """Ballots with mass, of voters that are candidates."""
    share: float
    """Mass for the voters' own proposals, of the whole mass."""
    expected: float
    """Share that labels alone would give: 1/m."""
    p_value: float
    """Two-sided."""


@dataclass(frozen=True)
class LabelPosition:
    """Mass by the label shown, in final votes under one protocol."""

    protocol: BallotFormat
    ballots: int
    share: dict[str, float]
    """Label → its share of the mass."""
    expected: float
    """Share of each label without a bias."""
    p_values: dict[str, float]
    """Label → two-sided p-value, Holm over the labels."""
    p_value: float
    """p of the sum of squared deviations over all labels."""


def self_support(source: Source) -> list[SelfSupport | NotEstimable]:
    """Self-support in the final votes of each protocol."""
    return _of_each(source, _self_support, own=True)


def label_positions(source: Source) -> list[LabelPosition | NotEstimable]:
    """Mass by label in the final votes of each protocol."""
    return _of_each(source, _label_position, own=False)


def _of_each(
    source: Source, test: Callable[[BallotFormat, Labelled, Blinding], T], *, own: bool
) -> list[T | NotEstimable]:
    """A test of each protocol's ballots; a run's own order of labels for everybody is shared."""
    voting = None if source.run is None else source.run.voting
    alone = voting is None or voting.label_order in (None, "per_reader")
    blinding: Blinding = "per_reader" if alone else "shared"
    every = _labelled(source, own=False)
    if own and not all(isinstance(f, Labelled) and (f.own >= 0).all() for _, f in every):
        every = _labelled(source, own=True)
    return [
        found if isinstance(found, NotEstimable) else test(protocol, found, blinding)
        for protocol, found in every
    ]


def _self_support(protocol: BallotFormat, ballots: Labelled, blinding: Blinding) -> SelfSupport:
    own = int(np.take_along_axis(ballots.by_label, ballots.own[:, None], axis=1).sum())
    outcomes = ballots.by_label if blinding == "per_reader" else _own_masses(ballots)
    return SelfSupport(
        protocol=protocol,
        ballots=len(ballots.turn),
        share=own / int(ballots.by_label.sum()),
        expected=1 / len(ballots.labels),
        p_value=_two_sided(_alike(outcomes), [own])[0],
    )


def _own_masses(ballots: Labelled) -> Ints:
    """Per turn, own mass of its voters together, over all draws of its labels."""
    found = []
    for drawn in permutations(range(len(ballots.labels))):
        label = np.array(drawn)[ballots.own]
        found.append(np.take_along_axis(ballots.by_label, label[:, None], axis=1)[:, 0])
    return _by_turn(ballots.turn, np.stack(found, axis=1))


def _by_turn(turn: Ints, values: Ints) -> Ints:
    """Sums of rows over the ballots of each turn."""
    order = np.argsort(turn, kind="stable")
    starts = np.flatnonzero(np.diff(turn[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))


Alike = list[tuple[tuple[int, ...], int]]
"""What a unit may add to a sum, each as likely, and how many such units there are."""


def _size(units: Alike) -> int:
    return 1 + sum(times * values[-1] for values, times in units)


def _alike(outcomes: Ints) -> Alike:
    """Rows without regard to the order in them, and how many there are of each."""
    return list(count_rows(sorted_rows(outcomes).T))


def _two_sided(units: Alike, observed: Sequence[int]) -> list[float]:
    """Probability of a sum at least as far from the mean as each observed one.

    Exact, or normal where the exact one takes more than `_WORK` numbers: the sum then has so
    many independent parts that the two agree. Given to twelve decimals, which the transform
    keeps, and never as zero.
    """
    if _size(units) * len(units) > _WORK:
        found = _normal_tails(units, observed)
    else:
        sums = np.arange(_size(units))
        spectrum = np.ones(len(sums) // 2 + 1, dtype=np.complex128)  # of the convolution of units
        for values, times in units:
            spectrum *= np.fft.rfft(np.bincount(values, minlength=len(sums)) / len(values)) ** times
        distribution = np.clip(np.fft.irfft(spectrum, len(sums)), 0, None)
        mean = float((sums * distribution).sum())
        far = [np.abs(sums - mean) >= abs(one - mean) - 1e-9 for one in observed]
        found = [float(distribution[beyond].sum()) for beyond in far]
    return [max(round(min(1.0, p), 12), 1e-12) for p in found]


def _normal_tails(units: Alike, observed: Sequence[int]) -> list[float]:
    mean = sum(times * float(np.mean(values)) for values, times in units)
    spread = sqrt(sum(times * float(np.var(values)) for values, times in units))
    return [erfc(abs(one - mean) / spread / sqrt(2)) if spread else 1.0 for one in observed]


def _label_position(protocol: BallotFormat, ballots: Labelled, blinding: Blinding) -> LabelPosition:
    labels, units = ballots.labels, ballots.by_label
    if blinding == "shared":
        units = _by_turn(ballots.turn, units)
    mass = dict(zip(labels, units.sum(axis=0).tolist(), strict=True))
    single = dict(zip(labels, _two_sided(_alike(units), list(mass.values())), strict=True))
    return LabelPosition(
        protocol=protocol,
        ballots=len(ballots.turn),
        share={label: own / sum(mass.values()) for label, own in mass.items()},
        expected=1 / len(labels),
        p_values=holm(single),
        p_value=_joint_test(units),
    )


def _joint_test(units: Ints) -> float:
    """p-value of the squared deviations over labels, enumerated or drawn."""
    n, m = units.shape
    observed = _deviation(units.sum(axis=0, keepdims=True))[0]
    if factorial(m) ** min(n, 20) <= _ENUMERATED:
        every = product(*(permutations(unit) for unit in units.tolist()))
        sums = (np.sum(shuffled, axis=0, keepdims=True) for shuffled in every)
        reached = [_deviation(one)[0] >= observed for one in sums]
        return float(sum(reached) / len(reached))
    rng = np.random.default_rng(SEED)
    drawn = np.zeros((DRAWS, m), dtype=np.int64)
    for unit, times in _alike(units):
        drawn += _shuffled(unit, times, rng, together=n > _FEW)
    return (int((_deviation(drawn) >= observed).sum()) + 1) / (DRAWS + 1)


def _shuffled(
    unit: tuple[int, ...], times: int, rng: np.random.Generator, *, together: bool
) -> Ints:
    """The sum of so many independent shuffles of one unit, drawn `DRAWS` times.

    Together, equal units are counted by arrangement where there are fewer of these than units:
    how often each arrangement occurs is multinomial.
    """
    ways = dict.fromkeys(permutations(unit)) if together else {}
    if ways and len(ways) <= times:
        every = np.array(list(ways), dtype=np.int64)
        return rng.multinomial(times, np.full(len(every), 1 / len(every)), size=DRAWS) @ every
    found = np.zeros((DRAWS, len(unit)), dtype=np.int64)
    for _ in range(times):
        found += rng.permuted(np.tile(np.array(unit), (DRAWS, 1)), axis=1)
    return found


def _deviation(sums: Ints) -> Ints:
    """Sum of squared deviations from equal sums, times the number of labels squared: whole."""
    off = sums.shape[1] * sums - sums.sum(axis=1, keepdims=True)
    return np.asarray((off**2).sum(axis=1), dtype=np.int64)


# --- Table ---------------------------------------------------------------------------------------


@table("self-support", "Votes for one's own draft")
def self_support_table(of: Any) -> Iterator[Row]:
    """Share of final ballot mass that voters gave their own draft, beside an even share; p from the
    exact distribution over redrawn labels, two-sided, not corrected for the number of protocols.
    Voters are not told which draft is theirs."""
    for found in self_support(of.source):
        if not isinstance(found, NotEstimable):
            yield {
                "protocol": found.protocol,
                "ballots": found.ballots,
                "own share": number(found.share, digits=3),
                "even share": number(found.expected, digits=3),
                "p": p_value(found.p_value),
            }


# --- Voting power --------------------------------------------------------------------------------

PIVOTALITY_SCHEMA: Final = pl.Schema(
    {
        "protocol": pl.String(),
        "voter": pl.String(),
        "turns": pl.Int64(),  # with a ballot of this voter that has mass
        "pivotal": pl.Int64(),
        "pivotal_set": pl.Int64(),
        "low": pl.Float64(),  # 95 % interval over tasks of the share of `pivotal`; null with
        "high": pl.Float64(),  # too few tasks
    }
)
"""One row per protocol and voter."""

_AT_ONCE: Final = 1 << 22
"""Pairs of ballots compared at once."""


@dataclass(frozen=True)
class EffectiveVotes:
    """One protocol's panel."""

    protocol: BallotFormat
    voters: float
    """Mean number of voters of a turn."""
    correlation: float | NotEstimable
    """Mean over pairs of voters."""
    votes: float | NotEstimable


def effective_votes(source: Source) -> list[EffectiveVotes]:
    """The effective number of votes of each protocol that has voting turns."""
    table = turn_table(source)
    found = []
    for protocol, own in table.protocols():
        parts = [panel.final.of(own[panel.final.turn]) for panel in table.panels]
        n = sum(part.cast.size for part in parts) / int(own.sum())
        correlation = _mean_correlation(parts, len(table.votes.voters))
        votes: float | NotEstimable
        if isinstance(correlation, NotEstimable):
            votes = correlation
        elif 1 + (n - 1) * correlation <= 1e-12:
            votes = NotEstimable("the voters oppose each other more than any number of votes could")
        else:
            votes = n / (1 + (n - 1) * correlation)
        found.append(EffectiveVotes(protocol, n, correlation, votes))
    return found


def pivotality(source: Source) -> pl.DataFrame:
    """Turns that each voter decides: see `PIVOTALITY_SCHEMA`. Without an order a tied turn has no
    winner that a ballot could change, and does not count."""
    table = turn_table(source)
    found: dict[BallotFormat, list[Ints]] = {protocol: [] for protocol, _ in table.protocols()}
    for panel in table.panels:
        won = source.ordered | (panel.undecided.sum(axis=1) == 1)
        for seat in range(panel.final.voters.shape[1]):
            outcomes = panel.without(seat)  # by the order's pick, and for certain
            still = np.take_along_axis(outcomes.standing, panel.winner[:, None], axis=1)[:, 0]
            alone = source.ordered | (outcomes.standing.sum(axis=1) == 1)
            hits = (outcomes.winner != panel.winner) | ~alone, ~still
            for protocol, own in table.protocols():
                voted = panel.final.cast[:, seat] & own[panel.final.turn] & won
                who, task = panel.final.voters[voted, seat], table.task[panel.final.turn[voted]]
                found[protocol].append(np.stack([who, task, *(hit[voted] for hit in hits)]))
    rows = []
    for protocol, seats in found.items():
        votes = np.concatenate([np.empty((4, 0), dtype=np.int8), *seats], axis=1)
        for voter, cast in _by_voter(votes, table.votes.voters):
            share = share_of_numbered(cast[1], cast[2])
            counts = cast.shape[1], int(cast[2].sum()), int(cast[3].sum())
            rows.append((protocol, voter, *counts, share.low, share.high))
    return pl.DataFrame(rows, schema=PIVOTALITY_SCHEMA, orient="row")


def _by_voter(votes: Ints, names: Sequence[str]) -> list[tuple[str, Ints]]:
    """The columns of each voter, whose number is in the first row, by name."""
    by_name = np.argsort(votes[0].astype(fitting(len(names))), kind="stable")
    ordered = votes[:, by_name]
    who, starts = np.unique(ordered[0], return_index=True)
    parts = np.split(ordered, starts[1:], axis=1) if len(who) else []
    return sorted(zip([names[i] for i in who], parts, strict=True), key=lambda found: found[0])


def margins(source: Source) -> pl.DataFrame:
    """Every turn by `episode_id`, `turn` and `protocol`, and how many ballots it hangs on: its
    `margin`, null where no ballot can change the winner."""
    table = turn_table(source)
    rich = (None if source.rich is None else rich_rule(source.rich)) or "cumulative"
    found = np.zeros(len(table.winner), dtype=np.int64)
    for panel in table.panels:
        for protocol, own in table.protocols():
            rows = np.flatnonzero(own[panel.final.turn])
            rule = rich if protocol == "rich" else protocol
            m = panel.final.candidates.shape[1]
            most = np.full(len(rows), FORMATS[rule].widest(m, source.budget, source.top))
            left_out = panel.final.left_out
            if (
                left_out is not None and FORMATS[rule].left_out == "last"
            ):  # masses are twice the Borda points
                most = most * (1 + left_out[rows].any(axis=(1, 2)))
            found[panel.final.turn[rows]] = _fewest(panel, rows, most=most, ordered=source.ordered)
    return table.votes.turns.with_columns(margin=pl.Series(found).replace(0, None))


def _fewest(panel: DecidedTurns, rows: Ints, *, most: Ints, ordered: bool) -> Ints:
    """The fewest final ballots to change so that each turn's winner changes; 0 for never.

    Exact: a changed ballot can put a rival as far before the winner as the protocol allows,
    each ballot on its own, so the ballots that gain most are changed first.

    `most`: shape (rows,): by how much one ballot can put a candidate before another.
    """
    final = panel.final.of(rows)
    winner = panel.winner[rows]
    held = np.take_along_axis(final.masses, winner[:, None, None], axis=2)[:, :, 0]
    n = final.cast.shape[1]
    fewest = np.full(len(rows), n + 1)
    for rival in range(final.candidates.shape[1]):
        leads = np.where(final.cast, held - final.masses[:, :, rival], 0)
        gains = np.where(final.cast, most[:, None] + leads, 0)
        gained = np.cumsum(sorted_rows(gains)[:, ::-1], axis=1)
        needed = summed(leads, 1) + ((rival > winner) & ordered)  # who stands first wins a tie
        reached = gained >= np.maximum(1, needed)[:, None]
        enough = fold(np.logical_or, reached, 1) & (rival != winner)
        np.minimum(fewest, np.where(enough, 1 + first_of(reached), n + 1), out=fewest)
    never = fewest > n if final.by_mean is None else (fewest > n) | final.by_mean
    return np.where(never, 0, fewest)


def _mean_correlation(parts: list[Rounds], voters: int) -> float | NotEstimable:
    """Mean over pairs of voters of the correlation of their ballots, each on its own mean."""
    found = [(np.zeros(0, dtype=np.int64), np.zeros((3, 0)))]
    for part in parts:
        step = max(1, _AT_ONCE // part.voters.shape[1] ** 2)
        rows = np.arange(len(part.turn))
        chunks = [rows[start : start + step] for start in range(0, len(rows), step)]
        found += [_products(part.of(chunk), voters) for chunk in chunks]
    pair, sums = (np.concatenate(arrays, axis=-1) for arrays in zip(*found, strict=True))
    xy, xx, yy = _summed(pair, sums)[1]
    scale = np.sqrt(xx * yy)
    if not (scale > 0).any():
        return NotEstimable("no two voters whose ballots tell candidates apart voted together")
    return float((xy[scale > 0] / scale[scale > 0]).mean())


def _products(part: Rounds, voters: int) -> tuple[Ints, Floats]:
    """Pairs of voters, and the sums of x y, x x and y y over the turns in which both voted.

    They are summed as whole numbers, so that no processor's way to multiply matrices rounds them.
    """
    _, n, m = part.masses.shape
    centred = m * part.masses.astype(np.float64) - summed(part.masses, 2)[:, :, None]
    a, b = np.triu_indices(n, 1)
    both = part.cast[:, a] & part.cast[:, b]
    square = np.einsum("rnm,rnm->rn", centred, centred)
    gram = np.matmul(centred, centred.transpose(0, 2, 1))[:, a, b]
    pair = part.voters[:, a].astype(np.int64) * voters + part.voters[:, b]
    sums = np.stack([gram[both], square[:, a][both], square[:, b][both]])
    names, whole = _summed(pair[both], sums)
    return names, whole / m**2


def _summed(pair: Ints, sums: Floats) -> tuple[Ints, Floats]:
    """Each pair once, with its sums."""
    first, number = distinct_rows([pair])
    return pair[first], np.stack([np.bincount(number, row, len(first)) for row in sums])


# --- Table ---------------------------------------------------------------------------------------


@table(
    "panel",
    "How many votes the voters are worth",
    similarity=lambda of: (
        " Similarity of drafts: mean TF–IDF cosine of two drafts of a turn, 1 for the same words, "
        "with a 95 % interval over tasks."
        if of.similarity
        else ""
    ),
)
def panel_table(of: Any) -> Iterator[Row]:
    """Effective votes: n / (1 + (n − 1) ρ) with ρ the mean correlation of two voters' final
    ballots; four voters who think alike are not four votes.{similarity}"""
    for votes in effective_votes(of.source):
        alike = of.similarity.get(votes.protocol, {})
        first, last = (alike.get(v, NotEstimable("no drafts")) for v in ("initial", "final"))
        row: dict[str, object] = {
            "protocol": votes.protocol,
            "voters": number(votes.voters, digits=1),
            "correlation ρ": plain(votes.correlation),
            "effective votes": plain(votes.votes),
        }
        drafts = {"first drafts alike": estimate(first), "revised drafts alike": estimate(last)}
        yield row | drafts if of.similarity else row
