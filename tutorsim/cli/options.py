"""Options that several commands have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console import err, safe
from tutorsim.cli.render import listing
from tutorsim.errors import UsageError

__all__ = [
    "json_option",
    "names",
    "order_option",
    "report_options",
    "table_option",
    "tell_rows",
    "whole_numbers",
]

Command = Callable[..., None]

TABLES = (".parquet", ".csv", ".jsonl")


def names(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, ...] | None:
    """The value of an option that is a list, separated by commas."""
    if given is None:
        return None
    return tuple(name.strip() for name in given.split(",") if name.strip())


def whole_numbers(ctx: click.Context, parameter: click.Parameter, given: str) -> tuple[int, ...]:
    """As `names`, for numbers from 0."""
    parts = names(ctx, parameter, given) or ()
    if not parts or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{given!r} is not a list of whole numbers such as 0,1,2.")
    return tuple(int(part) for part in parts)


def order_option(command: Command) -> Command:
    """Adds `--fallback-order`."""
    return click.option(
        "--fallback-order",
        callback=names,
        metavar="ROLE,ROLE,…",
        help="Role-priority order to count under; roles left out stand behind.",
    )(command)


def table_option(name: str, rows: str) -> Callable[[Command], Command]:
    """Adds an option that names a file for a table."""
    return click.option(
        name,
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_ending_in(*TABLES),
        metavar="FILE",
        help=f"Also write {rows} to FILE, {listing(TABLES, last='or')}.",
    )


def tell_rows(rows: int, path: Path) -> None:
    """Say on stderr that a table was written."""
    err().print(safe(f"{rows} rows written to {path}."), soft_wrap=True)


def report_options(command: Command) -> Command:
    """Adds `--json` and `-o FILE` to a command that reports."""
    output = click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_ending_in(".json", ".txt"),
        help="Write to FILE instead: .json, or .txt for readers.",
    )
    return json_option(output(command))


def json_option(command: Command) -> Command:
    """Adds `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def _ending_in(*endings: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Refuses a file with another ending, before anything is computed."""

    def check(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path.suffix not in endings:
            raise UsageError(
                f"{path} has an ending that says no known format.",
                hint=f"Use {listing(endings, last='or')}.",
            )
        return path

    return check
