"""How the panels decided, as logged, as tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tutorsim.analysis.metrics.chance_baseline import ChanceBaseline
from tutorsim.analysis.metrics.shift_flip_tie_fallback_rates import LEFT_TIED, Diagnostics
from tutorsim.analysis.views.cells import Table, absent, estimate, plain, table
from tutorsim.vocabularies import BALLOT_STATUSES

__all__ = ["ballots_table", "chance_table", "diagnostics_table", "winners_table"]

_SHIFT: Final = (
    "Vote shift: half the distance between the vote shares of the first and the final vote "
    "(0 to 1). "
)
_INTERVALS: Final = "95 % intervals in brackets: over tasks."


def diagnostics_table(
    found: Sequence[Diagnostics], notes: Sequence[str], *, ordered: bool
) -> Table | None:
    """Shift, flip, ties and fallback per protocol.

    Args:
        found: By protocol.
        notes: Ends of the caption.
        ordered: An order is logged; without one, what counting leaves tied has no winner.
    """
    if not ordered:
        return _unordered_table(found, notes)
    return table(
        "diagnostics",
        "How the panels decided",
        f"{_SHIFT}Flip: the first vote's leader did not win; a tied lead goes to the "
        "fallback order, or, in the next column, to all who lead. Fallback: decided by the "
        f"fallback order. {' '.join((_INTERVALS, *notes))}",
        [
            *("protocol", "turns", "episodes", "vote shift", "flip", "flip outside the leaders"),
            *("final vote tied", "fallback", "abstentions"),
        ],
        [
            (
                *(d.protocol, d.turns, d.episodes, estimate(d.shift)),
                *map(estimate, (d.flip, d.flip_set, d.tie_rate, d.fallback_rate)),
                f"{d.abstentions} of {d.ballots}",
            )
            for d in found
        ],
        secondary=("episodes", "abstentions"),
    )


def _unordered_table(found: Sequence[Diagnostics], notes: Sequence[str]) -> Table | None:
    return table(
        "diagnostics",
        "How the votes went",
        f"{_SHIFT}Flip: the winner was not among those who led the first vote, of turns that "
        "counting decided. Left tied: no order is logged, so that such a turn has no winner. "
        f"{' '.join((_INTERVALS, *notes))}",
        [
            *("protocol", "turns", "episodes", "vote shift", "flip outside the leaders"),
            *("final vote tied", "left tied", "abstentions"),
        ],
        [
            (
                *(d.protocol, d.turns, d.episodes, estimate(d.shift)),
                *map(estimate, (d.flip_set, d.tie_rate, d.left_tied)),
                f"{d.abstentions} of {d.ballots}",
            )
            for d in found
        ],
        secondary=("episodes", "abstentions"),
    )


def chance_table(found: Iterable[ChanceBaseline]) -> Table | None:
    """Flip and shift beside what independent votes would give."""
    cells = [
        (c, (c.flip, c.flip_expected, c.kappa, c.shift, c.shift_expected)) for c in found if c.turns
    ]
    return table(
        "chance",
        "Flip and shift beside chance",
        "By chance: first and final votes drawn independently from those of the protocol's turns. "
        "κ is 1 where the first leader always wins, 0 where it wins as often as by chance."
        + absent(figure for _, figures in cells for figure in figures),
        ["protocol", "turns", "flip", "flip by chance", "κ", "vote shift", "shift by chance"],
        [(c.protocol, c.turns, *map(plain, figures)) for c, figures in cells],
    )


def winners_table(
    winners: Sequence[Mapping[str, Any]],
    candidates: Iterable[str],
    protocols: Sequence[str],
    *,
    ordered: bool,
) -> Table | None:
    """Wins per role and protocol, by the step that decided.

    Args:
        winners: One row a protocol and role, as `winning_roles` has them.
        candidates: In the order of the rows.
        protocols: In the order of the columns.
        ordered: An order is logged, which may have decided.
    """
    cells = {(row["role"], row["protocol"]): row for row in winners}
    rows = []
    names = (*candidates, LEFT_TIED)
    for role in (c for c in names if any((c, p) in cells for p in protocols)):
        own = [cells.get((role, p)) for p in protocols]
        rows.append(
            (role, sum(c["wins"] for c in own if c), *(_wins(cell, ordered) for cell in own))
        )
    return table(
        "winners",
        "Winning drafts, and the step that made them win",
        "Turns won, as logged; in brackets by final vote + tie round"
        f"{' + fallback order' * ordered}.",
        ["winner", "all", *protocols],
        rows,
    )


def _wins(cell: Mapping[str, int] | None, ordered: bool) -> str:
    if cell is None:
        return "no candidate"
    by = ("by_vote", "by_tie_round", *(("by_fallback",) if ordered else ()))
    steps = [cell[step] for step in by]
    return f"{cell['wins']} ({'+'.join(map(str, steps))})" if any(steps) else f"{cell['wins']}"


def ballots_table(counts: Sequence[Mapping[str, Any]]) -> Table | None:
    """Ballots of all rounds by protocol and status.

    Args:
        counts: One row a protocol and stage, with a column for each status.
    """
    rows = []
    for protocol in dict.fromkeys(row["protocol"] for row in counts):
        own = [row for row in counts if row["protocol"] == protocol]
        each = [sum(row[status] for row in own) for status in BALLOT_STATUSES]
        rows.append((protocol, sum(each), *each))
    return table(
        "ballots",
        "Ballots",
        "Of all rounds. Repaired: read although the reply was not to the letter.",
        ["protocol", "ballots", *BALLOT_STATUSES],
        rows,
    )
