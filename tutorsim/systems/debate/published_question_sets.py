"""The tasks that are debated: six question sets in their published files, read as they are.

* `mmlu`: a folder of `*_test.csv` without a head (question, four options, letter), or Parquet or
  JSON Lines of `question`, `subject`, `choices`, `answer` (0 to 3).
* `mmlu_pro`: Parquet, JSON or JSON Lines of `question_id`, `question`, `options`, `answer`,
  `category`.
* `gpqa`: the CSV of `Question`, `Correct Answer`, `Incorrect Answer 1` to `3`, `Record ID`; options
  are put in an order drawn from the study's seed and the id.
* `strategyqa`: BIG-bench's `task.json`, with `examples` of `input` and `target_scores`.
* `musr`: a list of `context` and `questions`, or CSV or Parquet of `narrative`, `question`,
  `choices` (a list as text) and `answer_choice`.
* `squad2`: `data`, `paragraphs`, `qas`, as SQuAD 2.0 is published.

A recording holds them as JSON Lines in one form for all: the fields of `DebateTask`.
"""

import ast
import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, get_args

from tutorsim.errors import TaskFileError
from tutorsim.tasks import Task
from tutorsim.tasks.read_task_files_jsonl_parquet_sciq_humaneval import (
    Row,
    check_ids,
    checked_text,
    decode,
    kind_of,
    read_parquet,
    read_rows,
    read_text,
    refuse,
    text_of,
)
from tutorsim.tasks.task_types_ids_digests_and_scoring import (
    LETTERS,
    AnswerScore,
    TaskFormat,
    score_answer,
)
from tutorsim.vocabularies import AnswerKind

DebateBenchmark = Literal["mmlu", "mmlu_pro", "gpqa", "strategyqa", "musr", "squad2"]

BENCHMARKS: Final[tuple[DebateBenchmark, ...]] = get_args(DebateBenchmark)


def answer_kind(benchmark: str) -> AnswerKind:
    """How tasks of a benchmark are answered."""
    return {"musr": "names", "squad2": "passage"}.get(benchmark, "choice")  # type: ignore[return-value]


@dataclass(frozen=True)
class DebateTask:
    """One task."""

    task_id: str
    benchmark: DebateBenchmark
    question: str
    options: tuple[str, ...] = ()
    """Option texts in order; empty for a passage."""
    gold: tuple[str, ...] = ()
    """The right letter, the right name, or every right answer; empty if there is none."""
    context: str = ""
    """The passage or story; may be empty."""
    category: str = ""
    """Subject, where the file names one."""

    @property
    def kind(self) -> AnswerKind:
        return answer_kind(self.benchmark)

    @property
    def shown(self) -> str:
        """The question, after its passage."""
        return f"{self.context}\n\n{self.question}".strip() if self.context else self.question

    @property
    def shown_options(self) -> tuple[str, ...]:
        """Options as prompts show them, with letters if answers are letters."""
        if self.kind == "names":
            return tuple(f"- {option}" for option in self.options)
        return tuple(
            f"{letter}) {option}" for letter, option in zip(LETTERS, self.options, strict=False)
        )

    def score(self, text: str | None) -> AnswerScore:
        """What an answer is worth."""
        return score_answer(text, kind=self.kind, options=self.options, gold=self.gold)

    def wrong_options(self) -> tuple[str, ...]:
        """Options that are not right, as an answer would give them."""
        right = self.gold
        if self.kind == "choice":
            right = tuple(self.options[LETTERS.index(letter)] for letter in self.gold)
        return tuple(
            shown.removeprefix("- ")
            for shown, option in zip(self.shown_options, self.options, strict=True)
            if option not in right
        )

    def published(self) -> dict[str, Any]:
        """The task under its published names: what is shown of it, and what its digest is over."""
        name = {"task_id": self.task_id}
        match self.benchmark:
            case "mmlu":
                return name | {
                    "question": self.question,
                    "subject": self.category,
                    "choices": list(self.options),
                    "answer": LETTERS.index(self.gold[0]),
                }
            case "mmlu_pro" | "gpqa":
                return name | {
                    "question_id": self.task_id,
                    "question": self.question,
                    "options": list(self.options),
                    "answer": self.gold[0],
                    "category": self.category,
                }
            case "strategyqa":
                scores = {
                    option: int(letter == self.gold[0])
                    for letter, option in zip(LETTERS, self.options, strict=False)
                }
                return name | {"input": self.question, "target_scores": scores}
            case "musr":
                return name | {
                    "narrative": self.context,
                    "question": self.question,
                    "choices": list(self.options),
                    "answer_choice": self.gold[0],
                }
            case "squad2":
                return name | {
                    "id": self.task_id,
                    "context": self.context,
                    "question": self.question,
                    "is_impossible": not self.gold,
                    "answers": [{"text": text} for text in self.gold],
                }


# --- Rows of published files ----------------------------------------------------------------------


def rows_of(path: Path, benchmark: str) -> list[Row]:
    """The rows of a file or folder, one for each task.

    Raises `TaskFileError` if it is not in the benchmark's published form.
    """
    if path.is_dir():
        return _folder_rows(path, benchmark)
    if path.suffix == ".parquet":
        return read_parquet(path)
    text = read_text(path)
    if path.suffix == ".csv":
        return _csv_rows(text, str(path), benchmark)
    return json_rows(text, str(path), benchmark)


def _folder_rows(path: Path, benchmark: str) -> list[Row]:
    files = sorted(path.glob("*_test.csv"))
    if benchmark != "mmlu" or not files:
        raise TaskFileError(
            f"{path} is a folder without `*_test.csv`.",
            hint="Only mmlu is published as a folder; name the file of any other benchmark.",
        )
    return [row for file in files for row in _csv_rows(read_text(file), str(file), benchmark)]


def _csv_rows(text: str, file: str, benchmark: str) -> list[Row]:
    """Records of a CSV file; one of mmlu has no head and takes its subject from its name."""
    names = ["question", "A", "B", "C", "D", "letter"] if benchmark == "mmlu" else None
    reader = csv.DictReader(io.StringIO(text, newline=""), fieldnames=names)
    rows = []
    try:
        for place, fields in enumerate(reader, start=1):
            if benchmark == "mmlu":
                fields["subject"] = Path(file).stem.removesuffix("_test")
                fields["place"] = str(place)
            rows.append(Row(file, reader.line_num, place, dict(fields)))
    except csv.Error as error:
        raise TaskFileError(
            f"{file}, line {reader.line_num}: this is not CSV: {error}.", hint="Correct the file."
        ) from error
    if not rows:
        raise TaskFileError(f"{file}: there is no task in it.", hint="Give a file with tasks.")
    return rows


def json_rows(text: str, file: str, benchmark: str) -> list[Row]:
    """The rows of a JSON or JSON Lines text; `file` is its name in errors.

    Raises `TaskFileError` if it is not in the benchmark's published form.
    """
    head = text.lstrip()[:1]
    nested = {"strategyqa": "examples", "squad2": "data"}.get(benchmark)
    if head == "{" and nested is not None and f'"{nested}"' in text[:100_000]:
        return _nested_rows(text, file, benchmark, nested)
    rows = list(read_rows(text, file))
    if benchmark == "musr":
        flat = [row for outer in rows for row in _story_rows(outer)]
        return [row._replace(place=place) for place, row in enumerate(flat, start=1)]
    return rows


def _nested_rows(text: str, file: str, benchmark: str, name: str) -> list[Row]:
    """Records inside one JSON object."""
    try:
        items = json.loads(text)[name]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise TaskFileError(
            f"{file}: this is no published file of {benchmark}.",
            why=f"{name} cannot be read: {error!r}.",
            hint="Download the file again.",
        ) from error
    found = _squad_items(items, file) if benchmark == "squad2" else _example_items(items, file)
    lines = _Lines(text)
    return [
        Row(file, lines.of(anchor), place, fields)
        for place, (anchor, fields) in enumerate(found, start=1)
    ]


class _Lines:
    """Line numbers of texts that come one after another in a file."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def of(self, anchor: str) -> int:
        """The line of the next place at which a text stands; the last one known if it does not."""
        for escaped in (False, True):
            at = self._text.find(json.dumps(anchor, ensure_ascii=escaped), self._at)
            if at != -1:
                self._line += self._text.count("\n", self._at, at)
                self._at = at
                break
        return self._line


def _example_items(items: Any, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in _list_of(items, file, "examples"):
        yield str(item.get("input", "")), item


def _squad_items(items: Any, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for article in _list_of(items, file, "data"):
        for paragraph in _list_of(article.get("paragraphs"), file, "paragraphs"):
            for question in _list_of(paragraph.get("qas"), file, "qas"):
                fields = {**question, "context": paragraph.get("context")}
                yield str(question.get("id", "")), fields


def _story_rows(row: Row) -> Iterator[Row]:
    """The questions of a story; a flat record is one question."""
    if "questions" not in row.fields:
        yield row
        return
    for question in _list_of(row.fields["questions"], row.file, "questions"):
        yield row._replace(fields={**question, "narrative": row.fields.get("context")})


def _list_of(value: Any, file: str, name: str) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise TaskFileError(
        f"{file}: {name} is {kind_of(value)}, not a list of objects.",
        hint="Download the file again.",
    )


# --- A task from a row ----------------------------------------------------------------------------


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
    number = row.fields.get("question_id")
    if isinstance(number, bool) or not isinstance(number, int | str) or number == "":
        refuse(row, "question_id", f"it is {kind_of(number)}, not a number or text")
    return _in_order(row, "mmlu_pro", str(number))


def _gpqa(row: Row) -> DebateTask:
    if "options" in row.fields:
        return _in_order(row, "gpqa", text_of(row, "question_id"))
    task_id = text_of(row, "Record ID")
    right = text_of(row, "Correct Answer").strip()
    texts = [right, *(text_of(row, name).strip() for name in _GPQA_WRONG)]
    return DebateTask(
        task_id, "gpqa", text_of(row, "Question").strip(), tuple(texts), (LETTERS[0],)
    )


def _in_order(row: Row, benchmark: DebateBenchmark, task_id: str) -> DebateTask:
    """A task whose options are in order, as one of gpqa is that a recording holds."""
    options = _options(row, "options")
    gold = _letter(row, "answer", options)
    return _closed(row, benchmark, task_id, options, gold, _group(row, "category"))


def _strategyqa(row: Row) -> DebateTask:
    scores = row.fields.get("target_scores")
    if not isinstance(scores, dict) or sorted(scores) != ["No", "Yes"]:
        refuse(row, "target_scores", f"it is {scores!r}, not scores of Yes and No")
    if sorted(scores.values()) != [0, 1]:
        refuse(row, "target_scores", f"{scores!r} does not name one right answer")
    return DebateTask(
        _id(row, f"strategyqa-{row.place:04d}"),
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
    return DebateTask(_id(row, f"musr-{row.place:04d}"), "musr", question, options, (gold,), story)


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
    return DebateTask(
        _id(row, task_id),
        benchmark,
        text_of(row, "question").strip(),
        options,
        (gold,),
        category=category,
    )


def _id(row: Row, otherwise: str) -> str:
    """The id that a recording gives a task."""
    name = row.fields.get("task_id")
    return name if isinstance(name, str) and name else otherwise


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

    Raises `TaskFileError` naming file, line and field.
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


# --- Files and built-in sets ----------------------------------------------------------------------


BUILTIN: Final[Mapping[str, str]] = {
    "mmlu": "mmlu.jsonl",
    "strategyqa": "strategyqa.json",
    "musr": "musr.json",
    "squad2": "squad2.json",
}
"""Benchmark → the file of its original set."""


def read_debate_tasks(benchmark: DebateBenchmark, path: Path) -> tuple[DebateTask, ...]:
    """Read the tasks of a benchmark from its published file or folder.

    Raises `TaskFileError` naming file, line and field.
    """
    rows = rows_of(path, benchmark)
    tasks = tuple(task_of(row, benchmark) for row in rows)
    check_ids(rows, [task.task_id for task in tasks], field="id")
    return tasks


def debate_formats() -> dict[str, TaskFormat]:
    """How the files of each benchmark are read."""
    return {
        name: TaskFormat(
            read=partial(read_debate_tasks, name),
            write=stored_text,
            builtin=partial(builtin_tasks, name) if name in BUILTIN else None,
        )
        for name in BENCHMARKS
    }


@cache
def builtin_tasks(benchmark: DebateBenchmark) -> tuple[DebateTask, ...]:
    """The original tasks that come with the package.

    Raises `TaskFileError` if there are none of this benchmark.
    """
    if benchmark not in BUILTIN:
        raise TaskFileError(
            f"There is no built-in set of {benchmark}.",
            why=f"Built-in sets are there for {', '.join(BUILTIN)}.",
            hint=f"Name the published file in [benchmarks.{benchmark}] tasks.",
        )
    name = BUILTIN[benchmark]
    folder = resources.files("tutorsim").joinpath("systems", "debate", "tasks")
    text = decode(folder.joinpath(name).read_bytes(), name)
    return tuple(task_of(row, benchmark) for row in json_rows(text, name, benchmark))


# --- Which tasks are asked, and the order of their options: drawn by a hash -----------------------


def formula_size(population: int) -> int:
    """How many tasks the debate study draws: Cochran's size for 95 % and ± 5 points, corrected.

    n = ⌈n₀ / (1 + (n₀ - 1) / N)⌉ with n₀ = 1.96² · 0.25 / 0.05².
    """
    first = 1.96**2 * 0.25 / 0.05**2
    return math.ceil(first / (1 + (first - 1) / population))


def sampled(
    tasks: Sequence[DebateTask], size: int | Literal["formula"] | None, *, seed: int
) -> tuple[DebateTask, ...]:
    """A number of tasks, drawn by a hash of seed and id, in the order of the file."""
    if size is None:
        return tuple(tasks)
    count = formula_size(len(tasks)) if size == "formula" else size
    drawn = sorted(tasks, key=lambda task: _hash(seed, task.task_id))[:count]
    kept = {task.task_id for task in drawn}
    return tuple(task for task in tasks if task.task_id in kept)


def in_drawn_order(task: DebateTask, seed: int) -> DebateTask:
    """The task, with the options of `gpqa`, whose file names the right one first, in an order
    drawn from seed and id; any order of the file gives the same one."""
    if task.benchmark != "gpqa":
        return task
    options = sorted(task.options, key=lambda text: _hash(seed, task.task_id, text))
    right = task.options[LETTERS.index(task.gold[0])]
    return replace(task, options=tuple(options), gold=(LETTERS[options.index(right)],))


def _hash(*parts: object) -> bytes:
    return sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
