"""`tutorsim export`: the tables of a run or of ballots, as files."""

from pathlib import Path

import click

from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source, refuse_hints
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import branch_words
from tutorsim.analysis.runs.write_export_and_preflib_files import (
    EXPORT_FORMATS,
    ExportFormat,
    export_run,
)
from tutorsim.analysis.runs.write_export_and_preflib_files import export as write_tables
from tutorsim.cli.ballot_options import ballot_options
from tutorsim.cli.console_progress_and_safe_text import emit_json, out, safe, tell
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs
from tutorsim.cli.options_that_commands_share import folder_option, json_option
from tutorsim.records import RUN_FILE, read_run


@click.command()
@click.argument("run", type=RunPath())
@folder_option("Folder to write to; made where it does not exist.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(EXPORT_FORMATS),
    default="parquet",
    show_default=True,
    help="Format of the tables.",
)
@ballot_options
@json_option
def export(run: Path, output: Path, format_: ExportFormat, hints: Hints, as_json: bool) -> None:
    """Write the tables of a RUN folder, or of a file of ballots, into a folder.

    Every run has the tables episodes, ballots, diagnostic_ballots (of votes that decided
    nothing) and calls; ballots from elsewhere have the table ballots alone. Ranked and approval
    ballots also go to the folder `preflib`, one .soc or .cat file for every vote that was held.
    Names of the files written go to stdout.

    \b
    Runs also have
      of panels           turns, proposals
      of debates          messages, answers, challenges, outcomes
      of group lessons    events, thoughts, codes, ratings, duels, outcomes
      of labelled replies opinions, lead_examples, outcomes
      that people rated   sheet_ratings

    Of a run that compares panels, every table has a `panel` behind `condition`.

    Of a branch, `branch_turn`, `continuation` and `left` of the episodes are null for those kept
    as logged. Every draw has rows of its own, also of votes that draws share.

    \b
    --json gives:
      format, written: [path]
    """
    if (run / RUN_FILE).is_file():
        check_logs(run)
        refuse_hints(run, hints)
        branch = read_run(run).branch
        if branch is not None:
            tell(f"A {branch_words(branch)}.")
        written = [str(path) for path in export_run(run, output, format_)]
    else:
        source = open_source(run, hints=hints)
        written = [str(path) for path in write_tables(source, output, format_)]
        for note in source.notes:
            tell(note)
    if as_json:
        emit_json({"format": format_, "written": written})
        return
    for path in written:
        out().print(safe(path), soft_wrap=True)
