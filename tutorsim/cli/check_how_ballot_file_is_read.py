"""`tutorsim check`: how a file of ballots is read, before anything is counted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import WITH_BUDGET
from tutorsim.analysis.ballots.recount_source import order_words, reading_of
from tutorsim.analysis.pages.cells_and_tables import Table
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import read_words
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import document_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Ballots,
    Opened,
    SystemRun,
    opened,
)
from tutorsim.cli.ballot_options import ballot_options
from tutorsim.cli.console_progress_and_safe_text import listing
from tutorsim.cli.open_run_or_recording_and_head_of_page import check_logs, source_shown
from tutorsim.cli.options_that_commands_share import PLACE, order_option, report_options
from tutorsim.cli.printed_prose_and_tables_and_published_files import (
    Prose,
    caption,
    heading,
    publish,
    table,
)
from tutorsim.cli.terminal_documents import parts_shown
from tutorsim.errors import UsageError
from tutorsim.records import RUN_FILE

_LISTED = 12
"""Candidates that are named."""


@click.command("check")
@click.argument("ballots", type=PLACE)
@ballot_options
@order_option
@report_options
def check_ballot_file(
    ballots: Path,
    hints: Any,
    fallback_order: tuple[str, ...] | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Say how BALLOTS are read: a file from elsewhere, a folder of such files, or a run.

    It reads Parquet, CSV, TSV, JSON, PrefLib and BLT files: one row a ballot and candidate, one
    column a candidate or a vote, columns of ranks, one choice or one order in a cell, or raw
    replies. What the file does not say is assumed and told; what makes no ballot is refused with
    file, row and reason. Of a run, imported logs among them, the votes are listed, and what the
    logs leave open.

    \b
    --json gives:
      source provenance stated budget fallback_order notes
      files: [{name shape columns rows assumed}]
      candidates: [name], voters, episodes, turns
      votes: [{protocol stage turns voters candidates ballots repaired abstained}]
      told: of imported logs what they leave open, [{note votes}]
    """
    check_logs(ballots)
    if fallback_order is not None and (ballots / RUN_FILE).is_file():
        raise UsageError(
            f"{ballots} is a run, which logs what decided its ties.",
            why="--fallback-order is for ballots from elsewhere.",
            hint=f"See what another order would have chosen: `tutorsim recount {ballots} "
            "--fallback-order A,B`.",
        )
    found = opened(ballots, hints=replace(hints, fallback_order=fallback_order))
    value = reading_of(found.source)
    told = _told(found)
    if told is not None:
        value["told"] = told.data.to_dicts()
    publish(_shown(found, value, told), lambda: value, as_json=as_json, output=output)


def _told(found: Opened) -> Table | None:
    """The table of what a run's logs leave open, of a system that has one."""
    document = document_of(found, brief=True) if isinstance(found, SystemRun) else None
    sections = document.sections if document is not None else ()
    return next((one.tables[0] for one in sections if one.id == "told" and one.tables), None)


def _shown(found: Opened, value: dict[str, Any], told: Table | None) -> Iterator[RenderableType]:
    source, names = found.source, value["candidates"]
    if isinstance(found, Ballots):
        orders = recount(source, targets=(), tables=("orders",))
        yield from source_shown(source, read_words(source, orders))
    else:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        some = ", ".join(names[:_LISTED]) if more else listing(names)
        yield from source_shown(source)
        yield Prose(
            f"{counted(value['episodes'], 'episode')}, {counted(value['turns'], 'turn')}, "
            f"{counted(value['voters'], 'voter')}; candidates {some}{more}."
        )
    for file in source.files:
        named = ", ".join(f"{ours} = “{theirs}”" for ours, theirs in file.columns.items())
        called = f"; columns {named}" if named else ""
        rows = f"{counted(file.rows, 'row')} of ballot and candidate"
        yield Prose(f"{file.name}: {file.shape}, {rows}{called}.", indent=2)
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
    if any(row["protocol"] in (*WITH_BUDGET, "rich") for row in value["votes"]):
        yield caption(f"A ballot of points sums to {source.budget}.")
    if isinstance(found, Ballots):
        yield caption(order_words(source))
    if told is not None:
        yield from parts_shown([told])
    options = " with the same options" if isinstance(found, Ballots) else ""
    yield Prose(f"Next: `tutorsim recount {quote(source.name)}`{options}.")
