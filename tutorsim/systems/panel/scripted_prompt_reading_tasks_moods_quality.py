"""How the scripted panel reads a prompt: what is asked, what a text shows, how good a draft is."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import takewhile
from typing import Any, Literal

from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.tasks import CodeTask, ScienceTask, builtin
from tutorsim.vocabularies import BallotFormat

# --- Task knowledge ------------------------------------------------------------------------------

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
            question=task.question, answer=task.correct_answer, beliefs=task.distractors, **said
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


# --- Prompt reading ------------------------------------------------------------------------------

Kind = Literal["student", "judge", "propose", "revise", "review", "vote", "other"]

_PARAGRAPH = r"(.*(?:\n  .*)*)"
_STUDENT = re.compile(rf"^Student[^:\n]*: {_PARAGRAPH}", re.MULTILINE)
_DELIVERED = re.compile(rf"^Your tutor now [^:\n]*:\s+{_PARAGRAPH}", re.MULTILINE)
_LABELLED = re.compile(rf"^([A-H]): {_PARAGRAPH}", re.MULTILINE)
_OWN = re.compile(rf"^Your own draft[^:\n]*:\s+{_PARAGRAPH}", re.MULTILINE)
_GRADED = re.compile(rf"^Student's (?:answer|message):\s+{_PARAGRAPH}", re.MULTILINE)
_TRAITS = re.compile(
    r"prior knowledge ([\d.]*\d), confidence ([\d.]*\d), persistence ([\d.]*\d), "
    r"frustration sensitivity ([\d.]*\d), help seeking ([\d.]*\d)"
)
_BALLOTS: tuple[tuple[BallotFormat, re.Pattern[str]], ...] = (
    ("score", re.compile(r"^score each\b", re.IGNORECASE | re.MULTILINE)),
    ("rich", re.compile(r"\bput a bar\b", re.IGNORECASE)),
    ("cumulative", re.compile(r"\bdistribute\b.*?\bpoints\b", re.IGNORECASE)),
    ("ranked", re.compile(r"\brank\b.*?\bbest to worst\b", re.IGNORECASE)),
    ("approval", re.compile(r"^approve\b", re.IGNORECASE | re.MULTILINE)),
    ("simple", re.compile(r"\bvote for\b.*?\bone\b", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Spoken:
    """Who said what before."""

    attempts: tuple[str, ...]
    """The student's messages, oldest first."""
    delivered: str | None
    """The reply that the student is to answer."""


@dataclass(frozen=True)
class Asked:
    """A request's system text and user text, and what they ask for."""

    system: str
    user: str

    @cached_property
    def kind(self) -> Kind:
        if "SCORE:" in self.system:
            return "judge"
        if "PROPOSAL:" in self.user:
            return "revise" if _OWN.search(self.user) else "propose"
        if "STRENGTH:" in self.user:
            return "review"
        if self.form is not None:
            return "vote"
        return "student" if re.search(r"\bstudent\b", self.system) else "other"

    @cached_property
    def form(self) -> BallotFormat | None:
        """The ballot's format, read from what comes after the replies to choose from."""
        tail = self.user[-800:]
        for form, words in _BALLOTS:
            if words.search(tail):
                return form
        return None

    @cached_property
    def budget(self) -> int:
        """Points that a cumulative or rich ballot has to sum to."""
        found = re.search(r"(\d+) points", self.user[-800:])
        return int(found[1]) if found else 25

    @cached_property
    def known(self) -> Knowledge:
        return knowledge_of(self.user)

    @cached_property
    def spoken(self) -> Spoken:
        delivered = _DELIVERED.search(self.user)
        attempts = tuple(map(_flat, _STUDENT.findall(self.user)))
        return Spoken(attempts, _flat(delivered[1]) if delivered else None)

    @cached_property
    def drafts(self) -> dict[str, str]:
        """Label → text of the replies shown, in the order shown."""
        return {label: _flat(text) for label, text in _LABELLED.findall(self.user)}

    @property
    def own_draft(self) -> str:
        """The tutor's own draft, when it is asked to revise it."""
        found = _OWN.search(self.user)
        return _flat(found[1]) if found else ""

    @property
    def graded(self) -> str:
        """The answer that the judge is to grade; the whole text when it is not marked."""
        found = _GRADED.search(self.user)
        return _flat(found[1]) if found else self.user

    @property
    def traits(self) -> tuple[float, ...] | None:
        """The student's five dimensions, when the prompt has them."""
        found = _TRAITS.search(self.system)
        return tuple(map(float, found.groups())) if found else None

    @property
    def again(self) -> bool:
        """Whether the last reply could not be used and is asked for once more."""
        return "Your last reply" in self.user[-400:]


def _flat(text: str) -> str:
    """The text with the indent of later lines taken off."""
    return text.replace("\n  ", "\n").strip()


# --- Wording -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mood:
    """How a student speaks."""

    name: str
    traits: tuple[float, ...]
    leads: tuple[str, ...]
    tails: tuple[str, ...]
    blanks: tuple[str, ...]
    """What the student says instead of an answer; empty where the student always answers."""

    @property
    def phrases(self) -> tuple[str, ...]:
        """What the mood is known by."""
        blanks = (blank.partition("{topic}")[0] for blank in self.blanks)
        return (*self.leads, *self.tails, *blanks)


@dataclass(frozen=True)
class Style:
    """How a tutor speaks."""

    name: str
    keys: tuple[str, ...]
    """Words of an objective that ask for this style."""
    cues: tuple[str, ...]
    """Phrases by which a text in this style is known."""
    opens: tuple[str, ...]
    specific: tuple[str, ...]
    vague: tuple[str, ...]
    closes: tuple[str, ...]
    rationales: tuple[str, ...]


@dataclass(frozen=True)
class Wording:
    """All wordings."""

    moods: Mapping[str, Mood]
    styles: Mapping[str, Style]
    fit: Mapping[str, Mapping[str, float]]
    """Style → mood → how well the help fits, from 0 to 1."""
    turns: Mapping[str, tuple[str, ...]]
    notes: Mapping[str, tuple[str, ...]]
    judge: Mapping[str, tuple[str, ...]]


@cache
def load_wording() -> Wording:
    """The wordings of `wording.toml`."""
    path = resources.files("tutorsim.systems.panel").joinpath("mind", "wording.toml")
    tables = tomllib.loads(path.read_text("utf-8"))
    return Wording(
        moods={name: Mood(name, **_tuples(said)) for name, said in tables["moods"].items()},
        styles={name: Style(name, **_tuples(said)) for name, said in tables["styles"].items()},
        fit=tables["fit"],
        turns=_tuples(tables["turns"]),
        notes=_tuples(tables["notes"]),
        judge=_tuples(tables["judge"]),
    )


def _tuples(table: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(values) for name, values in table.items()}


def fill(template: str, known: Knowledge, *, belief: str = "") -> str:
    """A wording with its slots filled from what is known of the task."""
    return template.format(
        topic=known.topic,
        hint=known.hint,
        counter=known.counter,
        COUNTER=known.counter[:1].upper() + known.counter[1:],
        belief=belief,
    )


@lru_cache(maxsize=4096)
def mood_of_text(text: str) -> Mood:
    """The mood that a student's message shows; guarded when it shows none."""
    wording = load_wording()
    counts = {
        name: sum(phrase in text for phrase in mood.phrases) for name, mood in wording.moods.items()
    }
    best = max(counts, key=lambda name: counts[name])
    return wording.moods[best if counts[best] else "guarded"]


@lru_cache(maxsize=4096)
def style_weights(text: str) -> Mapping[str, float]:
    """How much of each style a tutor's text shows, summing to 1."""
    lower = text.lower()
    styles = load_wording().styles
    counts = {name: sum(cue in lower for cue in style.cues) for name, style in styles.items()}
    total = sum(counts.values())
    if not total:
        return {"general": 1.0}
    return {name: count / total for name, count in counts.items() if count}


# --- Reply quality -------------------------------------------------------------------------------

_SPECIFIC = 0.1
"""What a concrete hint or fact adds."""
_LUCK = 0.06
"""Deviation of what no style explains and a revision leaves as it is."""
_LUCK_OF_REST = 0.05
"""Deviation of what no style explains and a revision draws again."""


@lru_cache(maxsize=8192)
def help_quality(text: str, mood: Mood, known: Knowledge) -> float:
    """About 0.2 to 1: the fit of the text's styles to the mood, concreteness, and luck."""
    fit = load_wording().fit
    weights = style_weights(text)
    base = sum(weight * fit[style][mood.name] for style, weight in weights.items())
    luck = Chance("luck", mood.name, known.question, opening(text))
    base += _LUCK * luck.bell("opening") + _LUCK_OF_REST * luck.bell(text)
    return base + (_SPECIFIC if is_specific(text, known) else 0.0)


def opening(text: str) -> str:
    """The first sentence: what stays the same when a reply is revised."""
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]


def is_specific(text: str, known: Knowledge) -> bool:
    """Whether the text has something concrete about this task."""
    return max(covers(text, known.words["hint"]), covers(text, known.words["counter"])) >= 0.7
