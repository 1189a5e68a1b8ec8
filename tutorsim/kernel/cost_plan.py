"""What a study will ask for: calls, tokens and cost, before anything is sent.

Tokens are estimated from the real prompts, driven with replies of usual length.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import CatalogError
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import CallRange, LoadedStudy, sum_of
from tutorsim.regular_files_and_digests import read_named

# --- Cost plan -----------------------------------------------------------------------------------


class Price(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class PriceTable(BaseModel):
    """Prices by model on a day."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

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

    Raises `CatalogError` if the file is missing or has another form.
    """
    if path is None:
        return _shipped_prices()
    try:
        return PriceTable.model_validate(tomllib.loads(read_named(path).decode()))
    except (OSError, ValueError, ValidationError) as error:
        raise CatalogError(
            f"{path} is no price table.",
            why=str(error),
            hint='It needs `as_of = "DATE"` and tables [models.NAME] with input and output.',
        ) from error


@dataclass(frozen=True)
class ConditionPlan:
    """What the episodes of one condition ask for."""

    condition: str
    episodes: int
    calls: CallRange
    least_cost: float | None
    """Estimated cost of the shortest path in US dollars; `None` when a price is unknown."""
    cost: float | None
    """Estimated cost of the longest path."""


@dataclass(frozen=True)
class Plan:
    """What a study asks for: `plan(load_study("study.toml"), load_prices()).cost`."""

    episodes: int
    calls: CallRange
    tokens: Mapping[str, tuple[int, int]]
    """Model → estimated input and output tokens of the longest path without second askings."""
    prices_as_of: str
    cost: float | None
    """Estimated cost of the longest path in US dollars; `None` when a price is unknown."""
    least_cost: float | None
    """Estimated cost of the shortest path."""
    unknown_prices: tuple[str, ...]
    """Models without a price."""
    expected_cost: float | None
    """Cost as far from the shortest to the longest path as `share` says; `None` as `cost`."""
    share: float
    """From 0, every episode takes its shortest path, to 1, each takes its longest."""
    share_of: str
    """What the share was seen in; empty where it is assumed."""
    conditions: tuple[ConditionPlan, ...]
    """Each condition by itself, in the study's order."""


HALFWAY: Final = 0.5
"""The share that is assumed where no recording of the system says another."""


def plan(
    loaded: LoadedStudy, prices: PriceTable, *, share: float | None = None, share_of: str = ""
) -> Plan:
    """Count calls exactly and estimate tokens and cost.

    `share`: where the calls of a recording lay between the fewest and the most, 0 to 1.
    """
    low, high = (estimate_tokens(loaded, longest=longest) for longest in (False, True))
    specs: dict[str, list[EpisodeSpec]] = {}
    for spec in loaded.grid():
        specs.setdefault(spec.condition, []).append(spec)
    conditions = tuple(
        ConditionPlan(
            condition,
            len(those),
            sum_of([loaded.call_range(spec) for spec in those]),
            least_cost=cost_of(low[condition], prices),
            cost=cost_of(high[condition], prices),
        )
        for condition, those in specs.items()
    )
    tokens = total_tokens(high.values())
    least, most = cost_of(total_tokens(low.values()), prices), cost_of(tokens, prices)
    way = HALFWAY if share is None else share
    return Plan(
        episodes=sum(one.episodes for one in conditions),
        calls=sum_of([one.calls for one in conditions]),
        tokens=tokens,
        prices_as_of=prices.as_of,
        cost=most,
        least_cost=least,
        unknown_prices=tuple(model for model in tokens if prices.price(model) is None),
        expected_cost=between(least, most, way),
        share=way,
        share_of=share_of,
        conditions=conditions,
    )


def between(low: float | None, high: float | None, share: float | None) -> float | None:
    """The cost so far from the lowest to the highest; halfway without a share, `None` as they."""
    if low is None or high is None:
        return None
    return low + (HALFWAY if share is None else share) * (high - low)


def cost_of(tokens: Mapping[str, tuple[int, int]], prices: PriceTable) -> float | None:
    """US dollars of tokens by model, input and output; `None` when a price is unknown."""
    costs = [prices.cost(model, *counts) for model, counts in tokens.items()]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


# --- Token estimate ------------------------------------------------------------------------------


Tokens = Mapping[str, tuple[int, int]]
"""Model → input and output tokens."""


def estimate_tokens(loaded: LoadedStudy, *, longest: bool) -> Mapping[str, Tokens]:
    """Estimate tokens by condition and model, at four characters a token.

    One episode stands for all that are alike; see `LoadedStudy.alike`.

    `longest`: follow the longest path of an episode; otherwise the shortest.
    """
    specs = list(loaded.grid())
    shares = Counter(loaded.alike(spec) for spec in specs)
    samples = {loaded.alike(spec): spec for spec in reversed(specs)}
    found: dict[str, list[Tokens]] = {spec.condition: [] for spec in specs}
    for kind, spec in samples.items():
        for call in loaded.path(spec, longest=longest):
            tokens = (call.input_tokens * shares[kind], call.output_tokens * shares[kind])
            found[spec.condition].append({call.model: tokens})
    return {condition: total_tokens(calls) for condition, calls in found.items()}


def total_tokens(several: Iterable[Tokens]) -> Tokens:
    """The tokens of several things together, models in order of their names."""
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for tokens in several:
        for model, (given, got) in tokens.items():
            asked[model] += given
            answered[model] += got
    return {model: (asked[model], answered[model]) for model in sorted(asked)}
