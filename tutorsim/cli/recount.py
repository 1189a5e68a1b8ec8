"""`tutorsim recount`: what other orders, tie policies and rules would have chosen."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

import click
from rich.console import RenderableType

from analysis.export import write_frame
from analysis.invariance import FormatInvariance, format_invariance, invariance_words
from analysis.partitions import Runner, parts_of, recount_parts
from analysis.pieces import rows_of
from analysis.recount import RecountResult
from analysis.recount import recount as recount_source
from analysis.recount.per_turn import turns_table
from analysis.rules import TARGETS
from analysis.sources import Source, open_source
from analysis.statistics import NotEstimable, to_json
from analysis.tables import no_ballots
from analysis.threshold import AtThreshold, at_threshold
from tutorsim.cli.console import err
from tutorsim.cli.options import (
    names,
    order_option,
    report_options,
    table_option,
    tell_rows,
    whole_numbers,
)
from tutorsim.cli.outcomes import thresholds_shown
from tutorsim.cli.overview import source_shown
from tutorsim.cli.recounted import SECTIONS, recount_shown
from tutorsim.cli.render import Prose, publish
from tutorsim.engine import connect, parse_engine, scattered
from tutorsim.errors import UsageError
from tutorsim.records import RUN_FILE

__all__ = ["recount"]

_IN_MEMORY: Final = 2_000_000
"""Rows of ballots up to which all are held at once."""


@click.command()
@click.argument("source", metavar="RUN|BALLOTS", type=click.Path(path_type=Path))
@click.option(
    "--targets",
    callback=names,
    metavar="RULE,RULE,…",
    help=f"Rules to count under: {', '.join(TARGETS)}. Default: all.",
)
@click.option(
    "--exempt",
    callback=whole_numbers,
    default="0,1,2",
    show_default=True,
    metavar="K,K,…",
    help="Numbers of voters that may have cast any ballot at all.",
)
@order_option
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    type=click.FloatRange(0, 1),
    help="Outcomes under another success threshold; may be given several times.",
)
@click.option("--budget", type=click.IntRange(min=1), help="Points of a cumulative ballot.")
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(list(SECTIONS)),
    help="Show only this section; may be given several times.",
)
@click.option(
    "--engine",
    metavar="dask://HOST:PORT",
    help="Recount parts on a Dask cluster; dask://local?workers=N starts one here.",
)
@click.option("--full", is_flag=True, help="Also show every order and all wins under every rule.")
@table_option("--turns", "two rows per turn, rule and k: ties to the order, and ties left")
@report_options
def recount(
    source: Path,
    targets: tuple[str, ...] | None,
    exempt: tuple[int, ...],
    fallback_order: tuple[str, ...] | None,
    thresholds: tuple[float, ...],
    budget: int | None,
    sections: tuple[str, ...],
    engine: str | None,
    full: bool,
    turns: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Ask of every logged turn what other rules would have chosen.

    The source is a run folder or ballots from elsewhere. Parquet files of many ballots are
    read a part at a time; every file must hold whole turns. Answers are exact where the ballots
    settle them and intervals where they do not: a figure stands with what the ballots leave
    open. Each turn is counted alone, and the logged dialogue is held fixed.

    \b
    --json gives:
      schema_version source provenance caption fallback_order budget exempt
      turns notes
      orders: [{protocol logged_order turns decided_by_order changed_expected
                changed_most orders
                candidates: [{candidate logged least most expected robust
                              by_order share_by_order}]
                listed: [{order wins changed}]}]
      policies: [{policy protocol turns wins changed}]
      electorates: [{scenario voter protocol turns not_computable open_ties
                     wins changed}]
      readings: [{reading protocol turns not_computable ballots
                  ballots_changed abstained open_ties wins changed}]
      rules: [{logged_protocol target projection reading exempt turns
               not_settled identified widths wins point_ties point_moved
               agreement flips flip_turns breakdown}]
      format_invariance: {from_vote again again_consistent
        pairs: [{given other pairs abstained consistent same_top turns
                 same_winner}]
        askings: [{form pairs abstained same consistent}]}, or not_estimable
      thresholds: [{benchmark condition threshold episodes exact fired success
                    turns final gain}]
    protocol null is all protocols; exact numbers are {exact value}, intervals
    {lower point upper} in turns; every entry has its caption.

    \b
    --turns FILE has the columns:
      episode_id turn logged_protocol logged_winner target fallback_order
      tied_set possible_winners necessary_winner point_winner projection exempt
      breakdown settled
    Where fallback_order is null a tie stays a tie: the tied set wins. Where it
    is given, ties go to its first candidate.
    """
    if budget is not None and (source / RUN_FILE).is_file():
        raise UsageError(
            "--budget is for ballots from elsewhere.",
            why=f"{source} is a run, and its study says what its ballots sum to.",
            hint="Leave --budget out.",
        )
    asked: _Asked = {"targets": targets or TARGETS, "exempt": exempt, "order": fallback_order}
    parts = _parts(source, engine)
    if parts is None:
        opened = open_source(source, budget=budget)
        with err().status("Counting under other rules …"):
            found = recount_source(opened, **asked)
    else:
        _refuse_turns(turns, source)
        found = _in_parts(source, parts, engine, budget, asked)
        opened = _source_of(found)
    at = {threshold: at_threshold(opened, threshold) for threshold in thresholds}
    if turns is not None:
        tell_rows(write_frame(turns_table(found.per_turn), turns), turns)
    formats = format_invariance(opened)
    shown = _shown(opened, found, sections or tuple(SECTIONS), full, at, formats)
    publish(shown, _value(found, at, formats), as_json=as_json, output=output)


class _Asked(TypedDict):
    targets: Sequence[str]
    exempt: Sequence[int]
    order: Sequence[str] | None


def _parts(source: Path, engine: str | None) -> list[Path] | None:
    """The parts to recount one by one; `None` for a run, and for ballots that memory holds."""
    parts = None if (source / RUN_FILE).is_file() else parts_of(source)
    if engine is not None and parts is None:
        raise UsageError(
            "--engine is for ballots in Parquet.",
            why=f"{source} holds no Parquet files of ballots, or others too.",
            hint="Write a run's ballots with `tutorsim export`, or leave --engine out.",
        )
    if parts is None or engine is not None:
        return parts
    flat = all(part.parent in (source, source.parent) for part in parts)
    return None if flat and rows_of(parts) <= _IN_MEMORY else parts


def _refuse_turns(turns: Path | None, source: Path) -> None:
    if turns is not None:
        raise UsageError(
            "--turns cannot be written of ballots that are recounted in parts.",
            why=f"{source} is recounted by counts that add up, which name no turn.",
            hint="Recount one of its parts at a time, without --engine.",
        )


def _in_parts(
    source: Path, parts: list[Path], engine: str | None, budget: int | None, asked: _Asked
) -> RecountResult:
    name = source.resolve().name
    with ExitStack() as stack:
        run: Runner = map
        if engine is not None:
            run = partial(scattered, stack.enter_context(connect(parse_engine(engine))))
        stack.enter_context(err().status(f"Counting {len(parts)} part(s) under other rules …"))
        return recount_parts(
            [p.resolve() for p in parts], name=name, budget=budget, run=run, **asked
        )


def _source_of(found: RecountResult) -> Source:
    """What the head of the tables says of ballots that were never held together."""
    return Source(
        name=found.source,
        ballots=no_ballots(),
        fallback_order=None,
        budget=found.budget,
        run=None,
        episodes=(),
        notes=found.notes,
    )


def _shown(
    source: Source,
    found: RecountResult,
    sections: Sequence[str],
    full: bool,
    at: Mapping[float, Sequence[AtThreshold]],
    formats: FormatInvariance | NotEstimable,
) -> Iterator[RenderableType]:
    yield from source_shown(source)
    if "rules" in sections:
        yield Prose(invariance_words(formats))
    yield from recount_shown(found, sections, full=full)
    yield from thresholds_shown(at)


def _value(
    found: RecountResult,
    at: Mapping[float, Sequence[AtThreshold]],
    formats: FormatInvariance | NotEstimable,
) -> dict[str, object]:
    rows = [row for rows in at.values() for row in rows]
    tested = {"format_invariance": to_json(formats), "thresholds": to_json(rows)}
    return {**found.model_dump(mode="json"), **tested}
