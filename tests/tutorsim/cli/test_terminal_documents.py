"""Documents on a terminal."""

import io

import polars as pl
import pytest
from rich.console import Console

from tutorsim.analysis.pages.cells_and_tables import Table
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.cli.terminal_documents import document_shown
from tutorsim.errors import UsageError


def drawn(document, width, sections=(), full=False):
    text = io.StringIO()
    console = Console(file=text, width=width)
    for part in document_shown(document, sections, full=full):
        console.print(part)
    return text.getvalue()


def with_table(data):
    section = Section("s", "Section", "", tables=(Table("t", "Wide", "", data),))
    answer = Answer("Is it so?", "yes", "It is.", "s")
    return Document("Title", "Sum.", "stand-in", "Beware.", (answer,), (section,), (), "", ())


@pytest.mark.parametrize(("width", "parts"), [(60, 4), (80, 3), (120, 2)])
def test_a_cell_of_a_wide_table_breaks_before_its_interval_alone(width, parts):
    """Seven columns of 14 and a gap, beside one of 16."""
    columns = {"condition": ["self_consistency", "hpo"]}
    columns |= {f"accuracy {i}": [f"0.87{i} [0.688, 1.000]", "–"] for i in range(7)}
    text = drawn(with_table(pl.DataFrame(columns)), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert all(f"0.87{i}" in text for i in range(7))
    assert text.count("[0.688, 1.000]") == 7
    assert text.count("self_consistency") == parts


def test_the_answer_stands_before_the_sections():
    text = drawn(with_table(pl.DataFrame({"n": [1]})), 80)
    assert text.index("Is it so?") < text.index("Section")
    assert "Answered by: stand-in." in text
    assert "Beware." in text


def sectioned(*heights):
    sections = tuple(
        Section(f"s{i}", f"Section {i}", "", tables=(Table("t", f"Table {i}", "", rows(height)),))
        for i, height in enumerate(heights)
    )
    answer = Answer("Is it so?", "yes", "It is.", f"s{len(heights) - 1}")
    return Document("Title", "Sum.", "stand-in", "Beware.", (answer,), sections, (), "", ())


def rows(height):
    return pl.DataFrame({"n": range(height)})


def test_a_screen_holds_what_fits_of_what_the_answers_rest_on():
    text = drawn(sectioned(10, 50, 8), 120)
    assert "Table 1" not in text
    assert text.index("Table 2") < text.index("More: --full, or --section s0, s1, s2.")
    assert "Table 0" not in drawn(sectioned(25, 50, 8), 120)  # no room behind the evidence
    assert "Table 0" in text


def test_sections_are_shown_when_asked_for():
    document = sectioned(20, 50, 10)
    text = drawn(document, 120, ("s1",))
    assert "Section 1" in text
    assert "Section 2" not in text
    assert drawn(document, 120, full=True).count("Section") == 3
    with pytest.raises(UsageError, match="no section 's9'"):
        list(document_shown(document, ("s9",)))


def test_heads_break_between_words_before_a_cell_is_broken():
    row = {"condition": "next_speaker", "with a person": 0, "stage reached": 4.0}
    text = drawn(with_table(pl.DataFrame(row | {"ended": "tasks_done 2, person 1"})), 60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert any("next_speaker" in x and "tasks_done 2, person 1" in x for x in text.splitlines())
