"""The scripted student: a mood, a level of understanding that shows, and progress after help."""

import re
from typing import NamedTuple

from tutorsim.scripted_mind import Chance
from tutorsim.systems.panel.mind.prompt_reading import Asked
from tutorsim.systems.panel.mind.reply_quality import help_quality
from tutorsim.systems.panel.mind.task_knowledge import Knowledge, Level, level_of
from tutorsim.systems.panel.mind.wording import Mood, fill, load_wording, mood_of_text

__all__ = ["student_reply"]

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
