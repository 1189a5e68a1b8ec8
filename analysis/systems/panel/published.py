"""Printed figures of the published study, kept as data, and a run's beside them."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from tutorsim.analysis.pages.cells import Table, estimate, table
from tutorsim.analysis.systems.panel.diagnostics import Diagnostics
from tutorsim.analysis.systems.panel.student_outcomes import Gain
from tutorsim.errors import UsageError
from tutorsim.named_files import read_named
from tutorsim.vocabularies import ProvenanceKind

# --- Published figures ---------------------------------------------------------------------------

QUANTITIES: Final = (
    "episodes",
    "calls",
    "success_threshold",
    "max_turns",
    "cumulative_budget",
    "roles",
    "printed_gains_that_differ",
    "shift",
    "flip",
    "tie_rate",
    "fallback_rate",
    "turns",
    "wins",
    "score_initial",
    "score_final",
    "score_gain",
    "code_initial",
    "code_final",
    "code_gain",
    "success_rate",
    "rounds",
)
"""What a figure may be of. From `shift` on they are results, named as in `analysis.metrics`."""


@dataclass(frozen=True)
class PublishedFigure:
    """One printed number."""

    quantity: str
    value: float
    where: str
    """Table or section of the study."""
    benchmark: str | None = None
    """`None`: not of one benchmark; so for the next three."""
    condition: str | None = None
    persona: str | None = None
    role: str | None = None
    note: str = ""


def published_figures() -> tuple[PublishedFigure, ...]:
    """The figures that come with the package."""
    return _bundled()


def read_published(path: Path) -> tuple[PublishedFigure, ...]:
    """Read figures from a TOML file in the shape of the bundled one.

    Raises:
        UsageError: If it cannot be read, or an entry is no figure.
    """
    try:
        text = read_named(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read.", why=str(error)) from error
    return _parse(text, str(path))


@cache
def _bundled() -> tuple[PublishedFigure, ...]:
    data = files("tutorsim.analysis") / "data" / "published.toml"
    return _parse(data.read_text(encoding="utf-8"), "published.toml")


def _parse(text: str, name: str) -> tuple[PublishedFigure, ...]:
    try:
        entries: list[dict[str, Any]] = tomllib.loads(text).get("figure", [])
        figures = tuple(PublishedFigure(**entry) for entry in entries)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise UsageError(
            f"{name} does not hold published figures.",
            why=str(error),
            hint="Each `[[figure]]` has quantity, value and where.",
        ) from error
    for figure in figures:
        _check_quantity(figure.quantity, name)
    return figures


def _check_quantity(quantity: str, name: str) -> None:
    if quantity not in QUANTITIES:
        raise UsageError(
            f"{name}: unknown quantity {quantity!r}.", hint=f"Known: {', '.join(QUANTITIES)}."
        )


# --- Beside published ----------------------------------------------------------------------------

_UNKNOWN: Final = "nothing is known of what answered it."

Row = tuple[str, str, str, str, str, str]

_SHARES: Final = ("shift", "flip", "tie_rate", "fallback_rate")


def beside_published(
    diagnostics: Sequence[Diagnostics],
    winners: Sequence[Mapping[str, Any]],
    gains: Sequence[Gain],
    *,
    figures: Sequence[PublishedFigure],
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
    printed = {(f.quantity, f.benchmark, f.condition, f.role): f for f in figures}
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


Printed = dict[tuple[str, str | None, str | None, str | None], PublishedFigure]


def _decision_rows(diagnostics: Sequence[Diagnostics], printed: Printed) -> Iterator[Row]:
    for row in diagnostics:
        own = dict(
            zip(_SHARES, (row.shift, row.flip, row.tie_rate, row.fallback_rate), strict=True)
        )
        for quantity in _SHARES:
            found = printed.get((quantity, None, row.protocol, None))
            if found is not None:
                yield _row(quantity, "", row.protocol, estimate(own[quantity]), found)


def _win_rows(winners: Sequence[Mapping[str, Any]], printed: Printed) -> Iterator[Row]:
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


def _gain_rows(gains: Sequence[Gain], printed: Printed) -> Iterator[Row]:
    for row in gains:
        for part, own in (("initial", row.initial), ("final", row.final), ("gain", row.gain)):
            quantity = f"{row.measure}_{part}"
            found = printed.get((quantity, row.benchmark, row.condition, None))
            if found is not None:
                yield _row(quantity, row.benchmark, row.condition, estimate(own), found)


def _row(quantity: str, of: str, condition: str, own: str, found: PublishedFigure) -> Row:
    return (quantity.replace("_", " "), of, condition, own, f"{found.value:.2f}", found.where)
