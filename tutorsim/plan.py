"""What a study will ask for: calls, tokens and cost, before anything is sent.

The range of calls is exact. Tokens and cost are estimates: prompts are built for the first
task and persona of each benchmark and condition, with replies of usual length.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import CatalogError
from tutorsim.types import Condition

if TYPE_CHECKING:
    from tutorsim.study import LoadedStudy, Study

__all__ = [
    "PANEL_STAGES",
    "TIE_STAGES",
    "CallRange",
    "Plan",
    "Price",
    "PriceTable",
    "call_range",
    "load_prices",
    "plan",
]

PANEL_STAGES = ("propose", "critique", "vote_initial", "revise", "vote_final")
TIE_STAGES = ("tie_critique", "tie_vote")


class Price(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class PriceTable(BaseModel):
    """Prices by model on a day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str
    """ISO date on which the prices were read."""
    models: dict[str, Price]

    def price(self, model: str) -> Price | None:
        """The price of a model, under its own name or without a trailing date; `None` unknown."""
        return self.models.get(model) or self.models.get(re.sub(r"-[0-9]{8}$", "", model))

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Cost in US dollars; `None` when the model's price is unknown."""
        price = self.price(model)
        if price is None:
            return None
        return (input_tokens * price.input + output_tokens * price.output) / 1_000_000


@cache
def _shipped_prices() -> PriceTable:
    text = (resources.files("tutorsim.catalog") / "prices.toml").read_text(encoding="utf-8")
    return PriceTable.model_validate(tomllib.loads(text))


def load_prices(path: Path | None = None) -> PriceTable:
    """The shipped price table, or a replacement in the same form.

    Raises:
        CatalogError: If the file is missing or has another form.
    """
    if path is None:
        return _shipped_prices()
    try:
        return PriceTable.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise CatalogError(
            f"{path} is no price table.",
            why=str(error),
            hint='It needs `as_of = "DATE"` and tables [models.NAME] with input and output.',
        ) from error


@dataclass(frozen=True)
class CallRange:
    """How many calls a thing takes."""

    least: int
    """Every first attempt succeeds, every reply can be read."""
    most: int
    """No attempt succeeds, every final vote ties, every reply can be read."""
    ceiling: int
    """As `most`, with every reply asked for twice."""

    def __add__(self, other: "CallRange") -> "CallRange":
        return CallRange(
            self.least + other.least, self.most + other.most, self.ceiling + other.ceiling
        )


def call_range(study: "Study", condition: Condition) -> CallRange:
    """Calls of one episode: a student and a judge call around every turn."""
    further = sum(form != condition for form in study.vote_formats)
    panel = len(study.roles) * (len(PANEL_STAGES) + further + len(TIE_STAGES))
    in_turn = 1 if condition == "baseline" else panel
    least = 2
    most = least + study.max_turns * (in_turn + 2)
    return CallRange(least, most, 2 * most)


@dataclass(frozen=True)
class Plan:
    """What a study asks for."""

    episodes: int
    calls: CallRange
    tokens: Mapping[str, tuple[int, int]]
    """Model → estimated input and output tokens of the longest path without second askings."""
    prices_as_of: str
    cost: float | None
    """Estimated cost of the longest path in US dollars; `None` when a price is unknown."""
    least_cost: float | None
    """Estimated cost when every first attempt succeeds."""
    unknown_prices: tuple[str, ...]
    """Models without a price."""


def plan(loaded: "LoadedStudy", prices: PriceTable) -> Plan:
    """Count calls exactly and estimate tokens and cost."""
    from tutorsim.estimate import estimate_tokens  # here, as whoever wants prices pays for it too

    study = loaded.study
    calls = CallRange(0, 0, 0)
    episodes = 0
    for spec in loaded.grid():
        calls += call_range(study, spec.condition)
        episodes += 1
    most = estimate_tokens(loaded, longest=True)
    least = estimate_tokens(loaded, longest=False)
    return Plan(
        episodes=episodes,
        calls=calls,
        tokens=most,
        prices_as_of=prices.as_of,
        cost=_cost(most, prices),
        least_cost=_cost(least, prices),
        unknown_prices=tuple(sorted(model for model in most if prices.price(model) is None)),
    )


def _cost(tokens: Mapping[str, tuple[int, int]], prices: PriceTable) -> float | None:
    costs = [prices.cost(model, *counts) for model, counts in tokens.items()]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
