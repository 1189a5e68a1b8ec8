"""`tutorsim report`: the page of a run, its text, or one of its charts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tutorsim.cli.console import emit_json, err, out, safe
from tutorsim.cli.options import json_option
from tutorsim.errors import FolderError, UsageError

if TYPE_CHECKING:
    from analysis.sources import Source

__all__ = ["report"]

DEFAULT_FOLDER: Final = Path("reports")
PAGES: Final = (".html", ".md")
CHARTS: Final = (".svg", ".png", ".json")
LARGE: Final = 5_000_000
"""Bytes from which a page is worth a warning."""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
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
@json_option
def report(
    run: Path, output: Path | None, chart: str | None, episodes: tuple[str, ...], as_json: bool
) -> None:
    """Write the report of a RUN folder, or of a file of ballots.

    The page is one file: it loads nothing, runs no script, and opens without a network. The
    same run gives the same bytes. The name of the file written goes to stdout.

    \b
    --json gives:
      written, bytes, charts: [name], episodes: [id]
    """
    from analysis.sources import open_votes

    source = open_votes(run)
    path = output or DEFAULT_FOLDER / f"{source.name}.html"
    _check(path, chart)
    for note in source.notes:
        err().print(safe(note))
    wanted = [name for part in episodes for name in part.split(",") if name]
    if path.suffix in PAGES:
        content, charts, shown = _page(source, path.suffix, wanted)
    else:
        content, charts, shown = _chart(source, str(chart), path.suffix), [str(chart)], []
    _write(path, content)
    if len(content) > LARGE:
        err().print(f"The page has {len(content) / 1e6:.1f} MB; name fewer --episodes.")
    if as_json:
        emit_json(
            {"written": str(path), "bytes": len(content), "charts": charts, "episodes": shown}
        )
    else:
        out().print(safe(str(path)), soft_wrap=True)


def _check(path: Path, chart: str | None) -> None:
    """Refuse endings and charts that do not go together, before anything is computed."""
    from analysis.report import CHART_NAMES

    if path.suffix not in (*PAGES, *CHARTS):
        raise UsageError(
            f"{path} has an ending that says no known format.",
            hint=f"Use {', '.join(PAGES)} for the report, {', '.join(CHARTS)} for one chart.",
        )
    if path.suffix in CHARTS and chart is None:
        raise UsageError(
            f"{path} takes one chart, and none is named.",
            hint=f"Add --chart NAME; the charts are {', '.join(CHART_NAMES)}.",
        )
    if path.suffix in PAGES and chart is not None:
        raise UsageError(
            f"{path} takes the whole report, not the chart {chart!r}.",
            hint=f"Leave --chart out, or write to {', '.join(CHARTS)}.",
        )
    if chart is not None and chart not in CHART_NAMES:
        raise UsageError(
            f"There is no chart {chart!r}.", hint=f"The charts are {', '.join(CHART_NAMES)}."
        )


def _page(source: Source, suffix: str, wanted: Iterable[str]) -> tuple[bytes, list[str], list[str]]:
    """The report, the charts that it could draw, and the episodes that it shows."""
    from analysis.charts import VEGA_LITE
    from analysis.drawing import drawers
    from analysis.report import build_report, to_html, to_markdown

    if suffix == ".html":
        with drawers(version=VEGA_LITE) as run:
            document = build_report(source, episodes=wanted)
            text = to_html(document, run=run)
    else:
        document = build_report(source, episodes=wanted)
        text = to_markdown(document)
    charts = [figure.name for figure in document.figures() if figure.chart is not None]
    return text.encode(), charts, [chosen.episode.episode_id for chosen in document.trace]


def _chart(source: Source, name: str, suffix: str) -> bytes:
    from analysis.charts import spec, to_json, to_png, to_svg
    from analysis.report import build_figure, provenance_of

    figure = build_figure(source, name)
    if figure.chart is None:
        raise UsageError(
            f"The chart {name!r} cannot be drawn from {source.name}.", why=figure.finding
        )
    made = spec(figure, provenance=provenance_of(source))
    if suffix == ".png":
        return to_png(made)
    return (to_svg(made) if suffix == ".svg" else to_json(made)).encode()


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise FolderError(f"{path} cannot be written.", why=str(error.strerror or error)) from error
