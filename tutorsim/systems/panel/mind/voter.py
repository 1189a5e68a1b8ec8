"""The scripted voters: what they prefer, and how they write it down, not always well."""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from tutorsim.scripted_mind import Chance
from tutorsim.systems.panel.mind.prompt_reading import Asked
from tutorsim.systems.panel.mind.reply_quality import help_quality, opening
from tutorsim.systems.panel.mind.tutor import student_mood, style_of_system
from tutorsim.systems.panel.mind.wording import style_weights
from tutorsim.vocabularies import TOP_SCORE, BallotFormat

__all__ = ["vote_reply"]

_OWN_STYLE = 0.05
_FIRST_SHOWN = 0.035
_OWN_TASTE = 0.11
_MOMENT = 0.05
_CONTRAST = 0.24
"""Difference in preference that makes one reply worth e times the points of another."""
_UNREADABLE: Mapping[BallotFormat, float] = {
    "simple": 0.03,
    "ranked": 0.045,
    "cumulative": 0.07,
    "approval": 0.035,
    "rich": 0.08,
    "score": 0.04,
}
_BAR = 0.71
_STUBBORN = 0.25
"""How often the second asking does not help either."""

Liking = Mapping[str, float]


def vote_reply(asked: Asked, chance: Chance, *, steady: Chance | None = None) -> str:
    """A ballot over the labels shown.

    Args:
        asked: The prompt.
        chance: Draws of this call.
        steady: Where given, the voter is steady: what it prefers depends on the voter, the
            conversation and the replies alone, never on the ballot's format; it approves of
            its favourite at least, and all its ballots can be read. Approvals are the same in
            every format where 25 points are distributed.
    """
    form = asked.form or "simple"
    liking = _liking(asked, chance, steady)
    if not liking:
        return "none"
    if steady is not None:
        return _ballot(form, liking, asked.budget, _Hand(unit=1, bar=_BAR, generous=True))
    rate = _STUBBORN if asked.again else _UNREADABLE[form]
    if chance.happens("unreadable", rate):
        return _unreadable(form, liking, asked.budget, chance)
    ballot = _ballot(form, liking, asked.budget, _hand(form, asked.budget, chance))
    if chance.happens("loose", 0.03):
        return chance.pick("dress", (f"`{ballot}`", f"**{ballot}**", ballot.replace(",", ", ")))
    return ballot


def _liking(asked: Asked, chance: Chance, steady: Chance | None) -> dict[str, float]:
    """Label → preference: shared quality, the voter's taste, the moment, and the place shown."""
    mood, own = student_mood(asked), style_of_system(asked.system).name
    liking = {}
    for place, (label, text) in enumerate(asked.drafts.items()):
        taste = Chance("taste", own, asked.known.question, opening(text)).bell("taste")
        moment = chance.bell(f"moment {label}")
        if steady is not None:
            moment = steady.bell("\x1f".join((asked.system, *asked.spoken.attempts, text)))
        liking[label] = (
            help_quality(text, mood, asked.known)
            + _OWN_STYLE * style_weights(text).get(own, 0.0)
            + (_FIRST_SHOWN if place == 0 else 0.0)
            + _OWN_TASTE * taste
            + _MOMENT * moment
        )
    return liking


class _Hand(NamedTuple):
    """How a voter puts what it prefers into a ballot."""

    unit: int
    """Points come in multiples of it."""
    bar: float
    """What is liked more is approved."""
    generous: bool
    """The favourite is approved, however little it is liked."""


def _hand(form: BallotFormat, budget: int, chance: Chance) -> _Hand:
    """Most voters give round numbers of points; how strict they are moves with the moment."""
    round_ = budget % 5 == 0 and chance.happens("round", 0.9)
    unit = 5 if round_ and form == "cumulative" else 1
    return _Hand(unit, _BAR + 0.07 * chance.bell("strictness"), generous=form == "rich")


def _ballot(form: BallotFormat, liking: Liking, budget: int, hand: _Hand) -> str:
    order = _order(liking)
    if form == "simple":
        return order[0]
    if form == "ranked":
        return ",".join(order)
    if form == "score":
        return "\n".join(f"{label}: {_score(liking[label])}" for label in sorted(liking))
    points = _points(liking, budget, hand.unit)
    if form == "cumulative":
        return _written(points)
    approved = _approved(liking, points, hand)
    if form == "approval":
        return ",".join(sorted(approved)) or "none"
    head, tail = order[: len(approved)], order[len(approved) :]
    return "|".join(_written({label: points[label] for label in part}) for part in (head, tail))


def _approved(liking: Liking, points: Mapping[str, int], hand: _Hand) -> list[str]:
    """Everything above the bar; a generous voter draws it so that points fall there."""
    above = [label for label, value in liking.items() if value > hand.bar]
    if not hand.generous:
        return above
    least = min(points[label] for label in above or _order(liking)[:1])
    return [label for label in liking if points[label] >= least]


def _score(value: float) -> int:
    return min(max(round(TOP_SCORE * value), 0), TOP_SCORE)


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


def _written(points: Mapping[str, int]) -> str:
    return ",".join(f"{label}={points[label]}" for label in points)


# --- Ballots that cannot be read ------------------------------------------------------------


def _unreadable(form: BallotFormat, liking: Liking, budget: int, chance: Chance) -> str:
    order = _order(liking)
    prose = f"I would go with {order[0]}, because it is the most concrete for this student."
    if form == "rich":
        return chance.pick("how", (*_contradictions(liking, budget), prose))
    if form == "cumulative":
        points = _points(liking, budget, 1)
        return chance.pick("how", (*[_wrong_sum(points, chance)] * 3, prose))
    if form == "ranked":
        return chance.pick("how", (",".join(order[:-1]), " > ".join(order), prose))
    return chance.pick("how", (prose, f"My vote: {' and '.join(order[:2])}"))


def _contradictions(liking: Liking, budget: int) -> tuple[str, ...]:
    """Rich ballots that cannot count: points against the order, no bar, points with another sum."""
    points = _points(liking, budget, 1)
    order = _order(liking)
    backwards = _written({label: points[label] for label in reversed(order)})
    fair = _ballot("rich", liking, budget, _Hand(1, _BAR, generous=True))
    doubled = re.sub(r"\d+", lambda found: str(2 * int(found[0])), fair)
    return backwards + "|", fair.replace("|", ","), doubled


def _wrong_sum(points: Mapping[str, int], chance: Chance) -> str:
    """Points with a sum other than the budget: a slip of some points, or everything doubled."""
    if chance.happens("doubled", 0.3):
        return _written({label: 2 * value for label, value in points.items()})
    label = chance.pick("where", tuple(points))
    return _written({**points, label: points[label] + chance.pick("by", (1, 2, 3, 5))})
