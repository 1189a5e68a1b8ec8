"""The command line. Only this package prints.

Commands are loaded when they are called, so that `tutorsim --help` starts at once: command
`NAME` is the click command of that name in module `tutorsim.cli.NAME`, or in one that says more.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from tutorsim import __version__
from tutorsim.errors import FolderError, TutorsimError

# --- Missing streams -----------------------------------------------------------------------------

_NAMES = ("stdin", "stdout", "stderr")


def open_closed_streams() -> None:
    """Put the null device in the place of closed standard streams.

    Otherwise the next file that is opened would take the number of one, and what is written to
    the stream would go into that file.
    """
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one, as those below it are open by now.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


# --- Commands ------------------------------------------------------------------------------------

COMMANDS = {
    "demo": "Replay the bundled study and summarise it.",
    "run": "Run a study and record every model call.",
    "chat": "Take part in a group lesson through a web page.",
    "replay": "Replay a recording without a network and write its log.",
    "verify": "Check that a recording still gives the same bytes.",
    "summary": "Summarise a run: outcomes, winners, ties, cost.",
    "show": "Show one episode: every message, ballot and decision.",
    "check": "Say how a file of ballots from elsewhere is read.",
    "recount": "Ask what other rules and orders would have chosen.",
    "diverge": "Find where another rule would have left the logged path.",
    "branch": "Continue a recording where another rule would have turned.",
    "audit": "Label a run's replies: do they guide, and identify the mistake?",
    "retest": "Ask recorded vote prompts again, for the noise floor.",
    "compare": "Compare two runs, paired on task and persona.",
    "import": "Make a run of another program's logs.",
    "rate": "Make rating sheets for people, and join what they say to the run.",
    "report": "Write the report of a run, or one of its charts.",
    "export": "Write a run's tables as Parquet, CSV, JSONL or PrefLib files.",
    "cassette": "List, show and verify recordings.",
    "tasks": "List and show tasks.",
    "judge": "Judge one program against a task's tests.",
    "standin": "Serve a scripted model for recordings without the real one.",
    "guide": "Print a page of the guide.",
    "doctor": "Say what this installation and machine can do.",
}
"""Name → one line of help, in the order shown."""

_MODULES = {
    "audit": "audit_labels_delivered_replies",
    "branch": "branch_and_retest",
    "cassette": "list_show_and_convert_recordings",
    "chat": "chat_and_standin",
    "check": "check_how_ballot_file_is_read",
    "compare": "compare_runs_and_divergence_under_rule",
    "demo": "demo_of_bundled_recording",
    "diverge": "compare_runs_and_divergence_under_rule",
    "doctor": "print_guide_pages_and_doctor",
    "guide": "print_guide_pages_and_doctor",
    "import": "import_logs",
    "judge": "tasks_and_program_judge",
    "replay": "replay_and_verify",
    "retest": "branch_and_retest",
    "run": "run_and_dry_run",
    "show": "show_episodes_also_beside_continuations",
    "standin": "chat_and_standin",
    "tasks": "tasks_and_program_judge",
    "verify": "replay_and_verify",
}
"""Command → its module, where that is not named like the command alone."""


_SILENCE = {
    "--quiet": "Say nothing on stderr but errors.",
    "--no-progress": "Show no progress, on a terminal either.",
}
"""Options of the whole program: before a command's name, or among the command's own."""


def _add_whole_program_options(command: click.Command) -> None:
    """Add the options of the whole program to a command, and to each command of a group."""
    if not any(param.name == "quiet" for param in command.params):
        command.params += [
            click.Option(
                [name], is_flag=True, is_eager=True, expose_value=False, help=said, callback=_tell
            )
            for name, said in _SILENCE.items()
        ]
    if isinstance(command, click.Group):
        for one in command.commands.values():
            _add_whole_program_options(one)


def _tell(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    """Let an option of a command count as the whole program's."""
    if given and param.name is not None:
        ctx.find_root().params[param.name] = True


class _Commands(click.Group):
    """Finds a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"tutorsim.cli.{_MODULES.get(cmd_name, cmd_name)}")
        held = (one for one in vars(module).values() if isinstance(one, click.Command))
        command = next(one for one in held if one.name == cmd_name)
        _add_whole_program_options(command)
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

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # of which click makes a failure
            raise _NobodyReads from error


class _NobodyReads(Exception):
    """The reader of the output has ended, as that of `… | head -1` does."""


@click.group(
    cls=_Commands,
    context_settings={"auto_envvar_prefix": "TUTORSIM", "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tutorsim")
@click.option("--quiet", is_flag=True, help=_SILENCE["--quiet"])
@click.option("--no-progress", is_flag=True, help=_SILENCE["--no-progress"])
def cli(quiet: bool, no_progress: bool) -> None:
    """Record and replay studies of LLM agents who decide together, and recount their votes under
    other fallback orders and rules.

    `tutorsim demo` replays the bundled study: no key and no network needed.
    """


COLLECT_EVERY = 200_000
"""Objects made between two searches for cycles: records are many objects and no cycles, and the
default of 700 spends a fifth of a short command on the search."""


ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""Matrix products here are small: the threads of NumPy's library wait for each other in a loop, far
longer than they count. It reads this when it is loaded."""
NO_PLUGINS = ("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""No plugin of pydantic changes how records are checked, and none is looked for, which reads the
metadata of every installed package."""
MEMORY_KEPT = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000")
"""Polars keeps memory that it freed for ten seconds, to use it again: given back sooner, it is
cleared anew for batch after batch. Its allocator reads this when it is loaded."""


def main() -> None:
    """Run the command line; errors become three lines on stderr and an exit code."""
    open_closed_streams()
    gc.set_threshold(COLLECT_EVERY, 10, 10)
    os.environ.setdefault(*ONE_THREAD)
    os.environ.setdefault(*NO_PLUGINS)
    os.environ.setdefault(*MEMORY_KEPT)
    try:
        code = cli.main(prog_name="tutorsim", standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be told
        if isinstance(code, int):  # what a command's `Exit` comes back as
            sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except (_NobodyReads, BrokenPipeError):
        _write_no_more()
        sys.exit(0)
    except TutorsimError as error:
        from tutorsim.cli.console_progress_and_safe_text import show_error

        show_error(error)
        sys.exit(error.exit_code)
    except OSError as error:
        _show_os_error(error)
        sys.exit(FolderError.exit_code)
    except Exception as error:
        from tutorsim.cli.console_progress_and_safe_text import show_error
        from tutorsim.system_registry import fault_of_extension

        fault = None if sys.flags.dev_mode else fault_of_extension(error)
        if fault is None:
            raise
        show_error(fault)
        sys.exit(fault.exit_code)
    finally:
        gc.freeze()  # the process ends: no last search for cycles among all that is left


def _write_no_more() -> None:
    """Send what is left for stdout nowhere: nobody reads it, or there is no room."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_os_error(error: OSError) -> None:
    from tutorsim.cli.console_progress_and_safe_text import show_error

    if error.filename is None:
        _write_no_more()
    show_error(
        FolderError(
            f"{error.filename or 'The output'} cannot be written or read.",
            why=error.strerror or str(error),
            hint="Free some space, or choose a place that you may write; then give the same "
            "command again. What was recorded stays usable.",
        )
    )
