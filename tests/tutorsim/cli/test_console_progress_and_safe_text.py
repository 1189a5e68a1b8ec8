"""Text that a model wrote is shown, never interpreted, in prose and in JSON."""

import json
import unicodedata

import click
import pytest

from tutorsim.cli import COMMANDS, cli, console_progress_and_safe_text
from tutorsim.cli import console_progress_and_safe_text as console
from tutorsim.runner.find_and_check_recording import bundled_recording

RAW = "\x1b[31m\x07\x7f\x9b2J\x85\u200b\u202e\u2066\u2028\u2029\ufeff\ud800\U000e0041"

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def hidden(text):
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl")]


def test_json_holds_no_character_that_a_terminal_could_obey():
    text = console.json_text({RAW: [RAW]})
    assert hidden(text) == []
    assert "\u2029" not in text


def test_json_reads_back_as_the_same_value():
    value = {"a": RAW, "b": ["é", "日本", "\t\n", 1.5, None]}
    assert json.loads(console.json_text(value)) == value


def test_json_leaves_ordinary_letters_readable():
    assert "é日本→" in console.json_text("é日本→")


def test_json_can_be_ascii_only():
    assert console.json_text("é", ascii_only=True).isascii()


def test_emitted_json_ends_with_one_line_end(capsys):
    console.emit_json([1])
    assert capsys.readouterr().out == "[\n  1\n]\n"


def test_safe_text_shows_controls_and_keeps_lines():
    assert console.safe("a\x1b\u202e\nb").plain == "a\\x1b\\u202e\nb"
    assert hidden(console.safe(RAW).plain) == []


def test_each_character_is_shown_as_it_is_or_escaped_among_printable_ones():
    for char in map(chr, range(0x11000)):
        shown = console.safe(f"a{char}b").plain
        kept = char in "\n\t" or unicodedata.category(char) not in HIDDEN
        assert (shown == f"a{char}b") == kept, hex(ord(char))


def test_the_console_reads_no_markup_in_plain_strings(capsys):
    console.out().print("[bold]x[/bold] :smile:")
    assert capsys.readouterr().out == "[bold]x[/bold] :smile:\n"


# --- How far long work is, in words; and the options that silence it ------------------------------


@pytest.mark.parametrize(
    ("done", "left", "seconds", "said"),
    [
        (0, 10, 5.0, ""),
        (10, 10, 0.0, ""),
        (10, 90, 5.0, "2.0 a second · 0 min 45 s left"),
        (1, 10, 120.0, "0.5 a minute · 20 min 00 s left"),
        (100, 72_000, 10.0, "10.0 a second · 2 h 00 min left"),
        (10, 0, 5.0, "2.0 a second"),
    ],
)
def test_rate_and_expected_end(done, left, seconds, said):
    assert console.pace(done, left, seconds) == said


def test_what_was_there_before_does_not_count_for_the_pace(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("tutorsim.cli.console_progress_and_safe_text.progress_shown", lambda: True)
    monkeypatch.setattr(
        "tutorsim.cli.console_progress_and_safe_text.time.monotonic", lambda: now[0]
    )
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with console.counted("episodes") as count:
        now[0] = 100.0
        count(50, 100)
        now[0] = 110.0
        count(60, 100)
    assert "1.0 a second · 0 min 40 s left" in capsys.readouterr().err


def test_without_a_terminal_nothing_is_drawn(capsys):
    with console.counted("episodes") as count, console_progress_and_safe_text.working("Counting …"):
        count(1, 2)
    assert capsys.readouterr().err == ""


def _commands():
    """Every command, those of groups among them."""
    context = click.Context(cli)
    waiting = [cli.get_command(context, name) for name in COMMANDS]
    while waiting:
        command = waiting.pop()
        yield command
        waiting += command.commands.values() if isinstance(command, click.Group) else []


def test_every_command_can_be_told_to_be_silent():
    for command in _commands():
        assert {"--quiet", "--no-progress"} <= {o for p in command.params for o in p.opts}


def test_help_says_what_an_option_is_where_it_is_left_out():
    for command in _commands():
        for option in command.params:
            default = option.to_info_dict()["default"]
            stated = default or default == 0
            if isinstance(option, click.Option) and not option.is_flag and stated:
                said = option.show_default or str(default) in option.help
                assert said or "`tutorsim guide" in option.help, (command.name, option.opts)


@pytest.mark.parametrize("quiet_first", [True, False])
def test_quiet_may_stand_before_a_command_or_among_its_options(shell, quiet_first):
    folder = bundled_recording("claude")
    words = ["--quiet", "show", folder] if quiet_first else ["show", folder, "--quiet"]
    said = shell(*words)
    assert (said.code, said.err) == (0, "")
    assert "is a recording" in shell("show", folder).err


@pytest.mark.costly
def test_quiet_keeps_results_and_errors(shell, tmp_path):
    folder = bundled_recording("claude")
    loud = shell("replay", folder, "--log-dir", tmp_path / "one")
    assert "30 episodes replayed" in loud.err
    quiet = shell("--quiet", "replay", folder, "--log-dir", tmp_path / "two")
    assert (quiet.code, quiet.err) == (0, "")
    assert shell("--quiet", "verify", folder).out.startswith("30 of 30")
    shell("--quiet", "verify", tmp_path).fails(4, "is not a recording")


def test_no_progress_draws_none_on_a_terminal(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    folder = bundled_recording("claude")
    drawn = shell("replay", folder, "--log-dir", tmp_path / "one").err
    plain = shell("--no-progress", "replay", folder, "--log-dir", tmp_path / "two").err
    assert "30/30" in drawn
    assert "30/30" not in plain
    assert "30 episodes replayed" in plain
