"""What is labelled: a dialogue and a tutor's reply; MRBench files as published, an audit's own."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

from pydantic import ValidationError

from tutorsim.errors import TaskFileError
from tutorsim.records.gold_labels_of_one_annotation import (
    ANNOTATION_TEXTS,
    GUIDANCE,
    MISTAKE,
    REVEALING,
)
from tutorsim.records.oversight import AuditedReply, dialogue_text, first_ids
from tutorsim.tasks import Task
from tutorsim.tasks.read_task_files_jsonl_parquet_sciq_humaneval import (
    Row,
    kind_of,
    read_rows,
    read_text,
    refuse,
)

# --- Labelled item -------------------------------------------------------------------------------

Speaker = Literal["Tutor", "Student"]

_TURN_HEAD: Final = re.compile(r"^\s*(Tutor|Student)[^\S\n]*:", re.MULTILINE)
"""A speaker at a line's start; Unicode white space, as no-break spaces, may stand before it."""


class SpeakerTurn(NamedTuple):
    """What one speaker said before the other spoke."""

    speaker: Speaker
    text: str


@dataclass(frozen=True)
class Item:
    """One reply to label."""

    task_id: str
    dialogue: tuple[SpeakerTurn, ...]
    reply: str
    conversation: str
    """Items of one conversation are one cluster in every interval."""
    occurrence: int = 1
    """From 1: which row of the file the conversation's id has come up in."""
    tutor: str = ""
    annotation: Mapping[str, str] = field(default_factory=dict)
    """Annotation as published; empty for an unlabelled reply. No prompt has it."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What else the row of a published file says, such as the reference solution."""
    history: str = ""
    """The dialogue as the file has it; empty where it had turns."""
    benchmark: str = "mrbench"
    reference: str = ""
    """The right answer, where the source has one; shown with `show_reference` only."""
    audited: AuditedReply | None = None
    """`None` for a reply of a published file."""

    @property
    def last_student_turn(self) -> int:
        """Index in the dialogue of the student's last message."""
        return max(i for i, turn in enumerate(self.dialogue) if turn.speaker == "Student")

    @property
    def message(self) -> str:
        """The student's last message."""
        return self.dialogue[self.last_student_turn].text

    @property
    def dialogue_text(self) -> str:
        """What the dialogue is told by: its turns, whatever their white space."""
        return dialogue_text(self.dialogue)

    def published(self) -> dict[str, Any]:
        """All that the item says, as digests cover it."""
        return {
            "task_id": self.task_id,
            "conversation_id": self.conversation,
            "dialogue": [list(turn) for turn in self.dialogue],
            "response": self.reply,
            "annotation": dict(self.annotation),
            "reference": self.reference,
            "audited": None if self.audited is None else self.audited.model_dump(mode="json"),
        }

    def before(self, count: int) -> tuple[SpeakerTurn, ...]:
        """Up to so many speaker turns before the student's last message."""
        end = self.last_student_turn
        return self.dialogue[max(0, end - count) : end]


def has_reference(item: Item, absent: str) -> bool:
    """Whether an item has a right answer, and not the words by which its file says it has none."""
    return item.reference.strip().casefold() not in ("", absent.casefold())


def speaker_turns(history: str) -> tuple[SpeakerTurn, ...] | None:
    """The speaker turns in the text of a dialogue; other lines continue a turn.

    Returns the turns; `None` if there is text before the first speaker, or no speaker at all.
    """
    parts = _TURN_HEAD.split(history)
    if parts[0].strip() or len(parts) < 2:
        return None
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return tuple(
        SpeakerTurn("Tutor" if speaker == "Tutor" else "Student", _tidy(text))
        for speaker, text in pairs
    )


def _tidy(text: str) -> str:
    """The text with white space taken off the ends of its lines."""
    return "\n".join(line.strip() for line in text.strip().split("\n"))


# --- Mrbench -------------------------------------------------------------------------------------

_REPLIES: Final = ("anno_llm_responses", "tutor_responses")
"""Fields of the replies: versions 1 and 2, version 3."""
_ROW_FIELDS: Final = ("conversation_id", "conversation_history", *_REPLIES)
_HINT: Final = "Use the file as its authors publish it, or correct the row."


def read_mrbench(path: Path) -> tuple[Item, ...]:
    """Read a file of any version; `TaskFileError` naming file, row, tutor and field."""
    return read_mrbench_text(read_text(path), str(path))


def read_mrbench_text(text: str, file: str) -> tuple[Item, ...]:
    """Read the text of a file; `file` is for error texts."""
    items: list[Item] = []
    seen: Counter[str] = Counter()
    dialogues: dict[str, tuple[SpeakerTurn, ...]] = {}
    for place, row in enumerate(_rows(text, file), start=1):
        where = f"{file}, row {place}"
        conversation = _text(row, "conversation_id", where)
        seen[conversation] += 1
        history = _text(row, "conversation_history", where)
        if history not in dialogues:
            dialogues[history] = _dialogue(history, where)
        items.extend(
            _items(row, conversation, seen[conversation], history, dialogues[history], where)
        )
        _check_characters(json.dumps(row, ensure_ascii=False), where)
    _check_labelled(items, file)
    _check_ids(items, file)
    return tuple(items)


def has_revealing(items: Sequence[Item]) -> bool:
    """Whether the labelled items say if a reply reveals the answer, as versions 1 and 2 do."""
    return all(REVEALING in item.annotation for item in items)


def published_rows(items: Sequence[Item]) -> list[dict[str, Any]]:
    """The rows that items came from, in the published form; reading them gives equal items."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for item in items:
        row = rows.setdefault(
            (item.conversation, item.occurrence),
            {
                "conversation_id": item.conversation,
                "conversation_history": item.history,
                **item.fields,
            },
        )
        name = "anno_llm_responses" if _is_wide(item) else "tutor_responses"
        reply: dict[str, Any] = {"response": item.reply}
        if item.annotation:
            reply["annotation"] = dict(item.annotation)
        row.setdefault(name, {})[item.tutor] = reply
    return list(rows.values())


def _is_wide(item: Item) -> bool:
    return REVEALING in item.annotation


def _rows(text: str, file: str) -> Iterator[dict[str, Any]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = text.lstrip()[:1] == "{"
        raise TaskFileError(
            f"{file} is {'JSON Lines' if lines else 'no JSON'}, not one JSON list.",
            why=str(error),
            hint="MRBench is published as one list of dialogues; put the lines into one list.",
        ) from error
    if not isinstance(data, list) or not data:
        found = "an empty list" if data == [] else kind_of(data)
        raise TaskFileError(
            f"{file} holds {found}, not a list of dialogues.",
            hint="MRBench is published as one JSON list with an object for each dialogue.",
        )
    for place, row in enumerate(data, start=1):
        if not isinstance(row, dict):
            _refuse(f"{file}, row {place}", f"this is {kind_of(row)}, not an object with fields")
        yield row


def _dialogue(history: str, where: str) -> tuple[SpeakerTurn, ...]:
    turns = speaker_turns(history)
    if turns is None:
        start = " ".join(history.split())[:40]
        _refuse(
            f"{where}, field conversation_history",
            f"no speaker begins it: {start!r}",
            "Each turn begins at a line's start with `Tutor:` or `Student:`.",
        )
    if not any(turn.speaker == "Student" for turn in turns):
        _refuse(f"{where}, field conversation_history", "the student says nothing in it")
    return turns


def _items(
    row: Mapping[str, Any],
    conversation: str,
    occurrence: int,
    history: str,
    dialogue: tuple[SpeakerTurn, ...],
    where: str,
) -> Iterator[Item]:
    field = next((name for name in _REPLIES if name in row), None)
    replies = row.get(field or "")
    if not isinstance(replies, dict) or not replies:
        _refuse(where, f"there are no replies under {' or '.join(_REPLIES)}")
    rest = {name: value for name, value in row.items() if name not in _ROW_FIELDS}
    for tutor, said in replies.items():
        place = f"{where}, tutor {tutor}"
        if not isinstance(said, dict):
            _refuse(place, f"the reply is {kind_of(said)}, not an object")
        yield Item(
            task_id=f"{conversation}-{occurrence}-{tutor}",
            dialogue=dialogue,
            reply=_text(said, "response", place),
            conversation=conversation,
            occurrence=occurrence,
            tutor=tutor,
            annotation=_annotation(said.get("annotation"), place),
            fields=rest,
            history=history,
            reference=str(row.get("Ground_Truth_Solution", "")),
        )


def _annotation(value: Any, where: str) -> Mapping[str, str]:
    """The annotations of one reply; none if the file is an unlabelled one."""
    if value is None or value == {}:
        return {}
    if not isinstance(value, dict):
        _refuse(f"{where}, field annotation", f"it is {kind_of(value)}, not an object")
    for name in (MISTAKE, GUIDANCE):
        if name not in value:
            _refuse(f"{where}, field {name}", "it is missing")
    for name, texts in ANNOTATION_TEXTS.items():
        if name in value and value[name] not in texts:
            known = ", ".join(map(repr, texts))
            _refuse(f"{where}, field {name}", f"{value[name]!r} is none of {known}")
    return dict(value)


def _check_labelled(items: Sequence[Item], file: str) -> None:
    """Every reply of a file has annotations, or none has."""
    bare = [item for item in items if not item.annotation]
    if bare and len(bare) < len(items):
        first = bare[0]
        _refuse(
            f"{file}, conversation {first.conversation}, tutor {first.tutor}, field annotation",
            "it is missing, and other replies of the file have it",
        )


def _check_ids(items: Sequence[Item], file: str) -> None:
    ids = Counter(item.task_id.casefold() for item in items)
    twice = next((item for item in items if ids[item.task_id.casefold()] > 1), None)
    if twice is not None:
        _refuse(
            f"{file}, conversation {twice.conversation}, tutor {twice.tutor}",
            f"the item {twice.task_id!r} comes twice",
        )


def _text(fields: Mapping[str, Any], name: str, where: str) -> str:
    value = fields.get(name)
    if name not in fields or value is None:
        _refuse(f"{where}, field {name}", "it is missing")
    if not isinstance(value, str):
        _refuse(f"{where}, field {name}", f"it is {kind_of(value)}, not text")
    if not value.strip():
        _refuse(f"{where}, field {name}", "it is empty")
    _check_characters(value, f"{where}, field {name}")
    return value


def _check_characters(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(where, "it holds half of a surrogate pair, no character")


def _refuse(where: str, reason: str, hint: str = _HINT) -> NoReturn:
    raise TaskFileError(f"{where}: {reason}.", hint=hint)


# --- File of an audit ----------------------------------------------------------------------------


def audited_of(items: Sequence[Task]) -> Iterator[AuditedReply]:
    """What the items of an audit say of the replies that they are."""
    for item in items:
        assert isinstance(item, Item)
        assert item.audited is not None
        yield item.audited


_OF_TURN: Final = ("run", "episode", "turn", "condition", "persona", "benchmark", "task")
_ALSO_OF_TURN: Final = ("decided_by", "score_before", "possible")


def written_audited(items: Sequence[Task]) -> str:
    """Items as JSON Lines, one turn a line; reading them gives equal items."""
    turns: dict[tuple[str, int], dict[str, Any]] = {}
    for item, audited in zip(items, audited_of(items), strict=True):
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
    return tuple(item for row in read_rows(read_text(path), str(path)) for item in _of_turn(row))


def _of_turn(row: Row) -> list[Item]:
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


def sampled(items: Sequence[Task], count: int | None, *, seed: int) -> tuple[Task, ...]:
    """A number of dialogues, drawn by hash, with all of their items in the order given.

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
