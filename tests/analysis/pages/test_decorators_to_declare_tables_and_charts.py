"""A mistake in a declaration names the part, the table or chart, and where it is declared."""

from pathlib import Path

import pytest

from tutorsim.analysis.pages.cells_and_tables import plain
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import figure, table
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.errors import UsageError


def guests(of):
    "Greetings of {count} guests."
    yield {"greeter": "anna", "chosen": of}


def uneven(of):
    "Greetings."
    yield {"greeter": "anna", "chosen": of}
    yield {"greeter": "ben"}


def counts(of):
    "Greetings.{absent}"
    for name, found in of.items():
        yield {"greeter": name, "chosen": plain(found)}


def single(of):
    "Greetings. {cascade}"
    yield {"greeter": "anna"}


def test_a_caption_says_why_cells_are_not_estimable():
    """Each reason once, and nothing where there is none."""
    declared, nobody = table("won", "Won")(counts), NotEstimable("nobody came")
    assert declared({"anna": nobody, "ben": 0.5, "cy": nobody}).caption == (
        "Greetings. Not estimable: nobody came."
    )
    assert declared({"ben": 0.5}).caption == "Greetings."


def test_a_chart_of_single_votes_warns_of_it():
    given = {"draw": lambda rows, of: None, "finding": lambda rows, of: "", "alternative": ""}
    assert "nobody recorded" in figure("chosen", **given)(single)(None).caption


def drawn(**more):
    given = {"draw": lambda rows, of: None, "finding": "Anna.", "alternative": "{greeter}"}
    return figure("chosen", **{**given, "count": 1, **more})(guests)


@pytest.mark.parametrize(
    ("declared", "part", "why"),
    [
        (table("won", "Won")(guests), "caption of the table 'won'", "KeyError: 'count'"),
        (table("won", "Won", count=len)(guests), "caption's {count} of the table 'won'", "int"),
        (table("won", "Won")(uneven), "rows of the table 'won'", "KeyError: 'chosen'"),
        (drawn(count=lambda of: 1), "caption's {count} of the chart 'chosen'", "2 were given"),
        (drawn(draw=lambda rows: None), "drawing of the chart 'chosen'", "2 were given"),
        (drawn(alternative="{name}"), "alternative of the chart 'chosen'", "KeyError: 'name'"),
        (drawn(finding=lambda rows, of: rows["won"]), "finding of the chart", Path(__file__).name),
    ],
)
def test_a_part_that_cannot_be_made_is_named_with_its_place(declared, part, why):
    with pytest.raises(UsageError) as refused:
        declared(3)
    line = declared.rows.__code__.co_firstlineno
    assert part in refused.value.what
    assert f"({Path(__file__).name}, line {line}) cannot be made." in refused.value.what
    assert why in refused.value.why
    assert "get" in refused.value.hint
