"""Printed figures of the studies, kept as data, to stand beside a language model's.

for figure in printed("tutorsim.analysis:data/published.toml", source):
    ...  # nothing, if the scripted stand-in answered
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    E,
    RowsOf,
    without_columns,
)
from tutorsim.errors import UsageError
from tutorsim.regular_files_and_digests import read_named
from tutorsim.vocabularies import ProvenanceKind

QUANTITIES: Final = (
    *("episodes", "calls", "success_threshold", "max_turns", "cumulative_budget", "roles"),
    "printed_gains_that_differ",
    *("shift", "flip", "tie_rate", "fallback_rate", "turns", "wins"),
    *(f"{score}_{when}" for score in ("score", "code") for when in ("initial", "final", "gain")),
    *("success_rate", "rounds"),
)
"""What a figure of a reader's file may be of. From `shift` on they are results."""


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


def printed_of(entry: Mapping[str, Any]) -> Printed:
    """An entry of a data file as a figure; what is no field of one says what it is of."""
    own = {one.name for one in fields(Printed)}
    cell = {name: value for name, value in entry.items() if name not in own}
    given = {name: value for name, value in entry.items() if name in own}
    return Printed(**{**given, "cell": {**given.get("cell", {}), **cell}})


def printed_in(*columns: str) -> Callable[[RowsOf[E]], RowsOf[E]]:
    """A table's rows without those of the columns that hold no printed figure."""
    return without_columns(
        lambda name, cells: name in columns and all(getattr(c, "value", c) is None for c in cells)
    )


class Answered(Protocol):
    """A run, or ballots from elsewhere."""

    @property
    def kinds(self) -> tuple[ProvenanceKind, ...]:
        """Kinds of what answered, as far as they are known."""


def by_language_model(run: Answered) -> bool:
    """Whether printed figures stand beside a run's: nothing in it is the scripted stand-in's."""
    return "stand-in" not in run.kinds


def refuse_published(name: str, run: Answered, published: Sequence[Printed] | None) -> None:
    """Refuse a reader's figures beside a run that the stand-in answered."""
    if published is not None and not by_language_model(run):
        raise UsageError(
            f"{name} was answered by the scripted stand-in model.",
            why="Printed figures stand beside those of a language model alone.",
            hint="Leave --published out.",
        )


def printed(data: str, run: Answered) -> tuple[Printed, ...]:
    """The figures of a data file, `package:file`, that stand beside a run's."""
    return figures_in(data) if by_language_model(run) else ()


@cache
def figures_in(data: str) -> tuple[Printed, ...]:
    """Every figure of a data file, `package:file`."""
    package, _, name = data.partition(":")
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    return tuple(map(printed_of, tomllib.loads(text)["figure"]))


def read_printed(path: Path) -> tuple[Printed, ...]:
    """Read figures from a reader's TOML file, in the shape of those of the package."""
    try:
        entries = tomllib.loads(read_named(path).decode()).get("figure", [])
        found = tuple(map(printed_of, entries))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read.", why=str(error)) from error
    except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} does not hold published figures.",
            why=str(error),
            hint="Each `[[figure]]` has quantity, value and where.",
        ) from error
    for figure in found:
        if figure.quantity not in QUANTITIES:
            raise UsageError(
                f"{path}: unknown quantity {figure.quantity!r}.",
                hint=f"Known: {', '.join(QUANTITIES)}.",
            )
    return found
