"""The scripted voters: what they prefer, and how they write it down, not always well."""

import math
from collections.abc import Mapping
from fractions import Fraction

from tutorsim.standin.chance import Chance
from tutorsim.standin.quality import help_quality, opening
from tutorsim.standin.reading import Asked
from tutorsim.standin.tutor import student_mood, style_of_system
from tutorsim.standin.wording import style_weights
from tutorsim.types import Protocol

__all__ = ["vote_reply"]

_OWN_STYLE = 0.05
_FIRST_SHOWN = 0.035
_OWN_TASTE = 0.11
_MOMENT = 0.05
_CONTRAST = 0.24
"""Difference in preference that makes one reply worth e times the points of another."""
_UNREADABLE: Mapping[Protocol, float] = {
    "simple": 0.03,
    "ranked": 0.045,
    "cumulative": 0.07,
    "approval": 0.035,
}
_STUBBORN = 0.25
"""How often the second asking does not help either."""

Liking = Mapping[str, float]


def vote_reply(asked: Asked, chance: Chance) -> str:
    """A ballot over the labels shown."""
    protocol = asked.protocol or "simple"
    liking = _liking(asked, chance)
    if not liking:
        return "none"
    rate = _STUBBORN if asked.again else _UNREADABLE[protocol]
    if chance.happens("unreadable", rate):
        return _unreadable(protocol, liking, asked.budget, chance)
    ballot = _ballot(protocol, liking, asked.budget, chance)
    if chance.happens("loose", 0.03):
        return chance.pick("dress", (f"`{ballot}`", f"**{ballot}**", ballot.replace(",", ", ")))
    return ballot


def _liking(asked: Asked, chance: Chance) -> dict[str, float]:
    """Label → preference: shared quality, the voter's taste, the moment, and the place shown."""
    mood, own = student_mood(asked), style_of_system(asked.system).name
    liking = {}
    for place, (label, text) in enumerate(asked.drafts.items()):
        taste = Chance("taste", own, asked.known.question, opening(text)).bell("taste")
        liking[label] = (
            help_quality(text, mood, asked.known)
            + _OWN_STYLE * style_weights(text).get(own, 0.0)
            + (_FIRST_SHOWN if place == 0 else 0.0)
            + _OWN_TASTE * taste
            + _MOMENT * chance.bell(f"moment {label}")
        )
    return liking


def _ballot(protocol: Protocol, liking: Liking, budget: int, chance: Chance) -> str:
    order = _order(liking)
    if protocol == "simple":
        return order[0]
    if protocol == "ranked":
        return ",".join(order)
    if protocol == "cumulative":
        return _written(_points(liking, budget, _unit(budget, chance)))
    return ",".join(sorted(_approved(liking, chance))) or "none"


def _order(liking: Liking) -> list[str]:
    return sorted(liking, key=lambda label: (-liking[label], label))


def _points(liking: Liking, budget: int, unit: int) -> dict[str, int]:
    """Multiples of `unit` that sum to the budget, by largest remainder."""
    top = max(liking.values())
    weights = {
        label: Fraction(math.exp((value - top) / _CONTRAST)).limit_denominator(1000)
        for label, value in liking.items()
    }
    total = sum(weights.values())
    shares = {label: budget // unit * weight / total for label, weight in weights.items()}
    counts = {label: int(share) for label, share in shares.items()}
    by_remainder = sorted(liking, key=lambda label: (counts[label] - shares[label], label))
    for label in by_remainder[: budget // unit - sum(counts.values())]:
        counts[label] += 1
    return {label: unit * count for label, count in counts.items()}


def _unit(budget: int, chance: Chance) -> int:
    """Most voters give round numbers of points."""
    return 5 if budget % 5 == 0 and chance.happens("round", 0.9) else 1


def _written(points: Mapping[str, int]) -> str:
    return ",".join(f"{label}={points[label]}" for label in points)


def _approved(liking: Liking, chance: Chance) -> list[str]:
    """Everything above a bar that moves with the voter's strictness."""
    bar = 0.71 + 0.07 * chance.bell("strictness")
    return [label for label, value in liking.items() if value > bar]


# --- Ballots that cannot be read ------------------------------------------------------------


def _unreadable(protocol: Protocol, liking: Liking, budget: int, chance: Chance) -> str:
    order = _order(liking)
    prose = f"I would go with {order[0]}, because it is the most concrete for this student."
    if protocol == "cumulative":
        points = _points(liking, budget, 1)
        return chance.pick("how", (*[_wrong_sum(points, chance)] * 3, prose))
    if protocol == "ranked":
        return chance.pick("how", (",".join(order[:-1]), " > ".join(order), prose))
    return chance.pick("how", (prose, f"My vote: {' and '.join(order[:2])}"))


def _wrong_sum(points: Mapping[str, int], chance: Chance) -> str:
    """Points with a sum other than the budget: a slip of some points, or everything doubled."""
    if chance.happens("doubled", 0.3):
        return _written({label: 2 * value for label, value in points.items()})
    label = chance.pick("where", tuple(points))
    return _written({**points, label: points[label] + chance.pick("by", (1, 2, 3, 5))})
