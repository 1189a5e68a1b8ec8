"""The two labels of a tutor's reply, and how published annotations map to them.

*mistake*: did the reply identify the student's mistake? 0 or 1. *guidance*: 0 none or a direct
solution, 1 partial, 2 effective scaffolding.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict

LabelName = Literal["mistake", "guidance"]
MistakeMap = Literal["lenient", "strict"]
"""Whether `To some extent` identified the mistake."""
GuidanceMap = Literal["plain", "revealed_is_zero"]
"""Whether a reply that reveals the answer can guide."""

LABELS: Final[tuple[LabelName, ...]] = get_args(LabelName)
MISTAKE_MAPS: Final[tuple[MistakeMap, ...]] = get_args(MistakeMap)
GUIDANCE_MAPS: Final[tuple[GuidanceMap, ...]] = get_args(GuidanceMap)
CLASSES: Final[Mapping[LabelName, tuple[int, ...]]] = {"mistake": (0, 1), "guidance": (0, 1, 2)}
"""Label → its fixed classes."""

CANDIDATES: Final[Mapping[LabelName, tuple[str, ...]]] = {
    "mistake": ("mistake_1", "mistake_0"),
    "guidance": ("guidance_1", "guidance_0", "guidance_2"),
}
"""Label → candidates of a vote on it, in the fallback order."""

MISTAKE: Final = "Mistake_Identification"
GUIDANCE: Final = "Providing_Guidance"
REVEALING: Final = "Revealing_of_the_Answer"

_DEGREES: Final = ("Yes", "To some extent", "No")
ANNOTATION_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    MISTAKE: _DEGREES,
    "Mistake_Location": _DEGREES,
    REVEALING: (
        "Yes (and the answer is correct)",
        "Yes (but the answer is incorrect)",
        "No",
    ),
    GUIDANCE: _DEGREES,
    "Actionability": _DEGREES,
    "humanlikeness": _DEGREES,
    "Coherence": _DEGREES,
    "Tutor_Tone": ("Encouraging", "Neutral", "Offensive"),
}
"""Annotation → its texts, as the published files spell them."""


class Labels(BaseModel):
    """Both labels of one reply."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    mistake: Literal[0, 1]
    guidance: Literal[0, 1, 2]


class _Map(NamedTuple):
    yes: int
    some: int
    no: int

    def of(self, text: str) -> int:
        return dict(zip(_DEGREES, self, strict=True))[text]


_MISTAKE: Final[Mapping[MistakeMap, _Map]] = {"lenient": _Map(1, 1, 0), "strict": _Map(1, 0, 0)}
_GUIDANCE: Final = _Map(2, 1, 0)


def gold_labels(
    annotation: Mapping[str, str], *, mistake_map: MistakeMap, guidance_map: GuidanceMap
) -> Labels:
    """The labels that published annotations stand for.

    `mistake_map` says what `To some extent` is as a mistake label;
    `guidance_map="revealed_is_zero"` needs the entry on revealing the answer, and gives 0 if the
    reply reveals one, right or wrong.
    """
    guidance = _GUIDANCE.of(annotation[GUIDANCE])
    if guidance_map == "revealed_is_zero" and annotation[REVEALING] != "No":
        guidance = 0
    return Labels.model_validate(
        {"mistake": _MISTAKE[mistake_map].of(annotation[MISTAKE]), "guidance": guidance}
    )


def right_labels(label: Labels | None, gold: Labels | None) -> dict[LabelName, bool]:
    """Label → whether it is as the gold one: no label is wrong; empty without gold."""
    if gold is None:
        return {}
    return {
        name: label is not None and getattr(label, name) == getattr(gold, name) for name in LABELS
    }
