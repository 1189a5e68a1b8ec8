"""`tutorsim report`: the page of a run, its text, or one of its charts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tutorsim.cli.ballot_options import ballot_options, panel_option
from tutorsim.cli.console_progress_and_safe_text import counted, emit_json, out, safe, tell
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs, records_held
from tutorsim.cli.options_that_commands_share import (
    FILE,
    FOLDER,
    check_two_files,
    claims_option,
    json_option,
    published_option,
)
from tutorsim.errors import FolderError, UsageError

if TYPE_CHECKING:
    from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
    from tutorsim.analysis.charts.figures_forms_and_colours import Figure
    from tutorsim.analysis.charts.svg_worker_and_its_fonts import Run
    from tutorsim.analysis.pages.document import Document
    from tutorsim.analysis.pages.numbers_printed_in_studies import Printed
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import Opened, SystemRun
    from tutorsim.cli.claims_options_and_write_or_check_claims import Options


DEFAULT_FOLDER: Final = Path("reports")
PAGES: Final = (".html", ".md")
CHARTS: Final = (".svg", ".png", ".json")
LARGE: Final = 5_000_000
"""Bytes from which a page is worth a warning."""


@click.command()
@click.argument("run", type=RunPath())
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="FILE.html or .md for the report; .svg, .png or .json (Vega-Lite) for one chart. "
    "[default: reports/NAME.html]",
)
@click.option("--chart", help="The chart to write to an .svg, .png or .json file.")
@click.option(
    "--episodes",
    multiple=True,
    metavar="ID[,ID…]",
    help="Episodes to show message by message; all of them, telling ones first, if none is named.",
)
@click.option(
    "--print-episodes",
    is_flag=True,
    help="Unfold every episode, so that they are on paper too; else paper has the findings alone.",
)
@claims_option(
    "Write every number of the report here, to be checked by `tutorsim verify --claims`. "
    "[default: NAME.claims.json beside the report]"
)
@click.option("--no-claims", is_flag=True, help="Write no file of claims.")
@panel_option
@published_option
@ballot_options
@click.option(
    "--with-messages",
    is_flag=True,
    help="Quote what a person wrote, in runs in which a person took part.",
)
@click.option(
    "--embeddings",
    type=FOLDER,
    metavar="FOLDER",
    help="A model of sentences, to compare the answers of debates by it too; needs the extra "
    "`embeddings`.",
)
@json_option
@records_held()
def report(
    run: Path,
    output: Path | None,
    chart: str | None,
    episodes: tuple[str, ...],
    print_episodes: bool,
    claims: Path | None,
    no_claims: bool,
    hints: Hints,
    panel: str | None,
    with_messages: bool,
    embeddings: Path | None,
    published: tuple[Printed, ...] | None,
    as_json: bool,
) -> None:
    """Write the report of a RUN folder, or of a file of ballots.

    The page is one file: it loads nothing and opens without a network; its one script draws and
    finds episodes, and shows citations. The same run gives the same page. The name of the file
    written goes to stdout.

    Beside it goes NAME.claims.json: each number of the report with an id that lasts, its question,
    interval and source, and the command that computes it again; see `tutorsim guide claims`.

    \b
    --json gives:
      written, bytes, charts: [name], episodes: [id], claims: the file, or null
    """
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked, opened
    from tutorsim.cli.claims_options_and_write_or_check_claims import Options

    _check_claims(output, claims, no_claims=no_claims, embeddings=embeddings)
    check_logs(run)
    named = tuple(name for part in episodes for name in part.split(",") if name)
    asked = Asked(published=published, episodes=named)
    what = opened(run, hints=hints, panel=panel, asked=asked, use="document")
    what = _with(what, embeddings, with_messages=with_messages)
    no_claims = no_claims or embeddings is not None
    wanted = _Wanted(run, output, chart, claims, no_claims, as_json, print_episodes)
    _report_of(what, wanted, panel, Options(published=published, hints=hints, panel=panel))


class _Wanted(NamedTuple):
    """What was asked for."""

    run: Path
    output: Path | None
    chart: str | None
    claims: Path | None
    no_claims: bool
    as_json: bool
    print_episodes: bool


def _tell(
    wanted: _Wanted,
    path: Path,
    content: bytes,
    charts: list[str],
    episodes: list[str],
    claims: Path | None,
) -> None:
    """Say what was written."""
    if wanted.as_json:
        emit_json(
            {
                "written": str(path),
                "bytes": len(content),
                "charts": charts,
                "episodes": episodes,
                "claims": None if claims is None else str(claims),
            }
        )
    else:
        out().print(safe(str(path)), soft_wrap=True)


def _check_claims(
    output: Path | None, claims: Path | None, *, no_claims: bool, embeddings: Path | None
) -> None:
    """Refuse options about claims that cannot be met, before anything is computed."""
    if claims is not None and no_claims:
        raise UsageError(
            "--claims names a file, and --no-claims says that there is to be none.",
            hint="Leave one of them out.",
        )
    if claims is not None and embeddings is not None:
        raise UsageError(
            "A report with --embeddings has no claims.",
            why="Nobody could compute its numbers again without the same model of sentences.",
            hint="Leave --claims out, or --embeddings.",
        )
    if claims is not None and output is not None and output.suffix in CHARTS:
        raise UsageError(
            f"{output} is one chart, which has no claims of its own.",
            why="Claims are the numbers of a whole report.",
            hint=f"Write the report, {' or '.join(PAGES)}, with --claims {claims}.",
        )
    check_two_files(claims, output, "report")


def _with(what: Opened, embeddings: Path | None, *, with_messages: bool) -> Opened:
    """What was opened, with the model of sentences named; refused if it compares nothing."""
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import Ballots, view_of

    if isinstance(what, Ballots):
        if embeddings is None:
            return what
        raise UsageError(
            "--embeddings does not apply here.",
            why="Ballots from elsewhere hold no texts to compare.",
            hint="Leave it out.",
        )
    if embeddings is None:
        return replace(what, with_messages=with_messages)
    from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import open_embedding

    if not view_of(what.head.system).embeds:
        raise _refusal(what, "report --embeddings")
    return replace(what, with_messages=with_messages, embedding=open_embedding(embeddings))


def _refusal(what: SystemRun, command: str) -> UsageError:
    from tutorsim.kernel.load_and_check_study_file import system_named

    return system_named(what.head.system).refusal(command)


def _claims(wanted: _Wanted, page: Path, document: Document, options: Options) -> Path | None:
    """Write the claims of a page; `None` where none are wanted."""
    from tutorsim.analysis.pages.document_as_json_and_as_claims import document_parts
    from tutorsim.cli.claims_options_and_write_or_check_claims import ENDING, write_claims

    if wanted.no_claims:
        return None
    path = wanted.claims or page.with_suffix(ENDING)
    parts = document_parts(document, "report")
    write_claims(path, wanted.run, "report", parts, options, drawn=page)
    return path


def _report_of(what: Opened, wanted: _Wanted, panel: str | None, options: Options) -> None:
    """Write the page, the text or the chart, and its claims."""
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
    from tutorsim.cli.claims_options_and_write_or_check_claims import digest_of
    from tutorsim.cli.terminal_documents import document_asked

    name = "-".join(filter(None, (wanted.run.resolve().name, panel)))
    path, chart = wanted.output or DEFAULT_FOLDER / f"{name}.html", wanted.chart
    _check(path, chart)
    if wanted.print_episodes and path.suffix != ".html":
        raise UsageError(
            f"--print-episodes is for a page, and {path} is none.",
            hint="Write to a file that ends in .html, or leave it out.",
        )
    for note in () if isinstance(what, SystemRun) else what.source.notes:
        tell(note)
    with _drawers(path.suffix) as draw, counted("parts of the page") as progress:
        made = document_asked(what, brief=False, command="report")
        if isinstance(what, SystemRun) and what.asked.episodes and not made.episodes:
            raise _refusal(what, "report --episodes")
        if chart is not None:
            content = _drawing(_figure(made, chart, what.name), made.provenance, path.suffix)
            _write(path, content)
            _tell(wanted, path, content, [chart], [], None)
            return
        for at, _ in enumerate(made.sections):  # each is made when it is looked at
            progress(at + 1, len(made.sections) + 1)
        document = replace(made, digest=digest_of(wanted.run)[0])  # what citations name
        content = _text_of(document, draw, printed=wanted.print_episodes)
    charts = [figure.name for figure in document.figures() if figure.chart is not None]
    shown = document.episodes.ids
    _write(path, content)
    written = _claims(wanted, path, document, options)
    if len(content) > LARGE:
        tell(f"The page has {len(content) / 1e6:.1f} MB; name fewer --episodes.")
    _tell(wanted, path, content, charts, shown, written)


@contextmanager
def _drawers(suffix: str) -> Iterator[Run | None]:
    """What draws the charts of a page, started before there is anything to draw; else none."""
    from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import VEGA_LITE
    from tutorsim.analysis.charts.svg_worker_and_its_fonts import drawers

    if suffix != ".html":
        yield None
        return
    with drawers(version=VEGA_LITE) as draw:
        yield draw


def _figure(document: Document, chart: str, source: str) -> Figure:
    """A chart of a report, without making what other sections show; refused if nothing is drawn."""
    figures = {figure.name: figure for figure in document.figures()}
    if chart not in figures:
        raise UsageError(
            f"There is no chart {chart!r}.", hint=f"The charts are {', '.join(figures)}."
        )
    found = figures[chart]
    if found.chart is None:
        raise UsageError(f"The chart {chart!r} cannot be drawn from {source}.", why=found.finding)
    return found


def _check(path: Path, chart: str | None) -> None:
    """Refuse endings and charts that do not go together, before anything is computed."""
    if path.suffix not in (*PAGES, *CHARTS):
        raise UsageError(
            f"{path} has an ending that says no known format.",
            hint=f"Use {', '.join(PAGES)} for the report, {', '.join(CHARTS)} for one chart.",
        )
    if path.suffix in CHARTS and chart is None:
        raise UsageError(
            f"{path} takes one chart, and none is named.",
            hint="Add --chart NAME; the report names its charts.",
        )
    if path.suffix in PAGES and chart is not None:
        raise UsageError(
            f"{path} takes the whole report, not the chart {chart!r}.",
            hint=f"Leave --chart out, or write to {', '.join(CHARTS)}.",
        )


def _text_of(document: Document, draw: Run | None, *, printed: bool) -> bytes:
    """A document as a page, or as Markdown if nothing draws; `printed`: episodes on paper."""
    from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
    from tutorsim.analysis.pages.document_as_markdown import to_markdown

    if draw is None:
        return to_markdown(document).encode()
    return to_html(document, run=draw, printed=printed).encode()


def _drawing(figure: Figure, provenance: str, suffix: str) -> bytes:
    """A chart in the form that an ending names."""
    from tutorsim.analysis.charts.figures_forms_and_colours import spec
    from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import to_json, to_png, to_svg

    made = spec(figure, provenance=provenance)
    if suffix == ".png":
        return to_png(made)
    return (to_svg(made) if suffix == ".svg" else to_json(made)).encode()


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise FolderError(f"{path} cannot be written.", why=str(error.strerror or error)) from error
