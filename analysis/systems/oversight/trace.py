"""An item as a reader sees it: the dialogue, the debate act by act, and the labels."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tutorsim.analysis.pages.document import Dialogue, Message
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


def item_dialogue(record: OversightRecord, why: str = "") -> Dialogue:
    """One item, message by message."""
    return Dialogue(record.episode_id, why, tuple(_messages(record)), tuple(_facts(record)))


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


def telling(records: Sequence[OversightRecord]) -> tuple[Dialogue, ...]:
    """The first item for each thing worth seeing; an item serves for one thing only."""
    chosen: dict[str, str] = {}
    found: dict[str, OversightRecord] = {}
    for why, is_so in _TELLING.items():
        record = next((r for r in records if is_so(r) and r.episode_id not in chosen), None)
        if record is not None:
            chosen[record.episode_id] = why
            found[record.episode_id] = record
    return tuple(item_dialogue(found[name], why) for name, why in chosen.items())


def _apart(record: OversightRecord) -> bool:
    judge = record.judge.labels if record.judge else None
    lead = record.lead.labels if record.lead else None
    return judge is not None and lead is not None and judge != lead


def _confident_and_wrong(record: OversightRecord) -> bool:
    sure = record.lead.confidence if record.lead else None
    return bool(record.scores) and not all(record.scores.values()) and (sure or 0) >= 0.9


_TELLING: Final[dict[str, Callable[[OversightRecord], bool]]] = {
    "judge and lead differ": _apart,
    "confident and wrong": _confident_and_wrong,
    "a defence was unmet, and pressed": lambda r: bool(r.press and r.press.presses),
    "no label could be read": lambda r: r.unjudged,
    "a vote was tied": lambda r: any(t.decision and t.decision.tied_set for t in r.turns),
}
"""Why an item is worth seeing → whether it is one."""
