"""A language model's figures beside printed ones, never without what answered the run."""

import io
from dataclasses import replace

import polars as pl
import pytest
from rich.console import Console

from tests.analysis.made import answered_by
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.recount_source import open_frame
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked
from tutorsim.cli.terminal_documents import table_shown
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


def evidence(*figures, kind="relay"):
    turn = panel_turn("simple", dict(zip(DEFAULT_ROLES, (MI, MI, MI, S), strict=True)))
    source = panel_source(panel_episode(turn))
    source = replace(source, run=answered_by(source.run, kind))
    return Evidence(source, Asked(published=figures or None))


def table_of(*figures):
    return evidence(*figures).published_table


@pytest.mark.parametrize("figures", [(), (Printed("flip", 0.5, "X", {"condition": "simple"}),)])
def test_no_printed_figure_stands_beside_a_stand_in(figures):
    of = evidence(*figures, kind="stand-in")
    assert of.published_table is None
    assert "are not in the package" not in of.diagnostics_notes


def test_printed_figures_stand_beside_a_relay_with_its_label():
    table = table_of()
    assert table.data.columns[3] == "this run (relay)"
    assert "rests on the user's word" in table.caption
    rows = {(row[0], row[1], row[2]): row[3:] for row in table.data.iter_rows()}
    assert rows["flip", "", "simple"][1:] == ("0.70", "Table 2")
    wins = rows["wins", "misconception", "simple"]
    assert wins == ("1 of 1, 100 %", "42 of 222, 19 %", "Table 2")
    assert rows["score initial", "sciq", "simple"][1:] == ("0.54", "Table 4")


def test_the_table_stays_in_one_part_on_a_narrow_terminal():
    """Where a figure is printed goes first: alone it would stand beside no condition."""
    table = table_of()
    console = Console(width=76, file=io.StringIO())
    console.print(*table_shown(table))
    shown = console.file.getvalue()
    assert shown.count("quantity") == 1
    assert "Left out for lack of room: where." in shown


def test_a_readers_figures_take_their_place():
    mine = Printed("flip", 0.5, "Table X", {"condition": "simple"})
    table = table_of(mine)
    assert table.data.height == 1
    assert table.data.row(0)[-2:] == ("0.50", "Table X")


def test_figures_of_other_cells_give_no_table():
    other = Printed("flip", 0.5, "Table X", {"condition": "ranked"})
    assert table_of(other) is None


def test_ballots_are_counted_by_protocol_stage_and_status():
    """A repaired ballot that gives nothing where it has to is an abstention."""
    masses = {"valid": (1, 0), "repaired": (0, 1), "abstained": (None, None), "empty": (0, 0)}
    stages = {"vote_initial": "valid repaired empty", "vote_final": "repaired valid abstained"}
    rows = [
        ("e", "simple", stage, f"v{i}", name, mass, "repaired" if kind == "empty" else kind)
        for stage, kinds in stages.items()
        for i, kind in enumerate(kinds.split())
        for name, mass in zip("ab", masses[kind], strict=True)
    ]
    rows += [("d", "approval", "vote_final", "v", name, 1, None) for name in "ab"]
    columns = ("episode_id", "protocol", "stage", "voter", "candidate", "mass", "ballot_status")
    source = open_frame(pl.DataFrame(rows, schema=columns, orient="row"))
    assert [tuple(row.values()) for row in Evidence(source).ballots] == [
        ("approval", "vote_final", 1, 0, 0),
        ("simple", "vote_initial", 1, 1, 1),
        ("simple", "vote_final", 1, 1, 1),
    ]
