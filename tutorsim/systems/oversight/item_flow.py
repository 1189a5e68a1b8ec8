"""One item: its condition's acts in order, then the record.

A generator over the effects of `tutorsim.kernel.flow`. A call that fails for good ends the
item; the record then holds what was reached, marked `failed`. Everybody after the briefing sees
it; critics see the other side's text from the rebuttal on.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tutorsim.kernel.flow import CallLog, Flow, ask, run_to_failure
from tutorsim.model import Answer, Question
from tutorsim.records import Failure
from tutorsim.records.oversight import (
    BriefingNote,
    Challenges,
    Labels,
    Message,
    OversightRecord,
    Press,
    gold_labels,
    right_labels,
)
from tutorsim.systems.oversight import judgment
from tutorsim.systems.oversight.acts_by_condition import ANALYSTS, CRITICS, REVIEWERS, Act
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
from tutorsim.systems.oversight.scene import ItemScene, Progress, other_critic, spoken

# --- Briefing and debate -------------------------------------------------------------------------

BRIEF_FIELDS: Mapping[str, tuple[str, ...]] = {
    "conceptual": ("CONCEPT", "ERROR", "KIND"),
    "behavioural": ("ENGAGEMENT", "TONE"),
    "trajectory": ("TRAJECTORY", "CORRECTED BEFORE", "EVIDENCE"),
}
"""Analyst → the fields of its briefing."""
ARGUMENTS = 3
"""Messages of each critic in the free argument."""


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
    [answer] = yield from ask(
        [
            scene.question(
                2,
                "cross",
                "advocate",
                progress.filled(scene, "cross", theses=theses),
                read=read_challenges,
                salvage=salvage_challenges,
                reminder="cross_reminder",
            )
        ]
    )
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
    [answer] = yield from ask(
        [
            scene.question(
                4,
                "press",
                "advocate",
                progress.filled(scene, "press", debate=debate),
                read=read_press,
                salvage=salvage_press,
                reminder="press_reminder",
            )
        ]
    )
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
    scene: ItemScene,
    progress: Progress,
    act: Act,
    turn: int,
    stage: str,
    users: Mapping[str, str],
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
    Act.JUDGMENT: judgment.judgment,
    Act.ALONE: judgment.alone,
    Act.SAMPLES: judgment.samples,
    Act.MEMBERS: judgment.members,
}


def item_flow(scene: ItemScene) -> Flow[OversightRecord]:
    """Label one item.

    Returns:
        The record, with `status` `failed` when a call failed for good.
    """
    progress, calls = Progress(), CallLog()
    failure = yield from run_to_failure(_acts(scene, progress), calls)
    return _record(scene, progress, calls, failure)


def _acts(scene: ItemScene, progress: Progress) -> Flow[None]:
    for act in scene.script.acts:
        yield from _ACTS[act](scene, progress)
        if act is Act.BRIEFING and _asks_quickly(scene):
            yield from judgment.quick(scene, progress)
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
    return OversightRecord(
        episode_id=scene.spec.episode_id,
        benchmark=item.benchmark,
        task_id=item.task_id,
        variant=scene.spec.variant,
        condition=scene.spec.condition,
        repeat=scene.spec.repeat,
        status="complete" if failure is None else "failed",
        failure=failure,
        **calls.fields(),
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
