"""Figures of the published study, kept as data, to stand beside a run's.

A figure that is not in the data is `NotEstimable` with that reason. Figures of a stand-in
recording are never set beside published ones without the recording's label: every caption
names the source's provenance.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from tutorsim.errors import UsageError
from tutorsim.named_files import read_named

__all__ = [
    "QUANTITIES",
    "PublishedFigure",
    "published_figures",
    "read_published",
]

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
