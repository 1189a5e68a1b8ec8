"""Scores of answers to closed and open questions. Pure: texts in, numbers out.

Two scorings: `standard`, and `mallm`, which scores as the published program MALLM does and is
there to re-score logs. Open questions follow the official script of SQuAD 2.0 (Rajpurkar et al.
2018).
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from tutorsim.vocabularies import AnswerKind, Scoring

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
    """In [0, 1]; token F1 for open questions."""
    exact: float | None = None
    """Exact match of an open question; `None` elsewhere."""
    letter: str | None = None
    """The option chosen; `None` if none was, or options have no letters."""
    readable: bool = True
    """Whether the answer could be read as an option; an unreadable one is wrong."""


def score_answer(
    text: str | None,
    *,
    kind: AnswerKind,
    options: Sequence[str],
    gold: Sequence[str],
    scoring: Scoring = "standard",
) -> AnswerScore:
    """Score an answer.

    Args:
        text: The answer; `None` if nothing was delivered, which is worth 0.
        kind: How the task is answered.
        options: Option texts in order; empty for a passage.
        gold: The right letter, the right name, or every right answer of a passage (none if it has
            no answer).
        scoring: Whose rules.
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
