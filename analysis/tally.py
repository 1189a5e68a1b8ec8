"""Vectorised tallies: every turn's decision at once, and the counts of tied sets.

`tutorsim.voting.decide` is the definition; a property test holds this form to it.

A turn's *undecided* set is what counting left: the winner under any role-priority order is the
first of it in that order. The counts of undecided sets are therefore all that a sweep over
orders needs. They add up over partitions of the ballots: `count_tied_sets(part)` for each
part, then `+`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import polars as pl

from analysis.blocks import Codes, turn_sets
from analysis.profiles import STAGES, TURN, standing_order

__all__ = ["DECISIONS_SCHEMA", "TiedSet", "TiedSets", "count_tied_sets", "decisions"]

DECISIONS_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "protocol": pl.String(),
        "tied_set": pl.List(pl.String()),  # the last tie; empty when one led the final vote alone
        "undecided": pl.List(pl.String()),  # left by counting, in the order
        "decided_by": pl.String(),  # vote, tie_round or fallback
        "winner": pl.String(),
    }
)
"""One row per turn that has final ballots, in the order of the ballots table."""


class TiedSet(NamedTuple):
    """What turns have in common that a role-priority order can tell apart."""

    protocol: str
    decided_by: str
    undecided: tuple[str, ...]
    """Sorted by name; one candidate unless the order decided."""


@dataclass(frozen=True)
class TiedSets:
    """How often each tied set occurred; the sum of two is that of their turns together."""

    counts: Mapping[TiedSet, int]

    def __add__(self, other: "TiedSets") -> "TiedSets":
        total = Counter(self.counts)
        total.update(other.counts)
        return TiedSets(dict(sorted(total.items())))

    @property
    def turns(self) -> int:
        """Turns counted."""
        return sum(self.counts.values())

    @property
    def candidates(self) -> tuple[str, ...]:
        """Everybody who is in some undecided set, by name."""
        return tuple(sorted({c for tied in self.counts for c in tied.undecided}))

    def of(self, protocol: str) -> "TiedSets":
        """The turns of one protocol."""
        return TiedSets({t: n for t, n in self.counts.items() if t.protocol == protocol})

    def __iter__(self) -> Iterator[tuple[TiedSet, int]]:
        return iter(self.counts.items())


def decisions(ballots: pl.DataFrame | pl.LazyFrame, *, order: Sequence[str]) -> pl.DataFrame:
    """The decision of every turn: tally, tie round where one was held, then the order.

    Args:
        ballots: The long ballots table.
        order: The role-priority order. Candidates outside it stand behind it, in order
            of first appearance.
    """
    frame = ballots.lazy().collect()
    standing = standing_order(frame, order)
    place = pl.col("candidate").replace_strict(
        {c: i for i, c in enumerate(standing)}, return_dtype=pl.Int64
    )
    found = (
        _left_by_counting(frame.lazy().with_columns(place=place), by="place")
        .with_columns(winner=pl.col("undecided").list.first())
        .sort("row")
        .collect()
    )
    return found.select(pl.col(n).cast(dtype) for n, dtype in DECISIONS_SCHEMA.items())


def count_tied_sets(ballots: pl.DataFrame | pl.LazyFrame) -> TiedSets:
    """Count the undecided sets of a ballots table, or of one partition of it.

    A partition must hold whole turns. A table whose turns lie together is counted as it is read,
    from Parquet in batches; any other is grouped.
    """
    counted = _count_in_order(ballots.lazy())
    return _count_by_grouping(ballots.lazy()) if counted is None else counted


def _count_in_order(ballots: pl.LazyFrame) -> TiedSets | None:
    """The counts, in one pass; `None` where the turns do not lie together."""
    codes, parts = Codes(), []
    for found in turn_sets(ballots, codes):
        if found is None:
            return None
        parts.append(
            pl.DataFrame(
                {
                    "protocol": found.turns.get_column("protocol").cast(pl.String),
                    "held": found.held,
                    "undecided": found.undecided,
                }
            )
            .group_by(pl.all())
            .len()
        )
    counts = Counter[TiedSet]()
    for protocol, held, undecided, n in pl.concat(parts).iter_rows() if parts else ():
        left = tuple(sorted(c for i, c in enumerate(codes.names) if undecided >> i & 1))
        by = "fallback" if len(left) > 1 else "tie_round" if held else "vote"
        counts[TiedSet(protocol, by, left)] += n
    return TiedSets(dict(sorted(counts.items())))


def _count_by_grouping(ballots: pl.LazyFrame) -> TiedSets:
    key = ["protocol", "decided_by", "undecided"]
    counted = _left_by_counting(ballots, by="candidate").group_by(key).agg(pl.len()).collect()
    counts = {TiedSet(p, by, tuple(tied)): n for p, by, tied, n in counted.iter_rows()}
    return TiedSets(dict(sorted(counts.items())))


def _left_by_counting(ballots: pl.LazyFrame, *, by: str) -> pl.LazyFrame:
    """Per turn: the leaders of the final vote, and of the tie round where they were tied."""
    rows = ballots.with_row_index("row").with_columns(pl.col("stage").replace(STAGES))
    final = _leaders(rows, "vote_final", by)
    again = _leaders(rows, "tie_vote", by).select(*TURN, again=pl.col("leaders"))
    tied = pl.col("leaders").list.len() > 1
    held = tied & pl.col("again").is_not_null()
    undecided = pl.when(held).then(pl.col("again")).otherwise(pl.col("leaders"))
    return (
        final.join(again, on=TURN, how="left")
        .with_columns(
            tied_set=pl.when(undecided.list.len() > 1)
            .then(undecided)
            .when(tied)
            .then("leaders")
            .otherwise([]),
            undecided=undecided,
            held=held,
        )
        .with_columns(
            decided_by=pl.when(pl.col("undecided").list.len() > 1)
            .then(pl.lit("fallback"))
            .when(pl.col("held"))
            .then(pl.lit("tie_round"))
            .otherwise(pl.lit("vote"))
        )
    )


def _leaders(rows: pl.LazyFrame, stage: str, by: str) -> pl.LazyFrame:
    """Candidates with the largest total in one stage of each turn, sorted by a column."""
    totals = (
        rows.filter(pl.col("stage") == stage)
        .group_by(*TURN, "candidate")
        .agg(pl.col("mass").sum(), pl.col(by).first().alias("rank"), pl.col("row").min())
    )
    leading = pl.col("mass") == pl.col("mass").max()
    return totals.group_by(TURN).agg(
        leaders=pl.col("candidate").filter(leading).sort_by(pl.col("rank").filter(leading)),
        row=pl.col("row").min(),
    )
