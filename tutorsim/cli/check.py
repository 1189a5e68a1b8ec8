"""`tutorsim check`: how a file of ballots is read, before anything is counted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.reading_notes import order_words, reading_of
from tutorsim.analysis.ballots.recount_source import Source, open_source
from tutorsim.cli.ballot_options import ballot_options
from tutorsim.cli.options import order_option, report_options
from tutorsim.cli.output_elements import Prose, caption, heading, listing, publish, table
from tutorsim.cli.source_head import source_shown
from tutorsim.errors import UsageError
from tutorsim.records import RUN_FILE

_LISTED = 12
"""Candidates that are named."""


@click.command()
@click.argument("ballots", type=click.Path(path_type=Path))
@ballot_options
@order_option
@report_options
def check(
    ballots: Path,
    hints: Any,
    fallback_order: tuple[str, ...] | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Say how BALLOTS are read: a file from elsewhere, or a folder of such files.

    Read are Parquet, CSV, TSV, JSON and PrefLib files: one row a ballot and candidate, one
    column a candidate, columns of ranks, one choice or one order in a cell, or raw replies. What
    the file does not say is assumed and told; what makes no ballot is refused with file, row and
    reason.

    \b
    --json gives:
      source provenance stated budget fallback_order notes
      files: [{name shape columns rows assumed}]
      candidates: [name], voters, episodes, turns
      votes: [{protocol stage turns voters candidates ballots repaired abstained}]
    """
    if (ballots / RUN_FILE).is_file():
        raise UsageError(
            f"{ballots} is a run folder, not ballots from elsewhere.",
            hint=f"Use `tutorsim summary {ballots}`.",
        )
    source = open_source(ballots, hints=replace(hints, fallback_order=fallback_order))
    value = reading_of(source)
    publish(_shown(source, value), lambda: value, as_json=as_json, output=output)


def _shown(source: Source, value: dict[str, Any]) -> Iterator[RenderableType]:
    names = value["candidates"]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    yield from source_shown(source)
    yield Prose(
        f"{value['episodes']} episode(s), {value['turns']} turn(s), {value['voters']} voter(s); "
        f"candidates {listing(names[:_LISTED]) if not more else ', '.join(names[:_LISTED])}{more}."
    )
    for file in source.files:
        named = ", ".join(f"{ours} = “{theirs}”" for ours, theirs in file.columns.items())
        called = f"; columns {named}" if named else ""
        yield Prose(f"{file.name}: {file.shape}, {file.rows} rows{called}.", indent=2)
    yield Text()
    yield heading("Votes")
    columns = ("turns", "voters", "candidates", "ballots", "repaired", "abstained")
    yield table(
        ("protocol", "stage", *columns),
        [
            (row["protocol"], row["stage"], *(str(row[name]) for name in columns))
            for row in value["votes"]
        ],
        left=2,
    )
    if any(row["protocol"] in ("cumulative", "rich") for row in value["votes"]):
        yield caption(f"A ballot of points sums to {source.budget}.")
    yield caption(order_words(source))
    yield Prose(f"Next: `tutorsim recount {source.name}` with the same options.")
