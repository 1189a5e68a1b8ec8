import re
from dataclasses import replace
from types import SimpleNamespace

from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.pages.shown_episodes import Episode, Episodes, Grid, Group, Message


def test_the_text_has_the_answers_the_findings_and_the_tables(rich_document):
    text = to_markdown(rich_document)
    assert text.startswith("# Report of made-up\n")
    assert "What answered the calls: stand-in (made-up)" in text
    for answer in rich_document.answers:
        assert answer.question in text
    assert re.search(r"^\| protocol \| turns \|", text, re.MULTILINE)
    order = r"scaffolding \> misconception \> motivation \> metacognitive"
    assert f"Fallback order ({order}): the first of the tied candidates is scaffolding." in text


def test_every_table_row_has_as_many_cells_as_its_head(rich_document):
    cells = 0
    for line in to_markdown(rich_document).splitlines():
        if line.startswith("|"):
            now = len(re.findall(r"(?<!\\)\|", line))
            assert cells in (0, now)
            cells = now
        else:
            cells = 0


def test_markup_in_a_name_stays_text(rich_document):
    hostile = replace(rich_document, title="<script> | *a* [b](c) `d`\n# not a heading")
    first = to_markdown(hostile).splitlines()[0]
    assert first == r"# \<script\> \| \*a\* \[b\](c) \`d\` \# not a heading"


def test_a_message_keeps_its_lines_its_signs_and_its_formulas(rich_document):
    said = "- 5 + 3 = -2\n2) x\n===\n$x_1 = \\frac{1}{2}$ &lt; a & b\n\n1984. A year\n(end)"
    told = Episode("one", (Message("Alice", said),))
    record = SimpleNamespace(episode_id="one", status="complete")
    only = Episodes([record], lambda _: told)
    text = to_markdown(replace(rich_document, episodes=only))
    quoted = text.partition("Alice:\n\n")[2].partition("\n\n")[0]
    assert quoted.splitlines() == [
        "> \\- 5 + 3 = -2\\", "> 2\\) x\\", "> \\===\\",
        r"> \$x\_1 = \\frac\{1\}\{2\}\$ \&lt; a & b", "> ", "> 1984\\. A year\\", "> (end)",
    ]  # fmt: skip


def test_reasons_and_notes_stand_below_what_they_are_of(rich_document):
    vote = Grid("Vote", ("voter",), (("Alice",),), ("Alice saw A=Bob",))
    told = Episode(
        "one", (Group("Turn 1", note="a vote"), vote, Message("Bob", "Yes", aside="why"))
    )
    record = SimpleNamespace(episode_id="one", status="complete")
    text = to_markdown(replace(rich_document, episodes=Episodes([record], lambda _: told)))
    end = "#### Turn 1 (a vote)\n\nVote:\n\n| voter |\n|---|\n| Alice |\n\nAlice saw A=Bob\n\n"
    assert f"{end}Bob:\n\n> Yes\n\nwhy\n" in text


def test_the_same_document_gives_the_same_text(rich_document):
    assert to_markdown(rich_document) == to_markdown(rich_document)
