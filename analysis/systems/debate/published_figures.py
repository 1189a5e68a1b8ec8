"""Printed figures of the debate study, to stand beside a run's with its provenance."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["MODELS", "Printed", "printed"]

MODELS = {"llama-3-8b": "8B", "llama-3-70b": "70B"}
"""The study's models, by their size."""


@dataclass(frozen=True)
class Printed:
    """One printed number."""

    quantity: str
    value: float
    where: str
    """Figure, table or section of the study."""
    cell: Mapping[str, Any]
    """What it is of."""
    sd: float | None = None
    """Over three runs; `None` if none is printed."""
    note: str = ""

    @property
    def text(self) -> str:
        """The number as it is printed, with its deviation."""
        number = f"{self.value:g}" if self.sd is None else f"{self.value:.1f} ± {self.sd:.1f}"
        return number.replace("-", "−")


def printed(quantity: str | tuple[str, ...], **cell: object) -> list[Printed]:
    """The printed figures of a quantity whose cell has these names and values.

    Args:
        quantity: One, or several that stand for the same thing.
        cell: Names and values that the figure's cell must have; others may differ.
    """
    wanted = (quantity,) if isinstance(quantity, str) else quantity
    return [
        one
        for one in _bundled()
        if one.quantity in wanted and all(one.cell.get(k) == v for k, v in cell.items())
    ]


@cache
def _bundled() -> tuple[Printed, ...]:
    place = files("tutorsim.analysis") / "systems" / "debate" / "published.toml"
    entries: list[dict[str, Any]] = tomllib.loads(place.read_text(encoding="utf-8"))["figure"]
    return tuple(Printed(**entry) for entry in entries)
