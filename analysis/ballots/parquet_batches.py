"""Parquet files of ballots read in pieces: some rows of whole turns at a time, as arrays."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import polars as pl

from tutorsim.analysis.ballots.outside_files import REQUIRED
from tutorsim.analysis.ballots.table_to_arrays import Piece, TurnOrder, VoteReader, whole_turns
from tutorsim.analysis.ballots.vote_arrays import RICH, TURN, Place
from tutorsim.errors import BallotFileError
from tutorsim.named_files import open_named

BATCH: Final = 2**20
"""Rows of a piece: a hundred megabytes, and whole row groups of most writers of Parquet."""
_AHEAD: Final = 2
"""Pieces read while another is used."""

_CAST: Final = (*TURN, "stage", "voter", "candidate", "mass", "ballot_status", *RICH)
"""What makes ballots."""
_SHOWN: Final = ("label", *Place._fields)
"""What else metrics ask of them."""
_NAMES: Final = (*TURN, "stage", "voter", "candidate")
_NUMBERS: Final = ("turn", "mass", "points", "rank")

T = TypeVar("T")


class PieceRows(NamedTuple):
    """Rows of whole turns, and the same as arrays."""

    frame: pl.DataFrame
    """With the data row's number (from 1) as `row`."""
    piece: Piece


def ask(file: Path, question: Callable[[pl.LazyFrame], T]) -> T:
    """The answer to a question about the rows of a Parquet file.

    Raises:
        BallotFileError: If the file cannot be read.
    """
    try:
        open_named(file).close()
        return question(pl.scan_parquet(file.absolute(), glob=False, hive_partitioning=False))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BallotFileError(
            f"{file} cannot be read as ballots.",
            why=str(error).splitlines()[0],
            hint="Write it again, in the shape of `tutorsim export`'s ballots table.",
        ) from error


def rows_of(files: Iterable[Path]) -> int:
    """Rows of all files, from their footers."""
    return sum(ask(file, lambda rows: rows.select(pl.len()).collect().item()) for file in files)


def stated_in(files: Iterable[Path]) -> tuple[str, ...]:
    """What the files say answered the calls, in their column `provenance`; each once."""
    return tuple(sorted({text for file in files for text in ask(file, _stated)}))


def _stated(rows: pl.LazyFrame) -> list[str]:
    if "provenance" not in rows.collect_schema():
        return []
    said = rows.select(pl.col("provenance").cast(pl.String).drop_nulls().unique())
    return said.collect(engine="streaming").to_series().to_list()


def is_regular(file: Path) -> bool:
    """Whether the columns have the ballots table's types, and there are rows."""
    schema = ask(file, lambda rows: rows.collect_schema())
    if not set(REQUIRED) <= set(schema) or not rows_of([file]):
        return False
    return all(
        kind.is_signed_integer() if name in _NUMBERS else _is_text(kind)
        for name, kind in schema.items()
        if name in (*_CAST, *_SHOWN) and name != "approved" and kind != pl.Null
    )


def _is_text(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.String | pl.Categorical | pl.Enum)


def pieces_of(
    rows: pl.LazyFrame, reader: VoteReader, *, shown: bool = False
) -> Iterator[PieceRows | None]:
    """The pieces of a table; `None`, as the last, where it cannot be read so.

    That is where the rows of a turn lie apart, or where a name is missing, blank, or of no stage.

    Args:
        rows: The table's columns in the ballots table's types.
        reader: Knows the names of pieces read before.
        shown: Also labels, and what says where an episode stands in the grid.
    """
    present = rows.collect_schema()
    columns = [c for c in (*_CAST, *(_SHOWN if shown else ())) if c in present]
    order = TurnOrder()
    for frame, piece in _read_ahead(rows.select(columns), reader):
        if piece is None or not (_known(piece) and order.keeps(piece.runs)):
            yield None
            return
        yield PieceRows(frame, piece)
    if order.repeats():
        yield None


def _read_ahead(
    rows: pl.LazyFrame, reader: VoteReader
) -> Iterator[tuple[pl.DataFrame, Piece | None]]:
    """Frames with their pieces, the next ones read meanwhile; without one where a name is missing.

    A piece with new names is read when its turn comes, so that threads make no difference to
    their numbers.
    """
    waiting: deque[tuple[pl.DataFrame, Future[Piece | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for frame in whole_turns(rows, BATCH):
            if any(frame.select(pl.col(_NAMES).has_nulls()).row(0)):
                yield frame, None
                return
            if not waiting:
                reader.learn(frame)
            waiting.append((frame, pool.submit(reader.read_known, frame)))
            if len(waiting) > _AHEAD:
                done, piece = waiting.popleft()
                yield done, piece.result() or reader.read(done)
        for done, piece in waiting:
            yield done, piece.result() or reader.read(done)


def _known(piece: Piece) -> bool:
    """Whether no name is blank, and every stage known."""
    names = (*piece.votes.order, *piece.votes.voters, *piece.votes.labels)
    episodes = piece.runs.get_column("episode_id").str.strip_chars()
    blank = not all(name.strip() for name in names) or bool((episodes == "").any())
    return not blank and bool((piece.turn > -2).all())
