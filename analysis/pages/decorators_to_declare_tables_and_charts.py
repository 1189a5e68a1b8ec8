"""Tables and charts of a page, each declared once: rows, and the words around them.

A declared part is a generator of rows with a name and a title. Its docstring is the caption that
the page prints, with `{places}` for what is computed: by the declaration, or an attribute of what
the page is of; a table's `{absent}` is why cells are not estimable, if some are not, and a chart's
`{cascade}` that it is of single votes. A table's name and title have the same places. Without rows
there is no part. Terminal, HTML, Markdown, JSON and claims all draw the value that it gives:

    @table("cost", "Calls", seconds=lambda of: of.seconds)
    def cost(of: Evidence) -> Iterator[Row]:
        "Calls as logged, in {seconds} seconds."
        for stage, calls in of.calls.items():
            yield {"stage": stage, "calls": calls}

    cost(evidence)  # a `Table`, or `None` without rows
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import polars as pl

from tutorsim.analysis.pages.cells_and_tables import Table, Written, absent, without_interval
from tutorsim.analysis.pages.document import Section, Sections
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.errors import TutorsimError, UsageError
from tutorsim.system_registry import later, place_of

if TYPE_CHECKING:
    from tutorsim.analysis.charts.figures_forms_and_colours import Drawing, Figure


E = TypeVar("E")
Row = Mapping[str, Any]
"""Column → cell; every row of a part has the same columns."""
Rows = Iterator[Row]
RowsOf = Callable[[E], Iterable[Row]]
"""From what a part is of to its rows."""
NO_KINDS: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType({})
Said = Callable[[pl.DataFrame, Any], str]
"""What the rows, and what they are of, let one say."""


class _Places(dict[str, Any]):
    """What stands in a caption's places: words of the declaration, else what the page is of has."""

    def __init__(self, words: Mapping[str, Any], of: object) -> None:
        super().__init__(words)
        self._of = of

    def __missing__(self, name: str) -> Any:
        if hasattr(self._of, name):
            return getattr(self._of, name)
        raise KeyError(name)


@dataclass(frozen=True)
class _Declared(Generic[E]):
    kind: ClassVar[str]
    given: ClassVar[str]
    """What the functions of the declaration get."""
    name: str
    rows: RowsOf[E]
    words: Mapping[str, Any]
    """Place of the caption → what stands there, or a function that gives it."""

    def _filled(self, *known: object, **always: str) -> Callable[[str, str], str]:
        """Fills the places of a text, which an error calls by a name; those of `always` besides."""
        words = always | {
            name: self._said(f"caption's {{{name}}}", say, *known)
            for name, say in self.words.items()
        }
        places = _Places(words, known[-1])
        return lambda part, text: self._said(part, text.format_map, places)

    @property
    def _caption(self) -> str:
        """The docstring on one line, its places open."""
        return " ".join((self.rows.__doc__ or "").split())

    def _said(self, part: str, say: Any, *known: object) -> Any:
        """What a function of the declaration gives, or a value itself; its failure is named."""
        if not callable(say):
            return say
        try:
            return say(*known)
        except TutorsimError:
            raise
        except Exception as error:
            code = getattr(self.rows, "__code__", None)
            place = f" ({Path(code.co_filename).name}, line {code.co_firstlineno})" if code else ""
            raise UsageError(
                f"The {part} of the {self.kind} {self.name!r}{place} cannot be made.",
                why=f"{place_of(error)}: {type(error).__name__}: {error}",
                hint=f"{self.given} Every row is a mapping with the columns of the first.",
            ) from error


@dataclass(frozen=True)
class DeclaredTable(_Declared[E]):
    """A table to be: called with what it is of, it gives the table, or `None` without rows."""

    kind = "table"
    given = "The functions of a table get what the page is of."
    title: str
    secondary: tuple[str, ...] = ()

    def __call__(self, of: E) -> Table | None:
        made: Table | None = self._said("rows", self._made, of)
        return made

    def _made(self, of: E) -> Table | None:
        rows = list(self.rows(of))
        if not rows:
            return None
        columns = list(rows[0])
        cells = [[row[column] for column in columns] for row in rows]
        written = {
            name: values
            for name, column in zip(columns, zip(*cells, strict=True), strict=True)
            if (values := {at: c.value for at, c in enumerate(column) if isinstance(c, Written)})
        }
        texts = [[str(c) if isinstance(c, Written) else c for c in row] for row in cells]
        every = [c.value for row in cells for c in row if isinstance(c, Written)]
        filled = self._filled(of, absent=absent(every))
        return Table(
            filled("name", self.name),
            filled("title", self.title),
            (filled("caption", self._caption) + without_interval(every)).lstrip(),
            pl.DataFrame(texts, schema=columns, orient="row", infer_schema_length=None),
            tuple(name for name in self.secondary if name in columns),
            written,
        )


@dataclass(frozen=True)
class DeclaredFigure(_Declared[E]):
    """A figure to be: called with what it is of, it gives the figure, or `None` without rows."""

    kind = "chart"
    given = "The functions of a chart get the rows, and what the page is of; `without` the latter."
    draw: Callable[[pl.DataFrame, Any], "Drawing"]
    finding: Said
    kinds: Mapping[str, type[pl.DataType]]
    method: str | Said
    alternative: str | Said
    without: str | Callable[[Any], str] | None

    def __call__(self, of: E) -> "Figure | None":
        # The library that draws loads slowly.
        from tutorsim.analysis.charts.figures_forms_and_colours import CASCADE, Figure, unchecked

        data = self._said("rows", self._frame, of)
        if data.is_empty():
            why = self._said("reason without rows", self.without, of)
            return None if why is None else Figure(self.name, why, "", "", data, None)
        return Figure(
            name=self.name,
            finding=self._said("finding", self.finding, data, of),
            caption=self._filled(data, of, cascade=CASCADE)("caption", self._caption),
            method=self._said("method", self.method, data, of),
            data=data,
            chart=self._said("drawing", unchecked(self.draw), data, of),
            alternative=self._said("alternative", self._alternative, data, of),
        )

    def _frame(self, of: E) -> pl.DataFrame:
        rows = list(self.rows(of))
        return pl.DataFrame(rows, schema_overrides=self.kinds, infer_schema_length=None)

    def _alternative(self, data: pl.DataFrame, of: E) -> str:
        said = self.alternative
        return (said if callable(said) else each_row(said.format_map))(data, of)


@dataclass(frozen=True)
class DeclaredSection(Generic[E]):
    """A section to be: called with what it is of, it gives the section with all that it has."""

    id: str
    title: str
    lead: str | Callable[[E], str]
    parts: tuple[Callable[[E], Any], ...]
    when: Callable[[E], object]

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
    id_: str,
    title: str,
    lead: str | Callable[[E], str],
    *parts: Callable[[E], Any],
    when: Callable[[E], object] = lambda of: True,
) -> DeclaredSection[E]:
    """Declare a section.

    Args:
        id_: Unique in its document.
        title: Above it.
        lead: What it asks, and what it can and cannot say; a text, or a function.
        parts: Its tables and charts in order, each declared, or a function that gives a table,
            several, or `None`.
        when: Whether a page has it.
    """
    return DeclaredSection(id_, title, lead, parts, when)


def sections_there(of: E, declared: Iterable[DeclaredSection[E]]) -> Iterator[Section]:
    """Declared sections of something that have a table or a chart."""
    for one in declared:
        if one.when(of) and ((made := one(of)).tables or made.figures):
            yield made


def chart(module: str, name: str) -> Callable[[Any], Any]:
    """A chart as a part of a section, its module loaded when it is drawn: a table needs no library
    that draws."""
    return later(f"{module}:{name}")


def sections_of(of: E, declared: Iterable[DeclaredSection[E]]) -> Sections:
    """Declared sections of something, each made when somebody looks at it."""
    return Sections({one.id: partial(one, of) for one in declared if one.when(of)})


def table(
    name: str, title: str, *, secondary: tuple[str, ...] = (), **words: Any
) -> Callable[[RowsOf[E]], DeclaredTable[E]]:
    """Declare a table.

    Args:
        name: Unique on its page.
        title: Above the table.
        secondary: Columns left out if there is no room for all, in the order in which they go.
        words: Place of the name, the title or the caption → what stands there, or a function of
            what the table is of.
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
    kinds: Mapping[str, type[pl.DataType]] = NO_KINDS,
    **words: Any,
) -> Callable[[RowsOf[E]], DeclaredFigure[E]]:
    """Declare a chart; its functions take the rows, and what they are of.

    Args:
        name: Unique on its page.
        draw: The drawing.
        finding: What the rows say, in a sentence.
        alternative: What readers hear who do not see it: `{columns}` of a row, for each row, or
            a function.
        method: How the rows were computed.
        without: Why there is no chart if there are no rows, where a reader would look for it.
        kinds: Types of columns that may hold nothing at all, which shows none.
        words: Place of the caption → what stands there, or a function of the rows and of what
            they are of.
    """
    return lambda rows: DeclaredFigure(
        name, rows, words, draw, finding, kinds, method, alternative, without
    )


def each_row(words: Callable[[Row], str]) -> Said:
    """What readers hear of a chart: some words of each row."""
    return lambda data, of: "; ".join(map(words, data.iter_rows(named=True)))


def without_columns(
    idle: Callable[[str, list[Any]], bool],
) -> Callable[[RowsOf[E]], RowsOf[E]]:
    """A table's rows without the columns that say nothing.

    `idle`: whether a column says nothing, by its name and its cells.
    """

    def without(rows: RowsOf[E]) -> RowsOf[E]:
        @wraps(rows)
        def kept(of: E) -> Iterable[Row]:
            found = list(rows(of))
            columns = list(found[0]) if found else []
            out = {name for name in columns if idle(name, [row[name] for row in found])}
            return [{name: row[name] for name in row if name not in out} for row in found]

        return kept

    return without


def number(found: Estimate | NotEstimable) -> Written:
    """A number with its interval as a cell; a dash where there is none."""
    if isinstance(found, NotEstimable):
        return Written("–", found)
    if found.low is None or found.high is None:
        return Written(f"{found.value:.3f}", found)
    return Written(f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]", found)
