"""An item as a reader sees it, act by act, with its labels; and which items are worth a look."""

from collections.abc import Iterator
from textwrap import shorten
from typing import Final

from tutorsim.analysis.pages.shown_episodes import Episode, Message, Run, Telling, usual_marks
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    judge_and_lead,
)
from tutorsim.records.oversight import Labels, LeadLabels, OversightRecord, Spoken

_ACTS = {
    "opening": "act I, opening",
    "rebuttal": "act III, defence",
    "closing": "act V, summary",
    "argument": "free argument",
    "assessment": "first assessment",
    "merge": "second assessment",
}


def _labels_text(labels: Labels | None) -> str:
    """Labels in words."""
    if labels is None:
        return "no labels"
    return f"mistake {labels.mistake}, guidance {labels.guidance}"


def trace(run: Run, record: OversightRecord) -> Episode:
    """One item, message by message."""
    return Episode(
        id=record.episode_id,
        parts=tuple(_messages(record)),
        outcome=_outcome(record),
        line=shorten(record.reply, 110, placeholder=" …"),
        facts=tuple(_facts(record)),
        marks=_marks(record),
    )


def _outcome(record: OversightRecord) -> str:
    """The label, and whether it is the one that people gave."""
    if record.status == "failed":
        return "failed"
    right = "" if not record.scores else ", right" if all(record.scores.values()) else ", wrong"
    return f"{_labels_text(record.label)}{right}"


def _marks(record: OversightRecord) -> dict[str, tuple[str, ...]]:
    label = record.label
    said = {
        "Mistake": (str(label.mistake) if label else "no label",),
        "Guidance": (str(label.guidance) if label else "no label",),
    }
    if record.scores:
        said["Both labels"] = ("right" if all(record.scores.values()) else "wrong",)
    if record.audited is not None:
        said["Voted"] = (record.audited.condition,)
        said["Persona"] = (record.audited.persona,)
        said["Reply of"] = (record.audited.role,)
        return {"Labelled by": (record.condition,), "Task": (record.audited.task,), **said}
    return {**usual_marks(record, "Tutor"), **said}


def _messages(record: OversightRecord) -> Iterator[Message]:
    for speaker, text in record.dialogue:
        yield Message(speaker, text)
    yield Message(f"Tutor ({record.tutor})" if record.tutor else "Tutor", record.reply, "labelled")
    for note in record.briefing:
        yield _said(f"{note.agent} analyst", note, "briefing")
    if record.quick is not None:
        yield _labelled(record.quick, "quick labels before the debate")
    yield from _debate(record)
    for judge, when in ((record.judge, ""), (record.judge_swapped, ", sides swapped")):
        if judge is not None:
            yield _said("judge", judge, f"saw {judge.first_shown} first{when}")
    if record.stress is not None:
        yield _said("stress tester", record.stress, "stress test")
    if record.lead is not None:
        yield _labelled(record.lead, "final labels")
    for said in record.alone:
        yield _labelled(said, "labels alone")


def _debate(record: OversightRecord) -> Iterator[Message]:
    """Critics, reviewers and advocate, in the order in which they spoke."""
    for message in record.messages:
        if message.act == "rebuttal" and message.agent == "permissive" and record.challenges:
            yield _said("devil's advocate", record.challenges, "act II, challenges")
        if message.act == "closing" and message.agent == "permissive" and record.press:
            verdicts = (
                f"{who}: {said or 'not said'}" for who, said in record.press.verdicts.items()
            )
            yield _said("devil's advocate", record.press, f"act IV; {', '.join(verdicts)}")
        note = f"{_ACTS.get(message.act, message.act)}; {_labels_text(message.labels)}"
        yield _said(message.agent, message, note)


def _said(speaker: str, said: Spoken, note: str) -> Message:
    read = "" if said.status == "valid" else f"; {said.status} after {said.attempts} askings"
    return Message(speaker, said.raw, f"{note}{read}")


def _labelled(said: LeadLabels, note: str) -> Message:
    return _said(said.agent, said, f"{note}; {_labels_text(said.labels)}")


def _facts(record: OversightRecord) -> Iterator[tuple[str, str]]:
    outcome = _labels_text(record.label) if record.label else "unjudged"
    yield "Label", "failed" if record.status == "failed" else outcome
    if record.failure is not None:
        yield "Failure", f"{record.failure.key}: {record.failure.error}"
    if record.gold is not None:
        yield "Gold", _labels_text(record.gold)
    for turn in record.turns:
        if turn.decision is not None:
            tallies = ", ".join(f"{name} {n}" for name, n in turn.decision.tallies.items())
            yield f"Vote {turn.turn}", f"{tallies}; decided by {turn.decision.decided_by}"
    yield from record.annotation.items()
    if record.audited is not None:
        a = record.audited
        yield "Reply of", f"{a.run}, {a.episode}, turn {a.turn}, {a.role}"
        yield "Delivered", "yes" if a.delivered else "no"
        for rule, winners in a.possible.items():
            yield f"Could have won under {rule}", ", ".join(winners)
    yield "Calls", str(len(record.calls))


def _apart(record: OversightRecord) -> bool:
    return len(set(judge_and_lead(record) or ())) > 1


def _confident_and_wrong(record: OversightRecord) -> bool:
    sure = record.lead.confidence if record.lead else None
    return bool(record.scores) and not all(record.scores.values()) and (sure or 0) >= 0.9


TELLING: Final[Telling] = {
    "judge and lead differ": _apart,
    "confident and wrong": _confident_and_wrong,
    "a defence was unmet, and pressed": lambda r: bool(r.press and r.press.presses),
    "no label could be read": lambda r: r.unjudged,
    "a vote was tied": lambda r: any(t.decision and t.decision.tied_set for t in r.turns),
}
"""Why an item is worth a look → whether it is one."""
