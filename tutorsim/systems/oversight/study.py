"""An oversight study with everything that it names, its items among them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final

from tutorsim.catalog import BaseCatalog, templates_of
from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.errors import StudyError
from tutorsim.kernel.flow import Flow
from tutorsim.kernel.retest import AskedTogether
from tutorsim.kernel.study import EpisodeSpec
from tutorsim.kernel.system import LoadedStudy
from tutorsim.model import Call
from tutorsim.records import EpisodeLine, VotingSettings
from tutorsim.records.oversight import CANDIDATES, LABELS, OversightRecord, first_ids
from tutorsim.systems.oversight.acts_by_condition import SCRIPTS, VOTING_CONDITIONS, Act
from tutorsim.systems.oversight.audited_replies import read_audited, written_audited
from tutorsim.systems.oversight.item_flow import item_flow
from tutorsim.systems.oversight.items import (
    Item,
    has_reference,
    has_revealing,
    published_rows,
    read_mrbench,
    read_mrbench_text,
)
from tutorsim.systems.oversight.judgment import labels_again
from tutorsim.systems.oversight.scene import ItemScene
from tutorsim.systems.oversight.settings import Study
from tutorsim.tasks import Task, TaskFormat

# --- Tasks ---------------------------------------------------------------------------------------


@cache
def builtin_items() -> tuple[Item, ...]:
    """The original set: eight dialogues, two replies each, in the form of version 2."""
    file = resources.files("tutorsim.systems.oversight") / "builtin.json"
    return read_mrbench_text(file.read_text(encoding="utf-8"), "builtin.json")


def sampled(items: Sequence[Task], count: int | None, *, seed: int) -> tuple[Task, ...]:
    """So many dialogues, drawn by hash, with all of their items in the order given.

    A dialogue is told by its text, and drawn by the first of its ids. A draw does not depend on
    which other dialogues there are, so a sample of a sample of the same size is the sample.
    """
    said = [item for item in items if isinstance(item, Item)]
    ids = first_ids((item.conversation, item.dialogue_text) for item in said)
    names = [item.conversation if item.audited else ids[item.dialogue_text] for item in said]
    drawn = sorted(set(names), key=lambda name: _place(seed, name))[:count]
    return tuple(item for item, name in zip(items, names, strict=True) if name in set(drawn))


def _place(seed: int, name: str) -> bytes:
    return sha256(f"{seed}\x1fsample\x1f{name}".encode()).digest()


def _written(items: Sequence[Task]) -> str:
    """Items as a published file of their version."""
    rows = published_rows([item for item in items if isinstance(item, Item)])
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


FORMATS: Final[Mapping[str, TaskFormat]] = {
    "mrbench": TaskFormat(read_mrbench, builtin_items, "tasks.{}.json", _written, asked="response"),
    "audit": TaskFormat(read_audited, None, "tasks.{}.jsonl", written_audited, asked="response"),
}
"""Benchmark → how its items are read and written."""


# --- Study ---------------------------------------------------------------------------------------

LEAD_STAGES: Final = frozenset({"lead", "quick", "sample"})
"""Stages that the lead's model answers."""

_SENTENCE: Final = (
    "This stands for about eighteen words of the kind that critics write of a reply to a student. "
)
_LABELS: Final = "LABELS: mistake=1 guidance=1"


@dataclass(frozen=True)
class OversightStudy(LoadedStudy):
    """The study; its tasks are those of the sample."""

    study: Study
    catalog: BaseCatalog

    paths: ClassVar[tuple[str, str]] = (
        "every debate that may be skipped is",
        "every debate is held",
    )

    def __post_init__(self) -> None:
        kept = {
            name: sampled(items, self.study.benchmarks[name].sample, seed=self.study.seed)  # type: ignore[index]
            for name, items in self.tasks.items()
        }
        object.__setattr__(self, "tasks", kept)

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        return (yield from item_flow(ItemScene(self, spec)))

    def asked_again(self, spec: EpisodeSpec, record: EpisodeLine) -> Iterator[AskedTogether[Any]]:
        """The votes on labels: a reply carries a ballot on each."""
        assert isinstance(record, OversightRecord)
        if record.condition in VOTING_CONDITIONS:
            yield from labels_again(record, self.catalog.fill("answer_reminder"))

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        return _usual_reply(call.key.stage, longest=longest)

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        return models.lead if stage in LEAD_STAGES else models.agent

    def model_names(self) -> tuple[str, ...]:
        return (self.study.models.agent, self.study.models.lead)

    def voting(self) -> VotingSettings | None:
        """The fallback orders of both votes; `None` if no condition votes."""
        if not set(self.study.conditions) & set(VOTING_CONDITIONS):
            return None
        order = tuple(name for label in LABELS for name in CANDIDATES[label])
        return VotingSettings(fallback_order=order, label_order="listed")

    def remarks(self) -> Iterator[str]:
        if not self.study.oversight.show_reference:
            return
        absent = self.catalog.part("no_reference")
        for name, tasks in self.tasks.items():
            items = [task for task in tasks if isinstance(task, Item)]
            bare = sum(not has_reference(item, absent) for item in items)
            if bare:
                yield (
                    f"{bare} of {len(items)} items of {name} have no right answer to show: they "
                    "are asked about as without show_reference."
                )

    def used(self) -> WordingNames:
        return {"prompts": templates_of("tutorsim.systems.oversight", set(self._parts()))}

    def _parts(self) -> Iterator[str]:
        """The parts of a study under which `prompts.toml` has templates."""
        settings, scripts = self.study.oversight, [SCRIPTS[c].acts for c in self.study.conditions]
        yield from (act.value for acts in scripts for act in acts)
        if any(Act.REBUTTAL in acts and Act.CROSS not in acts for acts in scripts):
            yield "unchallenged"
        if "hpo" in self.study.conditions and settings.adaptive != "off":
            yield "quick"
        if settings.show_reference:
            yield "show_reference"
        if self.study.ask_cut_off_again:
            yield "ask_cut_off_again"

    def check(self, path: Path) -> None:
        """Refuse a map that needs annotations which the data do not have."""
        if self.study.oversight.guidance_map != "revealed_is_zero":
            return
        for name, tasks in self.tasks.items():
            items = [task for task in tasks if isinstance(task, Item) and task.annotation]
            if items and not has_revealing(items):
                raise StudyError(
                    f'{path}: guidance_map = "revealed_is_zero" cannot be used for {name}.',
                    why="Its replies are not annotated with Revealing_of_the_Answer, as those of "
                    "versions 1 and 2 are.",
                    hint='Use guidance_map = "plain", or a file of version 1 or 2.',
                )


def _usual_reply(stage: str, *, longest: bool) -> str:
    """A reply of usual length, which can be read."""
    match stage:
        case "brief":
            names = ("CONCEPT", "ERROR", "KIND", "ENGAGEMENT", "TONE", "TRAJECTORY")
            fields = (*names, "CORRECTED BEFORE", "EVIDENCE")
            return "\n".join(f"{name}: {_SENTENCE[:45]}" for name in fields)
        case "cross":
            return f"TO PERMISSIVE:\n1. {_SENTENCE * 2}\nTO STRICT:\n1. {_SENTENCE * 2}"
        case "press":
            return f"PERMISSIVE: met\nSTRICT: unmet\nPRESS STRICT: {_SENTENCE}"
        case "judge" | "judge_swapped":
            return f"WINNER: strict\nWHY: {_SENTENCE * 2}\n{_LABELS}\nCONFIDENCE: 70"
        case "stress":
            return f"WEAKNESS: {_SENTENCE}\nSEVERITY: 1\n{_LABELS}"
        case "quick" | "lead" | "sample" | "member":
            sure = "0.5" if longest else "1.0"
            return (
                '{"mistake_identified": true, "guidance_quality": 1, '
                f'"confidence": {sure}, "reasoning": "{_SENTENCE.strip()}"}}'
            )
        case _:
            return f"THESIS: {_SENTENCE * 4}\nEVIDENCE: {_SENTENCE}\n{_LABELS}"
