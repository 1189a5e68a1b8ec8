from pathlib import Path

import pytest

from analysis.published import (
    PublishedFigure,
    published_figure,
    published_figures,
    read_published,
)
from analysis.statistics import NotEstimable
from tutorsim.errors import UsageError


def test_every_bundled_figure_says_where_it_is_printed() -> None:
    figures = published_figures()
    assert figures
    assert all(figure.where for figure in figures)
    assert len({(f.quantity, f.benchmark, f.condition, f.role) for f in figures}) == len(figures)


def test_the_design_is_known_and_the_results_are_not() -> None:
    grid = published_figure("episodes")
    assert isinstance(grid, PublishedFigure)
    assert grid.value == 1200
    missing = published_figure("flip", condition="ranked")
    assert missing == NotEstimable("this figure of the published study is not in the data")


def test_a_readers_own_file_adds_figures_of_a_cell(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[figure]]\nquantity = "flip"\nvalue = 0.5\nwhere = "Table X"\ncondition = "ranked"\n'
    )
    mine = read_published(file)
    assert published_figure("flip", condition="ranked", figures=mine) == mine[0]
    assert isinstance(published_figure("flip", figures=mine), NotEstimable)


@pytest.mark.parametrize(
    "text",
    [
        "[[figure",
        '[[figure]]\nquantity = "flip"\n',
        '[[figure]]\nquantity="x"\nvalue=1\nwhere=""\n',
    ],
)
def test_entries_that_are_no_figure_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UsageError):
        read_published(file)


def test_an_unknown_quantity_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'flop'"):
        published_figure("flop")
    with pytest.raises(UsageError, match="cannot be read"):
        read_published(tmp_path / "absent.toml")
