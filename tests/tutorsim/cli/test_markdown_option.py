"""Step summaries in Markdown."""

import shutil

import pytest

from tutorsim.cli.options import plain
from tutorsim.runner.open_recording import bundled_recording


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
    assert said.code == 2
    assert "cannot be written" in said.err


def test_nothing_in_a_name_is_read_as_markdown():
    assert plain("a|b <i> *c*\n`d`") == r"a\|b \<i\> \*c\* \`d\`"
