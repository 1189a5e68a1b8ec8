"""An oversight study: the flow of one item, and everything that the study names.

A call that fails for good ends the item; the record then holds what was reached, marked
`failed`. Everybody after the briefing sees it; critics see the other side's text from the
rebuttal on.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from tutorsim.catalog import BaseCatalog, WordingNames, templates_of
from tutorsim.errors import StudyError
from tutorsim.kernel.flow_drivers_and_call_log import CallLog, Flow, run_to_failure
from tutorsim.kernel.retest_flow_and_drawn_turns import AskedTogether
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Answer, Call, Question
from tutorsim.records import EpisodeLine, Failure, VotingSettings
from tutorsim.records.gold_labels_of_one_annotation import gold_labels
from tutorsim.records.oversight import (
    CANDIDATES,
    LABELS,
    BriefingNote,
    Challenges,
    Labels,
    Message,
    OversightRecord,
    Press,
    right_labels,
)
from tutorsim.systems.oversight import judge_and_lead_with_or_without_debate
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import (
    ANALYSTS,
    ARGUMENTS,
    CRITICS,
    REVIEWERS,
    SCRIPTS,
    VOTING_CONDITIONS,
    Act,
    Study,
)
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import (
    Item,
    has_reference,
    has_revealing,
    published_rows,
    read_audited,
    read_mrbench,
    read_mrbench_text,
    sampled,
    written_audited,
)
from tutorsim.systems.oversight.judge_and_lead_with_or_without_debate import (
    ItemScene,
    Progress,
    labels_again,
    other_critic,
    spoken,
)
from tutorsim.systems.oversight.reply_reading import (
    ReadThesis,
    fields_of,
    read_challenges,
    read_fields,
    read_press,
    read_thesis,
    salvage_challenges,
    salvage_press,
    salvage_thesis,
)
from tutorsim.tasks import Task, TaskFormat

# --- Briefing and debate -------------------------------------------------------------------------

T = TypeVar("T")
BRIEF_FIELDS: Mapping[str, tuple[str, ...]] = {
    "conceptual": ("CONCEPT", "ERROR", "KIND"),
    "behavioural": ("ENGAGEMENT", "TONE"),
    "trajectory": ("TRAJECTORY", "CORRECTED BEFORE", "EVIDENCE"),
}
"""Analyst → the fields of its briefing."""


def briefing(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Three analysts, side by side."""
    answers = yield from ask([_brief_question(scene, analyst) for analyst in ANALYSTS])
    progress.briefing = [
        BriefingNote(fields=answer.value or {}, **spoken(analyst, answer))
        for analyst, answer in zip(ANALYSTS, answers, strict=True)
    ]


def _brief_question(scene: ItemScene, analyst: str) -> Question[dict[str, str]]:
    names = BRIEF_FIELDS[analyst]
    values = scene.trajectory_values if analyst == "trajectory" else {"item": scene.shown_item}
    return scene.question(
        0,
        "brief",
        analyst,
        scene.fill(f"brief_{analyst}", **values),
        read=lambda reply: read_fields(reply, names),
        salvage=lambda reply: fields_of(reply, names) or None,
        reminder="brief_reminder",
    )


# --- Messages of critics and reviewers ------------------------------------------------------


def opening(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Act I: both critics state a thesis, side by side."""
    users = {critic: progress.filled(scene, "open") for critic in CRITICS}
    yield from _messages(scene, progress, Act.OPENING, 1, "open", users)


def cross(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Act II: the advocate challenges both theses."""
    first = scene.drawn_first(CRITICS, "cross")
    theses = progress.transcript(scene, first, acts=(Act.OPENING,))
    user = progress.filled(scene, "cross", theses=theses)
    answer = yield from _advocate(scene, 2, "cross", user, read_challenges, salvage_challenges)
    challenges = answer.value or dict.fromkeys(CRITICS, ())
    progress.challenges = Challenges(
        challenges=challenges, first_shown=first, **spoken("advocate", answer)
    )


def rebuttal(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Act III: both critics revise, in answer to the challenges or to each other."""
    users = {critic: _rebut_text(scene, progress, critic) for critic in CRITICS}
    yield from _messages(scene, progress, Act.REBUTTAL, 3, "rebut", users)


def _rebut_text(scene: ItemScene, progress: Progress, critic: str) -> str:
    own, other = (
        progress.said(scene, Act.OPENING, name) for name in (critic, other_critic(critic))
    )
    if progress.challenges is None:
        return progress.filled(scene, "rebut_unchallenged", own=own, other=other)
    return progress.filled(
        scene, "rebut", own=own, other=other, challenges=progress.challenges_to(scene, critic)
    )


def press(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Act IV: the advocate says which defence convinces, and presses the other."""
    first = scene.drawn_first(CRITICS, "cross")
    debate = progress.transcript(scene, first, acts=(Act.OPENING, Act.CROSS, Act.REBUTTAL))
    user = progress.filled(scene, "press", debate=debate)
    answer = yield from _advocate(scene, 4, "press", user, read_press, salvage_press)
    read = answer.value or {}
    met = {critic: read[critic].met if critic in read else None for critic in CRITICS}
    progress.press = Press(
        verdicts={
            critic: None if value is None else "met" if value else "unmet"
            for critic, value in met.items()
        },
        presses={critic: read[critic].demand for critic in CRITICS if met[critic] is False},
        **spoken("advocate", answer),
    )


def _advocate(
    scene: ItemScene,
    turn: int,
    stage: str,
    user: str,
    read: Callable[[str], T | None],
    salvage: Callable[[str], T | None],
) -> Flow[Answer[T]]:
    """Ask the advocate alone."""
    question = scene.question(
        *(turn, stage, "advocate", user), read=read, salvage=salvage, reminder=f"{stage}_reminder"
    )
    [answer] = yield from ask([question])
    return answer


def closing(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Act V: both critics sum up; one that is pressed answers the press."""
    users = {}
    for critic in CRITICS:
        debate = progress.transcript(scene, critic, acts=(Act.OPENING, Act.CROSS, Act.REBUTTAL))
        pressed = progress.press_on(scene, critic)
        users[critic] = progress.filled(scene, "close", debate=debate, pressed=pressed)
    yield from _messages(scene, progress, Act.CLOSING, 5, "close", users)


def argument(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Both critics argue freely, three messages each, in turn."""
    for turn in range(1, ARGUMENTS + 1):
        for critic in CRITICS:
            before = progress.transcript(scene, critic, acts=(Act.ARGUMENT,))
            debate = before or scene.fill("argue_first")
            user = progress.filled(scene, "argue", debate=debate)
            yield from _messages(scene, progress, Act.ARGUMENT, turn, "argue", {critic: user})


def assessment(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Two reviewers without a side, side by side."""
    users = {name: progress.filled(scene, "assess") for name in REVIEWERS}
    yield from _messages(scene, progress, Act.ASSESSMENT, 1, "assess", users)


def merge(scene: ItemScene, progress: Progress) -> Flow[None]:
    """Both reviewers read each other, and write again."""
    users = {}
    for name, other in zip(REVIEWERS, reversed(REVIEWERS), strict=True):
        own, others = (progress.said(scene, Act.ASSESSMENT, who) for who in (name, other))
        users[name] = progress.filled(scene, "merge", own=own, other=others)
    yield from _messages(scene, progress, Act.MERGE, 2, "merge", users)


def _messages(
    scene: ItemScene, progress: Progress, act: Act, turn: int, stage: str, users: Mapping[str, str]
) -> Flow[None]:
    """Ask critics or reviewers side by side for a thesis each."""
    questions = [
        scene.question(
            turn,
            stage,
            agent,
            user,
            read=read_thesis,
            salvage=salvage_thesis,
            reminder="thesis_reminder",
            system="reviewer" if agent in REVIEWERS else agent,
        )
        for agent, user in users.items()
    ]
    answers = yield from ask(questions)
    for agent, answer in zip(users, answers, strict=True):
        progress.messages.append(_message(act, turn, agent, answer))


def _message(act: Act, turn: int, agent: str, answer: Answer[ReadThesis]) -> Message:
    read = answer.value or ReadThesis("", "", None)
    return Message(
        act=act.value,
        turn=turn,
        thesis=read.thesis,
        evidence=read.evidence,
        labels=read.labels,
        **spoken(agent, answer),
    )


# --- Acts in order -------------------------------------------------------------------------------

_ACTS: Mapping[Act, Callable[[ItemScene, Progress], Flow[None]]] = {
    Act.BRIEFING: briefing,
    Act.OPENING: opening,
    Act.CROSS: cross,
    Act.REBUTTAL: rebuttal,
    Act.PRESS: press,
    Act.CLOSING: closing,
    Act.ARGUMENT: argument,
    Act.ASSESSMENT: assessment,
    Act.MERGE: merge,
    Act.JUDGMENT: judge_and_lead_with_or_without_debate.judgment,
    Act.ALONE: judge_and_lead_with_or_without_debate.alone,
    Act.SAMPLES: judge_and_lead_with_or_without_debate.samples,
    Act.MEMBERS: judge_and_lead_with_or_without_debate.members,
}


def item_flow(scene: ItemScene) -> Flow[OversightRecord]:
    """Label one item. Returns the record, with `status` `failed` when a call failed for good."""
    progress, calls = Progress(), CallLog()
    failure = yield from run_to_failure(_acts(scene, progress), calls)
    return _record(scene, progress, calls, failure)


def _acts(scene: ItemScene, progress: Progress) -> Flow[None]:
    for act in scene.script.acts:
        yield from _ACTS[act](scene, progress)
        if act is Act.BRIEFING and _asks_quickly(scene):
            yield from judge_and_lead_with_or_without_debate.quick(scene, progress)
            if progress.skipped:
                return


def _asks_quickly(scene: ItemScene) -> bool:
    """Only the whole debate is adaptive: its parts and rivals run as they are."""
    return scene.spec.condition == "hpo" and scene.settings.adaptive != "off"


def _record(
    scene: ItemScene, progress: Progress, calls: CallLog, failure: Failure | None
) -> OversightRecord:
    item, label = scene.item, progress.label if failure is None else None
    gold = _gold(scene)
    reached: dict[str, Any] = {**vars(progress), "label": label}
    return scene.loaded.record(
        OversightRecord,
        scene.spec,
        calls,
        failure,
        conversation=item.conversation,
        tutor=item.tutor,
        dialogue=item.dialogue,
        reply=item.reply,
        audited=item.audited,
        annotation=dict(item.annotation),
        gold=gold,
        unjudged=failure is None and label is None,
        scores=right_labels(label, gold) if failure is None else {},
        **reached,
    )


def _gold(scene: ItemScene) -> Labels | None:
    settings, annotation = scene.settings, scene.item.annotation
    if not annotation:
        return None
    return gold_labels(
        annotation, mistake_map=settings.mistake_map, guidance_map=settings.guidance_map
    )


# --- Tasks ---------------------------------------------------------------------------------------


@cache
def builtin_items() -> tuple[Item, ...]:
    """The original set: eight dialogues, two replies each, in the form of version 2."""
    file = resources.files("tutorsim.systems.oversight") / "builtin.json"
    return read_mrbench_text(file.read_text(encoding="utf-8"), "builtin.json")


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
