"""Tallies of a ballots table that is in order: one pass, batch by batch, no grouping.

`tutorsim export` writes the rows of a turn one after the other, and so do most programs. Then a
turn begins where episode, turn or protocol differ from the row before, its totals are a count
of (turn, stage, candidate) in numpy, and who leads is a set of bits. Columns come from Parquet
in batches, so memory does not grow with the turns' ballots.

A table where a turn's rows lie apart cannot be read so; that is noticed, and `None` is the answer:
`analysis.tally` then groups, which holds for every table and is the definition in tables.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analysis.profiles import STAGES, TURN

__all__ = [
    "BATCH",
    "COLUMNS",
    "Codes",
    "TurnOrder",
    "TurnSets",
    "turn_sets",
    "turn_starts",
    "whole_turns",
]

COLUMNS: Final = ("episode_id", "turn", "stage", "candidate", "mass", "protocol")
"""What a tally reads of a ballots table."""

BATCH: Final = 250_000
"""Rows of a batch."""

_TAIL: Final = 1_000
"""Rows at the end of a batch that most often hold the last turn."""

_MOST: Final = 62
"""Candidates that fit into the bits of a set."""
_FEW: Final = 12
"""Candidates up to which a column is compared with each name in turn."""
_LARGEST: Final = 2**53
"""Totals below this are exact as floating-point sums of integers."""

_FINAL: Final = tuple(name for name, stage in STAGES.items() if stage == "vote_final")
_TIE: Final = tuple(name for name, stage in STAGES.items() if stage == "tie_vote")
_DECIDING: Final = ("vote_final", *_FINAL, "tie_vote", *_TIE)


class TurnSets(NamedTuple):
    """What counting leaves of each turn, as sets of bits: candidate i of the codes is bit i."""

    turns: pl.DataFrame
    """`episode_id`, `turn` and `protocol`, in the table's order."""
    led: NDArray[np.int64]
    """Leaders of the final vote."""
    again: NDArray[np.int64]
    """Leaders of the tie round; 0 where none was held."""

    @property
    def held(self) -> NDArray[np.bool_]:
        """Whether a tie round decided between several leaders."""
        return np.asarray((np.bitwise_count(self.led) > 1) & (self.again != 0))

    @property
    def undecided(self) -> NDArray[np.int64]:
        """Who is left after counting; the first of them in the order wins."""
        return np.where(self.held, self.again, self.led)


class Codes:
    """Names as small numbers: those given, then others in the order of first appearance."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)

    def learn(self, column: pl.Series) -> None:
        """Number the names of a column, so that asking for them adds none."""
        known = set(self.names)
        names = column.unique(maintain_order=True).cast(pl.String).to_list()
        self.names += [name for name in names if name not in known]

    def of(self, column: pl.Series) -> NDArray[np.int64]:
        """The number of each value; new names get the next ones."""
        found = self.known(column)
        if found is None:
            self.learn(column)
            found = self.known(column)
            assert found is not None
        return found

    def known(self, column: pl.Series) -> NDArray[np.int64] | None:
        """The number of each value; `None` where one is new."""
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            return self._of_categories(column)
        if len(self.names) > _FEW:
            return self._looked_up(column)
        found = np.zeros(len(column), dtype=np.int8)
        for number, name in enumerate(self.names, start=1):
            found += (column == name).to_numpy().view(np.int8) * np.int8(number)
        return found.astype(np.int64) - 1 if found.all() else None

    def _of_categories(self, column: pl.Series) -> NDArray[np.int64] | None:
        """One look-up for each category that occurs, not for each row."""
        physical = column.to_physical().to_numpy()
        values, first = np.unique(physical, return_index=True)
        found = self._looked_up(column.gather(first).cast(pl.String))
        if found is None or not len(values):
            return found
        table = np.zeros(int(values[-1]) + 1, dtype=np.int64)
        table[values] = found
        return np.asarray(table[physical])

    def _looked_up(self, column: pl.Series) -> NDArray[np.int64] | None:
        numbers = {name: i for i, name in enumerate(self.names)}
        found = column.replace_strict(numbers, default=None, return_dtype=pl.Int64)
        return None if found.null_count() else found.to_numpy()


def turn_sets(ballots: pl.LazyFrame, codes: Codes) -> Iterator[TurnSets | None]:
    """The turns of a table, a batch at a time; `None`, as the last, if it is not in order.

    Args:
        ballots: The long ballots table; `COLUMNS` of it are read.
        codes: Numbers of the candidates; added to.
    """
    rows = ballots.select(COLUMNS).filter(pl.col("stage").is_in(_DECIDING))
    order = TurnOrder()
    for frame in whole_turns(rows, BATCH):
        found = _counted(frame, turn_starts(frame), codes)
        yield found if found and order.keeps(found.turns) else None
    if order.repeats():
        yield None


def whole_turns(rows: pl.LazyFrame, size: int) -> Iterator[pl.DataFrame]:
    """Batches of about so many rows that end where a turn ends."""
    rest: pl.DataFrame | None = None
    for batch in rows.collect_batches(chunk_size=size, maintain_order=True):
        frame = batch if rest is None else pl.concat([rest, batch])
        last = _last_start(frame)
        whole, rest = frame.head(last), frame.slice(last).rechunk()
        if whole.height:
            yield whole
    if rest is not None and rest.height:
        yield rest


def _last_start(frame: pl.DataFrame) -> int:
    """The row where the last turn begins, looked for from the end."""
    size = _TAIL
    while True:
        starts = turn_starts(frame.tail(size))
        if len(starts) > 1 or size >= frame.height:
            return max(frame.height - size, 0) + int(starts[-1]) if len(starts) else 0
        size *= _TAIL


def turn_starts(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Rows where a turn begins; the first row among them."""
    new = np.zeros(frame.height, dtype=np.bool_)
    new[:1] = True
    for name in TURN:
        column = frame.get_column(name)
        new[1:] |= column.head(-1).ne_missing(column.slice(1)).to_numpy()
    return np.flatnonzero(new)


def _counted(frame: pl.DataFrame, starts: NDArray[np.int64], codes: Codes) -> TurnSets | None:
    """Totals of each turn, stage and candidate, and who has the largest."""
    candidate = codes.of(frame.get_column("candidate"))
    width = len(codes.names)
    if width > _MOST:
        return None
    mass = frame.get_column("mass").fill_null(0).to_numpy()
    if len(mass) and int(np.abs(mass).max()) * len(mass) >= _LARGEST:
        return None
    tie = frame.get_column("stage").is_in(["tie_vote", *_TIE]).to_numpy()
    turn = np.repeat(np.arange(len(starts)), np.diff(starts, append=frame.height))
    cell = (turn * 2 + tie) * width + candidate
    shape = (len(starts), 2, width)
    cells = len(starts) * 2 * width
    present = np.bincount(cell, minlength=cells).reshape(shape) > 0
    totals = np.bincount(cell, weights=mass, minlength=cells).reshape(shape)
    totals[~present] = -np.inf
    leading = present & (totals == totals.max(axis=2, keepdims=True))
    sets = leading @ (1 << np.arange(width, dtype=np.int64))
    if not (sets[:, 0] > 0).all():
        return None  # a tie round that lies apart from its final vote
    return TurnSets(frame.select(TURN)[starts], sets[:, 0], sets[:, 1])


class TurnOrder:
    """Whether each turn came once, in one piece: each episode does, and its turns count up."""

    def __init__(self) -> None:
        self._episodes: list[pl.Series] = []
        self._last: tuple[str, int] | None = None

    def keeps(self, turns: pl.DataFrame) -> bool:
        """Note the turns; whether within each episode they count up."""
        episode, turn = turns.get_column("episode_id"), turns.get_column("turn").to_numpy()
        same = np.zeros(turns.height, dtype=np.bool_)
        same[1:] = (episode.head(-1) == episode.slice(1)).to_numpy()
        up = np.ones(turns.height, dtype=np.bool_)
        up[1:] = np.diff(turn) > 0
        if self._last is not None and self._last[0] == episode[0]:
            same[0], up[0] = True, int(turn[0]) > self._last[1]
        self._last = (episode[-1], int(turn[-1]))
        self._episodes.append(episode.filter(~same))
        return bool((up | ~same).all())

    def repeats(self) -> bool:
        """Whether an episode came, went and came again."""
        if not self._episodes:
            return False
        return bool(pl.concat(self._episodes).is_duplicated().any())
