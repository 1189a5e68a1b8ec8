"""Who speaks next: scores, silence and four rules, in exact decimals.

Pure. Scores are tenths and adjusted scores hundredths, both whole numbers, so no result depends
on how a machine rounds. The rules are those of a lesson in which agents decide themselves when
to speak (PRISM, Tran et al. 2025, section 3); the silence factor and the rule `inner_thoughts`
are those of Liu et al. 2025.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.records.group import CycleRecord

Silence = Literal["raise", "decay", "off"]
"""What silence does to a score: 1.01 per message, its inverse, or nothing."""
SelectionRule = Literal["prism", "inner_thoughts"]
"""The rules of this module's study, or that of the framework that it cites."""
StepKind = Literal["floor", "address", "interruption", "threshold", "silent_longest", "order"]
"""Which rule narrowed the candidates."""

SILENCES: Final[tuple[Silence, ...]] = get_args(Silence)
SELECTIONS: Final[tuple[SelectionRule, ...]] = get_args(SelectionRule)
INTERNAL: Final = ("relevance", "impact", "urgency")
"""Criteria about the agent itself."""
EXTERNAL: Final = ("coherence", "novelty", "balance")
"""Criteria about the conversation."""
CRITERIA: Final = (*INTERNAL, *EXTERNAL)
_FACTOR: Final[Mapping[Silence, tuple[int, int]]] = {
    "raise": (101, 100),
    "decay": (100, 101),
    "off": (1, 1),
}
"""What a message does to the score of who stays silent, as numerator and denominator."""
_ALLOCATED_TO_ANOTHER: Final = 400
"""Hundredths that the cited framework wants of a thought when another was given the turn."""


class Rule(NamedTuple):
    """How scores become a speaker."""

    weight: Fraction = Fraction(3, 5)
    """λ: the share of the external criteria in the total."""
    threshold: Fraction = Fraction(7, 2)
    interrupt_threshold: Fraction = Fraction(4)
    silence: Silence = "raise"
    selection: SelectionRule = "prism"
    criteria: tuple[str, ...] = CRITERIA
    """Criteria that count; scores given as two sums count as all of their group."""


class Bid(NamedTuple):
    """An agent's thought, as the selection sees it."""

    agent: str
    wants: bool
    """The thought asks to be spoken."""
    corrects: bool
    """The thought corrects an error."""
    silent: int
    """Messages since the agent last spoke; since the start if it never did."""
    scores: Mapping[str, int] | None
    """Criterion (or `internal`, `external`) → tenths; `None` where nobody could score it."""


class Moment(NamedTuple):
    """The last message, as far as it says who is to speak."""

    speaker: str | None
    """Author of the message, also when a silence came after it; `None` before the first message."""
    continues: bool = False
    """Whether the author keeps the floor."""
    addressed: tuple[str, ...] = ()
    """Participants that it names, its author left out."""


class Step(NamedTuple):
    """A rule that applied, and who was left after it."""

    rule: StepKind
    kept: tuple[str, ...]


class Selection(NamedTuple):
    """Who speaks, and how that came about."""

    chosen: str | None
    totals: Mapping[str, Fraction]
    """Agent → weighted mean of its scores, before silence; scored agents that want to speak."""
    adjusted: Mapping[str, int]
    """Agent → hundredths, after silence."""
    steps: tuple[Step, ...]


def total_score(scores: Mapping[str, int], rule: Rule) -> Fraction:
    """(1 − λ) · internal + λ · external, each the mean of its criteria, from 1 to 5.

    With no counted criterion in one group the total is the mean of the other.

    `scores`: criterion → tenths, or the two sums under `internal` and `external`. Raises
    `ValueError` if no criterion counts.
    """
    inner = _mean(scores, "internal", [name for name in INTERNAL if name in rule.criteria])
    outer = _mean(scores, "external", [name for name in EXTERNAL if name in rule.criteria])
    if inner is None and outer is None:
        raise ValueError(f"none of the criteria {list(rule.criteria)} counts")
    if inner is None or outer is None:
        return Fraction(*(outer if inner is None else inner))  # type: ignore[misc]
    # In whole numbers, which are many times faster than a sum of products of fractions.
    (i, m), (o, n), (a, b) = inner, outer, rule.weight.as_integer_ratio()
    return Fraction((b - a) * i * n + a * o * m, b * m * n)


def _mean(scores: Mapping[str, int], whole: str, names: Sequence[str]) -> tuple[int, int] | None:
    """A mean as numerator and denominator."""
    if not names:
        return None
    tenths = [scores[whole]] if whole in scores else [scores[name] for name in names]
    return sum(tenths), 10 * len(tenths)


def adjusted_score(total: Fraction, silent: int, rule: Rule) -> int:
    """The total after silence, held to 1…5 and rounded half-even, in hundredths.

    The cited framework's rule rounds to one decimal, the study's to two.
    """
    (x, y), (f, g) = total.as_integer_ratio(), _FACTOR[rule.silence]
    x, y = x * f**silent, y * g**silent
    x, y = min(max(x, y), 5 * y), y
    return 10 * rounded(10 * x, y) if rule.selection == "inner_thoughts" else rounded(100 * x, y)


def rounded(numerator: int, denominator: int) -> int:
    """A fraction rounded to a whole number, a half to the even one."""
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))


def select_speaker(bids: Sequence[Bid], moment: Moment, rule: Rule) -> Selection:
    """Choose who speaks. `bids`: one per agent that thought, in catalog order."""
    scored = {bid.agent: bid for bid in bids if bid.wants and bid.scores is not None}
    totals = {name: total_score(bid.scores or {}, rule) for name, bid in scored.items()}
    adjusted = {
        name: adjusted_score(totals[name], bid.silent, rule) for name, bid in scored.items()
    }
    chooser = _framework if rule.selection == "inner_thoughts" else _study
    chosen, steps = chooser(_Choice(scored, adjusted, moment, rule))
    return Selection(chosen, totals, adjusted, tuple(steps))


class _Choice(NamedTuple):
    bids: Mapping[str, Bid]
    """Agents that may be chosen, in catalog order."""
    adjusted: Mapping[str, int]
    moment: Moment
    rule: Rule

    def left(self, keep: Callable[[str], bool]) -> list[str]:
        return [name for name in self.bids if keep(name)]


def _study(choice: _Choice) -> tuple[str | None, list[Step]]:
    """Rules 1 to 5 of the study, in their order."""
    moment, steps = choice.moment, list[Step]()
    favoured: list[str] = []
    open_floor = not moment.continues and not moment.addressed
    if moment.continues:
        favoured = choice.left(lambda name: name == moment.speaker)
        steps.append(Step("floor", tuple(favoured)))
    elif moment.addressed:
        named = choice.left(lambda name: name in moment.addressed and name != moment.speaker)
        steps.append(Step("address", tuple(named)))
        favoured = _best(choice, named, steps)
    others = choice.left(lambda name: name not in favoured and name != moment.speaker)
    if not open_floor:
        others = [name for name in others if _interrupts(choice, name)]
        if others:
            steps.append(Step("interruption", tuple(others)))
    least = choice.rule.threshold  # a whole number is above it and its floor, or neither
    limit = 100 * least.numerator // least.denominator
    above = [name for name in others if choice.adjusted[name] > limit]
    if len(above) < len(others):
        steps.append(Step("threshold", tuple(above)))
    best = _best(choice, [*favoured, *above], steps)
    return (best[0] if best else None), steps


def _framework(choice: _Choice) -> tuple[str | None, list[Step]]:
    """The cited framework's rule: a threshold by who was given the turn, then the best."""
    moment, rule = choice.moment, choice.rule

    def offers(name: str) -> bool:
        if name == moment.speaker:
            return False
        if not moment.addressed:
            return choice.adjusted[name] >= 100 * rule.threshold
        return name in moment.addressed or choice.adjusted[name] >= _ALLOCATED_TO_ANOTHER

    offering = choice.left(offers)
    kept = Step("address" if moment.addressed else "threshold", tuple(offering))
    top = max((choice.adjusted[name] for name in offering), default=0)
    tied = [name for name in offering if choice.adjusted[name] == top]
    steps = [kept, Step("order", tuple(tied[:1]))] if len(tied) > 1 else [kept]
    return (tied[0] if tied else None), steps


def _interrupts(choice: _Choice, name: str) -> bool:
    if not choice.bids[name].corrects:
        return False
    return choice.adjusted[name] >= 100 * choice.rule.interrupt_threshold


def _best(choice: _Choice, names: Sequence[str], steps: list[Step]) -> list[str]:
    """The largest adjusted score; among equals the longest silent, then catalog order."""
    if not names:
        return []
    top = max(choice.adjusted[name] for name in names)
    tied = choice.left(lambda name: name in names and choice.adjusted[name] == top)
    if len(tied) == 1:
        return tied
    longest = max(choice.bids[name].silent for name in tied)
    quiet = [name for name in tied if choice.bids[name].silent == longest]
    steps.append(Step("silent_longest", tuple(quiet)))
    if len(quiet) > 1:
        steps.append(Step("order", tuple(quiet[:1])))
    return quiet[:1]


# --- In words ------------------------------------------------------------------------------------


def reason(cycle: CycleRecord, shown: Callable[[str], str]) -> str:
    """The rule that decided who spoke in a logged cycle; empty where nothing was decided.

    `shown`: a participant's name as readers see it.
    """
    if cycle.prediction is not None:
        named = cycle.prediction.named
        return f"Predicted to speak next: {'nobody' if named is None else shown(named)}."
    if not cycle.thoughts:
        return ""
    said = _why_nobody(cycle, shown) if cycle.chosen is None else _why(cycle, shown(cycle.chosen))
    rules = {step.rule for step in cycle.steps if cycle.chosen in step.kept}
    if rules & {"silent_longest", "order"}:
        first = "first in the group's order" if "order" in rules else "longest silent"
        said += f" Of equal scores it was the {first}."
    if cycle.withdrawn:
        said += " It was withdrawn, because the person had written."
    elif "after_withdrawal" in rules:
        said += " It was posted whatever the person had written, after one that was withdrawn."
    return said


def _why(cycle: CycleRecord, name: str) -> str:
    kept = {step.rule: cycle.chosen in step.kept for step in cycle.steps}
    if kept.get("interruption"):
        return f"{name} corrected an error, which may interrupt whoever had the turn."
    if kept.get("floor"):
        return f"{name} kept the floor, so the turn was not open to the others."
    if cycle.chosen in cycle.addressed and kept.get("address"):
        offered = {who for step in cycle.steps if step.rule == "address" for who in step.kept}
        alone = offered <= set(cycle.addressed)
        told = "so the turn was not open to the others" if alone else "and had the highest score"
        return f"{name} was addressed, {told}."
    return f"{name} had the highest score that was high enough."


def _why_nobody(cycle: CycleRecord, shown: Callable[[str], str]) -> str:
    rules = {step.rule for step in cycle.steps}
    if all(thought.action == "listen" for thought in cycle.thoughts):
        return "Nobody spoke: all listened."
    if all(thought.adjusted is None for thought in cycle.thoughts):
        return "Nobody spoke: no thought could be scored."
    if "floor" in rules:
        return f"Nobody spoke: {shown(cycle.speaker or '')} kept the floor, and said no more."
    if "address" in rules:
        addressed = " and ".join(map(shown, cycle.addressed))
        return f"Nobody spoke: only {addressed} had the turn."
    return "Nobody spoke: no score was high enough."
