"""Plain oracle of an item's labels under each reading and rule, from a line of raw JSON.

Written from the rules in words; nothing of the package is used. It reads replies as the scripted
stand-in writes them: every field at the beginning of a line, the lead's object the only one.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Item = Mapping[str, Any]
Pair = tuple[int | None, int | None]
UNREAD: Pair = (None, None)


def labels(item: Item, reading: str) -> dict[str, Pair]:
    """Rule → mistake and guidance of a debated item, as the lead alone and as others decide it."""
    lead = _lead(item["lead"], reading)
    found = {"as_run": lead[:2], "quick": _lead(item["quick"], reading)[:2]}
    last = {message["agent"]: message for message in item["messages"]}
    said = [_line(last[critic], reading) for critic in ("permissive", "strict")]
    said += [_line(item["judge"], reading), _line(item["stress"], reading), lead[:2]]
    sure = [50.0, 50.0, 50.0 if said[2] == UNREAD else item["judge"]["confidence"], 50.0]
    sure.append(50.0 if lead[2] is None else 100 * lead[2])
    by_label = [_under_rules([one[k] for one in said], sure) for k in (0, 1)]
    return found | {rule: (by_label[0][rule], by_label[1][rule]) for rule in by_label[0]}


def _under_rules(said: Sequence[int | None], sure: Sequence[float]) -> dict[str, int | None]:
    permissive, strict, judge, _, lead = said
    return {
        "judge": judge,
        "majority_of_five": _most(said, [1.0] * 5, lead),
        "majority_of_three": _most(said[2:], [1.0] * 3, lead),
        "critics_agree": strict if permissive == strict and strict is not None else lead,
        "confidence_weighted": _most(said, sure, lead),
        "most_cautious": min((one for one in said if one is not None), default=None),
    }


def _most(said: Sequence[int | None], weights: Sequence[float], lead: int | None) -> int | None:
    """The label with the largest weight; the lead's where two have it."""
    total: Counter[int] = Counter()
    for one, weight in zip(said, weights, strict=True):
        if one is not None:
            total[one] += round(weight * 1000)
    top = [one for one in total if total[one] == max(total.values())]
    return lead if len(top) > 1 else next(iter(top), None)


def _line(said: Item, reading: str) -> Pair:
    """The labels of a reply's own line; of the first of two replies that says them."""
    if reading == "standard":
        stated = said["labels"]
        return (stated["mistake"], stated["guidance"]) if stated else UNREAD
    exact = r"LABELS: mistake=([01]) guidance=([012])"
    loose = r"(?i)\**LABELS\**:\**\s*mistake\s*[=:]\s*([01])[\s,]+guidance\s*[=:]\s*([012])\.?"
    for reply in filter(None, (said["raw_first"], said["raw"])):
        form = exact if reading == "strict" else loose
        found = [match for line in reply.splitlines() if (match := re.fullmatch(form, line))]
        if found:
            return int(found[-1][1]), int(found[-1][2])
    return UNREAD


def _lead(said: Item, reading: str) -> tuple[int | None, int | None, float | None]:
    """The lead's labels and confidence, of the first of two replies that has its object."""
    if reading == "standard":
        stated = said["labels"]
        if stated is None:
            return (*UNREAD, None)
        return stated["mistake"], stated["guidance"], said["confidence"]
    for number, reply in enumerate(filter(None, (said["raw_first"], said["raw"]))):
        text = reply if reading == "strict" else reply[reply.find("{") : reply.rfind("}") + 1]
        try:
            value = json.loads(text)
        except ValueError:
            continue
        mistake, guidance = value["mistake_identified"], value["guidance_quality"]
        if reading == "lenient" or (number and reading != "strict"):
            mistake = {"true": True, "false": False}.get(str(mistake).lower(), mistake)
            guidance = {"0": 0, "1": 1, "2": 2}.get(str(guidance).removesuffix(".0"))
        sure = value.get("confidence")
        if isinstance(mistake, bool) and type(guidance) is int and sure is not None:
            return int(mistake), guidance, sure
    return (*UNREAD, None)
