"""Options that several commands have: JSON, Markdown, sources, orders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console_progress_and_safe_text import listing, safe, tell
from tutorsim.errors import FolderError, UsageError

# --- Options -------------------------------------------------------------------------------------

Command = Callable[..., None]

PLACE = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

TABLES = (".parquet", ".csv", ".jsonl")
TYPED = "tutorsim.options_as_typed"
"""Key of the options in a context: name → text, texts, or whether a flag was given."""


class Remembering(click.Command):
    """A command that keeps the options given to it as they were typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED], *_ = self.make_parser(ctx).parse_args(list(args))
        return super().parse_args(ctx, args)


def names(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, ...] | None:
    """The value of an option that is a list, separated by commas."""
    if given is None:
        return None
    found = tuple(name.strip() for name in given.split(",") if name.strip())
    if not found:
        raise click.BadParameter(f"{given!r} names nothing; leave the option out for the usual.")
    return found


def whole_numbers(ctx: click.Context, parameter: click.Parameter, given: str) -> tuple[int, ...]:
    """The numbers of an option that is a list of whole numbers from 0."""
    parts = names(ctx, parameter, given) or ()
    if not parts or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{given!r} is not a list of whole numbers such as 0,1,2.")
    return tuple(int(part) for part in parts)


def check_episode_named(episode: Sequence[str] | None, option: str) -> None:
    """Refuse an option that is for one episode where none is named."""
    if not episode:
        raise UsageError(
            f"{option} is for one EPISODE, and none is named.",
            why="Without one all episodes are listed.",
            hint=f"Add an episode id, or leave {option} out.",
        )


def check_sections(chosen: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The sections that `--section` names; `UsageError` if there is none of a name."""
    names_known = tuple(known)
    unknown = next((name for name in chosen if name not in names_known), None)
    if unknown is not None:
        raise UsageError(
            f"There is no section {unknown!r}.", hint=f"Sections are {', '.join(names_known)}."
        )
    return tuple(chosen)


def order_option(command: Command) -> Command:
    """Adds `--fallback-order`."""
    return click.option(
        "--fallback-order",
        callback=names,
        metavar="ROLE,ROLE,…",
        help="Fallback order to count under; roles left out follow.",
    )(command)


def published_option(command: Command) -> Command:
    """Adds `--published FILE`, which gives printed figures."""

    def read(_: click.Context, __: click.Parameter, path: Path | None) -> Any:
        if path is None:
            return None
        from tutorsim.analysis.pages.numbers_printed_in_studies import read_printed

        return read_printed(path)

    return click.option(
        "--published",
        type=FILE,
        callback=read,
        metavar="FILE",
        help="Printed figures to stand beside the run's, as TOML. [default: the published study]",
    )(command)


def claims_option(told: str) -> Callable[[Command], Command]:
    """Adds `--claims FILE`, with what it is for in this command."""
    return click.option("--claims", type=FILE, metavar="FILE", help=told)


def sandbox_option(told: str) -> Callable[[Command], Command]:
    """Adds `--sandbox LEVEL`, with what it is for in this command."""
    from tutorsim.sandbox.protection_levels_limits_and_near_limit import (
        SETTINGS,  # commands without are quick
    )

    return click.option(
        "--sandbox",
        "level",
        type=click.Choice(SETTINGS),
        default="auto",
        show_default=True,
        help=told,
    )


def check_two_files(claims: Path | None, output: Path | None, whose: str) -> None:
    """Refuse one file for what a command writes and for its claims."""
    if claims is not None and claims == output:
        raise UsageError(
            f"{claims} is the {whose}'s file and that of its claims.", hint="Name two files."
        )


def table_option(name: str, rows: str) -> Callable[[Command], Command]:
    """Adds an option that names a file for a table."""
    return click.option(
        name,
        type=FILE,
        callback=ending_in(*TABLES),
        metavar="FILE",
        help=f"Also write {rows} to FILE, {listing(TABLES, last='or')}.",
    )


def recording_option(command: Command) -> Command:
    """Adds `--cassette-dir` to a command that looks a run's recording up."""
    return click.option(
        "--cassette-dir", type=PLACE, help="The recording of RUN, where it is not found by itself."
    )(command)


def folder_option(told: str) -> Callable[[Command], Command]:
    """Adds `-o FOLDER`, which must be given, with what it is for in this command."""
    return click.option("-o", "--output", required=True, type=FOLDER, help=told)


def tell_rows(rows: int, path: Path) -> None:
    """Say on stderr that a table was written."""
    from tutorsim.analysis.pages.words_and_safe_text import counted

    tell(f"{counted(rows, 'row')} written to {path}.")


def report_options(command: Command) -> Command:
    """Adds `--json` and `-o FILE` to a command that reports."""
    output = click.option(
        "-o",
        "--output",
        type=FILE,
        callback=ending_in(".json", ".txt"),
        help="Write to FILE instead: .json, or .txt for readers.",
    )

    @wraps(command)
    def reporting(*args: Any, as_json: bool, output: Path | None, **given: Any) -> Any:
        if as_json and output is not None and output.suffix == ".txt":
            raise UsageError(
                f"--json does not go with {output}, which is for readers.",
                hint="Name a .json file, or leave --json out.",
            )
        return command(*args, as_json=as_json, output=output, **given)

    return json_option(output(reporting))


def json_option(command: Command) -> Command:
    """Adds `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def ending_in(*endings: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of an option that refuses a file with another ending."""

    def check(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path.suffix not in endings:
            raise UsageError(
                f"{path} has an ending that says no known format.",
                hint=f"Use {listing(endings, last='or')}.",
            )
        return path

    return check


# --- Markdown option -----------------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--markdown`."""
    return click.option(
        "--markdown",
        type=FILE,
        metavar="FILE",
        help='Also append to FILE in Markdown, as for "$GITHUB_STEP_SUMMARY".',
    )(command)


def max_age_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--max-age`, whose value is the first day that is young enough."""
    return click.option(
        "--max-age",
        "earliest",
        metavar="DAYS",
        callback=_day_before,
        help="Fail where the first reply is older, as with 90d.",
    )(command)


def _day_before(_: click.Context, __: click.Parameter, age: str | None) -> str | None:
    """The first day that is young enough."""
    if age is None:
        return None
    from tutorsim.replay.list_and_check_recordings import earliest_day

    try:
        return earliest_day(age)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def add_markdown(path: Path, text: str) -> None:
    """Append a text to a file, with an empty line before it where the file has any.

    Raises `FolderError` if it cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(("\n" if file.tell() else "") + text)
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=error.strerror or str(error),
            hint="Name a file in a folder that can be written.",
        ) from error


def plain(text: str) -> str:
    """Text of any origin on one line, with every character of Markdown's own escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(safe(text).plain.split()))
