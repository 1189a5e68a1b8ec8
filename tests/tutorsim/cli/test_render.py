"""Tables that fit are laid out as rich lays them out."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from tutorsim.cli.console import safe
from tutorsim.cli.render import Grid, Pair, _folded, _laid_out, print_all, table

lines = st.text(st.sampled_from("ab 7.–█漢é"), max_size=9)
cells = lines | st.lists(lines.filter(str.strip), min_size=2, max_size=3).map("\n".join)


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[list[Text]], int]:
    columns = draw(st.integers(1, 4))
    head = draw(st.lists(lines, min_size=columns, max_size=columns))
    rows = draw(st.lists(st.lists(cells, min_size=columns, max_size=columns), min_size=1))
    rows.insert(0, head)
    rows[0][-1] = "n"
    return [[safe(cell) for cell in row] for row in rows], draw(st.integers(0, columns))


def printed(shown: object, width: int) -> str:
    text = io.StringIO()
    Console(file=text, width=width, highlight=False, markup=False).print(shown, crop=False)
    return text.getvalue()


@settings(max_examples=60, deadline=None)
@given(grids())
def test_a_table_that_fits_reads_as_rich_would_print_it(grid: tuple[list[list[Text]], int]) -> None:
    rows, left = grid
    laid_out = _laid_out(rows, left, 160)
    assert laid_out is not None
    assert printed(laid_out, 160) == printed(_folded(rows, left), 160)


def test_a_table_that_does_not_fit_is_folded() -> None:
    rows = [[safe("name"), safe("n")], [safe("a" * 30), safe("7")]]
    assert _laid_out(rows, 1, 33) is not None
    assert _laid_out(rows, 1, 32) is None
    assert _laid_out([*rows, [safe("a\tb"), safe("7")]], 1, 160) is None


@pytest.mark.parametrize(("width", "lines"), [(160, 3), (80, 4)])
def test_what_qualifies_a_figure_goes_below_it_where_there_is_little_room(
    width: int, lines: int
) -> None:
    grid: Grid = table(("who", "share"), [("all", Pair("0.50", "0.40 to 0.60"))])
    text = io.StringIO()
    print_all(Console(file=text, width=width), [grid])
    assert len(text.getvalue().splitlines()) == lines
