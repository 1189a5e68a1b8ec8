"""Plain oracle of who speaks in a lesson, from an event of a run folder's raw JSON.

Written from the rules in words, in decimals; nothing of the package is used.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

INTERNAL = ("relevance", "impact", "urgency")
EXTERNAL = ("coherence", "novelty", "balance")
FACTOR = {"raise": Decimal("1.01"), "decay": 1 / Decimal("1.01"), "off": Decimal(1)}


def speaker(
    cycle: Mapping[str, Any],
    order: Sequence[str],
    *,
    threshold: Decimal = Decimal("3.5"),
    interrupt_threshold: Decimal = Decimal(4),
    silence: str = "raise",
    weight: Decimal = Decimal("0.6"),
) -> str | None:
    """Who speaks after an event under the rule `prism`; `None` for nobody.

    The one who keeps the floor needs no threshold, nor the best of those addressed; others may
    then only interrupt with a correction. On an open floor everybody above the threshold may
    speak. Of several, the highest score speaks, then the longest silent, then the first in order.
    """
    scores = {
        thought["agent"]: _adjusted(thought, silence, weight)
        for thought in cycle["thoughts"]
        if thought["action"] == "speak" and thought["scores"] is not None
    }
    of = {thought["agent"]: thought for thought in cycle["thoughts"]}

    def best(names: Sequence[str]) -> list[str]:
        return sorted(names, key=lambda one: (-scores[one], -of[one]["silent"], order.index(one)))

    last, addressed = cycle["speaker"], cycle["addressed"]
    if cycle["floor"]:
        free = [name for name in scores if name == last]
    else:
        free = best([name for name in scores if name in addressed and name != last])[:1]
    others = [name for name in scores if name not in (*free, last) and scores[name] > threshold]
    if cycle["floor"] or addressed:
        others = [o for o in others if of[o]["corrects"] and scores[o] >= interrupt_threshold]
    return next(iter(best([*free, *others])), None)


def _adjusted(thought: Mapping[str, Any], silence: str, weight: Decimal) -> Decimal:
    """The score after silence, from 1 to 5, in hundredths."""
    given = {name: Decimal(str(score)) for name, score in thought["scores"].items()}
    inner = given.get("internal") or sum(given[name] for name in INTERNAL) / 3
    outer = given.get("external") or sum(given[name] for name in EXTERNAL) / 3
    total = ((1 - weight) * inner + weight * outer) * FACTOR[silence] ** thought["silent"]
    return min(max(total, Decimal(1)), Decimal(5)).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
