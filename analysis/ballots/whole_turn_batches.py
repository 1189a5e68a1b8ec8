"""A ballots table in batches of whole turns, names as numbers, and whether turns lie together.

`tutorsim export` writes the rows of a turn one after the other, and so do most programs. Then a
turn begins where episode, turn or protocol differ from the row before. Columns come from Parquet
in batches, so memory does not grow with the turns' ballots.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tutorsim.analysis.ballots.turn_profiles import TURN

__all__ = ["Codes", "TurnOrder", "turn_starts", "whole_turns"]

_TAIL: Final = 1_000
"""Rows at the end of a batch that most often hold the last turn."""

_FEW: Final = 12
"""Candidates up to which a column is compared with each name in turn."""


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


def whole_turns(rows: pl.LazyFrame, size: int) -> Iterator[pl.DataFrame]:
    """Batches of about so many rows that end where a turn ends, numbered from 1 in `row`.

    A batch is collected when it is asked for: polars' own batches are read ahead of a slow reader,
    and a file's worth of them would be held.
    """
    rest = rows.head(0).with_row_index("row", 1).collect()
    for start in count(0, size):
        batch = rows.slice(start, size).with_row_index("row", start + 1).collect()
        frame = pl.concat([rest, batch])
        last = _last_start(frame) if batch.height == size else frame.height
        whole, rest = frame.head(last), frame.slice(last).rechunk()
        if whole.height:
            yield whole
        if batch.height < size:
            return


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
