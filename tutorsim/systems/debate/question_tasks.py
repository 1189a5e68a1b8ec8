"""Tasks of the six question sets, each from one row of its file."""

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tutorsim.systems.debate.debate_task import DebateBenchmark, DebateTask, answer_kind
from tutorsim.tasks import Task
from tutorsim.tasks.answer_scores import LETTERS
from tutorsim.tasks.task_file_records import Row, checked_text, kind_of, refuse, text_of

__all__ = ["stored_text", "task_of"]

_GPQA_WRONG: Final = tuple(f"Incorrect Answer {number}" for number in (1, 2, 3))


def _mmlu(row: Row) -> DebateTask:
    subject = _group(row, "subject")
    if "letter" in row.fields:
        options = tuple(text_of(row, letter) for letter in "ABCD")
        gold = _letter(row, "letter", options)
    else:
        options = _options(row, "choices")
        gold = LETTERS[_index(row, "answer", options)]
    place = int(row.fields.get("place", row.place))
    return _closed(row, "mmlu", f"{subject or 'mmlu'}-{place:04d}", options, gold, subject)


def _mmlu_pro(row: Row) -> DebateTask:
    options = _options(row, "options")
    number = row.fields.get("question_id")
    if isinstance(number, bool) or not isinstance(number, int | str) or number == "":
        refuse(row, "question_id", f"it is {kind_of(number)}, not a number or text")
    gold = _letter(row, "answer", options)
    category = _group(row, "category")
    return _closed(row, "mmlu_pro", str(number), options, gold, category)


def _gpqa(row: Row) -> DebateTask:
    if "options" in row.fields:
        return _flat_gpqa(row)
    task_id = text_of(row, "Record ID")
    right = text_of(row, "Correct Answer").strip()
    texts = [right, *(text_of(row, name).strip() for name in _GPQA_WRONG)]
    return DebateTask(
        task_id, "gpqa", text_of(row, "Question").strip(), tuple(texts), (LETTERS[0],)
    )


def _flat_gpqa(row: Row) -> DebateTask:
    """A task as a recording holds it, its options already in order."""
    options = _options(row, "options")
    gold = _letter(row, "answer", options)
    category = _group(row, "category")
    return _closed(row, "gpqa", text_of(row, "question_id"), options, gold, category)


def _strategyqa(row: Row) -> DebateTask:
    scores = row.fields.get("target_scores")
    if not isinstance(scores, dict) or sorted(scores) != ["No", "Yes"]:
        refuse(row, "target_scores", f"it is {scores!r}, not scores of Yes and No")
    if sorted(scores.values()) != [0, 1]:
        refuse(row, "target_scores", f"{scores!r} does not name one right answer")
    return DebateTask(
        _id(row, "strategyqa"),
        "strategyqa",
        text_of(row, "input"),
        ("Yes", "No"),
        ("A" if scores["Yes"] else "B",),
    )


def _musr(row: Row) -> DebateTask:
    options = _options(row, "choices")
    if "answer_choice" in row.fields:
        gold = text_of(row, "answer_choice")
        if gold not in options:
            refuse(row, "answer_choice", f"{gold!r} is none of the choices {list(options)}")
    else:
        gold = options[_index(row, "answer", options)]
    question = text_of(row, "question") if "question" in row.fields else "Who did it?"
    story = text_of(row, "narrative")
    return DebateTask(_id(row, "musr"), "musr", question, options, (gold,), story)


def _squad2(row: Row) -> DebateTask:
    answers = row.fields.get("answers")
    if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
        refuse(row, "answers", f"it is {kind_of(answers)}, not a list of objects")
    texts = [checked_text(row, "answers", one.get("text"), may_be_empty=True) for one in answers]
    impossible = row.fields.get("is_impossible", False)
    if not isinstance(impossible, bool):
        refuse(row, "is_impossible", f"it is {kind_of(impossible)}, not true or false")
    return DebateTask(
        text_of(row, "id"),
        "squad2",
        text_of(row, "question").strip(),
        gold=() if impossible else tuple(dict.fromkeys(texts)),
        context=text_of(row, "context"),
    )


def _closed(
    row: Row,
    benchmark: DebateBenchmark,
    task_id: str,
    options: tuple[str, ...],
    gold: str,
    category: str,
) -> DebateTask:
    name = row.fields.get("task_id")
    return DebateTask(
        name if isinstance(name, str) and name else task_id,
        benchmark,
        text_of(row, "question").strip(),
        options,
        (gold,),
        category=category,
    )


def _id(row: Row, benchmark: str) -> str:
    name = row.fields.get("task_id")
    return name if isinstance(name, str) and name else f"{benchmark}-{row.place:04d}"


def _group(row: Row, field: str) -> str:
    """The group of questions that a task is from; empty if the file names none."""
    return "" if row.fields.get(field) is None else text_of(row, field, may_be_empty=True)


def _options(row: Row, field: str) -> tuple[str, ...]:
    """Options from a list, or from a cell that holds a list as text; nothing is evaluated."""
    value = row.fields.get(field)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            refuse(row, field, f"{value[:40]!r} is no list of texts")
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        refuse(row, field, f"{str(value)[:40]!r} is no list of texts")
    if not 2 <= len(value) <= len(LETTERS):
        refuse(row, field, f"it has {len(value)} options, and 2 to {len(LETTERS)} are needed")
    return tuple(checked_text(row, field, one) for one in value)


def _letter(row: Row, field: str, options: Sequence[str]) -> str:
    letter = text_of(row, field).strip()
    if letter not in tuple(LETTERS[: len(options)]):
        refuse(row, field, f"{letter!r} is no letter of its {len(options)} options")
    return letter


def _index(row: Row, field: str, options: Sequence[str]) -> int:
    value = row.fields.get(field)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(options):
        refuse(row, field, f"{value!r} is no place among its {len(options)} options")
    return value


def stored_text(tasks: Sequence[Task]) -> str:
    """The tasks of a recording as JSON Lines, whatever their benchmark's published form is."""
    rows = (vars(task) for task in tasks)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _stored(row: Row, benchmark: DebateBenchmark) -> DebateTask:
    """A task as `stored_text` writes it."""
    options, kind = row.fields.get("options"), answer_kind(benchmark)
    if kind != "passage":
        options = _options(row, "options")
    gold = row.fields.get("gold")
    if not isinstance(gold, list):
        refuse(row, "gold", f"it is {kind_of(gold)}, not a list of texts")
    golds = tuple(checked_text(row, "gold", one, may_be_empty=True) for one in gold)
    among = {"choice": tuple(LETTERS[: len(options or ())]), "names": tuple(options or ())}
    if kind in among and not (len(golds) == 1 and golds[0] in among[kind]):
        refuse(row, "gold", f"{gold!r} is not one of its {len(options or ())} options")
    return DebateTask(
        text_of(row, "task_id"),
        benchmark,
        text_of(row, "question", may_be_empty=True),
        tuple(options or ()),
        golds,
        text_of(row, "context", may_be_empty=True),
        text_of(row, "category", may_be_empty=True),
    )


def task_of(row: Row, benchmark: DebateBenchmark) -> DebateTask:
    """A task from a row of its published file, or of a recording.

    Raises:
        TaskFileError: Naming file, line and field.
    """
    return _stored(row, benchmark) if "gold" in row.fields else _PUBLISHED[benchmark](row)


_PUBLISHED: Final[Mapping[str, Callable[[Row], DebateTask]]] = {
    "mmlu": _mmlu,
    "mmlu_pro": _mmlu_pro,
    "gpqa": _gpqa,
    "strategyqa": _strategyqa,
    "musr": _musr,
    "squad2": _squad2,
}
"""Benchmark → its task from a row of its published file."""
