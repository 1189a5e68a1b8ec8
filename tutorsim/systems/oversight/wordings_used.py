"""Which wordings a study can use, told by its conditions and settings alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tutorsim.systems.oversight.acts_by_condition import SCRIPTS, Act
from tutorsim.systems.oversight.settings import OversightSettings

FIRST_TEXTS: Final = {
    "head_briefing": "The $agent analyst",
    "head_opening": "Act I, opening of the $agent critic",
    "head_challenges": "Act II, challenges of the devil's advocate",
    "head_rebuttal": "Act III, defence of the $agent critic",
    "head_press": "Act IV, the devil's advocate on the defences",
    "head_closing": "Act V, summary of the $agent critic",
    "head_argument": "Message $turn of the $agent critic",
    "head_assessment": "First assessment of reviewer $agent",
    "head_merge": "Second assessment of reviewer $agent",
    "no_text": "(no text)",
    "none": "(none)",
    "no_reference": "",
}
"""What was said before recordings held these templates. A text here never changes."""

_THESES: Final = ("thesis_form", "thesis_reminder")
_CRITICS: Final = (*_THESES, "system_permissive", "system_strict")
_ANSWERS: Final = ("answer_form", "answer_reminder")
_LEAD_ALONE: Final = ("alone", "system_lead", *_ANSWERS)
_ANALYSTS: Final = ("system_conceptual", "system_behavioural", "system_trajectory")

_OF_ACT: Final[Mapping[Act, Sequence[str]]] = {
    Act.BRIEFING: (
        *_ANALYSTS,
        *("brief_conceptual", "brief_behavioural", "brief_trajectory"),
        *("brief_reminder", "with_briefing", "head_briefing", "none"),
    ),
    Act.OPENING: ("open", "head_opening", *_CRITICS),
    Act.CROSS: ("cross", "cross_reminder", "rebut", "system_advocate", "head_challenges", "none"),
    Act.REBUTTAL: ("head_rebuttal",),
    Act.PRESS: ("press", "press_reminder", "closed_met", "closed_unmet", "head_press"),
    Act.CLOSING: ("close", "closed_unasked", "head_closing"),
    Act.ARGUMENT: ("argue", "argue_first", "head_argument", *_CRITICS),
    Act.ASSESSMENT: ("assess", "system_reviewer", "head_assessment", *_THESES),
    Act.MERGE: ("merge", "head_merge"),
    Act.JUDGMENT: (
        *("judge", "judge_reminder", "system_judge", "stress", "stress_reminder"),
        *("system_stress", "lead", "system_lead", *_ANSWERS),
    ),
    Act.ALONE: _LEAD_ALONE,
    Act.SAMPLES: _LEAD_ALONE,
    Act.MEMBERS: ("alone", *_ANALYSTS, *_ANSWERS),
}
"""Act → its templates; what a rebuttal uses depends on whether it was challenged."""


def used_prompts(conditions: Sequence[str], settings: OversightSettings) -> frozenset[str]:
    """Names of the templates that some call of a study can contain."""
    return frozenset(_used(conditions, settings))


def _used(conditions: Sequence[str], settings: OversightSettings) -> Iterator[str]:
    yield from ("scale", "item", "no_text")
    if settings.show_reference:
        yield from ("item_reference", "no_reference")
    if "hpo" in conditions and settings.adaptive != "off":
        yield from _LEAD_ALONE
    for condition in conditions:
        acts = SCRIPTS[condition].acts
        for act in acts:
            yield from _OF_ACT[act]
        if Act.REBUTTAL in acts and Act.CROSS not in acts:
            yield "rebut_unchallenged"
