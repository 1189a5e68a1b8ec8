"""Printed figures of the oversight study and of the shared task, kept as data."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["PUBLISHED", "PrintedFigure", "printed", "printed_figures"]

PUBLISHED = "tutorsim.analysis:data/oversight.toml"


class PrintedFigure(NamedTuple):
    """One printed number."""

    quantity: str
    value: float
    where: str
    """Table or section."""
    cell: dict[str, Any]
    """What it is of."""
    note: str = ""


@cache
def printed_figures() -> tuple[PrintedFigure, ...]:
    """The figures that come with the package."""
    package, _, name = PUBLISHED.partition(":")
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    return tuple(PrintedFigure(**entry) for entry in tomllib.loads(text)["figure"])


def printed(quantity: str, where: str, **cell: Any) -> float | None:
    """The figure of exactly this cell; `None` if none is printed."""
    found = (
        figure.value
        for figure in printed_figures()
        if (figure.quantity, figure.where, figure.cell) == (quantity, where, cell)
    )
    return next(found, None)
