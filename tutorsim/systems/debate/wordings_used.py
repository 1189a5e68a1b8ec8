"""Which templates a study of debates can use, told by its settings alone."""

from collections.abc import Iterator, Sequence
from typing import Final

from tutorsim.systems.debate.settings import (
    BASELINES,
    Condition,
    DebateSettings,
    DebateVariant,
    vote_protocol,
)
from tutorsim.vocabularies import PROTOCOLS

__all__ = ["FIRST_TEXTS", "debate_templates"]

FIRST_TEXTS: Final = {
    "other_message": "$name, turn $turn: $text",
    "own_message": "$name, turn $turn, your own: $text",
    "participant": "Participant $number",
    "participant_description": "You take part in the discussion.",
    "no_text": "(no text)",
}
"""What was said before recordings held these templates. A text here never changes."""

_EVERYWHERE: Final = (
    *("task_open", "task_options", "instruction_choice", "instruction_names"),
    *("instruction_passage", "extract", "extract_system", "text_reminder"),
)
_OF_EXPERTS: Final = (
    *("persona", "persona_system", "persona_none", "persona_made", "persona_reminder"),
)
_OF_VOTES: Final = ("answer", "answer_agreed", "answer_reminder", "vote", "vote_reminder")
_OF_CHALLENGE: Final = {
    "solution": (),
    "history": ("challenge_history",),
    "facts": ("challenge_facts",),
    "wrong": ("wrong_answer", "solo_system", "irrelevant_answer"),
    "irrelevant": ("irrelevant_answer",),
}


def debate_templates(variants: Sequence[DebateVariant]) -> frozenset[str]:
    """The templates that some call of a study with these variants can contain."""
    return frozenset(
        name
        for variant in variants
        for condition in variant.conditions
        for name in (*_EVERYWHERE, *_of_condition(condition, variant.settings))
    )


def _of_condition(condition: Condition, settings: DebateSettings) -> Iterator[str]:
    thinks = settings.chain_of_thought
    if condition in BASELINES:
        yield from ("solo_system", "solve")
        if condition == "baseline_cot" or (condition == "self_refine" and thinks):
            yield "think"
        if condition == "self_refine":
            yield from ("refine", "no_text")
        return
    yield from ("agent_system", "said", "said_nothing", *FIRST_TEXTS)
    yield from ("think",) if thinks else ()
    yield from _OF_EXPERTS if settings.personas == "expert" else ()
    yield from _of_messages(settings)
    forms = PROTOCOLS if condition == "full" else (vote_protocol(condition),)
    if forms != (None,):
        yield from (*_OF_VOTES, *(f"ballot_{form}" for form in forms))
        yield from ("answer_confidence",) if settings.confidence else ()
    if settings.challenge and condition != "full":
        yield from ("challenge", "challenge_reminder", "counter")
        for one in settings.challenge:
            yield from _OF_CHALLENGE[one]


def _of_messages(settings: DebateSettings) -> Iterator[str]:
    reasoning = settings.generator == "reasoning"
    tail = "_reasoning" if reasoning else ""
    yield f"draft{tail}"
    yield f"improve{tail}" if settings.paradigm == "collective" else f"message_{settings.generator}"
    yield "current"
    if settings.generator == "free":
        yield "current_none"
