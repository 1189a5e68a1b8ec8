"""Printed figures of the studies, kept as data, to stand beside a run's with its provenance."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Printed:
    """One printed number."""

    quantity: str
    value: float
    where: str
    """Table, figure or section of the study."""
    cell: Mapping[str, Any] = field(default_factory=dict)
    """What it is of: names and values."""
    sd: float | None = None
    note: str = ""


@cache
def printed(data: str) -> tuple[Printed, ...]:
    """The figures of a data file, `package:file`."""
    package, _, name = data.partition(":")
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    return tuple(Printed(**entry) for entry in tomllib.loads(text)["figure"])


def value_printed(data: str, quantity: str, *where: str, **cell: Any) -> float | None:
    """The first figure of exactly this cell in any of these places; `None` if none is printed."""
    return next(
        (
            figure.value
            for place in where
            for figure in printed(data)
            if (figure.quantity, figure.where, figure.cell) == (quantity, place, cell)
        ),
        None,
    )
