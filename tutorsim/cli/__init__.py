"""The command line. Only this package prints.

Commands are loaded when they are called, so that `tutorsim --help` starts at once: command
`NAME` is the click command `NAME` of module `tutorsim.cli.NAME`.
"""

import gc
import os
import sys
from importlib import import_module

import click

from tutorsim import __version__
from tutorsim.errors import TutorsimError

__all__ = ["main"]

COMMANDS = {
    "demo": "Replay the bundled study and summarise it.",
    "run": "Run a study and record every model call.",
    "replay": "Replay a recording without a network and write its log.",
    "verify": "Check that a recording still gives the same bytes.",
    "summary": "Summarise a run: outcomes, winners, ties, cost.",
    "show": "Show one episode: every message, ballot and decision.",
    "recount": "Ask what other rules and orders would have chosen.",
    "diverge": "Find where another rule would have left the logged path.",
    "branch": "Continue a recording where another rule would have turned.",
    "retest": "Ask recorded vote prompts again, for the noise floor.",
    "compare": "Compare two runs, paired on task and persona.",
    "report": "Write the report of a run, or one of its charts.",
    "export": "Write a run's tables as Parquet, CSV, JSONL or PrefLib files.",
    "cassette": "List, show and verify recordings.",
    "tasks": "List and show tasks.",
    "judge": "Judge one program against a task's tests.",
    "standin": "Serve a scripted model for recordings without the real one.",
    "doctor": "Say what this installation and machine can do.",
}
"""Name → one line of help, in the order shown."""


class _Commands(click.Group):
    """Finds a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"tutorsim.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    context_settings={"auto_envvar_prefix": "TUTORSIM", "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tutorsim")
def cli() -> None:
    """Run, record and replay studies of LLM tutors, and recount their votes.

    `tutorsim demo` replays the bundled study: no key and no network needed.
    """


COLLECT_EVERY = 200_000
"""Objects made between two searches for cycles: records are many objects and no cycles, and the
default of 700 spends a fifth of a short command on the search."""


def main() -> None:
    """Run the command line; errors become three lines on stderr and an exit code."""
    gc.set_threshold(COLLECT_EVERY, 10, 10)
    try:
        code = cli.main(prog_name="tutorsim", standalone_mode=False)
        if isinstance(code, int):  # what a command's `Exit` comes back as
            sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except TutorsimError as error:
        from tutorsim.cli.console import show_error

        show_error(error)
        sys.exit(error.exit_code)
    finally:
        gc.freeze()  # the process ends: no last search for cycles among all that is left
