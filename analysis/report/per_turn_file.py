"""The per-turn table of a recount as a file, written as its rows come."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from tutorsim.analysis.recount import PER_TURN_SCHEMA
from tutorsim.analysis.recount.ballots_in_parts import TurnWriter
from tutorsim.analysis.recount.per_turn_table import turns_table
from tutorsim.analysis.report.table_export import TableFile, with_provenance

__all__ = ["write_turns"]


@contextmanager
def write_turns(path: Path, provenance: str) -> Iterator[tuple[TableFile, TurnWriter]]:
    """A file that is there when the block ends, and what takes its rows meanwhile.

    Args:
        path: Where to write; the ending says the format.
        provenance: What answered the calls; empty where nothing is known.

    Raises:
        UsageError: If the ending says no known format.
        FolderError: If the file cannot be written.
    """
    with TableFile(path) as file:

        def write(per_turn: pl.DataFrame) -> None:
            file.add(with_provenance(turns_table(per_turn), provenance))

        write(PER_TURN_SCHEMA.to_frame())
        yield file, write
