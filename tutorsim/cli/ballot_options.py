"""Options that say what a file of ballots does not say, and which panel of a run is meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tutorsim.analysis.ballots.reading_options_and_column_words import COLUMN_WORDS, Hints
from tutorsim.errors import UsageError

if TYPE_CHECKING:
    from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.cli.options_that_commands_share import names

# --- Ballot options ------------------------------------------------------------------------------

_STAGES: Final = ("initial", "final", "tie")
SPELLINGS: Final = ("one", "apart")


def _scale(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        worst, best = map(float, text.split(","))
    except ValueError:
        worst, best = 0, 0
    if worst == best:
        raise UsageError(
            f"--scale {text} is no scale.",
            why="A scale is its worst and its best score.",
            hint="For example --scale 1,10; or --scale 6,1 where 1 is the best.",
        )
    return worst, best


_OPTIONS: Final = (
    click.option(
        "--map",
        "columns",
        multiple=True,
        metavar="OURS=THEIRS",
        help="Ballots from elsewhere: what a column is called there, as in voter=Wähler. Several "
        "choice=… are votes of their own.",
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
        help="Which ballots they are: simple (plurality), ranked (borda), cumulative "
        "(points), approval or score.",
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
        "--namesakes", is_flag=True, help="Several ballots under one name come from several voters."
    ),
    click.option(
        "--spelling",
        type=click.Choice(SPELLINGS),
        help="Names that differ in case, spaces or coding alone are one, or stand apart.",
    ),
    click.option(
        "--scale",
        metavar="WORST,BEST",
        callback=_scale,
        help="The ends of the scale of scores, such as 0,10, or 6,1 where 1 is the best. Default: "
        "the smallest and the largest seen.",
    ),
    click.option("--separator", metavar="SIGN", help="What parts the names in a cell."),
    click.option(
        "--budget",
        type=click.IntRange(min=1),
        help="Points of a cumulative ballot, cast or counted as one.",
    ),
)


def ballot_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, which gets them as one `hints`."""

    @wraps(command)
    def hinted(*args: Any, **given: Any) -> None:
        plain = ("protocol", "namesakes", "spelling", "separator", "scale", "budget")
        hints = Hints(
            **_columns(given.pop("columns")),
            stages=_pairs("--stage", given.pop("stages"), _STAGES),
            **_standing(given.pop("candidates") or ()),
            **_own(given.pop("own")),
            **{name: given.pop(name) for name in plain},
        )
        command(*args, hints=hints, **given)

    found: Callable[..., None] = hinted
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def _columns(given: tuple[str, ...]) -> dict[str, Any]:
    """What columns are called; several that hold choices are a vote each."""
    votes = tuple(pair.partition("=")[2] for pair in given if pair.startswith("choice="))
    several = len(votes) > 1
    pairs = tuple(pair for pair in given if not (several and pair.startswith("choice=")))
    found = _pairs("--map", pairs, tuple(COLUMN_WORDS))
    return {"columns": found, "votes": votes if several else ()}


def _standing(given: tuple[str, ...]) -> dict[str, Any]:
    """Who stands: names, a column of the ballots' file, or what a file says."""
    if len(given) == 1 and Path(given[0]).is_file():
        from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import read_candidates

        found = read_candidates(Path(given[0]))
        return {"candidates": found} if isinstance(found, tuple) else {"candidates_of": found}
    return {"candidates": given}


def _own(given: str | None) -> dict[str, Any]:
    """Whose candidate is whose: a column of the ballots' file, or what a file says."""
    if given is not None and Path(given).is_file():
        from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import read_own

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

    Raises `UsageError` if the source has no such panel.
    """
    from tutorsim.analysis.ballots.recount_source import of_panel

    return source if panel is None else of_panel(source, panel)
