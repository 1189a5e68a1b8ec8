"""From texts and tables to claims."""

from tutorsim.analysis.claims.claims_of_printed_numbers import ELSEWHERE, Cells, Words, claims_in


def test_a_number_in_a_sentence_is_asked_by_the_sentence_around_it():
    words = Words("report.lead-a", "Orders", "It is so. 3 of 200 turns change; the rest stays.")
    first, second = words.claims("stand-in")
    assert (first.id, first.printed, first.value) == ("report.lead-a.1", "3", 3)
    assert first.question == "Orders: [?] of … turns change;"
    assert second.question == "Orders: … of [?] turns change;"
    assert first.provenance == "stand-in"


def test_a_question_is_followed_by_its_sentence():
    [claim] = Words("p", "How many?", "7").claims("api")
    assert claim.question == "How many? [?]"


def test_a_cell_is_asked_by_title_column_and_row():
    cells = Cells("report.table-t", "Wins", ["role", "all_turns"], [["first", "18 (14+4)"]])
    claims = list(cells.claims("relay"))
    assert [c.id for c in claims] == [
        "report.table-t.first.all_turns",
        "report.table-t.first.all_turns.2",
        "report.table-t.first.all_turns.3",
    ]
    assert claims[0].question == "Wins: all turns (role: first)"
    assert claims[1].question == "Wins: all turns, number 2 of the cell (role: first)"


def test_an_interval_in_columns_of_its_own_belongs_to_the_estimate_before_it():
    headers = ["role", "n", "share", "low", "high"]
    claims = {
        c.id: c for c in Cells("t", "T", headers, [["a", "4", "0.5", "0.1", "0.9"]]).claims("api")
    }
    assert claims["t.a.share"].interval == (0.1, 0.9)
    assert claims["t.a.n"].interval is None
    assert claims["t.a.low"].value == 0.1


def test_the_ends_of_bounds_are_no_interval_of_a_count_before_them():
    headers = ["role", "turns", "lower", "upper"]
    claims = {c.id: c for c in Cells("t", "T", headers, [["a", "53", "0.1", "0.9"]]).claims("api")}
    assert claims["t.a.turns"].interval is None


def test_a_figure_from_print_is_not_said_to_come_from_the_run():
    rows = [["this run", "0.5", "0.41"], ["printed, 8B", "0.6", "–"]]
    cells = Cells("t", "T", ["source", "share", "published"], rows)
    assert {c.printed: c.provenance for c in cells.claims("stand-in")} == {
        "0.5": "stand-in",
        "0.41": ELSEWHERE,
        "0.6": ELSEWHERE,
    }


def test_a_number_in_a_head_is_a_claim():
    cells = Cells("t", "T", ["role", "at 0.4"], [["a", "–"]])
    [claim] = cells.claims("api")
    assert (claim.id, claim.value) == ("t.~heads.at-0-4.1", 0.4)


def test_nothing_printed_gives_no_claim():
    assert claims_in([Words("p", "", ""), Cells("t", "T", ["a"], [])], "api") == ()
