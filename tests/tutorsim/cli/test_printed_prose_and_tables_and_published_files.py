"""Tables of the analysis on terminals of any width."""

import io
import shutil

import pytest
from rich.console import Console

from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import table
from tutorsim.cli.options_that_commands_share import plain
from tutorsim.cli.printed_prose_and_tables_and_published_files import print_all
from tutorsim.cli.terminal_documents import parts_shown, table_shown
from tutorsim.runner.find_and_check_recording import bundled_recording


def drawn(made, width, *, every_row=False):
    text = io.StringIO()
    print_all(Console(file=text, width=width), table_shown(made, every_row=every_row))
    return text.getvalue()


def made(*rows, secondary=()):
    columns = ["name", "share", "n", "left out first"]

    @table("t", "Title", secondary=secondary)
    def declared(of):
        """Caption."""
        for row in of:
            yield dict(zip(columns, row, strict=True))

    return declared(rows)


@pytest.mark.parametrize(
    ("width", "below", "left_out"),
    [
        (60, False, ""),
        (32, False, ""),  # 4 + 15 + 2 + 5 columns and three gaps of 2: the heading broken
        (31, True, ""),  # 4 + 10 + 2 + 5 and the gaps: the interval below its figure
        (26, True, "Left out for lack of room: left out first. Caption."),
        (18, True, "Left out for lack of room: left out first, n. Caption."),
    ],
)
def test_what_does_not_fit_goes_below_then_out(width, below, left_out):
    text = drawn(made(("a", "0.50 [0.1, 0.9]", 10, 3), secondary=("left out first", "n")), width)
    assert ("0.50 [0.1, 0.9]" not in text) == below
    assert "[0.1, 0.9]" in text
    assert left_out in " ".join(text.split())
    assert ("Left out" in text) == bool(left_out)


def test_names_with_brackets_or_controls_stay_whole():
    text = drawn(made(("\x1b[31m[bold]漢字", "1.00", 1, 2)), 60)
    assert r"\x1b[31m[bold]漢字  " in text


def test_rows_beyond_a_screen_are_counted_and_shown_when_asked_for():
    long = made(*((f"r{i}", "1", i, 2) for i in range(50)))
    assert "10 more rows" in drawn(long, 60)
    assert "r49" in drawn(long, 60, every_row=True)


def test_texts_and_tables_come_one_below_the_other():
    text = io.StringIO()
    for part in parts_shown(["  indented", None, made(("a", "1", 1, 2))]):
        Console(file=text, width=60).print(part)
    assert text.getvalue().startswith("  indented\n\nTitle\n")


# --- Step summaries in Markdown -------------------------------------------------------------------


@pytest.mark.costly
def test_verify_and_summary_append_to_one_file(shell, tmp_path):
    page, folder = tmp_path / "step.md", bundled_recording("claude")
    assert shell("verify", folder, "--markdown", page).code == 0
    shell("replay", folder, "--log-dir", tmp_path / "log")
    assert shell("summary", tmp_path / "log", "--markdown", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("### ✅ verify claude-by-relay\n\n30 of 30 episodes (1,324 calls)")
    assert "\n\n# Report of " in text
    assert "The calls were not independent" in text


def test_what_differs_is_a_table(shell, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(str(bundled_recording("claude")), folder)
    (folder / "sciq.seasons.low_confidence_novice.simple.json.zst").unlink()
    page = tmp_path / "step.md"
    assert shell("verify", folder, "--markdown", page).code == 3
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "### ❌ verify claude-by-relay"
    assert lines[2].startswith("29 of 30 episodes")
    assert "| episode | what | why |" in lines
    assert any("the recording has no cassette for this episode" in line for line in lines)


def test_a_file_that_cannot_be_written_is_refused(shell, tmp_path):
    said = shell("verify", bundled_recording("claude"), "--markdown", tmp_path / "no" / "step.md")
    said.fails(2, "cannot be written")


def test_nothing_in_a_name_is_read_as_markdown():
    assert plain("a|b <i> *c*\n`d`") == r"a\|b \<i\> \*c\* \`d\`"
