"""What another threshold, weight or silence factor would have changed, and how far that is known.

At every logged event the speaker under another rule is exact, because nothing but logged scores
decides it. From the first event at which the speakers differ the lesson would have gone another
way, which nobody recorded; so per lesson the first such event is given, and nothing after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from tutorsim.analysis.systems.group.other_speakers import NOBODY, Cycles, Ints, speakers
from tutorsim.errors import UsageError
from tutorsim.systems.group.speaker_selection import CRITERIA, SELECTIONS, SILENCES, Rule

__all__ = [
    "CHANGES",
    "Change",
    "Recounted",
    "changed_rule",
    "curve",
    "divergences",
    "recounted",
]

Difference = Literal["another", "nobody", "somebody"]
"""Another agent speaks, nobody does any more, or somebody does at last."""
DIFFERENCES = get_args(Difference)
CHANGES = ("threshold", "lambda", "interrupt_threshold", "silence", "selection", "criteria")
"""Keys of `--set`."""


@dataclass(frozen=True)
class Change:
    """One changed setting."""

    key: str
    value: str


_DIVERGENCES: Final[dict[str, pl.DataType]] = {
    "episode_id": pl.String(),
    "cycles": pl.Int64(),
    "event": pl.Int64(),
    "difference": pl.String(),
    "logged": pl.String(),
    "changed": pl.String(),
    "coverage": pl.Float64(),
}


class Recounted(NamedTuple):
    """All cycles under one rule."""

    speakers: Ints
    """C: the place of each cycle's speaker."""
    divergences: pl.DataFrame
    """As `divergences` gives them."""


def recounted(cycles: Cycles, rules: Mapping[str, Rule]) -> dict[str, Recounted]:
    """Name of a rule → all cycles under it."""
    places = {label: speakers(cycles, rule) for label, rule in rules.items()}
    return {label: Recounted(found, divergences(cycles, found)) for label, found in places.items()}


def changed_rule(rule: Rule, changes: Sequence[Change]) -> Rule:
    """The rule with settings changed.

    Raises:
        UsageError: On an unknown key, a value outside its range, or one that does nothing.
    """
    for change in changes:
        rule = rule._replace(**_parsed(change))
    for change in changes:
        if rule.selection == "inner_thoughts" and change.key == "interrupt_threshold":
            raise UsageError(
                f"{change.key}={change.value} does nothing under selection=inner_thoughts.",
                why="That rule knows no interruption, so every value would give the same.",
                hint="Leave it out, or add --set selection=prism.",
            )
    return rule


def _parsed(change: Change) -> Mapping[str, Any]:
    key, value = change.key, change.value
    if key in ("threshold", "interrupt_threshold"):
        return {key: _number(change, least=1, most=5)}
    if key == "lambda":
        return {"weight": _number(change, least=0, most=1)}
    if key == "criteria":
        names = tuple(name.strip() for name in value.split("+"))
        if set(names) <= set(CRITERIA):
            return {"criteria": names}
        raise _refused(change, "criteria are " + "+".join(CRITERIA))
    known = {"silence": SILENCES, "selection": SELECTIONS}.get(key)
    if known is None:
        raise UsageError(
            f"There is no setting {key!r} to recount.",
            why="Only what turns logged scores into a speaker can be recounted.",
            hint="Known are " + ", ".join(CHANGES) + ".",
        )
    if value not in known:
        raise _refused(change, f"{key} is one of " + ", ".join(known))
    return {key: value}


def _number(change: Change, *, least: int, most: int) -> Fraction:
    try:
        number = Fraction(change.value)
    except (ValueError, ZeroDivisionError):
        raise _refused(change, "it is a number") from None
    if not least <= number <= most:
        raise _refused(change, f"it lies between {least} and {most}")
    return number


def _refused(change: Change, why: str) -> UsageError:
    return UsageError(
        f"{change.key}={change.value} cannot be recounted.",
        why=f"The value does not fit: {why}.",
        hint="For example --set threshold=3 or --set criteria=relevance+coherence.",
    )


def divergences(cycles: Cycles, changed: Ints) -> pl.DataFrame:
    """Per lesson, the first event at which another would have spoken.

    Args:
        cycles: C cycles, those of a lesson side by side.
        changed: C: the place of each cycle's speaker under a changed rule, as `speakers` gives it.

    Returns:
        `episode_id`, `cycles`; `event`, `difference`, and who spoke there as `logged` and
        `changed`, all null where the speakers never differ; who spoke is null for nobody too.
        `coverage` is the share of the lesson's cycles before that event.
    """
    count = len(cycles.episode)
    starts = np.asarray(cycles.starts, dtype=np.int64)
    lengths = np.diff(np.append(starts, count))
    differing = np.flatnonzero(changed != cycles.chosen)
    firsts = np.append(differing, count)[np.searchsorted(differing, starts)]
    before = np.minimum(firsts - starts, lengths)
    rows = np.where(before < lengths, firsts, NOBODY)
    logged, now = (_agents(cycles, rows, places) for places in (cycles.chosen, changed))
    return pl.DataFrame(
        {
            "episode_id": [cycles.episode[start] for start in cycles.starts],
            "cycles": lengths,
            "event": pl.Series(np.append(cycles.event, 0)[rows]).set(pl.Series(rows < 0), None),
            "difference": list(map(_difference, rows.tolist(), logged, now)),
            "logged": logged,
            "changed": now,
            "coverage": before / lengths,
        },
        schema=_DIVERGENCES,
    )


def _agents(cycles: Cycles, rows: Ints, places: Ints) -> list[str | None]:
    """Who has the place of each row; `None` for nobody, and where there is no row."""
    found = np.append(places, NOBODY)[rows]
    names = cycles.agents[rows, found] if len(rows) else rows
    return [
        name if row >= 0 and place != NOBODY else None
        for name, row, place in zip(names.tolist(), rows.tolist(), found.tolist(), strict=True)
    ]


def _difference(row: int, logged: str | None, changed: str | None) -> Difference | None:
    if row < 0:
        return None
    return "somebody" if logged is None else "nobody" if changed is None else "another"


def curve(cycles: Cycles, found: Mapping[str, Recounted]) -> pl.DataFrame:
    """Per named rule: cycles, share with a speaker, share of each agent, first divergence.

    Returns:
        `setting`, `agent` (empty for anybody), `share` of cycles that this agent speaks in,
        `diverged` share of lessons that ever differ, `coverage` mean share before.
    """
    rows = []
    everybody = sorted({str(name) for name in cycles.agents.ravel() if name})
    number = {name: i for i, name in enumerate(everybody)}
    numbers = np.vectorize(lambda name: number.get(name, NOBODY), otypes=[np.int64])
    who = numbers(cycles.agents)
    for label, (places, lessons) in found.items():
        spoke = np.flatnonzero(places != NOBODY)
        said = np.bincount(who[spoke, places[spoke]], minlength=len(everybody)).tolist()
        shared = {
            "setting": label,
            "cycles": len(places),
            "diverged": lessons["event"].is_not_null().mean(),
            "coverage": lessons["coverage"].mean(),
        }
        rows.append(shared | {"agent": "", "share": _share(len(spoke), places)})
        rows += [
            shared | {"agent": name, "share": _share(count, places)}
            for name, count in zip(everybody, said, strict=True)
        ]
    schema: dict[str, pl.DataType] = {
        "setting": pl.String(),
        "agent": pl.String(),
        "share": pl.Float64(),
        "cycles": pl.Int64(),
        "diverged": pl.Float64(),
        "coverage": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema)


def _share(count: int, places: Ints) -> float | None:
    return count / len(places) if len(places) else None
