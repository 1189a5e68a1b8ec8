"""Printed figures of the lesson study, kept as data, to stand beside a run's."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

DATA: Final = "group.published.toml"


@dataclass(frozen=True)
class PrintedFigure:
    """One printed number, or one computed from the authors' public files, as `where` says."""

    quantity: str
    value: float
    where: str
    cell: Mapping[str, Any] = field(default_factory=dict)
    """What the figure is of: names and values."""
    note: str = ""


@cache
def printed_figures() -> tuple[PrintedFigure, ...]:
    """The figures that come with the package."""
    text = (files("tutorsim.analysis") / "data" / DATA).read_text(encoding="utf-8")
    return tuple(PrintedFigure(**entry) for entry in tomllib.loads(text)["figure"])


def printed(quantity: str, *, public: bool = False, **cell: Any) -> float | None:
    """A figure by what it is of; `None` where it is not in the data.

    Args:
        quantity: What it measures.
        public: From the authors' public files instead of from the text.
        cell: What it is of.
    """
    for figure in printed_figures():
        from_files = figure.where.startswith("public files")
        if (figure.quantity, dict(figure.cell), from_files) == (quantity, cell, public):
            return figure.value
    return None
