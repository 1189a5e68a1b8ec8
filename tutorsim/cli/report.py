"""`tutorsim report`: the page of a run, its text, or one of its charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tutorsim.cli.ballot_options import ballot_options, of_panel_asked, panel_option, refuse_panel
from tutorsim.cli.console import emit_json, err, out, safe
from tutorsim.cli.options import claims_option, json_option, published_option
from tutorsim.cli.progress import counted
from tutorsim.cli.sources import RunPath, check_logs
from tutorsim.errors import FolderError, UsageError

if TYPE_CHECKING:
    from tutorsim.analysis.ballots.reading_options import Hints
    from tutorsim.analysis.ballots.recount_source import Source
    from tutorsim.analysis.charts.figure import Figure
    from tutorsim.analysis.metrics.text_similarity import Embedding
    from tutorsim.analysis.pages.document import Document
    from tutorsim.analysis.systems.panel.published import PublishedFigure
    from tutorsim.analysis.systems.system_view import SystemRun
    from tutorsim.cli.claims_file import Options


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
    type=click.Path(path_type=Path, dir_okay=False),
    help="FILE.html or .md for the report; .svg, .png or .json (Vega-Lite) for one chart. "
    "[default: reports/NAME.html]",
)
@click.option("--chart", help="The chart to write to an .svg, .png or .json file.")
@click.option(
    "--episodes",
    multiple=True,
    metavar="ID[,ID…]",
    help="Episodes to show message by message; telling ones are chosen when none is named.",
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
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="A model of sentences, to compare the answers of debates by it too; needs the extra "
    "`embeddings`.",
)
@json_option
def report(
    run: Path,
    output: Path | None,
    chart: str | None,
    episodes: tuple[str, ...],
    claims: Path | None,
    no_claims: bool,
    hints: Hints,
    panel: str | None,
    with_messages: bool,
    embeddings: Path | None,
    published: tuple[PublishedFigure, ...] | None,
    as_json: bool,
) -> None:
    """Write the report of a RUN folder, or of a file of ballots.

    The page is one file: it loads nothing and opens without a network; its one script filters
    episodes and shows citations. The same run gives the same bytes. The name of the file written
    goes to stdout.

    Beside it goes NAME.claims.json: each number of the report with an id that lasts, its question,
    interval and source, and the command that computes it again; see `tutorsim guide claims`.

    \b
    --json gives:
      written, bytes, charts: [name], episodes: [id], claims: the file, or null
    """
    from tutorsim.analysis.ballots.recount_source import open_source
    from tutorsim.cli.terminal_documents import system_run

    _check_claims(output, claims, no_claims=no_claims, embeddings=embeddings)
    check_logs(run)
    system = system_run(run)
    refuse_panel(system, panel)
    no_claims = no_claims or embeddings is not None
    wanted = _Wanted(run, output, chart, episodes, claims, no_claims, as_json)
    if system is not None:
        system = replace(
            system, with_messages=with_messages, embedding=_embedding(system, embeddings)
        )
        _report_of(system, wanted)
        return
    if embeddings is not None:
        raise UsageError(
            "--embeddings does not apply here.",
            why="This report compares drafts by their words alone.",
            hint="Leave it out.",
        )
    from tutorsim.analysis.systems.panel.figures import CHART_NAMES

    source = of_panel_asked(open_source(run, hints=hints), panel)
    path = output or DEFAULT_FOLDER / f"{'-'.join(filter(None, (run.resolve().name, panel)))}.html"
    _check(path, chart, CHART_NAMES)
    for note in source.notes:
        err().print(safe(note))
    named = [name for part in episodes for name in part.split(",") if name]
    if path.suffix in PAGES:
        from tutorsim.cli.claims_file import Options

        options = Options(published=published, hints=hints, panel=panel)
        content, document = _page(source, run, path.suffix, named, published)
        charts = [figure.name for figure in document.figures() if figure.chart is not None]
        shown = [chosen.episode.episode_id for chosen in document.trace]
        _write(path, content)
        written = _claims(wanted, path, content, document, options)
    else:
        content, charts, shown = _chart(source, str(chart), path.suffix), [str(chart)], []
        _write(path, content)
        written = None
    if len(content) > LARGE:
        err().print(f"The page has {len(content) / 1e6:.1f} MB; name fewer --episodes.")
    _tell(wanted, path, content, charts, shown, written)


class _Wanted(NamedTuple):
    """What was asked for."""

    run: Path
    output: Path | None
    chart: str | None
    episodes: tuple[str, ...]
    claims: Path | None
    no_claims: bool
    as_json: bool


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
    if claims is not None and claims == output:
        raise UsageError(
            f"{claims} is the report's file and that of its claims.",
            hint="Name two files.",
        )


def _embedding(run: SystemRun, folder: Path | None) -> Embedding | None:
    """The model of sentences that was named."""
    if folder is None:
        return None
    from tutorsim.analysis.metrics.text_similarity import open_embedding
    from tutorsim.analysis.systems.system_view import view_of
    from tutorsim.kernel.load import system_named

    if not view_of(run.head.system).embeds:
        raise system_named(run.head.system).refusal("report --embeddings")
    return open_embedding(folder)


def _claims(
    wanted: _Wanted, page: Path, content: bytes, document: Document, options: Options
) -> Path | None:
    """Write the claims of a page; `None` where none are wanted."""
    from tutorsim.analysis.claims.drawn_pages import drawn_as
    from tutorsim.analysis.pages.values import document_parts
    from tutorsim.cli.claims_file import ENDING, claims_of, write_claims

    if wanted.no_claims:
        return None
    path = wanted.claims or page.with_suffix(ENDING)
    parts = document_parts(document, "report")
    drawn = drawn_as(page, content)
    write_claims(path, claims_of(wanted.run, "report", parts, options, drawn=drawn))
    return path


def _report_of(run: SystemRun, wanted: _Wanted) -> None:
    """The report of a run of a system other than the panel."""
    from tutorsim.cli.claims_file import Options
    from tutorsim.cli.terminal_documents import document_of
    from tutorsim.kernel.load import system_named

    if wanted.episodes:
        raise system_named(run.head.system).refusal("report --episodes")
    path, chart = wanted.output or DEFAULT_FOLDER / f"{run.name}.html", wanted.chart
    document = _with_digest(document_of(run, brief=False, command="report"), wanted.run)
    drawn = {figure.name: figure for figure in document.figures() if figure.chart is not None}
    _check(path, chart, tuple(figure.name for figure in document.figures()))
    if path.suffix in PAGES:
        content, charts = _text_of(document, path.suffix), list(drawn)
    else:
        figure = drawn.get(str(chart))
        if figure is None:
            raise _undrawn(str(chart), run.name, "there is nothing to draw")
        content, charts = _drawing(figure, document.provenance, path.suffix), [str(chart)]
    _write(path, content)
    is_page = path.suffix in PAGES
    written = _claims(wanted, path, content, document, Options()) if is_page else None
    _tell(wanted, path, content, charts, [one.id for one in document.dialogues], written)


def _with_digest(document: Document, run: Path) -> Document:
    """A document with what a citation of its numbers names."""
    from tutorsim.cli.claims_file import digest_of

    return replace(document, digest=digest_of(run)[0])


def _check(path: Path, chart: str | None, names: tuple[str, ...]) -> None:
    """Refuse endings and charts that do not go together, before anything is computed."""
    if path.suffix not in (*PAGES, *CHARTS):
        raise UsageError(
            f"{path} has an ending that says no known format.",
            hint=f"Use {', '.join(PAGES)} for the report, {', '.join(CHARTS)} for one chart.",
        )
    if path.suffix in CHARTS and chart is None:
        raise UsageError(
            f"{path} takes one chart, and none is named.",
            hint=f"Add --chart NAME; the charts are {', '.join(names)}.",
        )
    if path.suffix in PAGES and chart is not None:
        raise UsageError(
            f"{path} takes the whole report, not the chart {chart!r}.",
            hint=f"Leave --chart out, or write to {', '.join(CHARTS)}.",
        )
    if chart is not None and chart not in names:
        raise UsageError(
            f"There is no chart {chart!r}.", hint=f"The charts are {', '.join(names)}."
        )


def _page(
    source: Source,
    run: Path,
    suffix: str,
    wanted: Iterable[str],
    published: tuple[PublishedFigure, ...] | None,
) -> tuple[bytes, Document]:
    """The report, and the document that it draws."""
    from tutorsim.analysis.charts.image_formats import VEGA_LITE
    from tutorsim.analysis.charts.svg_worker import drawers
    from tutorsim.analysis.ratings.ratings_section import with_ratings
    from tutorsim.analysis.report.html import to_html
    from tutorsim.analysis.systems.panel.page import build_report

    if suffix == ".html":
        with drawers(version=VEGA_LITE) as draw, counted("parts of the page") as progress:
            made = build_report(source, episodes=wanted, published=published, progress=progress)
            document = _with_digest(with_ratings(made, source), run)
            return to_html(document, run=draw).encode(), document
    with counted("parts of the text") as progress:
        made = build_report(source, episodes=wanted, published=published, progress=progress)
    document = with_ratings(made, source)
    return _text_of(document, suffix), document


def _text_of(document: Document, suffix: str) -> bytes:
    """A document as a page or as Markdown."""
    from tutorsim.analysis.charts.image_formats import VEGA_LITE
    from tutorsim.analysis.charts.svg_worker import drawers
    from tutorsim.analysis.report.html import to_html
    from tutorsim.analysis.report.markdown import to_markdown

    if suffix != ".html":
        return to_markdown(document).encode()
    with drawers(version=VEGA_LITE) as run:
        return to_html(document, run=run).encode()


def _chart(source: Source, name: str, suffix: str) -> bytes:
    from tutorsim.analysis.systems.panel.page import build_figure, provenance_of

    figure = build_figure(source, name)
    if figure.chart is None:
        raise _undrawn(name, source.name, figure.finding)
    return _drawing(figure, provenance_of(source), suffix)


def _undrawn(chart: str, source: str, why: str) -> UsageError:
    return UsageError(f"The chart {chart!r} cannot be drawn from {source}.", why=why)


def _drawing(figure: Figure, provenance: str, suffix: str) -> bytes:
    """A chart in the form that an ending names."""
    from tutorsim.analysis.charts.figure import spec
    from tutorsim.analysis.charts.image_formats import to_json, to_png, to_svg

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
