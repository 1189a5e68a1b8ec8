"""Tables and charts of a page, each declared once: rows, and the words around them.

A declared part is a generator of rows with a name and a title. Its docstring is the caption that
the page prints, with `{places}` for what is computed. Without rows there is no part. Terminal,
HTML, Markdown, JSON and claims all draw the value that it gives:

    @table("cost", "Calls", seconds=lambda of: of.seconds)
    def cost(of: Evidence) -> Iterator[Row]:
        "Calls as logged, in {seconds} seconds."
        for stage, calls in of.calls.items():
            yield {"stage": stage, "calls": calls}

    cost(evidence)  # a `Table`, or `None` without rows
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl

from tutorsim.analysis.pages.cells import Table, Written, of_rows
from tutorsim.analysis.pages.document import Section, Sections
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable

if TYPE_CHECKING:
    from tutorsim.analysis.charts.figure import Drawing, Figure


E = TypeVar("E")
Row = Mapping[str, Any]
"""Column → cell; every row of a part has the same columns."""
Rows = Callable[[E], Iterable[Row]]
Said = Callable[[pl.DataFrame, Any], str]
"""What the rows, and what they are of, let one say."""


@dataclass(frozen=True)
class _Declared(Generic[E]):
    name: str
    rows: Rows[E]
    words: Mapping[str, Any]
    """Place of the caption → what stands there, or a function that gives it."""

    def frame(self, of: E) -> pl.DataFrame:
        """The rows, typed by all of them."""
        return pl.DataFrame(list(self.rows(of)), infer_schema_length=None)

    def _caption(self, *known: object) -> str:
        """The docstring on one line, its places filled."""
        text = " ".join((self.rows.__doc__ or "").split())
        return text.format_map(
            {name: say(*known) if callable(say) else say for name, say in self.words.items()}
        )


@dataclass(frozen=True)
class DeclaredTable(_Declared[E]):
    """A table to be: called with what it is of, it gives the table, or `None` without rows."""

    title: str
    secondary: tuple[str, ...] = ()

    def __call__(self, of: E) -> Table | None:
        rows = list(self.rows(of))
        if not rows:
            return None
        caption = self._caption(of)
        return of_rows(self.name, self.title, caption, rows, secondary=self.secondary)


@dataclass(frozen=True)
class DeclaredFigure(_Declared[E]):
    """A figure to be: called with what it is of, it gives the figure, or `None` without rows."""

    draw: Callable[[pl.DataFrame, Any], "Drawing"]
    finding: Said
    method: str | Said
    alternative: str | Said
    without: str | Callable[[Any], str] | None

    def __call__(self, of: E) -> "Figure | None":
        from tutorsim.analysis.charts.figure import Figure, absent  # the library loads slowly

        data, why, said = self.frame(of), self.without, self.alternative
        if data.is_empty():
            return (
                None if why is None else absent(self.name, why if isinstance(why, str) else why(of))
            )
        if isinstance(said, str):
            alternative = "; ".join(map(said.format_map, data.iter_rows(named=True)))
        else:
            alternative = said(data, of)
        return Figure(
            name=self.name,
            finding=self.finding(data, of),
            caption=self._caption(data, of),
            method=self.method if isinstance(self.method, str) else self.method(data, of),
            data=data,
            chart=self.draw(data, of),
            alternative=alternative,
        )


@dataclass(frozen=True)
class DeclaredSection(Generic[E]):
    """A section to be: called with what it is of, it gives the section with all that it has."""

    id: str
    title: str
    lead: str | Callable[[E], str]
    parts: tuple[Callable[[E], Any], ...]

    def __call__(self, of: E) -> Section:
        made = [made for part in self.parts if (made := part(of)) is not None]
        every = [one for each in made for one in (each if isinstance(each, tuple) else (each,))]
        return Section(
            self.id,
            self.title,
            self.lead if isinstance(self.lead, str) else self.lead(of),
            figures=tuple(one for one in every if not isinstance(one, Table)),
            tables=tuple(one for one in every if isinstance(one, Table)),
        )


def section(
    id_: str, title: str, lead: str | Callable[[E], str], *parts: Callable[[E], Any]
) -> DeclaredSection[E]:
    """Declare a section.

    Args:
        id_: Unique in its document.
        title: Above it.
        lead: What it asks, and what it can and cannot say; a text, or a function.
        parts: Its tables and charts in order, each declared, or a function that gives a table,
            several, or `None`.
    """
    return DeclaredSection(id_, title, lead, parts)


def sections_of(of: E, declared: Iterable[DeclaredSection[E]]) -> Sections:
    """Declared sections of something, each made when somebody looks at it."""
    return Sections({one.id: partial(one, of) for one in declared})


def table(
    name: str, title: str, *, secondary: tuple[str, ...] = (), **words: Any
) -> Callable[[Rows[E]], DeclaredTable[E]]:
    """Declare a table.

    Args:
        name: Unique on its page.
        title: Above the table.
        secondary: Columns left out if there is no room for all, in the order in which they go.
        words: Place of the caption → what stands there, or a function of what the table is of.
    """
    return lambda rows: DeclaredTable(name, rows, words, title, secondary)


def figure(
    name: str,
    *,
    draw: Callable[[pl.DataFrame, Any], "Drawing"],
    finding: Said,
    alternative: str | Said,
    method: str | Said = "",
    without: str | Callable[[Any], str] | None = None,
    **words: Any,
) -> Callable[[Rows[E]], DeclaredFigure[E]]:
    """Declare a chart; its functions take the rows, and what they are of.

    Args:
        name: Unique on its page.
        draw: The drawing.
        finding: What the rows say, in a sentence.
        alternative: What readers hear who do not see it: `{columns}` of a row, for each row, or
            a function.
        method: How the rows were computed.
        without: Why there is no chart if there are no rows, where a reader would look for it.
        words: Place of the caption → what stands there, or a function.
    """
    return lambda rows: DeclaredFigure(
        name, rows, words, draw, finding, method, alternative, without
    )


def number(found: Estimate | NotEstimable) -> Written:
    """A number with its interval as a cell; a dash where there is none."""
    if isinstance(found, NotEstimable):
        return Written("–", found)
    if found.low is None or found.high is None:
        return Written(f"{found.value:.3f}", found)
    return Written(f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]", found)
