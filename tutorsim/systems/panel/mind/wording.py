"""The scripted model's wordings, and how it recognises moods and styles by them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from tutorsim.systems.panel.mind.task_knowledge import Knowledge

__all__ = ["Mood", "Style", "Wording", "fill", "load_wording", "mood_of_text", "style_weights"]


@dataclass(frozen=True)
class Mood:
    """How a student speaks."""

    name: str
    traits: tuple[float, ...]
    leads: tuple[str, ...]
    tails: tuple[str, ...]
    blanks: tuple[str, ...]
    """What the student says instead of an answer; empty where the student always answers."""

    @property
    def phrases(self) -> tuple[str, ...]:
        """What the mood is known by."""
        blanks = (blank.partition("{topic}")[0] for blank in self.blanks)
        return (*self.leads, *self.tails, *blanks)


@dataclass(frozen=True)
class Style:
    """How a tutor speaks."""

    name: str
    keys: tuple[str, ...]
    """Words of an objective that ask for this style."""
    cues: tuple[str, ...]
    """Phrases by which a text in this style is known."""
    opens: tuple[str, ...]
    specific: tuple[str, ...]
    vague: tuple[str, ...]
    closes: tuple[str, ...]
    rationales: tuple[str, ...]


@dataclass(frozen=True)
class Wording:
    """All wordings."""

    moods: Mapping[str, Mood]
    styles: Mapping[str, Style]
    fit: Mapping[str, Mapping[str, float]]
    """Style → mood → how well the help fits, from 0 to 1."""
    turns: Mapping[str, tuple[str, ...]]
    notes: Mapping[str, tuple[str, ...]]
    judge: Mapping[str, tuple[str, ...]]


@cache
def load_wording() -> Wording:
    """The wordings of `wording.toml`."""
    path = resources.files("tutorsim.systems.panel").joinpath("mind", "wording.toml")
    tables = tomllib.loads(path.read_text("utf-8"))
    return Wording(
        moods={name: Mood(name, **_tuples(said)) for name, said in tables["moods"].items()},
        styles={name: Style(name, **_tuples(said)) for name, said in tables["styles"].items()},
        fit=tables["fit"],
        turns=_tuples(tables["turns"]),
        notes=_tuples(tables["notes"]),
        judge=_tuples(tables["judge"]),
    )


def _tuples(table: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(values) for name, values in table.items()}


def fill(template: str, known: Knowledge, *, belief: str = "") -> str:
    """A wording with its slots filled from what is known of the task."""
    return template.format(
        topic=known.topic,
        hint=known.hint,
        counter=known.counter,
        COUNTER=known.counter[:1].upper() + known.counter[1:],
        belief=belief,
    )


@lru_cache(maxsize=4096)
def mood_of_text(text: str) -> Mood:
    """The mood that a student's message shows; guarded when it shows none."""
    wording = load_wording()
    counts = {
        name: sum(phrase in text for phrase in mood.phrases) for name, mood in wording.moods.items()
    }
    best = max(counts, key=lambda name: counts[name])
    return wording.moods[best if counts[best] else "guarded"]


@lru_cache(maxsize=4096)
def style_weights(text: str) -> Mapping[str, float]:
    """How much of each style a tutor's text shows, summing to 1."""
    lower = text.lower()
    styles = load_wording().styles
    counts = {name: sum(cue in lower for cue in style.cues) for name, style in styles.items()}
    total = sum(counts.values())
    if not total:
        return {"general": 1.0}
    return {name: count / total for name, count in counts.items() if count}
