"""What the scripted model knows of a task, and how far a text shows that it is understood.

The original tasks are known from the catalog and from `knowledge.toml`. For any other task the
model makes up phrases from the words of the question, the same ones whenever it is asked, so
that its student, its tutors and its judge still speak of one thing.
"""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import takewhile
from typing import Any, Literal

from tutorsim.tasks import CodeTask, ScienceTask, builtin

__all__ = ["Knowledge", "Level", "content_words", "covers", "knowledge_of", "level_of"]

Level = Literal[0, 1, 2, 3]
"""0 wrong or blank, 1 a clue, 2 the right idea, 3 the right idea with its reason."""

_COMMON_TEXT = (
    "a all an and are as at be because both but by can do for from give has have how i if in into "
    "is it its no not of on one only or so than that the their then there they this to what when "
    "where which why with you your"
)
_COMMON = frozenset(_COMMON_TEXT.split())


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Phrases about one task; see `knowledge.toml` for what each is for."""

    question: str
    topic: str
    clue: str
    answer: str
    because: str
    beliefs: tuple[str, ...]
    """Wrong answers that a student may hold."""
    hint: str
    counter: str
    program: str | None = None
    """For a programming task, the text before the function's body."""
    body: str = ""
    """For a known programming task, a right body."""
    slips: tuple[tuple[str, str], ...] = ()
    """Replacements in the body, each of which makes it wrong."""
    invented: bool = False
    """Made up from the words of the question."""
    words: dict[str, frozenset[str]] = field(init=False)
    """Content words of the phrases that texts are compared with."""

    def __post_init__(self) -> None:
        names = ("clue", "answer", "because", "hint", "counter")
        words = {name: content_words(getattr(self, name)) for name in names}
        words["because"] -= words["answer"]
        object.__setattr__(self, "words", words)


@lru_cache(maxsize=8192)
def content_words(text: str) -> frozenset[str]:
    """Words and numbers in lower case, without the most common ones."""
    return frozenset(re.findall(r"[a-z0-9]+", text.lower())) - _COMMON


def covers(text: str, words: frozenset[str]) -> float:
    """The share of `words` that the text holds; 0 when there are none."""
    return len(words & content_words(text)) / len(words) if words else 0.0


def level_of(text: str, known: Knowledge) -> Level:
    """How far a student's words show that the task is understood."""
    if covers(text, known.words["answer"]) >= 0.8:
        return 3 if covers(text, known.words["because"]) >= 0.6 else 2
    return 1 if covers(text, known.words["clue"]) >= 0.8 else 0


def knowledge_of(user: str) -> Knowledge:
    """What is known of the task that a prompt shows."""
    by_line = _by_first_line()
    for line in user.split("\n"):
        if line in by_line:
            return by_line[line]
    for line, known in by_line.items():
        if line in user:
            return known
    return _stranger(*_asked(user))


@cache
def _by_first_line() -> dict[str, Knowledge]:
    path = resources.files("tutorsim.systems.panel").joinpath("mind", "knowledge.toml")
    tables = tomllib.loads(path.read_text("utf-8"))
    tasks: list[ScienceTask | CodeTask] = [*builtin("sciq"), *builtin("humaneval")]
    known = [_known(task, tables) for task in tasks]
    return {entry.question.split("\n", 1)[0]: entry for entry in known}


def _known(task: ScienceTask | CodeTask, tables: dict[str, Any]) -> Knowledge:
    if isinstance(task, ScienceTask):
        said = tables["science"][task.task_id]
        return Knowledge(
            question=task.question,
            answer=task.correct_answer,
            beliefs=task.distractors,
            **said,
        )
    return _known_program(task, tables["programs"][task.task_id])


def _known_program(task: CodeTask, said: dict[str, Any]) -> Knowledge:
    return Knowledge(
        question=task.prompt.rstrip(),
        topic=said["topic"],
        clue=said["clue"],
        answer=said["idea"],
        because=said["because"],
        beliefs=(said["belief"],),
        hint=said["hint"],
        counter=said["counter"],
        program=_before_docstring(task.prompt),
        body=task.canonical_solution,
        slips=tuple((old, new) for old, new in said["slips"]),
    )


def _before_docstring(prompt: str) -> str:
    return re.split(r'"""|\'\'\'', prompt, maxsplit=1)[0].rstrip()


# --- Tasks from elsewhere -------------------------------------------------------------------


_CODE_LINE = re.compile(r"\s|$|def |from |import |class |@|#|\)")


def _asked(user: str) -> tuple[str, bool]:
    """The question as the prompt shows it, and whether a program is asked for."""
    lines = user.split("\n")
    start = next((i for i, line in enumerate(lines) if _is_code_start(line)), None)
    if start is not None:
        code = takewhile(_CODE_LINE.match, lines[start:])
        return "\n".join(code).rstrip(), True
    named = re.search(r"(?i)question:\s*(.+)", user)
    return (named[1] if named else user.strip().split("\n", 1)[0]).strip(), False


def _is_code_start(line: str) -> bool:
    return re.match(r"def \w+\(|from \S+ import |import \w", line) is not None


@lru_cache(maxsize=4096)
def _stranger(question: str, is_code: bool) -> Knowledge:
    heads = re.findall(r"^def (\w+)\(.*", question, re.MULTILINE)
    if is_code and heads:
        thing, other = f"`{heads[-1]}`", heads[-1].replace("_", " ")
    else:
        longest = sorted(content_words(question), key=lambda word: (-len(word), word))
        thing, other = [*longest, "that", "this"][:2]
    return Knowledge(
        question=question,
        topic=f"the role of {thing}",
        clue=f"some rule about {thing} must decide it",
        answer=f"the rule about {thing} has to be followed through for {other} as the text says",
        because=f"Following {thing} through each case of the text leaves a single result.",
        beliefs=(f"{thing} does not matter here", f"any guess about {thing} is as good"),
        hint=f"what the text says about {thing}",
        counter=f"the text would not mention {thing} without a reason",
        program=_last_head(question) if is_code else None,
        invented=True,
    )


def _last_head(code: str) -> str:
    """Imports, and the signature of the last function, which is the one that is asked for."""
    imports = re.findall(r"^(?:from|import) .*", code, re.MULTILINE)
    signatures = re.findall(r"^def \w+\((?:.*\n)*?.*:[ \t]*$", code, re.MULTILINE)
    return "\n".join([*imports, *signatures[-1:]])
