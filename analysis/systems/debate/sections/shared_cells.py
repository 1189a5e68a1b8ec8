"""Cells and tables that the sections of a debate run share."""

from collections.abc import Sequence
from typing import Final

from tutorsim.analysis.report.document import Table
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.systems.debate.published_figures import Printed
from tutorsim.analysis.systems.debate.recounted import RULES, Rule
from tutorsim.analysis.views.cells import table

__all__ = ["STUDY_RULES", "first_printed", "one_number", "percent_estimate", "slim"]

STUDY_RULES: Final[tuple[Rule, ...]] = RULES[:7]
"""The seven protocols of the debate study."""


def one_number(value: float | None, *, digits: int = 1) -> str:
    """A number with so many digits; a dash if there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def percent_estimate(found: Estimate | NotEstimable) -> str:
    """A mean in percent with its interval."""
    if isinstance(found, NotEstimable):
        return "–"
    text = f"{found.value:.1f}"
    if found.low is not None and found.high is not None:
        text += f" [{found.low:.0f}, {found.high:.0f}]"
    return text.replace("-", "−")


def slim(
    name: str, title: str, caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> Table | None:
    """A table, without its column `variant` if there is one variant only."""
    if "variant" in columns:
        place = list(columns).index("variant")
        if len({row[place] for row in rows}) == 1:
            columns = [*columns[:place], *columns[place + 1 :]]
            rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    return table(name, title, caption, columns, rows)


def first_printed(found: Sequence[Printed]) -> str:
    """The first of some printed numbers; a dash if there is none."""
    return found[0].text if found else "–"
