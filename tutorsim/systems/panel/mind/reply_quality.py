"""How good a tutor's reply is for a student: latent, but in the text, so that all agree on it."""

import re
from functools import lru_cache

from tutorsim.scripted_mind import Chance
from tutorsim.systems.panel.mind.task_knowledge import Knowledge, covers
from tutorsim.systems.panel.mind.wording import Mood, load_wording, style_weights

__all__ = ["help_quality", "is_specific", "opening"]

_SPECIFIC = 0.1
"""What a concrete hint or fact adds."""
_LUCK = 0.06
"""Deviation of what no style explains and a revision leaves as it is."""
_LUCK_OF_REST = 0.05
"""Deviation of what no style explains and a revision draws again."""


@lru_cache(maxsize=8192)
def help_quality(text: str, mood: Mood, known: Knowledge) -> float:
    """About 0.2 to 1: the fit of the text's styles to the mood, concreteness, and luck."""
    fit = load_wording().fit
    weights = style_weights(text)
    base = sum(weight * fit[style][mood.name] for style, weight in weights.items())
    luck = Chance("luck", mood.name, known.question, opening(text))
    base += _LUCK * luck.bell("opening") + _LUCK_OF_REST * luck.bell(text)
    return base + (_SPECIFIC if is_specific(text, known) else 0.0)


def opening(text: str) -> str:
    """The first sentence: what stays the same when a reply is revised."""
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]


def is_specific(text: str, known: Knowledge) -> bool:
    """Whether the text has something concrete about this task."""
    return max(covers(text, known.words["hint"]), covers(text, known.words["counter"])) >= 0.7
