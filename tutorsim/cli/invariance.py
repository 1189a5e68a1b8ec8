"""Ballots of one voter in two formats, for readers."""

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from analysis.invariance import FormatInvariance, FormatPair
from analysis.statistics import NotEstimable
from tutorsim.cli.figures import estimate
from tutorsim.cli.render import Cell, Pair, Prose, caption, heading, percent, table

__all__ = ["invariance_shown"]

Shown = Iterator[RenderableType]


def invariance_shown(found: Mapping[str, FormatInvariance | NotEstimable]) -> Shown:
    """Format invariance, one block for each place where two formats met.

    Args:
        found: What each block is of → what was found.
    """
    yield Text()
    yield heading("Format invariance", "one voter, the same proposals, two formats; in %")
    seen = {where: of for where, of in found.items() if isinstance(of, FormatInvariance)}
    for where, of in found.items():
        if isinstance(of, NotEstimable):
            yield Prose(f"{where}: {of.reason}.")
    if not seen:
        return
    yield table(
        ("ballots", "formats", "pairs", "consistent %", "same top %", "same winner %"),
        [(where, *_pair(pair)) for where, of in seen.items() for pair in of.pairs],
        left=2,
    )
    yield caption(
        "Ballots as cast, none recounted. Consistent: the first format's ballot leaves the "
        "second's possible; a rich one determines it. Same top: some candidate is first in both. "
        "Same winner: rich ballots counted as the other's, ties to the order. Pairs: those with an "
        "abstention behind the minus are in no share. “a to b”: 95 % intervals that resample tasks."
    )
    yield from _askings_shown(seen)


def _pair(pair: FormatPair) -> tuple[Cell, ...]:
    winner: Cell = "" if pair.same_winner is None else estimate(pair.same_winner, unit=percent)
    return (
        f"{pair.given} to {pair.other}",
        _pairs(pair.pairs, pair.abstained),
        estimate(pair.consistent, unit=percent),
        estimate(pair.same_top, unit=percent),
        winner,
    )


def _pairs(pairs: int, abstained: int) -> Pair:
    return Pair(f"{pairs} − {abstained}" if abstained else str(pairs))


def _askings_shown(found: Mapping[str, FormatInvariance]) -> Shown:
    """The same shares for two askings of one format; that they are unknown without a retest."""
    rows = [(where, one) for where, of in found.items() for one in of.askings]
    if not rows:
        yield caption(
            "No prompt was re-asked, so how far one format agrees with itself is unknown."
        )
        return
    yield table(
        ("ballots", "format", "pairs", "same ballot %", "consistent %"),
        [
            (
                where,
                one.form,
                _pairs(one.pairs, one.abstained),
                estimate(one.same, unit=percent),
                estimate(one.consistent, unit=percent),
            )
            for where, one in rows
        ],
        left=2,
    )
    yield caption(
        "Two askings of one prompt, logged or re-asked. Consistent: some ranking agrees with both."
    )
