"""Winners if other ballots, or fewer, were counted, or the replies read otherwise, as tables."""

from collections.abc import Sequence
from typing import Final

from tutorsim.analysis.recount import ElectorateRow, ReadingRow
from tutorsim.analysis.views.cells import Table, bounds_of, table
from tutorsim.analysis.views.counterfactual_captions import HELD

__all__ = ["electorates_table", "readings_table"]

_SCENARIOS: Final = {
    "without_deliberation": "the first vote decides",
    "leave_one_out": "without one voter",
    "no_own_votes": "no votes for one's own draft",
    "confidence_weighted": "votes weighted by stated confidence",
}


def electorates_table(rows: Sequence[ElectorateRow], protocol: str | None = None) -> Table | None:
    """Winners that change when other ballots, or fewer, are counted.

    Args:
        rows: Of a recount.
        protocol: Of its ballots alone; of all when `None`.
    """
    own = [r for r in rows if r.protocol == protocol and r.turns]
    compared = any(r.compared is not None for r in own)
    said = "Compared with logged winners are the turns that counting decided. " if compared else ""
    decide = "has a figure where they meet" if compared else "lets the fallback order decide them"
    return table(
        f"electorates-{protocol}" if protocol else "electorates",
        f"Other electorates{f', {protocol} ballots' if protocol else ''}",
        "Recounted: turns whose winner changes. Bounds leave ties open that nobody was asked to "
        f"vote on; the last column {decide}. Left out: turns that "
        f"lack a first vote, the voter or a stated confidence. {said}{HELD}",
        [
            *("counted", "turns", "left out"),
            *(("compared",) if compared else ()),
            *("winners changed", "ties to the order"),
        ],
        [
            (
                f"without {r.voter}" if r.voter else _SCENARIOS[r.scenario],
                *(r.turns, r.not_computable),
                *((r.compared,) if compared else ()),
                *(bounds_of(r.changed.lower, r.changed.upper), r.changed.point),
            )
            for r in own
        ],
    )


def readings_table(rows: Sequence[ReadingRow], protocol: str | None = None) -> Table | None:
    """Winners when the raw replies are read more strictly or more leniently.

    Args:
        rows: Of a recount.
        protocol: Of its ballots alone; of all when `None`.
    """
    return table(
        f"readings-{protocol}" if protocol else "readings",
        f"Ballots read again{f', {protocol} ballots' if protocol else ''}",
        "The raw replies of the recording, read by a stricter and by a more lenient reader; runs "
        "use the standard one. What a reader refuses counts as an abstention, since nobody asked "
        f"again. {HELD}",
        ["reading", "turns", "ballots read otherwise", "unreadable ballots", "winners changed"],
        [
            (
                *(r.reading, r.turns, f"{r.ballots_changed} of {r.ballots}", r.abstained),
                bounds_of(r.changed.lower, r.changed.upper),
            )
            for r in rows
            if r.protocol == protocol
        ],
    )
