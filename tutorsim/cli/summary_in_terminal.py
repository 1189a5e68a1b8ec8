"""The summary of a source, as readers see it."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.systems.panel.evidence import Evidence
from tutorsim.analysis.systems.panel.published import PublishedFigure, published_figures
from tutorsim.analysis.systems.panel.summary import SECTIONS, Overview
from tutorsim.cli.output_elements import caption
from tutorsim.cli.source_head import source_shown, usage
from tutorsim.cli.terminal_documents import parts_shown
from tutorsim.kernel.cost_plan import PriceTable

Shown = Iterator[RenderableType]


def overview(
    source: Source,
    prices: PriceTable,
    *,
    published: tuple[PublishedFigure, ...] | None = None,
) -> Overview:
    """What a summary tells, beside printed figures: by default those of the package."""
    figures = published_figures() if published is None else published
    return Overview(Evidence(source, figures), usage(source.episodes, prices))


def overview_shown(found: Overview, sections: Sequence[str] = ()) -> Shown:
    """The summary for readers: provenance and verdict first, then the sections chosen.

    Args:
        found: What was collected.
        sections: Names from `SECTIONS`; none for the verdict and the tables that it rests on.
    """
    yield from source_shown(found.source)
    yield Text()
    yield from parts_shown(found.verdict())
    if not sections:
        yield from parts_shown(found.brief())
        yield Text()
        yield caption(
            f"More: --full, or --section {', '.join(found.sections())}. Which rules would have "
            "chosen otherwise: `tutorsim recount`."
        )
    for name in (name for name in SECTIONS if name in sections):
        parts = list(parts_shown(SECTIONS[name](found), every_row=True))
        yield from parts
        if not parts and len(sections) < len(SECTIONS):
            yield caption(f"Section {name}: this source has nothing for it.")
