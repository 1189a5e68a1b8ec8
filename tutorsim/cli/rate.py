"""`tutorsim rate`: rating sheets for people, and their ratings joined to a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tutorsim.cli.console_progress_and_safe_text import emit_json, listing, out, safe, tell
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs
from tutorsim.cli.options_that_commands_share import (
    FILE,
    PLACE,
    ending_in,
    json_option,
    recording_option,
)
from tutorsim.errors import FolderError, UsageError
from tutorsim.records import RUN_FILE, to_line
from tutorsim.records.ratings import RATINGS_FILE, Survey
from tutorsim.regular_files_and_digests import read_named

if TYPE_CHECKING:
    from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import Sheet
    from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Item
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
    from tutorsim.records.ratings import RatedBy, RatedSheet, Rubric, Subject


@click.command()
@click.argument("source", metavar="RUN", type=PLACE)
@click.argument("more", metavar="[FILE]…", nargs=-1, type=PLACE)
@click.option(
    "--export",
    "export_to",
    type=FILE,
    callback=ending_in(".html", ".csv"),
    metavar="FILE",
    help="Write one sheet per rater: .html to fill in in a browser, .csv in a spreadsheet.",
)
@click.option(
    "--import",
    "files",
    type=PLACE,
    multiple=True,
    metavar="FILE",
    help="Join the ratings in FILE, and in further FILEs, to the run.",
)
@click.option(
    "--of",
    "subject",
    type=click.Choice(("replies", "proposals", "answers")),
    default="replies",
    show_default=True,
    help="What is rated: delivered replies, all final proposals, or the student's answers.",
)
@click.option(
    "--rubric",
    "rubric_file",
    type=FILE,
    metavar="FILE",
    help="A rubric of your own, as TOML. [default: the anchors of the recorded model judge]",
)
@click.option(
    "--raters",
    type=click.IntRange(1, 99),
    default=2,
    show_default=True,
    help="People who rate; each has a sheet.",
)
@click.option(
    "--items", type=click.IntRange(min=1), default=40, show_default=True, help="Items to draw."
)
@click.option(
    "--overlap",
    type=click.IntRange(min=0),
    help="Items that every rater has; the others go to one each. [default: all]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of draws and orders.")
@click.option(
    "--with-messages",
    is_flag=True,
    help="Show raters what a person wrote, in runs in which a person took part.",
)
@click.option(
    "--scripted", is_flag=True, help="A program filled in the files; figures then say so."
)
@recording_option
@json_option
def rate(
    source: Path,
    more: tuple[Path, ...],
    export_to: Path | None,
    files: tuple[Path, ...],
    subject: Subject,
    rubric_file: Path | None,
    raters: int,
    items: int,
    overlap: int | None,
    seed: int,
    with_messages: bool,
    scripted: bool,
    cassette_dir: Path | None,
    as_json: bool,
) -> None:
    """Let people rate what RUN delivered: --export sheets, and --import them filled in.

    RUN is a run folder or a recording. A sheet shows each item with the task and what was said
    before; roles, rules and conditions are hidden, and the order is shuffled for each rater. The
    HTML page is one file that works without a network and by keyboard, keeps what was entered in
    the browser, and downloads a CSV. Items are drawn by --seed; the same command writes the same
    sheets. Proposals are drawn by whole turns, --items of them at most.

    Ratings are kept beside the run, or in the recording's folder, in ratings.jsonl, and nothing
    else changes. Files can be joined at any time and in any order, half filled in too: the same
    sheet given again adds what is new. Altered sheets, sheets of another run, values that are not
    on the scale and changed values are refused, and then no file is joined. `tutorsim summary`
    and `report` show the agreement of the raters, the model judge against them, and outcomes by
    their scores.

    \b
    --json gives:
      --export: written: [file], subject, rubric, drawn, shared, available
      --import: file, sheets: [{rater subject rubric by items ratings}], added
    """
    if (export_to is None) == (not files) or (more and not files):
        raise UsageError(
            "Give either --export or --import.",
            why="Sheets are made, or filled-in sheets are joined.",
            hint="`tutorsim rate RUN --export sheet.html`, then `tutorsim rate RUN --import FILE`.",
        )
    run = RunPath().convert(source, None, click.get_current_context())
    check_logs(run)
    opened = replace(_opened(run, source), with_messages=with_messages)
    if export_to is not None:
        found = _items(opened, subject)
        rubric = _rubric(opened, subject, rubric_file, source, cassette_dir)
        from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import draw_sheets

        asked = Survey(
            study_digest=opened.head.study_digest,
            recording_digest=opened.head.recording_digest,
            subject=subject,
            seed=seed,
            raters=raters,
            items=items,
            overlap=items if overlap is None else overlap,
            rubric=rubric,
        )
        sheets = draw_sheets(found, asked)
        _show_written(_write(sheets, export_to), sheets, len(found), as_json=as_json)
        return
    _join(opened, source, (*files, *more), scripted=scripted, as_json=as_json)


def _opened(run: Path, source: Path) -> SystemRun:
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run

    if not (run / RUN_FILE).is_file():
        raise UsageError(
            f"{source} is no run folder and no recording.",
            why="Ballots alone say nothing of what was delivered to a student."
            if source.exists()
            else "There is no such folder.",
            hint="Record a study with `tutorsim run`, or write its log with `tutorsim replay`.",
        )
    return open_run(run)


def _items(run: SystemRun, subject: Subject) -> tuple[Item, ...]:
    """What of a run can be rated; refused if there is nothing."""
    from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import items_of
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import view_of

    passages = view_of(run.head.system).passages
    if subject not in passages:
        said = listing(list(passages), last="or")
        raise UsageError(
            f"`tutorsim rate` has no {subject} to show of runs of the system {run.head.system!r}.",
            why=f"Of its runs, people can rate {said}."
            if passages
            else "Nothing in them is delivered to a student.",
            hint=f"Use --of {said}." if passages else "Rate a run whose replies reach a student.",
        )
    found = tuple(items_of(passages[subject](run)).values())
    if not found:
        raise UsageError(
            f"{run.name} holds none of the {subject} that people could rate.",
            why="No episode came so far, or all of them are lessons with a person.",
            hint="Rate another run; --with-messages takes in lessons with a person.",
        )
    return found


def _rubric(
    run: SystemRun,
    subject: Subject,
    rubric_file: Path | None,
    source: Path,
    cassette_dir: Path | None,
) -> Rubric:
    """The user's rubric, or that of replies; of answers, the anchors of the run's judge."""
    from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import (
        judge_rubric,
        read_rubric,
        reply_rubric,
    )
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import view_of
    from tutorsim.kernel.load_and_check_study_file import load_recorded_study
    from tutorsim.runner.find_and_check_recording import find_recording

    if rubric_file is not None:
        return read_rubric(rubric_file)
    view, success = view_of(run.head.system), run.head.success
    if subject != "answers":
        return reply_rubric(labelled="replies" in view.judged)
    name = view.rubric
    found = None
    if name and success is not None:
        recording = find_recording(source, cassette_dir=cassette_dir)
        prompt = load_recorded_study(recording).catalog.prompts[name]
        found = judge_rubric(prompt, threshold=success.threshold, programs=success.programs)
    if found is None:
        raise UsageError(
            f"The wordings of {source} have no anchors that people could rate by.",
            why=f"A model judge with a scale is missing from the system {run.head.system!r}."
            if not name
            else f"No two lines of its prompt {name!r} begin with a score.",
            hint="Give a rubric of your own with --rubric FILE; `tutorsim guide rating` shows one.",
        )
    return found


def _write(sheets: Sequence[Sheet], path: Path) -> list[Path]:
    """Write every sheet, or none: a file that holds something else stays as it is."""
    from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import (
        sheet_csv,
        sheet_page,
    )
    from tutorsim.replay import folder_error, make_folder, write_atomic

    text_of = sheet_page if path.suffix == ".html" else sheet_csv
    texts = {_named(path, sheet, len(sheets)): text_of(sheet).encode() for sheet in sheets}
    try:
        taken = [
            one
            for one, text in texts.items()
            if one.is_symlink() or (one.exists() and read_named(one) != text)
        ]
    except OSError as error:
        raise folder_error(path, error) from error
    if taken:
        raise FolderError(
            f"{taken[0]} is there already, and is another file.",
            why="It may be a sheet that somebody fills in.",
            hint="Choose another name for --export, or move the file away.",
        )
    make_folder(path.parent)
    for one, text in texts.items():
        write_atomic(one, text)
    return list(texts)


def _named(path: Path, sheet: Sheet, raters: int) -> Path:
    return path if raters == 1 else path.with_name(f"{path.stem}-{sheet.rater}{path.suffix}")


def _show_written(
    written: Sequence[Path], sheets: Sequence[Sheet], available: int, *, as_json: bool
) -> None:
    survey = sheets[0].survey
    if as_json:
        emit_json(
            {
                "written": [str(path) for path in written],
                "subject": survey.subject,
                "rubric": survey.rubric.name,
                "drawn": survey.items,
                "shared": survey.overlap,
                "available": available,
            }
        )
        return
    for path in written:
        out().print(safe(str(path)), soft_wrap=True)
    tell(
        f"{survey.items} of {available} {survey.subject}, {survey.overlap} of them for "
        f"every rater; rubric {survey.rubric.name!r}, values "
        f"{survey.rubric.scale[0]:g} to {survey.rubric.scale[-1]:g}."
    )


def _join(
    run: SystemRun, source: Path, files: Sequence[Path], *, scripted: bool, as_json: bool
) -> None:
    from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import joined
    from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import items_of
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import view_of
    from tutorsim.replay import write_atomic

    whole = replace(run, with_messages=True)  # a sheet shows them if its export was told to
    found = {
        subject: items_of(passages(whole))
        for subject, passages in view_of(run.head.system).passages.items()
    }
    by: RatedBy = "script" if scripted else "people"
    sheets = joined(run.ratings, files, items=found, run=run.head, by=by)
    added = _count(sheets) - _count(run.ratings)
    path = source / RATINGS_FILE
    write_atomic(path, "".join(to_line(one) + "\n" for one in sheets).encode())
    if as_json:
        emit_json({"file": str(path), "sheets": [_told(one) for one in sheets], "added": added})
        return
    for one in sheets:
        told = _told(one)
        who = "" if one.by == "people" else ", filled in by a program"
        out().print(
            safe(
                f"Rater {told['rater']}: {told['ratings']} of {told['items']} "
                f"{told['subject']} rated, rubric {told['rubric']!r}{who}."
            ),
            soft_wrap=True,
        )
    tell(f"{added} ratings added to {path}.")
    tell(f"Next: tutorsim summary {source}")


def _count(sheets: Sequence[RatedSheet]) -> int:
    return sum(len(one.ratings) for one in sheets)


def _told(sheet: RatedSheet) -> dict[str, object]:
    survey = sheet.survey
    return {
        "rater": sheet.rater,
        "subject": survey.subject,
        "rubric": survey.rubric.name,
        "by": sheet.by,
        "items": sheet.items,
        "ratings": len(sheet.ratings),
    }
