"""Who would have spoken under another rule, from the logged scores of every cycle.

The rule itself is `tutorsim.systems.group.speaker_selection`; this is its form over arrays of
cycles, held to it by a property test. Scores are sums of tenths and results hundredths, all whole
numbers. A float is used only to round, and where it comes near a half the definition rounds
instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from tutorsim.systems.group.speaker_selection import (
    EXTERNAL,
    INTERNAL,
    Rule,
    adjusted_score,
    total_score,
)

__all__ = ["NOBODY", "Cycles", "Ints", "cycles_of", "speakers"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]

NOBODY: Final = -1
"""Place of the speaker where nobody speaks."""
_NEAR_HALF: Final = 1e-6
"""Distance from a half within which the definition rounds; far above what a float can err."""
_FACTOR: Final = {"raise": 1.01, "decay": 1 / 1.01, "off": 1.0}


@dataclass(frozen=True)
class Cycles:
    """Cycles of self-selection; C cycles, A places for the agents that thought."""

    episode: Sequence[str]
    """C: the episode of each cycle."""
    event: Ints
    """C: the event that started it."""
    agents: npt.NDArray[np.object_]
    """C × A: names in catalog order; empty places have an empty name."""
    scores: Ints
    """C × A × 8: tenths by `INTERNAL`, `EXTERNAL`, then the two sums; 0 where not given."""
    bids: Flags
    """C × A: wants to speak and was scored."""
    corrects: Flags
    silent: Ints
    """C × A: messages since the agent last spoke."""
    addressed: Flags
    """C × A: named in the last message."""
    last: Flags
    """C × A: wrote the last message."""
    floor: Flags
    """C: the last message's author keeps the floor."""
    allocated: Flags
    """C: the last message names somebody."""
    chosen: Ints
    """C: place of the logged speaker, `NOBODY` where nobody spoke."""
    _means: dict[tuple[int, ...], Reals] = field(default_factory=dict, repr=False)

    @cached_property
    def starts(self) -> Sequence[int]:
        """The first cycle of each episode; its cycles stand together."""
        names = self.episode
        return [row for row in range(len(names)) if row == 0 or names[row] != names[row - 1]]

    def mean(self, counted: tuple[int, ...], whole: int) -> Reals:
        """C × A: mean of the counted criteria, or the sum given in their place, from 1 to 5."""
        found = self._means.get(counted)
        if found is None:
            parts = self.scores[:, :, counted].sum(axis=2) / (10 * len(counted))
            sums = self.scores[:, :, whole]
            found = self._means[counted] = np.where(sums > 0, sums / 10, parts)
        return found


def cycles_of(thoughts: pl.DataFrame) -> Cycles:
    """The cycles of a table of thoughts, in its order; prediction has none."""
    keys = thoughts.select("episode_id", "event").unique(maintain_order=True)
    here = _Places(thoughts, keys)
    spoke = here.flags(thoughts["chosen"])
    scored = thoughts.select(pl.any_horizontal(pl.col(INTERNAL[0], "internal").is_not_null()))
    names = np.full(here.shape, "", dtype=object)
    names[here.at] = thoughts["agent"].to_list()
    columns = (*INTERNAL, *EXTERNAL, "internal", "external")
    return Cycles(
        episode=keys["episode_id"].to_list(),
        event=keys["event"].to_numpy(),
        agents=names,
        scores=np.stack([here.tenths(thoughts[name]) for name in columns], axis=2),
        bids=here.flags((thoughts["action"] == "speak") & scored.to_series()),
        corrects=here.flags(thoughts["corrects"]),
        silent=here.whole(thoughts["silent"]),
        addressed=here.flags(thoughts["addressed"]),
        last=here.flags((thoughts["agent"] == thoughts["speaker"]).fill_null(value=False)),
        floor=_anywhere(here.flags(thoughts["floor"])),
        allocated=_anywhere(here.flags(thoughts["any_addressed"])),
        chosen=np.where(_anywhere(spoke), _first(spoke), NOBODY),
    )


class _Places:
    """Where each row of a table of thoughts goes: its cycle, and its place within it."""

    def __init__(self, thoughts: pl.DataFrame, keys: pl.DataFrame) -> None:
        numbered = thoughts.select("episode_id", "event").join(
            keys.with_row_index("cycle"), on=["episode_id", "event"], maintain_order="left"
        )
        place = thoughts.select(pl.int_range(pl.len()).over("episode_id", "event")).to_series()
        self.at = (numbered["cycle"].to_numpy().astype(np.int64), place.to_numpy())
        self.shape = (keys.height, 1 + int(self.at[1].max(initial=0)))

    def flags(self, values: pl.Series) -> Flags:
        made = np.zeros(self.shape, dtype=np.bool_)
        made[self.at] = values.to_numpy()
        return made

    def whole(self, values: pl.Series) -> Ints:
        made = np.zeros(self.shape, dtype=np.int64)
        made[self.at] = values.to_numpy()
        return made

    def tenths(self, values: pl.Series) -> Ints:
        return self.whole((10 * values.fill_null(0)).round().cast(pl.Int64))


def _anywhere(flags: Flags) -> Flags:
    """C: whether any place of a cycle has the flag."""
    return np.asarray(flags.any(axis=1), dtype=np.bool_)


def _first(flags: Flags) -> Ints:
    """C: the first place with the flag; 0 where none has it."""
    found: Ints = flags.argmax(axis=1)
    return found


def speakers(cycles: Cycles, rule: Rule) -> Ints:
    """C: the place of each cycle's speaker under a rule, what was said before held fixed."""
    adjusted = _adjusted(cycles, rule)
    if rule.selection == "inner_thoughts":
        candidates = _framework(cycles, adjusted, rule)
        best = _first(np.where(candidates, adjusted, 0) == _top(candidates, adjusted))
    else:
        candidates = _study(cycles, adjusted, rule)
        best = _first_best(cycles, candidates, adjusted)
    return np.where(_anywhere(candidates), best, NOBODY)


def _top(among: Flags, adjusted: Ints) -> Ints:
    """C × 1: the largest adjusted score among candidates."""
    top: Ints = np.where(among, adjusted, 0).max(axis=1, keepdims=True)
    return top


def _study(cycles: Cycles, adjusted: Ints, rule: Rule) -> Flags:
    """C × A: who is left for rule 4, the threshold applied where nobody is favoured."""
    floor, bids = cycles.floor[:, None], cycles.bids
    by_address = cycles.allocated[:, None] & ~floor
    holds = bids & cycles.last & floor
    named = bids & cycles.addressed & ~cycles.last & by_address
    first = np.zeros_like(named)
    rows = np.flatnonzero(_anywhere(named))
    first[rows, _first_best(cycles, named, adjusted)[rows]] = True
    favoured = holds | (first & named)
    others = bids & ~favoured & ~cycles.last
    interrupts = cycles.corrects & (adjusted >= _hundredths(rule.interrupt_threshold))
    others &= interrupts | ~(floor | by_address)
    return favoured | (others & _above(adjusted, rule.threshold))


def _framework(cycles: Cycles, adjusted: Ints, rule: Rule) -> Flags:
    allocated = cycles.allocated[:, None]
    to_other = adjusted >= 400
    is_open = adjusted >= _hundredths(rule.threshold)
    offers = np.where(allocated, cycles.addressed | to_other, is_open)
    kept: Flags = cycles.bids & ~cycles.last & offers
    return kept


def _first_best(cycles: Cycles, among: Flags, adjusted: Ints) -> Ints:
    """C: largest adjusted score, then longest silent, then catalog order."""
    longest = int(cycles.silent.max(initial=0)) + 1
    value = np.where(among, adjusted * longest + cycles.silent, -1)
    best: Ints = value.argmax(axis=1)
    return best


def _hundredths(threshold: Fraction) -> int:
    """The least whole number of hundredths at or above a threshold."""
    return -((-100 * threshold.numerator) // threshold.denominator)


def _above(adjusted: Ints, threshold: Fraction) -> Flags:
    limit = 100 * threshold.numerator
    return np.asarray(np.greater(adjusted * threshold.denominator, limit), dtype=np.bool_)


def _adjusted(cycles: Cycles, rule: Rule) -> Ints:
    """C × A: hundredths after silence; 0 for agents that made no bid."""
    total = _totals(cycles, rule)
    scale = 10 if rule.selection == "inner_thoughts" else 100
    powers = _FACTOR[rule.silence] ** np.arange(cycles.silent.max(initial=0) + 1)
    value = scale * np.clip(total * powers[cycles.silent], 1, 5)
    rounded = np.rint(value).astype(np.int64)
    doubtful = cycles.bids & (np.abs(value - np.floor(value) - 0.5) < _NEAR_HALF)
    rounded = rounded * (100 // scale)
    for row, column in zip(*np.nonzero(doubtful), strict=True):
        rounded[row, column] = _exactly(cycles, row, column, rule)
    return np.where(cycles.bids, rounded, 0)


def _totals(cycles: Cycles, rule: Rule) -> Reals:
    weight = float(rule.weight)
    inner = _means(cycles, rule, INTERNAL, first=0, whole=6)
    outer = _means(cycles, rule, EXTERNAL, first=3, whole=7)
    if inner is None or outer is None:
        made = outer if inner is None else inner
        if made is None:
            raise ValueError(f"none of the criteria {list(rule.criteria)} counts")
        return made
    return (1 - weight) * inner + weight * outer


def _means(
    cycles: Cycles, rule: Rule, names: Sequence[str], *, first: int, whole: int
) -> Reals | None:
    """C × A: mean of the criteria of a group that count; `None` where none does."""
    counted = tuple(first + i for i, name in enumerate(names) if name in rule.criteria)
    return cycles.mean(counted, whole) if counted else None


def _exactly(cycles: Cycles, row: int, column: int, rule: Rule) -> int:
    names = (*INTERNAL, *EXTERNAL, "internal", "external")
    tenths = cycles.scores[row, column]
    scores = {name: int(x) for name, x in zip(names, tenths, strict=True) if x}
    return adjusted_score(total_score(scores, rule), int(cycles.silent[row, column]), rule)
