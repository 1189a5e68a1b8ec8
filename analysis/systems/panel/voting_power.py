"""How many votes a panel is worth, who decides it, and by how much.

* *effective number of votes*: n / (1 + (n − 1) ρ), with ρ the mean correlation of two voters'
  final ballots. A ballot counts by its deviations from its own mean, since only differences
  between candidates decide; two voters are compared over all candidates of all turns in which
  both voted.
* *pivotality* of a voter: share of turns whose winner changes when its ballot is dropped, from
  the tie round too. Where the other ballots leave a tied set that no tie round was held on,
  `pivotal` takes the fallback order's pick; `pivotal_set` counts only turns whose winner
  is not among the tied.
* *margin*: the fewest final ballots that must change, each to any other ballot of its protocol,
  so that the winner changes, ties going to the fallback order; `margin_clear` asks that
  another candidate is clearly ahead. Where the final vote was tied, changing one ballot in
  favour of another tied candidate is enough.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.valid_ballots_by_format import FORMATS
from tutorsim.analysis.ballots.vote_arrays import Rounds, fold, rich_rule, summed
from tutorsim.analysis.counting.all_voting_turns import (
    TurnTable,
    clusters_of,
    places_of,
    turn_table,
)
from tutorsim.analysis.counting.decisions_in_arrays import DecidedTurns
from tutorsim.analysis.pages.cells import estimate, number, plain
from tutorsim.analysis.pages.declared import Row, table
from tutorsim.analysis.statistics.array_types import Bools, Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_of_sums,
)
from tutorsim.vocabularies import BallotFormat

PIVOTALITY_SCHEMA: Final = pl.Schema(
    {
        "protocol": pl.String(),
        "voter": pl.String(),
        "turns": pl.Int64(),  # with a ballot of this voter that has mass
        "pivotal": pl.Int64(),
        "pivotal_set": pl.Int64(),
        "low": pl.Float64(),  # 95 % interval over tasks of the share of `pivotal`, or, where no
        "high": pl.Float64(),  # order is logged, of `pivotal_set`; null with too few tasks
    }
)
"""One row per protocol and voter."""

MARGINS_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "protocol": pl.String(),
        "winner": pl.String(),
        "margin": pl.Int64(),  # null where no ballot can change it
        "margin_clear": pl.Int64(),
        "ballots": pl.Int64(),  # cast in the final vote
    }
)
"""One row per voting turn."""


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
    """Turns that each voter decides: see `PIVOTALITY_SCHEMA`."""
    table = turn_table(source)
    tasks = _numbered(clusters_of(places_of(table.votes)))
    found: dict[BallotFormat, list[Ints]] = {protocol: [] for protocol, _ in _kinds(table)}
    for panel in table.panels:
        for seat in range(panel.final.voters.shape[1]):
            hits = _pivotal(panel, seat)
            for protocol, own in _kinds(table):
                voted = panel.final.cast[:, seat] & own[panel.final.turn]
                who, task = panel.final.voters[voted, seat], tasks[panel.final.turn[voted]]
                found[protocol].append(np.stack([who, task, *(hit[voted] for hit in hits)]))
    rows = []
    for protocol, seats in found.items():
        votes = np.concatenate([np.empty((4, 0), dtype=np.int64), *seats], axis=1)
        for voter, cast in _by_voter(votes, table.votes.voters):
            share = _share_of(cast[1], cast[2 if source.ordered else 3])
            counts = cast.shape[1], int(cast[2].sum()), int(cast[3].sum())
            rows.append((protocol, voter, *counts, share.low, share.high))
    return pl.DataFrame(rows, schema=PIVOTALITY_SCHEMA, orient="row")


def _numbered(clusters: Sequence[Hashable]) -> Ints:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(one, len(numbers)) for one in clusters], dtype=np.int64)


def _by_voter(votes: Ints, names: Sequence[str]) -> list[tuple[str, Ints]]:
    """The columns of each voter, whose number is in the first row, by name."""
    ordered = votes[:, np.argsort(votes[0], kind="stable")]
    who, starts = np.unique(ordered[0], return_index=True)
    parts = np.split(ordered, starts[1:], axis=1) if len(who) else []
    return sorted(zip([names[i] for i in who], parts, strict=True), key=lambda found: found[0])


def _share_of(tasks: Ints, hits: Ints) -> Estimate:
    _, which, sizes = np.unique(tasks, return_inverse=True, return_counts=True)
    return share_of_sums(np.bincount(which, hits).astype(np.float64), sizes.astype(np.float64))


def margins(source: Source) -> pl.DataFrame:
    """How many ballots each turn hangs on: see `MARGINS_SCHEMA`."""
    table = turn_table(source)
    rich = (None if source.rich is None else rich_rule(source.rich)) or "cumulative"
    found = np.zeros((3, len(table.winner)), dtype=np.int64)
    for panel in table.panels:
        for protocol, own in _kinds(table):
            rows = np.flatnonzero(own[panel.final.turn])
            turns = panel.final.turn[rows]
            rule = rich if protocol == "rich" else protocol
            m = panel.final.candidates.shape[1]
            widest = FORMATS[rule].widest(m, source.budget, source.top)
            most = np.full(len(rows), widest)
            left_out = panel.final.of(rows).left_out
            if left_out is not None and rule == "ranked":  # masses are twice the Borda points
                most = most * (1 + left_out.any(axis=(1, 2)))
            for row, clear in enumerate((False, True)):
                found[row, turns] = _fewest(panel, rows, most=most, clear=clear)
            found[2, turns] = panel.final.cast[rows].sum(axis=1)
    return (
        table.votes.turns.with_columns(
            winner=table.names(table.winner),
            margin=pl.Series(found[0]),
            margin_clear=pl.Series(found[1]),
            ballots=pl.Series(found[2]),
        )
        .with_columns(pl.col("margin", "margin_clear").replace(0, None))
        .select(pl.col(name).cast(dtype) for name, dtype in MARGINS_SCHEMA.items())
    )


def _kinds(table: TurnTable) -> list[tuple[BallotFormat, Bools]]:
    return list(table.protocols())


def _fewest(panel: DecidedTurns, rows: Ints, *, most: Ints, clear: bool) -> Ints:
    """The fewest final ballots to change so that each turn's winner changes; 0 for never.

    Exact: a changed ballot can put a rival as far before the winner as the protocol allows,
    each ballot on its own, so the ballots that gain most are changed first.

    Args:
        panel: Decided turns.
        rows: Which of them.
        most: Shape (rows,): by how much one ballot can put a candidate before another.
        clear: The rival must be ahead; a tie that the order would give it is not enough.
    """
    final = panel.final.of(rows)
    winner = panel.winner[rows]
    held = np.take_along_axis(final.masses, winner[:, None, None], axis=2)[:, :, 0]
    n = final.cast.shape[1]
    fewest = np.full(len(rows), n + 1)
    for rival in range(final.candidates.shape[1]):
        leads = np.where(final.cast, held - final.masses[:, :, rival], 0)
        ahead = clear | (rival > winner)
        needed = np.maximum(1, summed(leads, 1) + ahead)
        gains = np.where(final.cast, most[:, None] + leads, 0)
        reached = np.cumsum(-np.sort(-gains, axis=1), axis=1) >= needed[:, None]
        enough = fold(np.logical_or, reached, 1) & (rival != winner)
        fewest = np.where(enough, np.minimum(fewest, 1 + reached.argmax(axis=1)), fewest)
    never = fewest > n if final.by_mean is None else (fewest > n) | final.by_mean
    return np.where(never, 0, fewest)


def _pivotal(panel: DecidedTurns, seat: int) -> tuple[Bools, Bools]:
    """Whether each winner changes without one voter: by the order's pick, and for certain."""
    outcomes = panel.without(seat)
    still = np.take_along_axis(outcomes.standing, panel.winner[:, None], axis=1)[:, 0]
    return outcomes.winner != panel.winner, ~still


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
    centred = (m * part.masses - summed(part.masses, 2)[:, :, None]).astype(np.float64)
    a, b = np.triu_indices(n, 1)
    both = part.cast[:, a] & part.cast[:, b]
    square = (centred**2).sum(axis=2)
    gram = np.matmul(centred, centred.transpose(0, 2, 1))[:, a, b]
    pair = part.voters[:, a] * voters + part.voters[:, b]
    sums = np.stack([gram[both], square[:, a][both], square[:, b][both]])
    names, whole = _summed(pair[both], sums)
    return names, whole / m**2


def _summed(pair: Ints, sums: Floats) -> tuple[Ints, Floats]:
    """Each pair once, with its sums."""
    names, number = np.unique(pair, return_inverse=True)
    return names, np.stack([np.bincount(number, row, len(names)) for row in sums])


# --- Table ---------------------------------------------------------------------------------------


def _alike(of: Any) -> str:
    """What the columns of drafts mean; empty where nobody drafted."""
    return _SIMILARITY if of.similarity else ""


_SIMILARITY: Final = (
    " Similarity of drafts: mean TF–IDF cosine of two drafts of a turn, 1 for the same words, with "
    "a 95 % interval over tasks."
)


@table("panel", "How many votes the panel is worth", similarity=_alike)
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
