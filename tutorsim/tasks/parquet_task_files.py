"""Task files in Parquet. The one module outside `analysis` that imports polars."""

from pathlib import Path

from tutorsim.errors import TaskFileError
from tutorsim.named_files import open_named
from tutorsim.tasks.task_file_records import Row

__all__ = ["read_parquet"]


def read_parquet(path: Path) -> list[Row]:
    """The records of a Parquet file; a record's line is its place, from 1.

    Raises:
        TaskFileError: If the file cannot be read or holds no record.
    """
    import polars as pl  # here, since it is slow to import and most studies need it not

    try:
        open_named(path).close()
        rows = pl.read_parquet(path.absolute(), glob=False).to_dicts()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise TaskFileError(
            f"{path} cannot be read as Parquet.",
            why=str(error),
            hint="Download the file again, or give the tasks as JSON Lines.",
        ) from error
    if not rows:
        raise TaskFileError(
            f"{path}: there is no task in it.", hint="Give a file with at least one task."
        )
    return [Row(str(path), place, place, fields) for place, fields in enumerate(rows, start=1)]
