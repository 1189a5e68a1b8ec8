"""The replies of a recorded run as items, and the file that they travel in.

Each reply is one item: the dialogue is the task, as the tutor's first turn, and what was said
before; the student's message is the last one before the reply. Ids are hashes of episode, turn
and role, because an episode's id does not fit into another one.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tutorsim.errors import TaskFileError
from tutorsim.records import EpisodeRecord, Turn
from tutorsim.records.group import LessonRecord
from tutorsim.records.oversight import AuditedReply
from tutorsim.systems.oversight.replies_to_label import Item, SpeakerTurn
from tutorsim.tasks import Task
from tutorsim.tasks.task_files_and_their_formats import Row, read_rows, read_text, refuse

Possible = Mapping[tuple[str, int], Mapping[str, tuple[str, ...]]]
"""Episode and turn → rule → roles that could have won."""


def audited_items(
    run: str, records: Iterable[EpisodeRecord], *, possible: Possible | None = None
) -> tuple[Item, ...]:
    """The delivered replies of a run, oldest first within each episode.

    `records`: its episodes; those that failed are left out. `possible`: who could have won each
    turn, by rule. If given, the final proposal of every other role of the panel is an item too.
    """
    return tuple(
        item
        for record in records
        if record.status == "complete"
        for turn in record.turns
        for item in _turn_items(run, record, turn, possible)
    )


def lesson_items(run: str, records: Iterable[LessonRecord]) -> tuple[Item, ...]:
    """The agents' messages of group lessons, from the learner's first message on.

    The learner's messages are the student's, those of every agent the tutor's.

    `records`: its lessons; those that failed are left out.
    """
    return tuple(
        item for record in records if record.status == "complete" for item in _lesson(run, record)
    )


def _lesson(run: str, record: LessonRecord) -> Iterator[Item]:
    said = [SpeakerTurn("Tutor", record.problem)]
    for event in record.events:
        if event.kind != "message" or event.who is None:
            continue
        if event.who == "learner":
            said.append(SpeakerTurn("Student", event.text))
            continue
        if any(turn.speaker == "Student" for turn in said):
            yield _message(run, record, event.number, event.who, event.text, tuple(said))
        said.append(SpeakerTurn("Tutor", event.text))


def _message(
    run: str,
    record: LessonRecord,
    number: int,
    agent: str,
    text: str,
    said: tuple[SpeakerTurn, ...],
) -> Item:
    return Item(
        task_id=_item_id(record.episode_id, number, agent),
        dialogue=said,
        reply=text,
        conversation=f"{record.benchmark}.{record.task_id}",
        tutor=agent,
        benchmark="audit",
        audited=AuditedReply(
            run=run,
            episode=record.episode_id,
            turn=number,
            role=agent,
            delivered=True,
            condition=record.condition,
            persona=record.variant,
            benchmark=record.benchmark,
            task=record.task_id,
            decided_by="none",
            score_before=None,
            score_after=None,
        ),
    )


def _item_id(episode: str, turn: int, role: str) -> str:
    return sha256(f"{episode}\x1f{turn}\x1f{role}".encode()).hexdigest()[:16]


def drawn_turns(items: Sequence[Item], count: int | None, *, seed: int) -> tuple[Item, ...]:
    """The items of so many turns, drawn by hash; each turn keeps all of its items.

    A larger draw by the same seed holds a smaller one.
    """
    turns = {(a.episode, a.turn) for a in _audited(items)}

    def place(turn: tuple[str, int]) -> bytes:
        return sha256(f"{seed}\x1faudit\x1f{turn[0]}\x1f{turn[1]}".encode()).digest()

    kept = set(sorted(turns, key=place)[:count])
    pairs = zip(items, _audited(items), strict=True)
    return tuple(item for item, a in pairs if (a.episode, a.turn) in kept)


def _turn_items(
    run: str, record: EpisodeRecord, turn: Turn, possible: Possible | None
) -> Iterator[Item]:
    winner = "baseline" if turn.decision is None else turn.decision.winner
    texts = {winner: turn.delivered}
    if possible is not None and turn.decision is not None:
        texts = {role: proposal.text for role, proposal in turn.proposals_final.items()}
        texts[winner] = turn.delivered
    could = (possible or {}).get((record.episode_id, turn.turn), {})
    for role, text in texts.items():
        yield _item(run, record, turn, role, text, delivered=role == winner, possible=could)


def _item(
    run: str,
    record: EpisodeRecord,
    turn: Turn,
    role: str,
    text: str,
    *,
    delivered: bool,
    possible: Mapping[str, tuple[str, ...]],
) -> Item:
    scores = {attempt.turn: attempt.score for attempt in record.attempts}
    return Item(
        task_id=_item_id(record.episode_id, turn.turn, role),
        dialogue=tuple(_dialogue(record, turn.turn)),
        reply=text,
        conversation=f"{record.benchmark}.{record.task_id}",
        tutor=role,
        benchmark="audit",
        reference=record.reference,
        audited=AuditedReply(
            run=run,
            episode=record.episode_id,
            turn=turn.turn,
            role=role,
            delivered=delivered,
            condition=record.condition,
            persona=record.persona,
            benchmark=record.benchmark,
            task=record.task_id,
            decided_by="none" if turn.decision is None else turn.decision.decided_by,
            score_before=scores.get(turn.turn - 1),
            score_after=scores.get(turn.turn) if delivered else None,
            possible=dict(possible),
        ),
    )


def _dialogue(record: EpisodeRecord, turn: int) -> Iterator[SpeakerTurn]:
    """The task and all that was said before a turn's reply."""
    yield SpeakerTurn("Tutor", record.question)
    delivered = {one.turn: one.delivered for one in record.turns}
    for attempt in sorted(record.attempts, key=lambda one: one.turn):
        if attempt.turn >= turn:
            return
        if attempt.turn > 0:
            yield SpeakerTurn("Tutor", delivered[attempt.turn])
        yield SpeakerTurn("Student", attempt.text)


def _audited(items: Sequence[Task]) -> Iterator[AuditedReply]:
    for item in items:
        assert isinstance(item, Item)
        assert item.audited is not None
        yield item.audited


# --- The file ---------------------------------------------------------------------------------

_OF_TURN: Final = ("run", "episode", "turn", "condition", "persona", "benchmark", "task")
_ALSO_OF_TURN: Final = ("decided_by", "score_before", "possible")


def written_audited(items: Sequence[Task]) -> str:
    """Items as JSON Lines, one turn a line; reading them gives equal items."""
    turns: dict[tuple[str, int], dict[str, Any]] = {}
    for item, audited in zip(items, _audited(items), strict=True):
        assert isinstance(item, Item)
        said = audited.model_dump(mode="json")
        row = turns.setdefault(
            (audited.episode, audited.turn),
            {
                **{name: said[name] for name in (*_OF_TURN, *_ALSO_OF_TURN)},
                "conversation_id": item.conversation,
                "dialogue": [list(turn) for turn in item.dialogue],
                "reference": item.reference,
                "replies": {},
            },
        )
        own = {name: said[name] for name in ("delivered", "score_after")}
        row["replies"][audited.role] = {"task_id": item.task_id, "response": item.reply, **own}
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in turns.values())


def read_audited(path: Path) -> tuple[Item, ...]:
    """Read the items of an audit; `TaskFileError` naming file, line and what is wrong."""
    return tuple(item for row in read_rows(read_text(path), str(path)) for item in _read(row))


def _read(row: Row) -> list[Item]:
    try:
        items = [_of_row(row.fields, role, said) for role, said in row.fields["replies"].items()]
    except (ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise TaskFileError(
            f"{row.file}, line {row.line}: this is no turn of an audit.",
            why=" ".join(str(error).split("\n")[:2]),
            hint="Build the file with `tutorsim audit RUN -o REC`.",
        ) from error
    if not items or not any(turn.speaker == "Student" for turn in items[0].dialogue):
        refuse(row, "dialogue" if items else "replies", "nobody is to be assessed in it")
    return items


def _of_row(fields: Mapping[str, Any], role: str, said: Mapping[str, Any]) -> Item:
    """The item of one role's reply; a `ValueError` if a field is missing or of another type."""
    own = {name: said[name] for name in ("delivered", "score_after")}
    shared = {name: fields[name] for name in (*_OF_TURN, *_ALSO_OF_TURN)}
    texts = (said["task_id"], said["response"], fields["conversation_id"], fields["reference"])
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("task_id, response, conversation_id or reference is no text")
    return Item(
        task_id=said["task_id"],
        dialogue=tuple(_speaker_turn(*turn) for turn in fields["dialogue"]),
        reply=said["response"],
        conversation=fields["conversation_id"],
        tutor=role,
        benchmark="audit",
        reference=fields["reference"],
        audited=AuditedReply.model_validate({**shared, **own, "role": role}),
    )


def _speaker_turn(speaker: Any, text: Any) -> SpeakerTurn:
    if speaker not in ("Tutor", "Student") or not isinstance(text, str):
        raise ValueError(f"{speaker!r} is no speaker, or what it says is no text")
    return SpeakerTurn(speaker, text)
