"""What became of the students: scores, code verdicts, success, rounds, and scores by turn."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, inf
from typing import Any, Final, Literal, NamedTuple, get_args

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.cells_and_tables import (
    BENCHMARKS,
    Share,
    Table,
    Written,
    bar,
    estimate,
    present,
)
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import by_origin
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.records import EpisodeRecord

# --- Student scores ------------------------------------------------------------------------------

Measure = Literal["score", "code"]
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)

Outcome = Literal["final_score", "score_gain", "final_code", "code_gain", "success", "turns"]
"""What conditions are contrasted on; gains are over the tutor-fired subset."""
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
ENDS: Final[dict[Outcome, tuple[float, float]]] = {
    outcome: (-inf, inf) if outcome == "turns" else (-1.0, 1.0) for outcome in OUTCOMES
}
"""Between what the difference of an outcome between two conditions must lie."""
OUTCOME_NAMES: Final[Mapping[str, str]] = {
    "success": "success",
    "final_score": "last judge score",
    "score_gain": "gain in judge score",
    "final_code": "tests passed at the end",
    "code_gain": "gain in tests passed",
    "turns": "tutoring turns",
}
_GAINS: Final[dict[Measure, Outcome]] = {"score": "score_gain", "code": "code_gain"}

Pair = tuple[str, str, str]
"""Benchmark, task, persona: what is held fixed between conditions."""


@dataclass(frozen=True)
class Gain:
    """One row of the gains table: a measure under one condition, tutor-fired episodes."""

    benchmark: str
    condition: str
    measure: Measure
    """`score` of the judge, or `code` verdict (1 passed, 0 not)."""
    n: int
    """Episodes with the first and the last value."""
    unscored: int
    """Tutor-fired episodes without one of them."""
    initial: Estimate | NotEstimable
    final: Estimate | NotEstimable
    gain: Estimate | NotEstimable
    """Mean of final − initial, before any rounding."""


@dataclass(frozen=True)
class Success:
    """Success rate of one persona under one condition, all complete episodes."""

    benchmark: str
    persona: str
    condition: str
    successes: float
    """Number of successes, in a branch not always whole: an episode counts by the share of its
    draws."""
    unscored: int
    """Complete episodes whose success is not known; not in the rate."""
    rate: Estimate | NotEstimable


@dataclass(frozen=True)
class SuccessRate:
    """Success rate under one condition, all complete episodes."""

    benchmark: str
    condition: str
    episodes: int
    unscored: int
    """Complete episodes whose success is not known; not in the rate."""
    rate: Estimate | NotEstimable
    """Rate over episodes, with an interval over tasks."""


@dataclass(frozen=True)
class Rounds:
    """Tutoring turns of the complete episodes under one condition."""

    benchmark: str
    condition: str
    episodes: int
    fired: int
    """Episodes with at least one turn."""
    mean: Estimate | NotEstimable
    """Mean over all episodes; those solved at once have 0."""
    mean_fired: Estimate | NotEstimable


def gains(source: Source) -> list[Gain]:
    """Initial, final and gain by benchmark, condition and measure, tutor-fired episodes."""
    return [
        _gain(cell, episodes, measure)
        for cell, episodes in cells_of(source.episodes, "benchmark", "condition")
        for measure in MEASURES
        if measure == "score" or cell[0] == "humaneval"
    ]


def successes(source: Source) -> list[Success]:
    """Success by benchmark, persona and condition."""
    found = []
    cells = cells_of(source.episodes, "benchmark", "persona", "condition")
    for (benchmark, persona, condition), episodes in cells:
        units = units_of(episodes, _success)
        won = fsum(units.values)
        whole = int(won) if won.is_integer() else won
        found.append(Success(benchmark, persona, condition, whole, units.unknown, units.share()))
    return found


def success_rates(source: Source) -> list[SuccessRate]:
    """Success by benchmark and condition, over all personas and tasks."""
    return [success_rate(*cell) for cell in cells_of(source.episodes, "benchmark", "condition")]


def success_rate(cell: tuple[str, ...], episodes: Sequence[EpisodeRecord]) -> SuccessRate:
    """Success in a cell, a benchmark and a condition."""
    units = units_of(episodes, _success)
    number = len(units.values) + units.unknown
    return SuccessRate(cell[0], cell[1], number, units.unknown, units.share())


def rounds(source: Source) -> list[Rounds]:
    """Tutoring turns per episode by benchmark and condition."""
    return [rounds_of(*cell) for cell in cells_of(source.episodes, "benchmark", "condition")]


def rounds_of(cell: tuple[str, ...], episodes: Sequence[EpisodeRecord]) -> Rounds:
    """Tutoring turns per episode in a cell, a benchmark and a condition."""
    taken = units_of(episodes, _turns_taken)
    fired = units_of([e for e in episodes if e.turns_taken], _turns_taken)
    n, tutored = len(taken.values), len(fired.values)
    return Rounds(cell[0], cell[1], n, tutored, taken.mean(), fired.mean())


def outcome_of(episode: EpisodeRecord, outcome: Outcome) -> float | None:
    """One outcome of a complete episode; `None` where unscored, or a gain without tutoring.

    Success is unknown where the last score, or a programming task's last verdict, is missing,
    unless the program failed, which settles it.
    """
    e = episode
    if outcome == "final_score":
        return e.final_correctness
    if outcome == "final_code":
        return _number(e.code_passed)
    if outcome == "turns":
        return float(e.turns_taken)
    if outcome == "success":
        judged = e.code_passed is not None or e.benchmark != "humaneval"
        known = (e.final_correctness is not None and judged) or e.code_passed is False
        return _number(e.success) if known else None
    first, last = _ends(e, "score" if outcome == "score_gain" else "code")
    return None if e.turns_taken == 0 or first is None or last is None else last - first


def _values(
    episodes: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]
) -> Iterator[tuple[Pair, float | None]]:
    """The value of each logged episode; of continuations of one their mean, if one has a value."""
    for draws in by_origin(episodes):
        known = [one for draw in draws if (one := value(draw)) is not None]
        pair = draws[0].benchmark, draws[0].task_id, draws[0].persona
        yield pair, fsum(known) / len(known) if known else None


def repeats_of(
    episodes: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]
) -> dict[Pair, list[float]]:
    """Pair → the value of each repeat that has one."""
    return by_key((pair, one) for pair, one in _values(episodes, value) if one is not None)


class Units(NamedTuple):
    """Values of logged episodes that are known, continuations of one counting by their mean."""

    values: list[float]
    tasks: list[Hashable]
    """The task of each."""
    unknown: int
    """Episodes without a value."""

    def share(self) -> Estimate | NotEstimable:
        """Share of the values that are 1, over tasks."""
        return share_over_tasks(self.values, self.tasks)

    def mean(self, ends: tuple[float, float] = (-inf, inf)) -> Estimate | NotEstimable:
        """Mean of the values, which lie between the ends, over tasks."""
        return mean_over_tasks(self.values, self.tasks, ends=ends)


def units_of(
    episodes: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]
) -> Units:
    """The values of episodes."""
    every = list(_values(episodes, value))
    known = [(one, task) for (_, task, _), one in every if one is not None]
    left = len(every) - len(known)
    return Units([one for one, _ in known], [task for _, task in known], left)


def cells_of(
    episodes: Iterable[EpisodeRecord], *fields: str
) -> list[tuple[tuple[str, ...], list[EpisodeRecord]]]:
    """Complete episodes by the values of some fields, in order of first appearance."""
    complete = (e for e in episodes if e.status == "complete")
    return [*by_key((tuple(getattr(e, name) for name in fields), e) for e in complete).items()]


_success: Final = partial(outcome_of, outcome="success")
_turns_taken: Final = partial(outcome_of, outcome="turns")


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _ends(e: EpisodeRecord, measure: Measure) -> tuple[float | None, float | None]:
    """First and last value of a measure."""
    if measure == "score":
        return e.initial_correctness, e.final_correctness
    return _number(e.initial_code_passed), _number(e.code_passed)


def _gain(cell: tuple[str, ...], episodes: Sequence[EpisodeRecord], measure: Measure) -> Gain:
    fired = [e for e in episodes if e.turns_taken > 0]
    known = [e for e in fired if None not in _ends(e, measure)]
    initial = units_of(known, lambda e: _ends(e, measure)[0])
    final = units_of(known, lambda e: _ends(e, measure)[1])
    level = Units.share if measure == "code" else partial(Units.mean, ends=(0, 1))
    gain = units_of(known, lambda e: outcome_of(e, _GAINS[measure]))
    return Gain(
        benchmark=cell[0],
        condition=cell[1],
        measure=measure,
        n=len(final.values),
        unscored=len(by_origin(fired)) - len(final.values),
        initial=level(initial),
        final=level(final),
        gain=gain.mean((-1, 1)),
    )


# --- Student outcomes ----------------------------------------------------------------------------


def few_tasks_words(of: Any) -> str:
    """How many tasks of each benchmark the intervals are over."""
    each = " and ".join(
        counted(n, BENCHMARKS[b].removesuffix("s")) if b in BENCHMARKS else f"{n} {b}"
        for b, n in of.grid["tasks"].items()
    )
    return f"Intervals are over tasks ({each})."


@table("success", "Success by condition", secondary=("unscored", "tutored"), few=few_tasks_words)
def success_table(of: Any) -> Iterator[Row]:
    """Share of complete episodes with a last score [95 % interval]. Tutored: episodes whose first
    attempt did not succeed. Turns: mean over all episodes. {few}{absent}"""
    for row, own in zip(of.success, of.rounds, strict=True):
        yield {
            "benchmark": row.benchmark,
            "condition": row.condition,
            " ": bar(row.rate),
            "success": estimate(row.rate),
            "episodes": row.episodes,
            "unscored": row.unscored,
            "tutored": own.fired,
            "tutoring turns": estimate(own.mean),
        }


@table("gains", "Before and after tutoring", few=few_tasks_words)
def gains_table(of: Any) -> Iterator[Row]:
    """Mean [95 % interval] over tutored episodes with both values; n counts them. Code is the share
    of programs that pass. {few}"""
    for row in sorted(of.gains, key=lambda g: (g.benchmark != "sciq", g.measure != "score")):
        yield {
            "what": f"{BENCHMARKS.get(row.benchmark, row.benchmark)}, {row.measure}",
            "condition": row.condition,
            "n": row.n,
            "first attempt": estimate(row.initial),
            "last attempt": estimate(row.final),
            "gain": estimate(row.gain, signed=True),
        }


def persona_tables(of: Any) -> tuple[Table, ...]:
    """Successes of scored episodes, persona by condition, one table a benchmark."""
    return present(
        *map(_persona_table, by_key((row.benchmark, row) for row in of.successes).values())
    )


@table(
    "personas-{benchmark}",
    "Success by persona, {tasks}",
    benchmark=lambda own: own[0].benchmark,
    tasks=lambda own: BENCHMARKS.get(own[0].benchmark, own[0].benchmark),
)
def _persona_table(own: Sequence[Success]) -> Iterator[Row]:
    """Successful episodes / episodes with a last score."""
    rows: dict[str, dict[str, Written | str]] = {}
    empty = dict.fromkeys((row.condition for row in own), "")
    for row in own:
        cells = rows.setdefault(row.persona, {"persona": row.persona, **empty})
        cells[row.condition] = Written(
            f"{row.successes}/{row.rate.n}", Share(row.successes, row.rate.n)
        )
    yield from rows.values()


# --- Scores by turn ------------------------------------------------------------------------------

SCORES_SCHEMA: Final = pl.Schema(
    {
        "benchmark": pl.String(),
        "condition": pl.String(),
        "turn": pl.Int64(),  # 0: the first attempt
        "mean": pl.Float64(),  # null where no episode has a score
        "lower": pl.Float64(),  # 95 % interval; null where not estimable
        "upper": pl.Float64(),
        "n": pl.Int64(),  # episodes with a score
        "running": pl.Int64(),  # of these, episodes that had this turn
    }
)
"""One row per benchmark, condition and turn."""


def scores_by_turn(source: Source) -> pl.DataFrame:
    """Mean judge score after each turn, complete episodes; empty without a run.

    An episode that ended earlier stays in with its last score: means over those still running
    would fall behind just because the successful ones leave. An unscored attempt is left out at
    its turn, and stays out where it was the last one. Continuations of one episode in a branch
    count together, by their mean.
    """
    cells = cells_of(source.episodes, "benchmark", "condition")
    longest = max((e.turns_taken for _, group in cells for e in group), default=0)
    rows = [
        (*cell, turn, *_mean(group, turn)) for cell, group in cells for turn in range(longest + 1)
    ]
    return pl.DataFrame(rows, schema=SCORES_SCHEMA, orient="row")


def _mean(episodes: list[EpisodeRecord], turn: int) -> tuple[float | None, ...]:
    scored = [e for e in episodes if _score(e, turn) is not None]
    found = units_of(scored, lambda e: _score(e, turn)).mean((0, 1))
    running = len(by_origin(e for e in scored if e.turns_taken >= turn))
    return found.value, found.low, found.high, found.n, running


def _score(episode: EpisodeRecord, turn: int) -> float | None:
    return episode.attempts[min(turn, len(episode.attempts) - 1)].score
