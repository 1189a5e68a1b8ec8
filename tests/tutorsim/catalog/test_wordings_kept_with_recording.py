"""The file of a recording's wordings: every text comes back as it was."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tutorsim.catalog.wordings_kept_with_recording import (
    WORDINGS_FILE,
    read_wordings,
    wordings_text,
)
from tutorsim.errors import RecordingError
from tutorsim.systems.panel.settings import load_panel_catalog

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXTS, TEXTS, st.floats(0, 1))
@example("a\r\nb\n", '"""\n\\', 0.5)
@example("\nfirst line empty\n\x00\x1b\u2028\ufeff", "a.b c", 1.0)
def test_any_text_comes_back_as_it_was(tmp_path_factory, text, name, value):
    wordings = {"prompts": {name: text}, "personas": {"p": {"character": text, "trust": value}}}
    folder = tmp_path_factory.mktemp("wordings")
    (folder / WORDINGS_FILE).write_bytes(wordings_text(wordings).encode())
    assert read_wordings(folder) == wordings


def test_the_text_does_not_depend_on_the_order_of_entries():
    prompts = load_panel_catalog().prompts
    turned = {"prompts": dict(reversed(prompts.items()))}
    assert wordings_text(turned) == wordings_text({"prompts": prompts})


def test_a_prompt_of_several_lines_can_be_read_as_such(tmp_path):
    text = wordings_text(load_panel_catalog().wordings())
    assert "Use exactly this form:\nPROPOSAL: <the reply to the student>\n" in text


def test_a_folder_without_the_file_has_no_wordings(tmp_path):
    assert read_wordings(tmp_path) is None


@pytest.mark.parametrize("data", [b"\xff", b"prompts = [", b"prompts = 3\n"])
def test_a_damaged_file_is_refused(tmp_path, data):
    (tmp_path / WORDINGS_FILE).write_bytes(data)
    with pytest.raises(RecordingError, match="does not hold the wordings") as caught:
        read_wordings(tmp_path)
    assert caught.value.why
    assert caught.value.hint
