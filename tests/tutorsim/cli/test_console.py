"""Text that a model wrote is shown, never interpreted, in prose and in JSON."""

import json
import unicodedata

from tutorsim.cli.console import emit_json, json_text, out, safe

RAW = "\x1b[31m\x07\x7f\x9b2J\x85\u200b\u202e\u2066\u2028\u2029\ufeff\ud800\U000e0041"


def hidden(text):
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl")]


def test_json_holds_no_character_that_a_terminal_could_obey():
    text = json_text({RAW: [RAW]})
    assert hidden(text) == []
    assert "\u2029" not in text


def test_json_reads_back_as_the_same_value():
    value = {"a": RAW, "b": ["é", "日本", "\t\n", 1.5, None]}
    assert json.loads(json_text(value)) == value


def test_json_leaves_ordinary_letters_readable():
    assert "é日本→" in json_text("é日本→")


def test_json_can_be_ascii_only():
    assert json_text("é", ascii_only=True).isascii()


def test_emitted_json_ends_with_one_line_end(capsys):
    emit_json([1])
    assert capsys.readouterr().out == "[\n  1\n]\n"


def test_safe_text_shows_controls_and_keeps_lines():
    assert safe("a\x1b\u202e\nb").plain == "a\\x1b\\u202e\nb"
    assert hidden(safe(RAW).plain) == []


def test_the_console_reads_no_markup_in_plain_strings(capsys):
    out().print("[bold]x[/bold] :smile:")
    assert capsys.readouterr().out == "[bold]x[/bold] :smile:\n"
