"""Which wordings a study can use, told by its conditions and settings alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tutorsim.systems.oversight.acts_by_condition import SCRIPTS, Act
from tutorsim.systems.oversight.settings import OversightSettings

__all__ = ["used_prompts"]

_THESES: Final = ("thesis_form", "thesis_reminder")
_CRITICS: Final = (*_THESES, "system_permissive", "system_strict")
_ANSWERS: Final = ("answer_form", "answer_reminder")
_LEAD_ALONE: Final = ("alone", "system_lead", *_ANSWERS)
_ANALYSTS: Final = ("system_conceptual", "system_behavioural", "system_trajectory")

_OF_ACT: Final[Mapping[Act, Sequence[str]]] = {
    Act.BRIEFING: (
        *_ANALYSTS,
        *("brief_conceptual", "brief_behavioural", "brief_trajectory"),
        *("brief_reminder", "with_briefing"),
    ),
    Act.OPENING: ("open", *_CRITICS),
    Act.CROSS: ("cross", "cross_reminder", "rebut", "system_advocate"),
    Act.REBUTTAL: (),
    Act.PRESS: ("press", "press_reminder", "closed_met", "closed_unmet"),
    Act.CLOSING: ("close", "closed_unasked"),
    Act.ARGUMENT: ("argue", "argue_first", *_CRITICS),
    Act.ASSESSMENT: ("assess", "system_reviewer", *_THESES),
    Act.MERGE: ("merge",),
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
    yield from ("scale", "item")
    if settings.show_reference:
        yield "item_reference"
    if "hpo" in conditions and settings.adaptive != "off":
        yield from _LEAD_ALONE
    for condition in conditions:
        acts = SCRIPTS[condition].acts
        for act in acts:
            yield from _OF_ACT[act]
        if Act.REBUTTAL in acts and Act.CROSS not in acts:
            yield "rebut_unchallenged"
