"""Options that several commands have: sources, ballots from elsewhere, panels, JSON, Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import RenderableType

from tutorsim.analysis.ballots.long_format import read_candidates, read_own
from tutorsim.analysis.ballots.reading_options import COLUMN_WORDS, Hints
from tutorsim.cli.console import console_for, err, safe
from tutorsim.cli.output_elements import listing, print_all
from tutorsim.errors import FolderError, UsageError

if TYPE_CHECKING:
    from tutorsim.analysis.ballots.recount_source import Source
    from tutorsim.analysis.systems.system_view import SystemRun


# --- Options -------------------------------------------------------------------------------------

Command = Callable[..., None]

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
    return tuple(name.strip() for name in given.split(",") if name.strip())


def whole_numbers(ctx: click.Context, parameter: click.Parameter, given: str) -> tuple[int, ...]:
    """As `names`, for numbers from 0."""
    parts = names(ctx, parameter, given) or ()
    if not parts or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{given!r} is not a list of whole numbers such as 0,1,2.")
    return tuple(int(part) for part in parts)


def check_sections(chosen: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The sections that `--section` names.

    Raises:
        UsageError: If there is none of a name.
    """
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
        help="Fallback order to count under; roles left out stand behind.",
    )(command)


def published_option(command: Command) -> Command:
    """Adds `--published FILE`, which gives printed figures."""

    def read(_: click.Context, __: click.Parameter, path: Path | None) -> Any:
        if path is None:
            return None
        from tutorsim.analysis.systems.panel.published import read_published

        return read_published(path)

    return click.option(
        "--published",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=read,
        metavar="FILE",
        help="Printed figures to stand beside the run's, as TOML. [default: the published study]",
    )(command)


def claims_option(told: str) -> Callable[[Command], Command]:
    """Adds `--claims FILE`.

    Args:
        told: What it is for, in this command.
    """
    return click.option(
        "--claims",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help=told,
    )


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


# --- Ballot options ------------------------------------------------------------------------------

_STAGES: Final = ("initial", "final", "tie")
SPELLINGS: Final = ("one", "apart")


def _scale(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low, high = 0, 0
    if not low < high:
        raise UsageError(
            f"--scale {text} is no scale.",
            why="A scale is its least and its largest score.",
            hint="For example --scale 1,10.",
        )
    return low, high


_OPTIONS: Final = (
    click.option(
        "--map",
        "columns",
        multiple=True,
        metavar="OURS=THEIRS",
        help="Ballots from elsewhere: what a column is called there, as in voter=Wähler.",
    ),
    click.option(
        "--stage",
        "stages",
        multiple=True,
        metavar="OURS=THEIRS",
        help="What a stage is called there: initial=…, final=… or tie=….",
    ),
    click.option(
        "--protocol",
        metavar="NAME",
        help="Which ballots they are: simple (plurality), ranked (borda), cumulative (points) "
        "approval or score.",
    ),
    click.option(
        "--candidates",
        callback=names,
        metavar="NAME,NAME,…|FILE|COLUMN",
        help="Who stands, also if no ballot of a vote names them; columns of a wide table, or what "
        "the labels A, B, … stand for. A FILE has one name a line, or the columns of the vote and "
        "candidate; a COLUMN lists who stands in the row's vote.",
    ),
    click.option(
        "--own",
        metavar="FILE|COLUMN",
        help="Whose answer is whose, where voters and candidates have different names: a FILE with "
        "the columns voter and candidate (and the vote), or the COLUMN that names the candidate of "
        "the row's voter. For votes for oneself.",
    ),
    click.option(
        "--namesakes", is_flag=True, help="Several ballots under one name are several voters'."
    ),
    click.option(
        "--spelling",
        type=click.Choice(SPELLINGS),
        help="Names that differ in case, spaces or coding alone are one, or stand apart.",
    ),
    click.option(
        "--scale",
        metavar="LEAST,LARGEST",
        callback=_scale,
        help="The ends of the scale of scores. Default: the smallest and the largest seen.",
    ),
    click.option("--separator", metavar="SIGN", help="What parts the names in a cell."),
    click.option("--budget", type=click.IntRange(min=1), help="Points of a cumulative ballot."),
)


def ballot_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, which gets them as one `hints`."""

    @wraps(command)
    def hinted(
        *args: Any,
        columns: tuple[str, ...],
        stages: tuple[str, ...],
        protocol: str | None,
        candidates: tuple[str, ...] | None,
        own: str | None,
        namesakes: bool,
        spelling: str | None,
        separator: str | None,
        scale: tuple[float, float] | None,
        budget: int | None,
        **rest: Any,
    ) -> None:
        hints = Hints(
            columns=_pairs("--map", columns, tuple(COLUMN_WORDS)),
            stages=_pairs("--stage", stages, _STAGES),
            protocol=protocol,
            **_standing(candidates or ()),
            **_own(own),
            namesakes=namesakes,
            spelling=spelling,
            separator=separator,
            scale=scale,
            budget=budget,
        )
        command(*args, hints=hints, **rest)

    found: Callable[..., None] = hinted
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def _standing(given: tuple[str, ...]) -> dict[str, Any]:
    """Who stands: names, a column of the ballots' file, or what a file says."""
    if len(given) == 1 and Path(given[0]).is_file():
        found = read_candidates(Path(given[0]))
        return {"candidates": found} if isinstance(found, tuple) else {"candidates_of": found}
    return {"candidates": given}


def _own(given: str | None) -> dict[str, Any]:
    """Whose candidate is whose: a column of the ballots' file, or what a file says."""
    if given is not None and Path(given).is_file():
        return {"own_of": read_own(Path(given))}
    return {"own": given}


def _pairs(option: str, given: tuple[str, ...], known: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        ours, sign, theirs = pair.partition("=")
        if not sign or not theirs or ours not in known:
            raise UsageError(
                f"{option} {pair} cannot be used.",
                why=f"Before the equals sign stands one of {', '.join(known)}.",
                hint=f"Write {option} {known[-1] if option == '--stage' else 'voter'}=NAME.",
            )
        found[ours] = theirs
    return found


# --- Panel option --------------------------------------------------------------------------------


def panel_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--panel`."""
    return click.option(
        "--panel", metavar="NAME", help="Only this panel of a run that compares several."
    )(command)


def of_panel_asked(source: Source, panel: str | None) -> Source:
    """The panel that is asked for; the source as it is where none is.

    Raises:
        UsageError: If the source has no such panel.
    """
    from tutorsim.analysis.ballots.recount_source import of_panel

    return source if panel is None else of_panel(source, panel)


def refuse_panel(run: SystemRun | None, panel: str | None) -> None:
    """Refuse `--panel` for a run of a system without panels.

    Raises:
        UsageError: Naming the system.
    """
    if run is not None and panel is not None:
        raise UsageError(
            f"{run.name} has no panel {panel!r}.",
            why=f"It is a run of the system {run.head.system!r}, which compares no panels.",
            hint="Leave --panel out.",
        )


# --- Markdown option -----------------------------------------------------------------------------

_FENCE = "~" * 8
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--markdown`."""
    return click.option(
        "--markdown",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help='Also append to FILE in Markdown, as for "$GITHUB_STEP_SUMMARY".',
    )(command)


def add_markdown(path: Path, text: str) -> None:
    """Append a text to a file, with an empty line before it where the file has any.

    Raises:
        FolderError: If it cannot be written.
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


def shown_as_markdown(title: str, shown: Iterable[RenderableType]) -> str:
    """What a terminal shows, under a heading, as it is laid out there."""
    written = StringIO()
    print_all(console_for(written), shown)
    text = written.getvalue().rstrip()
    return f"### {plain(title)}\n\n{_FENCE}text\n{text}\n{_FENCE}\n"
