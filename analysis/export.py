"""Writes tables and PrefLib files; what is written can be opened again as a source."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

import polars as pl

from analysis.preflib import Groups, preflib_text
from analysis.sources import Source
from analysis.tables import TABLES
from tutorsim.errors import FolderError, UsageError

__all__ = [
    "EXPORT_FORMATS",
    "ExportFormat",
    "export",
    "export_preflib",
    "export_tables",
    "write_frame",
]

ExportFormat = Literal["parquet", "csv", "jsonl"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)

_SUFFIX: Final = {"ranked": "soc", "approval": "cat"}


def export(source: Source, folder: Path, format: ExportFormat = "parquet") -> list[Path]:  # noqa: A002 - the option's own name
    """Write the tables into a folder, and ranked and approval ballots as PrefLib into `preflib/`.

    Returns:
        What was written, in order.

    Raises:
        UsageError: If the format is unknown.
        FolderError: If the folder cannot be written.
    """
    return [*export_tables(source, folder, format), *export_preflib(source, folder / "preflib")]


def export_tables(source: Source, folder: Path, format: ExportFormat) -> list[Path]:  # noqa: A002 - as in `export`
    """Write `episodes`, `turns`, `ballots`, `proposals` and `calls`, one file each.

    For ballots from elsewhere there is only `ballots`. CSV holds lists as JSON.
    """
    if format not in _WRITERS:
        raise UsageError(
            f"Tables cannot be written as {format!r}.",
            hint=f"Choose one of {', '.join(_WRITERS)}.",
        )
    written = []
    _make(folder)
    for name, frame in _tables(source):
        path = folder / f"{name}.{format}"
        write_frame(frame, path)
        written.append(path)
    return written


def write_frame(frame: pl.DataFrame, path: Path) -> int:
    """Write one frame; the ending says the format. CSV holds lists as JSON.

    Returns:
        The number of rows.

    Raises:
        UsageError: If the ending is none of `EXPORT_FORMATS`.
        FolderError: If the file cannot be written.
    """
    writer = _WRITERS.get(path.suffix.removeprefix("."))
    if writer is None:
        raise UsageError(
            f"{path} has an ending that says no known format.",
            hint=f"Use one of {', '.join('.' + name for name in _WRITERS)}.",
        )
    _write(path, partial(writer, frame, path))
    return frame.height


def export_preflib(source: Source, folder: Path) -> list[Path]:
    """Write each round of ranked ballots as `.soc` and of approval ballots as `.cat`.

    One file per episode, turn and stage. Abstentions are left out, and their number stands
    in the file's title; a round without any ballot has no file.
    """
    frame = source.ballots.filter(pl.col("protocol").is_in(list(_SUFFIX)))
    keys = ["episode_id", "turn", "stage", "protocol"]
    written: list[Path] = []
    for key, ballots in frame.group_by(keys, maintain_order=True):
        episode, turn, stage, protocol = (str(part) for part in key)
        cast = ballots.filter(pl.col("mass").is_not_null())
        if cast.height == 0:
            continue
        if not written:
            _make(folder)
        name = f"{_file_name(episode)}.t{turn}.{stage}.{_SUFFIX[protocol]}"
        silent = (ballots.height - cast.height) // ballots["candidate"].n_unique()
        title = f"{episode}, turn {turn}, {stage}" + f", {silent} abstained" * (silent > 0)
        text = _preflib(cast, _SUFFIX[protocol], name, title)
        path = folder / name
        _write(path, partial(path.write_text, text, "utf-8", newline="\n"))
        written.append(path)
    return written


def _tables(source: Source) -> Iterator[tuple[str, pl.DataFrame]]:
    if source.run is None:
        yield "ballots", source.ballots
        return
    for name, table in TABLES.items():
        yield name, table.frame(source.episodes, source.run)


def _write_csv(frame: pl.DataFrame, path: Path) -> None:
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    as_json = [
        pl.Series(name, [_json(cell) for cell in frame[name].to_list()], dtype=pl.String)
        for name in lists
    ]
    frame.with_columns(as_json).write_csv(path)


def _json(cell: Sequence[object] | None) -> str | None:
    return None if cell is None else json.dumps(cell, ensure_ascii=False)


_WRITERS: Final[Mapping[str, Callable[[pl.DataFrame, Path], None]]] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "csv": _write_csv,
    "jsonl": lambda frame, path: frame.write_ndjson(path),
}


def _preflib(cast: pl.DataFrame, kind: str, name: str, title: str) -> str:
    candidates = cast["candidate"].unique(maintain_order=True).to_list()
    number = {candidate: i for i, candidate in enumerate(candidates, start=1)}
    orders: list[Groups] = []
    for ballot in cast.partition_by("voter", maintain_order=True):
        by_mass = ballot.sort("mass", descending=True, maintain_order=True)
        rows = [(number[c], m) for c, m in by_mass.select("candidate", "mass").iter_rows()]
        if kind == "soc":
            orders.append(tuple((c,) for c, _ in rows))
        else:
            orders.append((tuple(c for c, m in rows if m), tuple(c for c, m in rows if not m)))
    return preflib_text(kind, name, title, candidates, orders)


def _file_name(text: str) -> str:
    """The text as a file name that no other text has, whatever it holds."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip(".")
    if safe == text and len(text) <= 150:
        return text
    return f"{safe[:130]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _make(folder: Path) -> None:
    _write(folder, lambda: folder.mkdir(parents=True, exist_ok=True))


def _write(path: Path, writing: Callable[[], object]) -> None:
    try:
        writing()
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.", why=str(error), hint="Name a folder that you may write."
        ) from error
