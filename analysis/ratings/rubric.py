"""What raters are asked: the anchors of a run's model judge, or a rubric from a file."""

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tutorsim.errors import RatingFileError
from tutorsim.named_files import read_named
from tutorsim.records.ratings import Rubric

__all__ = ["judge_rubric", "read_rubric", "reply_rubric", "value_text"]

_ANCHOR: Final = re.compile(
    r"^[ \t]*(\d+(?:\.\d+)?)[ \t]*[:=–-]?[ \t]+(\S.*?)[ \t]*$", re.MULTILINE
)
"""A line of the judge's prompt that says what a score means."""

_TENTHS: Final = tuple(step / 10 for step in range(11))

_MOST_VALUES: Final = 21
"""Values that fit on a screen to choose from."""

_KEYS: Final = ("name", "question", "scale", "anchors", "threshold")

_QUESTION: Final = "How correct and how well explained is the student's answer?"

_OF_PROGRAMS: Final = (
    "Of a program, rate how well the student's own words show that the algorithm is understood; "
    "tests judge the code."
)


def value_text(value: float) -> str:
    """A value of a scale as raters see it."""
    return f"{value:g}"


def reply_rubric(*, labelled: bool) -> Rubric:
    """The rubric of a tutor's reply, on the scale of oversight's labels of guidance.

    Args:
        labelled: The run's own labels are of the replies, so that people's scores meet them.
    """
    return Rubric(
        name="reply",
        question="Does the tutor's reply guide this student to the next step?",
        scale=(0.0, 1.0, 2.0),
        anchors={
            "0": "no guidance: none at all, or the answer itself",
            "1": "guides in part: vague, incomplete, or partly wrong",
            "2": "guides: the student can take the next step alone",
        },
        threshold=2.0,
        of_judge=labelled,
    )


def judge_rubric(prompt: str, *, threshold: float, programs: bool = False) -> Rubric | None:
    """The rubric that a model judge's prompt states for answers: tenths from 0 to 1, its anchors.

    Args:
        prompt: The prompt, as the recording holds it.
        threshold: The study's success threshold.
        programs: Some answers are programs, of which the judge scores the words alone.

    Returns:
        The rubric; `None` where the prompt has no two lines that begin with a score in [0, 1].
    """
    found = {float(value): text for value, text in _ANCHOR.findall(prompt) if float(value) <= 1}
    if len(found) < 2:
        return None
    question = f"{_QUESTION} {_OF_PROGRAMS}" if programs else _QUESTION
    return Rubric(
        name="judge",
        question=question,
        scale=tuple(sorted({*_TENTHS, *found})),
        anchors={value_text(value): found[value] for value in sorted(found)},
        threshold=threshold,
        of_judge=True,
    )


def read_rubric(path: Path) -> Rubric:
    """Read a rubric of the user's own.

    The file has `question`, `scale` (a list of numbers) and, as far as wanted, `name`,
    `threshold` and a table `[anchors]` from a value of the scale to what it means.

    Raises:
        RatingFileError: If the file cannot be read, or a value in it cannot be used.
    """
    try:
        data = tomllib.loads(read_named(path).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise _refusal(path, "it cannot be read", str(error)) from error
    strangers = sorted(set(data) - set(_KEYS))
    if strangers:
        raise _refusal(path, f"{strangers[0]} is no key of a rubric", f"It has {', '.join(_KEYS)}.")
    scale = _scale(path, data)
    threshold = data.get("threshold")
    if threshold is not None and not (_is_number(threshold) and scale[0] < threshold <= scale[-1]):
        why = f"The scale goes from {value_text(scale[0])} to {value_text(scale[-1])}."
        raise _refusal(path, f"threshold = {threshold!r} parts nothing", why)
    return Rubric(
        name=_text(path, data, "name", path.stem),
        question=_text(path, data, "question", None),
        scale=scale,
        anchors=_anchors(path, data, scale),
        threshold=threshold,
    )


def _refusal(path: Path, what: str, why: str) -> RatingFileError:
    return RatingFileError(
        f"{path}: {what}.", why=why, hint="`tutorsim guide rating` shows a rubric."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _text(path: Path, data: Mapping[str, Any], key: str, usual: str | None) -> str:
    value = data.get(key, usual)
    if not isinstance(value, str) or not value.strip():
        raise _refusal(path, f"{key} = {value!r} says nothing", "It is what raters read.")
    return value.strip()


def _scale(path: Path, data: Mapping[str, Any]) -> tuple[float, ...]:
    given = data.get("scale")
    if not isinstance(given, list) or not all(map(_is_number, given)):
        raise _refusal(path, f"scale = {given!r} is no list of numbers", "Raters choose from it.")
    values = tuple(float(value) for value in given)
    if not 2 <= len(values) <= _MOST_VALUES or list(values) != sorted(set(values)):
        why = f"It takes 2 to {_MOST_VALUES} different values, the least first."
        raise _refusal(path, f"scale = {given!r} cannot be used", why)
    if len({value_text(value) for value in values}) < len(values):
        raise _refusal(path, f"scale = {given!r} cannot be used", "Two values are written alike.")
    return values


def _anchors(path: Path, data: Mapping[str, Any], scale: tuple[float, ...]) -> dict[str, str]:
    """Anchors by the value as raters see it, in the order of the scale."""
    given = data.get("anchors", {})
    shown = [value_text(value) for value in scale]
    found: dict[str, str] = {}
    for key in given if isinstance(given, dict) else ():
        try:
            found[value_text(float(key))] = _text(path, given, key, None)
        except ValueError as error:
            raise _refusal(path, f"[anchors]: {key!r} is no number", _QUOTED) from error
    strangers = [key for key in found if key not in shown]
    if strangers or not isinstance(given, dict):
        why = f"The scale is {', '.join(shown)}. {_QUOTED}"
        raise _refusal(path, f"[anchors]: {(strangers or [given])[0]!r} is not on the scale", why)
    return {value: found[value] for value in shown if value in found}


_QUOTED: Final = 'A value with a point stands in quotes: "0.5" = "…".'
