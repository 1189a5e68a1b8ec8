"""What a task is, how it is written down, and how answers to it are scored.

Answers to closed and open questions have two scorings: `standard`, and `mallm`, which scores as the
published program MALLM does and is there to re-score logs. Open questions follow the official
script of SQuAD 2.0 (Rajpurkar et al. 2018).
"""

import hashlib
import json
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tutorsim.errors import FolderError, TaskFileError
from tutorsim.vocabularies import AnswerKind, Benchmark, Scoring

# --- Task ----------------------------------------------------------------------------------------

CODE_FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
DISTRACTORS = ("distractor1", "distractor2", "distractor3")


@dataclass(frozen=True)
class ScienceTask:
    """One open-response science question."""

    task_id: str
    question: str
    correct_answer: str
    distractors: tuple[str, ...]
    """Three wrong answers of the multiple-choice form."""
    support: str
    """A passage that explains the answer; may be empty."""
    benchmark: str = "sciq"
    """The name under which its file stands in the study."""

    def published(self) -> dict[str, Any]:
        """The fields under their published names, and the question's name."""
        return {
            "task_id": self.task_id,
            "question": self.question,
            "correct_answer": self.correct_answer,
            **dict(zip(DISTRACTORS, self.distractors, strict=True)),
            "support": self.support,
        }


@dataclass(frozen=True)
class CodeTask:
    """One small programming problem with unit tests."""

    task_id: str
    prompt: str
    """Program head: imports, helpers, signature, docstring."""
    entry_point: str
    """Name of the function to write."""
    canonical_solution: str
    """Body that completes the prompt."""
    test: str
    """Source that defines `check(candidate)`."""

    @property
    def benchmark(self) -> Benchmark:
        return "humaneval"

    def published(self) -> dict[str, Any]:
        """The fields under their published names."""
        return {name: getattr(self, name) for name in CODE_FIELDS}


class Task(Protocol):
    """What every task has, whatever its benchmark."""

    @property
    def task_id(self) -> str:
        """Name of the task in its file."""

    @property
    def benchmark(self) -> str:
        """The benchmark that it is of."""

    def published(self) -> dict[str, Any]:
        """Fields under their published names: the record that the task's file has."""


class TaskFormat(NamedTuple):
    """How the tasks of one benchmark are read, and what comes with the package."""

    read: Callable[[Path], Sequence[Task]]
    """Reads a file in the published form; raises `TaskFileError` with file, place and field."""
    builtin: Callable[[], Sequence[Task]] | None = None
    """The original set of the package; `None` for none."""
    file: str = "tasks.{}.jsonl"
    """Name of the file in a recording; `{}` stands for the benchmark."""
    write: Callable[[Sequence[Task]], str] | None = None
    """The text of that file; `None` for JSON Lines of the published records."""
    renamed: Callable[[Any, str], Task] | None = None
    """Puts a task under another benchmark's name; `None` where its own name is relied on."""
    asked: str = "question"
    """The published field that lists of tasks show; where there is none, the first but the name."""


def dump_tasks(
    benchmark: str, tasks: Sequence[Task], path: Path, *, form: TaskFormat | None = None
) -> None:
    """Write tasks in their published format, in UTF-8.

    Reading the file gives equal tasks; the same tasks give the same bytes. Each SciQ question
    keeps its name in an added field `task_id`.

    `form`: the benchmark's format, where its file is not JSON Lines. Raises `TaskFileError` if a
    task is not of the benchmark; `FolderError` if the file cannot be written.
    """
    strangers = [task.task_id for task in tasks if task.benchmark != benchmark]
    if strangers:
        raise TaskFileError(f"Task {strangers[0]!r} is no task of {benchmark}.")
    written = (form and form.write) or _json_lines
    try:
        path.write_bytes(written(tasks).encode())
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error),
            hint="Choose a folder that can be written and has space left.",
        ) from error


def _json_lines(tasks: Sequence[Task]) -> str:
    return "".join(json.dumps(task.published(), ensure_ascii=False) + "\n" for task in tasks)


def tasks_digest(tasks: Sequence[Task]) -> str:
    """SHA-256 over all that the tasks say, in order, as hexadecimal digits."""
    value = [[task.benchmark, task.published()] for task in tasks]
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def safe_id(task_id: str) -> str:
    """The id in `[A-Za-z0-9_-]`, for file names and episode ids.

    Every other character, and `_` itself, is written as `_` and two hexadecimal digits for
    each of its UTF-8 bytes, so that different ids stay different: `HumanEval/0` becomes
    `HumanEval_2F0`.
    """
    return re.sub(r"[^A-Za-z0-9-]", _escape, task_id)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"_{byte:02X}" for byte in found[0].encode())


# --- Scores of answers ---------------------------------------------------------------------------

LETTERS: Final = "ABCDEFGHIJ"
"""Letters of options, in order."""

_WRAPPING: Final = " \t\r\n*_`\"'“”‘’()[]{}.,;:!"
_KEYWORD: Final = (
    r"\b(?i:answer|option|choice|solution)\b(?i:[ \t]+is)?[ \t]*:?[ \t]*[*_(\[\"'“‘`]*"
)
_LAST_CAPITAL: Final = re.compile(r"[A-Z](?=[)\]:]|$)")
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_NO_ANSWER: Final = "unknown"


class AnswerScore(NamedTuple):
    """What an answer is worth."""

    value: float
    """Score in [0, 1]; token F1 for open questions."""
    exact: float | None = None
    """Exact match of an open question; `None` elsewhere."""
    letter: str | None = None
    """The option chosen; `None` if none was, or options have no letters."""
    readable: bool = True
    """Whether the answer could be read as an option; an unreadable one is wrong."""


@lru_cache(maxsize=1024)
def score_answer(
    text: str | None,
    *,
    kind: AnswerKind,
    options: tuple[str, ...],
    gold: tuple[str, ...],
    scoring: Scoring = "standard",
) -> AnswerScore:
    """Score an answer.

    `text`: the answer; `None` if nothing was delivered, which is worth 0. `options`: option texts
    in order; empty for a passage. `gold`: the right letter, the right name, or every right answer
    of a passage (none if it has no answer).
    """
    if text is None:
        return AnswerScore(0.0, 0.0 if kind == "passage" else None, readable=False)
    if kind == "passage":
        prediction = "" if _NO_ANSWER in text.lower() else text
        return AnswerScore(token_f1(prediction, gold), exact_match(prediction, gold))
    if kind == "names":
        return _score_names(text, options, gold[0], scoring)
    letter = chosen_letter(text, options) if scoring == "standard" else _program_letter(text)
    return AnswerScore(float(letter == gold[0]), None, letter, readable=letter is not None)


def _score_names(text: str, options: Sequence[str], gold: str, scoring: Scoring) -> AnswerScore:
    if scoring == "mallm":
        return AnswerScore(float(gold in text))
    named = named_choices(text, options)
    return AnswerScore(float(named == (gold,)), readable=len(named) == 1)


def named_choices(text: str, options: Sequence[str]) -> tuple[str, ...]:
    """The options whose names a text mentions, as whole words in any letter case."""
    lower = text.casefold()
    return tuple(
        option
        for option in dict.fromkeys(options)
        if re.search(rf"(?<!\w){re.escape(option.casefold())}(?!\w)", lower)
    )


def chosen_letter(text: str, options: Sequence[str]) -> str | None:
    """The option that an answer chooses; `None` if it cannot be read.

    Letters count that are the whole answer, stand before `)`, `]` or `:`, or follow "answer",
    "option", "choice" or "solution" (is). If all of them are one letter, it is that one; otherwise
    the one option whose text is the whole answer.
    """
    letters = LETTERS[: len(options)]
    bare = text.strip(_WRAPPING)
    if len(bare) == 1 and bare.upper() in letters:
        return bare.upper()
    found = {a or b for a, b in _letter_pattern(letters).findall(text)}
    if len(found) == 1:
        return str(found.pop())
    same = [i for i, option in enumerate(options) if _plain(option) == _plain(text)]
    return letters[same[0]] if len(same) == 1 else None


@lru_cache(maxsize=16)
def _letter_pattern(letters: str) -> re.Pattern[str]:
    one = f"([{letters}])"
    return re.compile(rf"(?<![A-Za-z0-9]){one}[*_]*[)\]:]|{_KEYWORD}{one}(?![A-Za-z0-9'’])")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_WRAPPING)


def _program_letter(text: str) -> str | None:
    """The first capital before `)`, `]`, `:` or the end, as the published program reads it."""
    found = _LAST_CAPITAL.search(text)
    return found[0] if found else None


def exact_match(prediction: str, gold: Sequence[str]) -> float:
    """1 if the prediction is one of the right answers after normalisation, otherwise 0."""
    return float(any(_normalised(prediction) == answer for answer in _right(gold)))


def token_f1(prediction: str, gold: Sequence[str]) -> float:
    """Token F1 after normalisation, the best over the right answers."""
    return max(_f1(_normalised(prediction).split(), answer.split()) for answer in _right(gold))


def _right(gold: Sequence[str]) -> list[str]:
    """Normalised right answers that say something; one empty text if there is none."""
    return [answer for answer in map(_normalised, gold) if answer] or [""]


@lru_cache(maxsize=4096)
def _normalised(text: str) -> str:
    """Lower case without punctuation, articles and surplus white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _f1(predicted: Sequence[str], right: Sequence[str]) -> float:
    if not predicted or not right:
        return float(predicted == right)
    common = sum((Counter(predicted) & Counter(right)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(right)
    return 2 * precision * recall / (precision + recall)
