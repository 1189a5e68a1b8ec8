"""A run's figures beside the printed ones of the published study."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tutorsim.analysis.pages.cells import Table, estimate, table
from tutorsim.analysis.pages.printed import Printed
from tutorsim.analysis.systems.panel.diagnostics import Diagnostics
from tutorsim.analysis.systems.panel.student_outcomes import Gain
from tutorsim.vocabularies import ProvenanceKind

PUBLISHED: Final = "tutorsim.analysis:data/published.toml"
"""Printed figures of the study."""

# --- Beside published ----------------------------------------------------------------------------

_UNKNOWN: Final = "nothing is known of what answered it."

Row = tuple[str, str, str, str, str, str]

_SHARES: Final = ("shift", "flip", "tie_rate", "fallback_rate")


def beside_published(
    diagnostics: Sequence[Diagnostics],
    winners: Sequence[Mapping[str, Any]],
    gains: Sequence[Gain],
    *,
    figures: Sequence[Printed],
    kinds: Sequence[ProvenanceKind],
    label: str,
) -> Table | None:
    """Every cell that is both in the run and in print; `None` without any.

    Args:
        diagnostics: Of the run, by protocol.
        winners: Of the run, one row a protocol and role, as `winning_roles` has them.
        gains: Of the run, by benchmark and condition.
        figures: The printed ones.
        kinds: What answered the run; part of its column's name.
        label: What that means for figures; part of the caption.
    """
    places = ("benchmark", "condition", "role")
    printed = {(f.quantity, *map(f.cell.get, places)): f for f in figures}
    rows = [
        *_decision_rows(diagnostics, printed),
        *_win_rows(winners, printed),
        *_gain_rows(gains, printed),
    ]
    return table(
        "published",
        "Beside the published study",
        "This run's figures, with 95 % intervals, and the printed ones. This run: "
        f"{label or _UNKNOWN} Shift, flip and fallback are per turn; wins are shares of the turns "
        "of a protocol; scores "
        "and tests are means over tutored episodes. The published fallback rate may mean ties, or "
        "ties that the order decided.",
        [
            "quantity",
            "of",
            "condition",
            f"this run ({', '.join(kinds) or 'unknown'})",
            "published",
            "where",
        ],
        rows,
        secondary=("where",),
    )


Figures = Mapping[tuple[str | None, ...], Printed]


def _decision_rows(diagnostics: Sequence[Diagnostics], printed: Figures) -> Iterator[Row]:
    for row in diagnostics:
        own = dict(
            zip(_SHARES, (row.shift, row.flip, row.tie_rate, row.fallback_rate), strict=True)
        )
        for quantity in _SHARES:
            found = printed.get((quantity, None, row.protocol, None))
            if found is not None:
                yield _row(quantity, "", row.protocol, estimate(own[quantity]), found)


def _win_rows(winners: Sequence[Mapping[str, Any]], printed: Figures) -> Iterator[Row]:
    turns = Counter[str]()
    for row in winners:
        turns[row["protocol"]] += row["wins"]
    for row in winners:
        protocol, role = row["protocol"], row["role"]
        found = printed.get(("wins", None, protocol, role))
        of = printed.get(("turns", None, protocol, None))
        if found is not None and of is not None:
            own = f"{row['wins']} of {turns[protocol]}, {_percent(row['wins'], turns[protocol])}"
            theirs = f"{found.value:g} of {of.value:g}, {_percent(found.value, of.value)}"
            yield ("wins", role, protocol, own, theirs, found.where)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def _gain_rows(gains: Sequence[Gain], printed: Figures) -> Iterator[Row]:
    for row in gains:
        for part, own in (("initial", row.initial), ("final", row.final), ("gain", row.gain)):
            quantity = f"{row.measure}_{part}"
            found = printed.get((quantity, row.benchmark, row.condition, None))
            if found is not None:
                yield _row(quantity, row.benchmark, row.condition, estimate(own), found)


def _row(quantity: str, of: str, condition: str, own: str, found: Printed) -> Row:
    return (quantity.replace("_", " "), of, condition, own, f"{found.value:.2f}", found.where)
