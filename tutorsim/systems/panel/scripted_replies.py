"""The scripted panel behind the stand-in: student, judge, tutors and voters."""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.systems.panel.scripted_prompt_reading_tasks_moods_quality import (
    Asked,
    Kind,
    Knowledge,
    Level,
    Mood,
    Style,
    content_words,
    covers,
    fill,
    help_quality,
    is_specific,
    level_of,
    load_wording,
    mood_of_text,
    opening,
    style_weights,
)
from tutorsim.vocabularies import TOP_SCORE, BallotFormat

# --- Judge ---------------------------------------------------------------------------------------

_SCORES: dict[Level, tuple[str, ...]] = {
    3: ("1.0", "1.0", "0.9", "0.85"),
    2: ("0.7", "0.7", "0.7", "0.75", "0.6"),
    1: ("0.4", "0.4", "0.5", "0.3"),
    0: ("0.1", "0.1", "0.2", "0.0"),
}
_UNREADABLE_SCORES = 0.003
_REREAD = 0.1
"""How often a second reading of the same answer gives another score than the text's own."""


def judge_reply(asked: Asked, chance: Chance) -> str:
    """`SCORE: x` and one line of rationale."""
    known, answer = asked.known, asked.graded
    words = answer.split("```", 1)[0]
    level = level_of(words, known)
    if known.invented:
        level = max(level, _by_reference(asked.user, words))
    blank = level == 0 and _is_blank(words, known.topic)
    own = Chance("score", known.question, words)
    score = (
        "0.0"
        if blank
        else (chance if chance.happens("reread", _REREAD) else own).pick("score", _SCORES[level])
    )
    kind = "blank" if blank else ("wrong", "partial", "nearly", "right")[level]
    why = fill(chance.pick("why", load_wording().judge[kind]), known)
    if chance.happens("unreadable", _UNREADABLE_SCORES):
        return f"I would give this about {score}. {why}"
    return f"SCORE: {score}\n{why}"


def _by_reference(user: str, words: str) -> Level:
    """The level that agreement with the prompt's reference shows."""
    found = re.search(r"Reference answer:\s+(.+)((?:\n.+)*)", user)
    if found is None:
        return 0
    if covers(words, content_words(found[1])) < 0.8:
        return 0
    return 3 if covers(words, content_words(found[2])) >= 0.35 else 2


def _is_blank(words: str, topic: str) -> bool:
    """Whether the student says nothing but that there is no answer."""
    blanks = (blank for mood in load_wording().moods.values() for blank in mood.blanks)
    return not words.strip() or words.strip() in {blank.format(topic=topic) for blank in blanks}


# --- Student -------------------------------------------------------------------------------------

_CODE_RIGHT = (0.03, 0.15, 0.75, 0.96)
"""How often the program is right at each level."""
_NO_BLOCK = 0.012
"""How often the required code block is forgotten."""


class _State(NamedTuple):
    level: Level
    before: Level | None
    """`None` for the first message."""
    last: str
    """The message before; empty for the first one."""


def student_reply(asked: Asked, chance: Chance) -> str:
    """The student's next message."""
    mood, prior, persistence = _character(asked)
    state = _state(asked, mood, prior, persistence, chance)
    text = _words(asked.known, mood, state, chance)
    if asked.known.program is None or chance.happens("no block", _NO_BLOCK):
        return text
    return f"{text}\n```python\n{_program(asked.known, state, chance)}\n```"


def _character(asked: Asked) -> tuple[Mood, float, float]:
    """Mood, prior knowledge and persistence, from the traits that the prompt names."""
    moods = load_wording().moods.values()
    traits = asked.traits
    if traits is None:
        return mood_of_text(asked.user), 0.3, 0.5
    nearest = min(
        moods, key=lambda mood: sum((a - b) ** 2 for a, b in zip(mood.traits, traits, strict=True))
    )
    return nearest, traits[0], traits[2]


def _state(asked: Asked, mood: Mood, prior: float, persistence: float, chance: Chance) -> _State:
    spoken, known = asked.spoken, asked.known
    if not spoken.attempts:
        return _State(_first_level(known, prior, chance), None, "")
    last = spoken.attempts[-1]
    before = level_of(last, known)
    gain = help_quality(spoken.delivered or "", mood, known)
    rises = chance.happens("rises", min(0.9, max(0.08, 1.3 * gain - 0.42 + 0.1 * persistence)))
    steps = (2 if chance.happens("leaps", 0.25 * gain) else 1) if rises else 0
    if not steps and before in (1, 2) and chance.happens("slips", 0.06):
        steps = -1
    level: Level = (0, 1, 2, 3)[min(3, before + steps)]
    return _State(level, before, last)


def _first_level(known: Knowledge, prior: float, chance: Chance) -> Level:
    """Higher with prior knowledge, and with questions that happen to be easy."""
    ease = 0.12 * Chance("ease", known.question).bell("ease")
    reach = chance.unit("first") + 0.75 * (prior - 0.35) + ease
    return 3 if reach > 0.78 else 2 if reach > 0.64 else 1 if reach > 0.4 else 0


def _words(known: Knowledge, mood: Mood, state: _State, chance: Chance) -> str:
    """One to three sentences that show the level."""
    if state.level == 0 and mood.blanks and chance.happens("blank", 0.35):
        return fill(chance.pick("blank words", mood.blanks), known)
    held = [belief for belief in known.beliefs if belief in state.last]
    belief = chance.pick("belief", held or known.beliefs)
    said = (belief, known.clue, known.answer, known.answer)
    parts = [f"{chance.pick('lead', mood.leads)}: {said[state.level]}."]
    if state.level == 3:
        parts.append(known.because)
    if state.before is not None and state.level != 3:
        word = "changed" if state.level > state.before else "same"
        parts.insert(0, chance.pick("turn", load_wording().turns[word]))
    if len(parts) < 3:
        parts.append(chance.pick("tail", mood.tails))
    return " ".join(parts)


# --- Programs -------------------------------------------------------------------------------


def _program(known: Knowledge, state: _State, chance: Chance) -> str:
    """The student's program: kept while the understanding stays, and once it is right."""
    head = known.program or ""
    kept = re.search(r"```python\n(.*?)\n```", state.last, re.DOTALL)
    if kept and (state.level == state.before or _is_right(kept[1], known)):
        return kept[1]
    if known.body and chance.happens("right", _CODE_RIGHT[state.level]):
        return f"{head}\n{known.body.rstrip()}"
    if not known.slips or (state.level == 0 and chance.happens("stub", 0.3)):
        return f"{head}\n{_stub(head)}"
    old, new = chance.pick("slip", known.slips)
    return f"{head}\n{known.body.replace(old, new).rstrip()}"


def _stub(head: str) -> str:
    """A body of the right kind that does not do the work."""
    kinds = (("bool", "False"), ("int", "0"), ("float", "0.0"), ("str", "''"), ("list", "[]"))
    returned = re.search(r"->\s*([\w.]+)[^:]*:\s*$", head)
    kind = returned[1].lower() if returned else ""
    value = next((text for name, text in kinds if kind.startswith(name)), "None")
    return f"    # not finished yet\n    return {value}"


def _is_right(program: str, known: Knowledge) -> bool:
    return bool(known.body) and program.rstrip().endswith(known.body.rstrip())


# --- Tutor ---------------------------------------------------------------------------------------

_SPECIFIC_DRAFT = 0.55
_NO_MARKER = 0.012
_NO_BLOCKS = 0.008
_STUBBORN_TUTORS = 0.2
"""How often the second asking does not repair the form either."""


def style_of_system(system: str) -> Style:
    """The style that a role's title and objective ask for."""
    styles = load_wording().styles
    named = next((s for s in styles.values() if f"{s.name} tutor" in system.lower()), None)
    if named:
        return named
    lower = system.lower()
    return max(styles.values(), key=lambda style: sum(key in lower for key in style.keys))


def student_mood(asked: Asked) -> Mood:
    """The mood that the student's last message shows."""
    attempts = asked.spoken.attempts
    return mood_of_text(attempts[-1] if attempts else "")


def draft_reply(asked: Asked, chance: Chance) -> str:
    """A first draft: an opening, something to work with, and a closing."""
    style, known = style_of_system(asked.system), asked.known
    specific = chance.happens("specific", _SPECIFIC_DRAFT)
    opens, belief = _opens(asked, style, chance)
    parts = (
        chance.pick("open", opens),
        chance.pick("core", style.specific if specific else style.vague),
        chance.pick("close", style.closes),
    )
    text = " ".join(fill(part, known, belief=belief) for part in parts)
    return _formed(asked, style, text, chance)


def _opens(asked: Asked, style: Style, chance: Chance) -> tuple[tuple[str, ...], str]:
    """Openings that suit the student's last message, and the belief named, if it holds it."""
    attempts, known = asked.spoken.attempts, asked.known
    if style.name != "misconception":
        return style.opens, ""
    held = [belief for belief in known.beliefs if attempts and belief in attempts[-1]]
    if held:
        return style.opens[:2], held[0]
    return style.opens[2:], chance.pick("belief", known.beliefs)


def revision_reply(asked: Asked, chance: Chance) -> str:
    """The own draft, made more concrete, with at most one sentence of a peer."""
    style, known = style_of_system(asked.system), asked.known
    parts = _sentences(asked.own_draft)[:4]
    if not is_specific(asked.own_draft, known) and chance.happens("sharper", 0.5):
        parts[1:2] = [fill(chance.pick("core", style.specific), known)]
    ideas = _ideas(asked)
    if ideas and len(parts) < 4 and chance.happens("borrows", 0.35):
        parts.insert(2, chance.pick("idea", ideas))
    elif chance.happens("other close", 0.5):
        parts[2:3] = [chance.pick("close", style.closes)]
    return _formed(asked, style, " ".join(parts), chance)


def _ideas(asked: Asked) -> list[str]:
    """The second sentence of each peer's draft, where the own draft does not say as much."""
    drafts = (_sentences(text) for text in asked.drafts.values())
    ideas = [sentences[1] for sentences in drafts if len(sentences) > 1]
    return [idea for idea in ideas if not _says(asked.own_draft, idea, asked.known)]


def _says(text: str, idea: str, known: Knowledge) -> bool:
    told = (known.hint, known.counter[1:], idea)
    return any(phrase in text and phrase in idea for phrase in told)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!])\s+", text)


def _formed(asked: Asked, style: Style, text: str, chance: Chance) -> str:
    """The text in the form that was asked for; now and then without its marker."""
    if _breaks_form(asked, chance, _NO_MARKER):
        return text
    lines = [f"PROPOSAL: {text}", f"RATIONALE: {chance.pick('rationale', style.rationales)}"]
    if "CONFIDENCE:" in asked.user:
        quality = help_quality(text, student_mood(asked), asked.known)
        sure = 45 + 50 * quality + 6 * chance.bell("confidence")
        lines.append(f"CONFIDENCE: {round(min(98, max(20, sure)))}")
    return "\n".join(lines)


def review_reply(asked: Asked, chance: Chance) -> str:
    """A block for each draft."""
    if _breaks_form(asked, chance, _NO_BLOCKS):
        return "All of these would do. The first one is the most concrete."
    mood = student_mood(asked)
    quality = {
        label: help_quality(text, mood, asked.known) + 0.08 * chance.bell(f"view {label}")
        for label, text in asked.drafts.items()
    }
    middle = sorted(quality.values())[len(quality) // 2] if quality else 0.0
    blocks = [
        _block(asked, label, good=value >= middle, chance=chance)
        for label, value in quality.items()
    ]
    return "\n\n".join(blocks)


def _block(asked: Asked, label: str, *, good: bool, chance: Chance) -> str:
    notes = load_wording().notes
    strength = chance.pick(f"strength {label}", notes["strong" if good else "fair"])
    weakness = chance.pick(f"weakness {label}", notes["minor" if good else "weak"])
    others = [other for other in asked.drafts if other != label]
    if not good and others and chance.happens(f"compares {label}", 0.15):
        weakness = chance.pick(f"comparison {label}", notes["compared"])
        weakness = weakness.replace("OTHER", chance.pick(f"other {label}", others))
    said = [fill(text, asked.known) for text in (strength, weakness)]
    return f"{label}:\nSTRENGTH: {said[0]}\nWEAKNESS: {said[1]}"


def _breaks_form(asked: Asked, chance: Chance, rate: float) -> bool:
    return chance.happens("form", _STUBBORN_TUTORS if asked.again else rate)


# --- Voter ---------------------------------------------------------------------------------------

_OWN_STYLE = 0.05
_FIRST_SHOWN = 0.035
_OWN_TASTE = 0.11
_MOMENT = 0.05
_CONTRAST = 0.24
"""Difference in preference that makes one reply worth e times the points of another."""
_UNREADABLE_BALLOTS: Mapping[BallotFormat, float] = {
    "simple": 0.03,
    "ranked": 0.045,
    "cumulative": 0.07,
    "approval": 0.035,
    "rich": 0.08,
    "score": 0.04,
}
_BAR = 0.71
_STUBBORN_VOTERS = 0.25
"""How often the second asking does not help either."""

Liking = Mapping[str, float]


def vote_reply(asked: Asked, chance: Chance, *, steady: Chance | None = None) -> str:
    """A ballot over the labels shown.

    `steady`: where given, the voter is steady: what it prefers depends on the voter, the
    conversation and the replies alone, never on the ballot's format; it approves of its favourite
    at least, and all its ballots can be read. Approvals are the same in every format where 25
    points are distributed.
    """
    form = asked.form or "simple"
    liking = _liking(asked, chance, steady)
    if not liking:
        return "none"
    if steady is not None:
        return _ballot(form, liking, asked.budget, _Hand(unit=1, bar=_BAR, generous=True))
    rate = _STUBBORN_VOTERS if asked.again else _UNREADABLE_BALLOTS[form]
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


# --- Replies to each prompt ----------------------------------------------------------------------


def panel_reply(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    """The reply to a prompt of a panel; `None` for one that asks for none of its parts.

    `steady`: what steady voters draw from; `None` for voters with moods and slips.
    """
    asked = Asked(asking.system, asking.user)
    if asked.kind == "vote":
        return vote_reply(asked, chance, steady=steady)
    reply = _REPLIES.get(asked.kind)
    return None if reply is None else reply(asked, chance)


_REPLIES: Mapping[Kind, Callable[[Asked, Chance], str]] = {
    "student": student_reply,
    "judge": judge_reply,
    "propose": draft_reply,
    "revise": revision_reply,
    "review": review_reply,
}
