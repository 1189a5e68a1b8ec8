"""Ballots of one voter in two formats, as tables: what the sets of a recount rest on."""

from collections.abc import Mapping

from tutorsim.analysis.metrics.invariance import FormatInvariance
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.analysis.views.cells import Table, estimate, table

__all__ = ["askings_by_format_table", "invariance_table"]

Places = Mapping[str, FormatInvariance | NotEstimable]
"""Where two formats met → what was found there; "" for a single run."""


def invariance_table(found: Places) -> Table | None:
    """Pairs of formats; `None` where nobody was asked for two."""
    return table(
        "invariance",
        "One voter, the same drafts, two formats",
        "Ballots as cast, none recounted: what the assumption behind the sets comes to where it "
        "can be tested. Consistent: the first ballot leaves the second possible; a rich ballot "
        "determines it. Pairs with an abstention are in no share. Same first: some draft is first "
        "in both. Same winner: share of turns, rich ballots counted as the other format's, ties "
        "to the order. 95 % intervals in brackets: over tasks.",
        [
            *_of(found),
            *("ballot", "and ballot", "pairs", "with an abstention"),
            *("consistent", "same first", "same winner"),
        ],
        [
            (
                *where,
                *(pair.given, pair.other, pair.pairs, pair.abstained),
                *(estimate(pair.consistent), estimate(pair.same_top)),
                "" if pair.same_winner is None else estimate(pair.same_winner),
            )
            for where, of in _seen(found)
            for pair in of.pairs
        ],
        secondary=("with an abstention",),
    )


def askings_by_format_table(found: Places) -> Table | None:
    """Two askings of one format; `None` without a retest or where nobody was asked for two."""
    return table(
        "one-format",
        "Beside it: one voter, one prompt, one format twice",
        "Logged and re-asked answers, in pairs; those with an abstention are in no share. "
        "Consistent: some ranking agrees with both. How far one format agrees with itself is what "
        "to read the agreement of two by.",
        [*_of(found), "format", "pairs", "with an abstention", "same ballot", "consistent"],
        [
            (
                *where,
                *(own.form, own.pairs, own.abstained),
                *(estimate(own.same), estimate(own.consistent)),
            )
            for where, of in _seen(found)
            for own in of.askings
        ],
    )


def _of(found: Places) -> tuple[str, ...]:
    """A column for the place, where there are several."""
    return ("of",) if any(found) else ()


def _seen(found: Places) -> list[tuple[tuple[str, ...], FormatInvariance]]:
    return [
        ((where,) if where else (), of)
        for where, of in found.items()
        if isinstance(of, FormatInvariance)
    ]
