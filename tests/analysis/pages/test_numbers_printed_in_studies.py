from typing import get_args

import pytest

from tutorsim.analysis.pages.numbers_printed_in_studies import (
    Printed,
    figures_in,
    printed,
    read_printed,
)
from tutorsim.analysis.systems.panel.page_data_and_published_figures import PUBLISHED
from tutorsim.errors import UsageError
from tutorsim.records import RunRecord, SystemSettings
from tutorsim.records.run_head_and_reading_run_folders_and_retests import Inputs, Provenance
from tutorsim.vocabularies import ProvenanceKind


def figure(quantity, condition=None):
    """The bundled figure of a quantity and condition, of all benchmarks and roles together."""
    cell = {} if condition is None else {"condition": condition}
    return next(
        (f for f in figures_in(PUBLISHED) if (f.quantity, f.cell) == (quantity, cell)), None
    )


def test_every_bundled_figure_says_where_it_is_printed():
    figures = figures_in(PUBLISHED)
    assert figures
    assert all(figure.where for figure in figures)
    assert len({(f.quantity, *sorted(f.cell.items())) for f in figures}) == len(figures)


def test_the_printed_tables_add_up():
    turns_of = {"simple": 222, "ranked": 223, "cumulative": 236, "approval": 234}
    for condition, turns in turns_of.items():
        wins = [
            f.value
            for f in figures_in(PUBLISHED)
            if (f.quantity, f.cell.get("condition")) == ("wins", condition)
        ]
        stated = figure("turns", condition)
        assert isinstance(stated, Printed)
        assert (len(wins), sum(wins), stated.value) == (4, turns, turns)


def test_the_design_and_the_results_are_known():
    grid = figure("episodes")
    assert isinstance(grid, Printed)
    assert grid.value == 1200
    flip = figure("flip", "ranked")
    assert isinstance(flip, Printed)
    assert (flip.value, flip.where) == (0.59, "Table 2")
    assert figure("flip", "rich") is None


@pytest.mark.parametrize("kind", get_args(ProvenanceKind))
def test_figures_stand_beside_a_language_model_alone(kind):
    """Of texts that another run gave, neither those nor their labels may be the stand-in's."""
    answered = Provenance(kind=kind, name="it")
    inputs = Inputs(run="its", provenance=answered).model_dump()
    given = SystemSettings(system="oversight", conditions=(), settings={"inputs": inputs})
    mixed = Provenance(kind="relay", name=f"it (mixed: api, {kind})")
    runs = (RunRecord(provenance=answered), RunRecord(provenance=mixed), RunRecord(study=given))
    for run in runs:
        assert bool(printed(PUBLISHED, run)) == (kind != "stand-in")


def test_a_readers_own_file_adds_figures_of_a_cell(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[figure]]\nquantity = "flip"\nvalue = 0.5\nwhere = "Table X"\ncondition = "ranked"\n'
    )
    [mine] = read_printed(file)
    assert mine == Printed("flip", 0.5, "Table X", {"condition": "ranked"})


@pytest.mark.parametrize(
    "text",
    [
        "[[figure",
        '[[figure]]\nquantity = "flip"\n',
        '[[figure]]\nquantity="x"\nvalue=1\nwhere=""\n',
    ],
)
def test_entries_that_are_no_figure_are_refused(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UsageError):
        read_printed(file)


def test_an_unknown_quantity_and_a_missing_file_are_refused(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[[figure]]\nquantity = "flop"\nvalue = 1\nwhere = "Table X"\n')
    with pytest.raises(UsageError, match="'flop'"):
        read_printed(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_printed(tmp_path / "absent.toml")
