"""Gold labels: what people's published annotations of a tutor's reply say of its two labels."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from tutorsim.records.oversight import Labels

MistakeMap = Literal["lenient", "strict"]
"""Whether `To some extent` identified the mistake."""
GuidanceMap = Literal["plain", "revealed_is_zero"]
"""Whether a reply that reveals the answer can guide."""

MISTAKE: Final = "Mistake_Identification"
GUIDANCE: Final = "Providing_Guidance"
REVEALING: Final = "Revealing_of_the_Answer"

_DEGREES: Final = ("Yes", "To some extent", "No")
ANNOTATION_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    MISTAKE: _DEGREES,
    "Mistake_Location": _DEGREES,
    REVEALING: ("Yes (and the answer is correct)", "Yes (but the answer is incorrect)", "No"),
    GUIDANCE: _DEGREES,
    "Actionability": _DEGREES,
    "humanlikeness": _DEGREES,
    "Coherence": _DEGREES,
    "Tutor_Tone": ("Encouraging", "Neutral", "Offensive"),
}
"""Annotation → its texts, as the published files spell them."""


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
