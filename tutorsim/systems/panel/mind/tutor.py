"""The scripted tutors: drafts in the style of their role, reviews, and revisions."""

import re

from tutorsim.scripted_mind import Chance
from tutorsim.systems.panel.mind.prompt_reading import Asked
from tutorsim.systems.panel.mind.reply_quality import help_quality, is_specific
from tutorsim.systems.panel.mind.task_knowledge import Knowledge
from tutorsim.systems.panel.mind.wording import (
    Mood,
    Style,
    fill,
    load_wording,
    mood_of_text,
)

__all__ = ["draft_reply", "review_reply", "revision_reply", "student_mood", "style_of_system"]

_SPECIFIC_DRAFT = 0.55
_NO_MARKER = 0.012
_NO_BLOCKS = 0.008
_STUBBORN = 0.2
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
    """Openings that suit the student's last message, and the belief that they name.

    A belief is called the student's own only where the message holds it.
    """
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
    return chance.happens("form", _STUBBORN if asked.again else rate)
