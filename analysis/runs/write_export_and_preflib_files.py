"""Writes tables and PrefLib files; what is written can be opened again as a source."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal, get_args

import polars as pl

from tutorsim.analysis.ballots.preflib import Groups, preflib_text
from tutorsim.analysis.ballots.raw_tables import FORMULA
from tutorsim.analysis.ballots.recount_source import Source, provenance_words
from tutorsim.analysis.ratings.item_scores_and_agreement_of_raters_and_judge import ratings_table
from tutorsim.analysis.runs.exported_tables import TABLES
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run, view_of
from tutorsim.errors import FolderError, UsageError
from tutorsim.records import read_lines, read_run
from tutorsim.records.ratings import read_ratings
from tutorsim.system_registry import load

ExportFormat = Literal["parquet", "csv", "jsonl"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)

RATINGS: Final = "sheet_ratings"
"""The table of what people said, of a run that has any."""
PIECE = 40
"""Episodes of a log that are held in memory at a time."""
ROW_GROUP: Final = 1 << 14
"""Rows of a group in a Parquet file; a group is held in memory until it is full."""
_SUFFIX: Final = {"ranked": "soc", "approval": "cat"}


def export(source: Source, folder: Path, format: ExportFormat = "parquet") -> list[Path]:  # noqa: A002 - the option's own name
    """Write the tables into a folder, and ranked and approval ballots as PrefLib into `preflib/`.

    The tables are `episodes`, `turns`, `ballots`, `proposals` and `calls`, one file each; for
    ballots from elsewhere there is only `ballots`. CSV holds lists as JSON, and an apostrophe
    before what a spreadsheet would run. What answered the calls goes with every file: in the
    column `provenance`, and in the head of PrefLib files.

    Returns:
        What was written, in order.

    Raises:
        UsageError: If the format is unknown.
        FolderError: If the folder cannot be written.
    """
    tables = {"ballots": source.ballots}
    if source.run is not None:
        tables = {name: one.frame(source.episodes, source.run) for name, one in TABLES.items()}
    return _export([tables], folder, format, "; ".join(source.answered_by))


def export_run(run: Path, folder: Path, format: ExportFormat = "parquet") -> list[Path]:  # noqa: A002 - as in `export`
    """Write the tables of a run folder as `export` does, a piece of the log at a time.

    Raises:
        LogError: If the run folder, or the ratings in it, are damaged.
        UsageError: If the format is unknown.
        FolderError: If the folder cannot be written.
    """
    head = read_run(run)
    tables, episodes = view_of(head.system).tables, read_lines(run, load(head.system, "record"))
    pieces = iter(lambda: tuple(islice(episodes, PIECE)), ())
    first = next(pieces, ())
    batches = (
        {name: table.frame(piece, head) for name, table in tables.items()}
        for piece in chain([first], pieces)
    )
    rated = [{RATINGS: ratings_table(open_run(run, head))}] if read_ratings(run, head) else ()
    return _export(chain(batches, rated), folder, format, provenance_words(head))


def _export(
    batches: Iterable[Mapping[str, pl.DataFrame]],
    folder: Path,
    ending: ExportFormat,
    provenance: str,
) -> list[Path]:
    """Write batches of the same tables, each of whole episodes."""
    if ending not in EXPORT_FORMATS:
        raise UsageError(
            f"Tables cannot be written as {ending!r}.",
            hint=f"Choose one of {', '.join(EXPORT_FORMATS)}.",
        )
    _write(folder, partial(folder.mkdir, parents=True, exist_ok=True))
    written: list[Path] = []
    files: dict[str, TableFile] = {}
    with ExitStack() as stack:
        for batch in batches:
            for name, frame in batch.items():
                if name not in files:
                    file = TableFile(folder / f"{name}.{ending}")
                    files[name] = stack.enter_context(file)
                files[name].add(with_provenance(frame, provenance))
            if "ballots" in batch:
                votes = batch["ballots"]
                written += export_preflib(votes, folder / "preflib", provenance=provenance)
    return [*(file.path for file in files.values()), *written]


def with_provenance(frame: pl.DataFrame, provenance: str) -> pl.DataFrame:
    """A table with what answered its calls in its last column; as it is where nothing is known."""
    if not provenance:
        return frame
    return frame.with_columns(pl.lit(provenance).alias("provenance"))


def write_frames(frames: Iterable[pl.DataFrame], path: Path, provenance: str) -> int:
    """Write the frames of one table, and count its rows; the ending says the format.

    CSV holds lists as JSON. What answered the calls stands in each row if it is known.
    """
    with TableFile(path) as file:
        for frame in frames:
            file.add(with_provenance(frame, provenance))
    return file.rows


class TableFile:
    """One table's file, written a frame at a time. The ending says the format.

    What is there before is replaced when all is written, and stays where writing fails. A Parquet
    file cannot be added to: frames are kept beside it as files of their own, and put together at
    the end without being held in memory.

    Raises `UsageError` if the ending is none of `EXPORT_FORMATS`; `FolderError` if the file cannot
    be written.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.removeprefix(".") not in EXPORT_FORMATS:
            raise UsageError(
                f"{path} has an ending that says no known format.",
                hint=f"Use one of {', '.join('.' + name for name in EXPORT_FORMATS)}.",
            )
        self.path = path
        self.rows = 0
        """Rows that were added."""
        self._ending = path.suffix.removeprefix(".")
        self._parts: list[Path] = []

    def __enter__(self) -> "TableFile":
        if self._ending != "parquet":
            _write(self.path, lambda: self._next().write_bytes(b""))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None and self._parts:
                _write(self.path, self._put_together)
        finally:
            for part in self._parts:
                part.unlink(missing_ok=True)

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows; `FolderError` if they cannot be written."""
        _write(self.path, partial(self._add, frame))
        self.rows += frame.height

    def _next(self) -> Path:
        """The next file beside it."""
        self._parts.append(self.path.with_name(f".{self.path.name}.{len(self._parts)}"))
        return self._parts[-1]

    def _add(self, frame: pl.DataFrame) -> None:
        if self._ending == "parquet":
            frame.write_parquet(self._next())
            return
        with self._parts[0].open("ab") as file:
            if self._ending == "csv":
                _without_formulas(_lists_as_json(frame)).write_csv(
                    file, include_header=not file.tell()
                )
            else:
                frame.write_ndjson(file)

    def _put_together(self) -> None:
        if len(self._parts) == 1:
            self._parts.pop().replace(self.path)
        else:
            pl.scan_parquet(self._parts, glob=False).sink_parquet(
                self.path, row_group_size=ROW_GROUP
            )


def export_preflib(ballots: pl.DataFrame, folder: Path, *, provenance: str = "") -> list[Path]:
    """Write each round of ranked ballots as `.soc` and of approval ballots as `.cat`.

    One file per episode, turn and stage. Abstentions are left out, and their number stands
    in the file's title; a round without any ballot has no file.

    `ballots`: ballots of whole rounds, in the shape of the ballots table.
    """
    frame = ballots.filter(pl.col("protocol").is_in(list(_SUFFIX)))
    keys = ["episode_id", "turn", "stage", "protocol"]
    written: list[Path] = []
    for key, cast_ballots in frame.group_by(keys, maintain_order=True):
        episode, turn, stage, protocol = (str(part) for part in key)
        cast = cast_ballots.filter(pl.col("mass").is_not_null())
        if cast.height == 0:
            continue
        if not written:
            _write(folder, partial(folder.mkdir, parents=True, exist_ok=True))
        every = cast_ballots["candidate"].unique(maintain_order=True).to_list()
        whole = cast.height == cast["voter"].n_unique() * len(every)
        kind = _SUFFIX[protocol] if whole else "soi"
        name = f"{_file_name(episode)}.t{turn}.{stage}.{kind}"
        silent = cast_ballots["voter"].n_unique() - cast["voter"].n_unique()
        title = f"{episode}, turn {turn}, {stage}" + f", {silent} abstained" * (silent > 0)
        text = _preflib(cast, kind, every, name, title, provenance)
        path = folder / name
        _write(path, partial(path.write_text, text, "utf-8", newline="\n"))
        written.append(path)
    return written


def _lists_as_json(frame: pl.DataFrame) -> pl.DataFrame:
    def as_json(cells: list[object] | None) -> str | None:
        return None if cells is None else json.dumps(cells, ensure_ascii=False)

    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    return frame.with_columns(
        pl.Series(name, map(as_json, frame[name].to_list()), dtype=pl.String) for name in lists
    )


def _preflib(
    cast: pl.DataFrame, kind: str, candidates: list[str], name: str, title: str, provenance: str
) -> str:
    number = {candidate: i for i, candidate in enumerate(candidates, start=1)}
    orders: list[Groups] = []
    for ballot in cast.partition_by("voter", maintain_order=True):
        by_mass = ballot.sort("mass", descending=True, maintain_order=True)
        rows = [(number[c], m) for c, m in by_mass.select("candidate", "mass").iter_rows()]
        if kind != "cat":
            orders.append(tuple((c,) for c, _ in rows))
        else:
            orders.append((tuple(c for c, m in rows if m), tuple(c for c, m in rows if not m)))
    return preflib_text(kind, name, title, candidates, orders, provenance=provenance)


def _file_name(text: str) -> str:
    """The text as a file name that no other text has, whatever it holds."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip(".")
    if safe == text and len(text) <= 150:
        return text
    return f"{safe[:130]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _write(path: Path, writing: Callable[[], object]) -> None:
    try:
        writing()
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.", why=str(error), hint="Name a folder that you may write."
        ) from error


def _without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """A table for CSV that no spreadsheet runs: an apostrophe stands before what it would.

    Reading the file takes the apostrophes off again.
    """
    return frame.with_columns(pl.col(pl.String).str.replace(f"^({FORMULA})", "'${1}"))
