"""Conditions as orders of acts. An order that is no legal debate cannot be built."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, get_args

Condition = Literal[
    "hpo",
    "single",
    "cooperative",
    "unstructured",
    "no_briefing",
    "no_advocate",
    "no_debate",
    "self_consistency",
    "ensemble",
]
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
VOTING_CONDITIONS: Final[tuple[Condition, ...]] = ("self_consistency", "ensemble")
"""Conditions whose labels a vote decides; in all others the lead decides."""

ANALYSTS: Final = ("conceptual", "behavioural", "trajectory")
CRITICS: Final = ("permissive", "strict")
REVIEWERS: Final = ("a", "b")


class Act(Enum):
    """One step of a condition."""

    BRIEFING = "briefing"
    """Three analysts write a briefing."""
    OPENING = "opening"
    """Act I: both critics state a thesis."""
    CROSS = "cross"
    """Act II: the advocate challenges both theses."""
    REBUTTAL = "rebuttal"
    """Act III: both critics revise."""
    PRESS = "press"
    """Act IV: the advocate says who is not convincing, and presses."""
    CLOSING = "closing"
    """Act V: both critics sum up and answer a press."""
    ARGUMENT = "argument"
    """Both critics argue freely, three messages each in turn."""
    ASSESSMENT = "assessment"
    """Two reviewers without a side assess."""
    MERGE = "merge"
    """Both reviewers read each other and write again."""
    JUDGMENT = "judgment"
    """Judge, stress tester and lead."""
    ALONE = "alone"
    """The lead labels from the dialogue only."""
    SAMPLES = "samples"
    """The same prompt several times, and a vote per label."""
    MEMBERS = "members"
    """Each analyst labels alone, and a vote per label."""


_FIRST: Final = frozenset({Act.BRIEFING, Act.OPENING, Act.ALONE, Act.SAMPLES, Act.MEMBERS})
_SUCCESSORS: Final[Mapping[Act, frozenset[Act]]] = {
    Act.BRIEFING: frozenset({Act.OPENING, Act.ARGUMENT, Act.ASSESSMENT}),
    Act.OPENING: frozenset({Act.CROSS, Act.REBUTTAL, Act.JUDGMENT}),
    Act.CROSS: frozenset({Act.REBUTTAL}),
    Act.REBUTTAL: frozenset({Act.PRESS, Act.CLOSING}),
    Act.PRESS: frozenset({Act.CLOSING}),
    Act.CLOSING: frozenset({Act.JUDGMENT}),
    Act.ARGUMENT: frozenset({Act.JUDGMENT}),
    Act.ASSESSMENT: frozenset({Act.MERGE}),
    Act.MERGE: frozenset({Act.JUDGMENT}),
}
"""Act → the acts that may follow it. An act without any ends the item."""


@dataclass(frozen=True)
class Script:
    """Acts in a legal order, from a first act to a last one.

    Raises:
        ValueError: If the order is illegal.
    """

    acts: tuple[Act, ...]

    def __post_init__(self) -> None:
        if not self.acts or self.acts[0] not in _FIRST:
            raise ValueError(f"no item begins with {self.acts[:1]}")
        for act, following in zip(self.acts, self.acts[1:], strict=False):
            if following not in _SUCCESSORS.get(act, frozenset()):
                raise ValueError(f"{following} cannot follow {act}")
        if _SUCCESSORS.get(self.acts[-1]):
            raise ValueError(f"no item ends with {self.acts[-1]}")
        if Act.PRESS in self.acts and Act.CROSS not in self.acts:
            raise ValueError(f"{Act.PRESS} needs {Act.CROSS}: nothing was challenged")


_DEBATE: Final = (Act.OPENING, Act.CROSS, Act.REBUTTAL, Act.PRESS, Act.CLOSING, Act.JUDGMENT)

SCRIPTS: Final[Mapping[str, Script]] = {
    "hpo": Script((Act.BRIEFING, *_DEBATE)),
    "single": Script((Act.ALONE,)),
    "cooperative": Script((Act.BRIEFING, Act.ASSESSMENT, Act.MERGE, Act.JUDGMENT)),
    "unstructured": Script((Act.BRIEFING, Act.ARGUMENT, Act.JUDGMENT)),
    "no_briefing": Script(_DEBATE),
    "no_advocate": Script((Act.BRIEFING, Act.OPENING, Act.REBUTTAL, Act.CLOSING, Act.JUDGMENT)),
    "no_debate": Script((Act.BRIEFING, Act.OPENING, Act.JUDGMENT)),
    "self_consistency": Script((Act.SAMPLES,)),
    "ensemble": Script((Act.MEMBERS,)),
}
"""Condition → what runs."""
