"""Every number that is drawn is a claim: in the page, and in the text."""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import NAMES, claims_in
from tutorsim.analysis.pages.cells_and_tables import Table, bounds, estimate, p_value, part_of
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import table
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.document_as_json_and_as_claims import document_parts, table_parts
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run, view_of
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay

NAME = re.compile("|".join(NAMES.values()))
"""Days, words with a letter, versions and references: no numbers."""
LEFT_OUT = {
    "script": "the page's own",
    "style": "the page's own",
    "svg": "drawings, whose data stand below them",
    "pre": "specifications of drawings, and how a citation looks",
    "title": "a name",
    "h1": "a name",
    "dl": "settings; the numbers among them are claims, versions and digests are names",
    "option": "what episodes are found by, as the record has it",
    "output": "how many episodes the filter shows",
}
"""Elements whose digits are no numbers of their own."""
LEFT_OUT_CLASSES = {
    "episode": "transcripts quote the record itself",
    "source": "names what answered",
}


class Drawn(HTMLParser):
    """The ids of a page's numbers, and what has digits outside of them."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.printed, self.rest = [], {}, []
        self._inside = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag in ("meta", "link", "br", "input"):
            return
        if tag == "data":
            self.ids.append(found["id"])
        names = set((found.get("class") or "").split())
        self._inside.append((tag, tag in LEFT_OUT or bool(names & set(LEFT_OUT_CLASSES))))

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop()[0] != tag:
            pass

    def handle_data(self, text):
        tags = [tag for tag, _ in self._inside]
        if "data" in tags:
            self.printed[self.ids[-1]] = text
        elif not any(out for _, out in self._inside):
            self.rest.append(text)


def claims_of(document):
    return {claim.id: claim for claim in claims_in(document_parts(document, "report"), "stand-in")}


def check_page(document):
    """Nothing with a digit is drawn outside of a claim, and each claim stands in the page."""
    page, claims = Drawn(to_html(document)), claims_of(document)
    # "Answered by: stand-in (tutorsim stand-in 2)." is above each section; it names, as `source`.
    rest = [text for text in page.rest if document.provenance not in text]
    assert [text for text in rest if re.search(r"\d", NAME.sub("", text))] == []
    twice = [id_ for id_, n in Counter(page.ids).items() if n > 1]
    assert twice == []
    assert page.printed == {id_: claim.printed for id_, claim in claims.items()}


@pytest.mark.costly
def test_every_number_of_the_page_is_a_claim_under_its_id(rich_document):
    assert len(claims_of(rich_document)) > 500
    check_page(rich_document)


@pytest.mark.costly
@pytest.mark.parametrize("name", ["debate", "group", "oversight", "oversight-audit"])
def test_so_is_every_number_of_other_systems(name, tmp_path):
    recording = bundled_recording(name)
    assert recording is not None
    replay(recording, log_dir=tmp_path / name)
    run = open_run(tmp_path / name)
    make = view_of(run.head.system).document
    assert make is not None
    check_page(make(run, False))


def small(*, rows, wording="How the votes went", answer="3 of 9 turns"):
    data = pl.DataFrame(rows, schema=["protocol", "flip"], orient="row")
    table = Table("votes", wording, f"{wording}.", data)
    answers = (Answer("Is it so?", answer, "", "s"), Answer("And here?", "4 turns", "", "s"))
    section = Section("s", wording, wording, tables=(table,))
    return Document("T", "", "stand-in", "", answers, (section,), (), digest="ab" * 32)


ROWS = [("simple", "0.28 [0.18, 0.42]"), ("ranked", "0.35 [0.24, 0.49]")]


def test_ids_stay_when_rows_move_and_titles_are_reworded():
    before = claims_of(small(rows=ROWS))
    after = claims_of(small(rows=ROWS[::-1], wording="What came of the votes"))
    assert {id_: c.printed for id_, c in before.items()} == {
        id_: c.printed for id_, c in after.items()
    }
    assert before["report.table-votes.ranked.flip"].interval == (0.24, 0.49)


def test_two_answers_about_one_section_have_ids_of_their_own():
    claims = claims_of(small(rows=ROWS))
    assert claims["report.answer-s.2"].printed == "9"
    assert claims["report.answer-s~2.1"].printed == "4"


def test_text_of_any_origin_stays_text_in_the_page():
    page = to_html(small(rows=[("<script>alert()</script>", "0.5")]))
    assert "<script>alert()" not in page
    assert 'id="report.table-votes.script-alert-script.flip"' in page


def test_the_page_says_how_to_cite_only_where_there_is_a_digest():
    document = small(rows=ROWS)
    assert f"tutorsim:{'ab' * 32}#ID" in to_html(document)
    assert "tutorsim:" not in to_html(replace(document, digest=""))


@pytest.mark.parametrize(
    ("cell_", "printed", "value", "interval"),
    [
        (estimate(Estimate(2 / 3, 9, Interval(0.123, 0.987, "bca"))), "0.67 [0.12, 0.99]", 2 / 3,
         1),
        (estimate(Estimate(-2 / 3, 2, NotEstimable("too few tasks"))), None, -2 / 3, None),
        (bounds(Bounds(1 / 3, 2 / 3, 3)), "0.33 to 0.67", None, 1),
        (p_value(0.0004), "< 0.001", 0.0004, None),
    ],
)  # fmt: skip
def test_a_claim_takes_its_value_from_the_cell(cell_, printed, value, interval):
    made = table("t", "T")(lambda cell: [{"who": "a", "what": cell}])(cell_)
    parts = table_parts(made, "report")
    [claim] = [one for one in claims_in(parts, "relay") if one.id == "report.table-t.a.what"]
    assert (claim.value, claim.printed) == (value, printed or str(cell_))
    assert (claim.interval is None) == (interval is None)
    assert claim.interval in (None, (0.123, 0.987), (1 / 3, 2 / 3))


def test_a_share_is_two_claims_and_what_is_missing_none():
    row = {"who": "a", "what": part_of(3, 47), "lack": estimate(NotEstimable("few 3"))}
    made = table("t", "T")(lambda row: [row])(row)
    claims = {one.id: one.value for one in claims_in(table_parts(made, "report"), "relay")}
    assert claims == {"report.table-t.a.what": 3, "report.table-t.a.what.2": 47}
