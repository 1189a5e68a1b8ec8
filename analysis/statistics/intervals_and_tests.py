"""Intervals and tests over tasks: turns, personas and conditions of one task are dependent.

Means over episodes that are partly known stand here too, and families that are tested together:

    test = flips_by_task([0.5, 0.0, 1.0], ["a", "a", "b"], seed=0)
    rows = corrected([Row(test=test), …])  # p-values by Holm over all rows
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from itertools import count, pairwise
from math import ceil, cos, exp, fsum, inf, lgamma, log2, pi, sqrt, tan
from statistics import NormalDist
from typing import Any, ClassVar, Final, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Bools, Bytes, Floats, Ints

# --- Intervals and tests -------------------------------------------------------------------------

K = TypeVar("K", bound=Hashable)

LEVEL: Final = 0.95
"""Level of every interval."""

ALPHA: Final = 0.05
"""Holm-corrected p below which a difference is called beyond chance."""

FEWEST_TASKS: Final = 4
"""Tasks from which an interval is given.

With fewer, an interval of a share that holds 95 % is 0.8 wide or wider, and says nothing.
"""

POWER: Final = 0.8
"""Chance to show a difference of the size that is called detectable."""

EXACT_UP_TO: Final = 20
"""Tasks up to which every change of signs is counted; with more, signs are drawn."""

DRAWS: Final = 99_999
"""Draws of signs by task."""

_NEVER: Final = 1e-12
"""Chance below which no draw of all is taken to reach a sum."""

DRAWS_WITHIN: Final = 9_999
"""Draws of labels within task and persona."""

SEED: Final = 0
"""Seed of draws that no study's own seed makes."""

_ADDED: Final = 0.5
"""Tasks of the greatest variance that are added to those seen: they may all happen to agree."""
_TIES: Final = 1.1
"""Signs of shares tie, so that flips need about a tenth more tasks than t would."""
_NO_DIFFERENCE: Final = 0.2
"""Standard deviations that a difference must be larger for, as a task may have none."""
_WITHIN: Final = 0.17
"""Variance of a run's success about its chance."""
_BETWEEN: Final = 0.2
"""Standard deviation of tasks' true differences in success."""
_UNIT: Final = 1e-9
"""Differences are told apart by this much, so that equal sums are equal."""


@dataclass(frozen=True)
class NotEstimable:
    """What the data cannot give, and why; read as an `Estimate`, it has no number."""

    value: ClassVar[None] = None
    low: ClassVar[None] = None
    high: ClassVar[None] = None
    n: ClassVar[int] = 0
    reason: str

    def to_json(self) -> dict[str, str]:
        return {"not_estimable": self.reason}


@dataclass(frozen=True)
class Interval:
    """Where the estimated quantity lies, at `LEVEL`."""

    low: float
    high: float
    method: str
    """How it was made."""


@dataclass(frozen=True)
class Estimate:
    """A number, with its interval where the data give one.

    mean = Estimate(0.72, 20, Interval(0.5, 0.9, "BCa"))
    mean.low  # 0.5
    mean = Estimate(0.72, 1, NotEstimable("one task"))
    mean.low  # None; `mean.interval.reason` says why
    """

    value: float
    n: int
    """Observations behind the number."""
    interval: Interval | NotEstimable

    @property
    def low(self) -> float | None:
        return self.interval.low

    @property
    def high(self) -> float | None:
        return self.interval.high


@dataclass(frozen=True)
class Bounds:
    """What a mean lies between whatever the unknown values are; no interval of chance."""

    low: float
    high: float
    n: int
    """Observations, known or not."""


@dataclass(frozen=True)
class PermutationTest:
    """A mean difference within pairs, and how often chance gives one as large."""

    difference: float
    p_value: float
    """Two-sided."""
    n: int
    """Pairs."""
    exact: bool
    """All sign changes were counted; otherwise they were drawn."""
    error: float = 0.0
    """Standard error of a p-value from draws; 0 of an exact one."""
    tasks: int = 0
    """What the pairs are of, and what a sign is flipped of."""
    spread: float = 0.0
    """Standard deviation of the tasks' mean differences; 0 of one task."""


def to_json(value: Any) -> Any:
    """A result as plain JSON values: data by its fields, `NotEstimable` by its reason."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def too_few_tasks(tasks: int, over: str = "tasks") -> NotEstimable:
    """Why there is no interval over so few tasks."""
    return NotEstimable(f"too few {over} for an interval: {tasks}, it takes {FEWEST_TASKS}")


def share_over_tasks(
    values: Sequence[float], tasks: Sequence[Hashable], *, over: str = "tasks"
) -> Estimate | NotEstimable:
    """Share of observations that are 1, with an interval over tasks.

    Where every task is at 0 or every one at 1, nothing is seen of how tasks differ; the interval
    then rests on their number alone.

    `values`: observations, 0 or 1; between, where one is itself a share. `over`: what a task is
    called.
    """
    if not len(values):
        return NotEstimable("no observations")
    return share_of_sums(*_by_task(values, tasks), over=over)


def share_of_sums(sums: Floats, sizes: Floats, *, over: str = "tasks") -> Estimate:
    """Estimate of `share_over_tasks`. `sums`, `sizes`: shape (tasks,), of their observations."""
    n = float(sizes.sum())
    share = fsum(sums) / n
    return Estimate(share, int(n), _share_interval(share, sums, sizes, over))


def share_of_numbered(tasks: Ints, hits: Bools | Ints) -> Estimate:
    """Estimate of `share_over_tasks`, tasks numbered; both of shape (observations,), not empty."""
    sizes, sums = np.bincount(tasks), np.bincount(tasks, hits)
    some = np.flatnonzero(sizes)
    return share_of_sums(sums[some].astype(np.float64), sizes[some].astype(np.float64))


def _share_interval(
    share: float, sums: Floats, sizes: Floats, over: str
) -> Interval | NotEstimable:
    """`sums`, `sizes`: shape (tasks,), as in the three functions of intervals below."""
    number, n = len(sizes), float(sizes.sum())
    if number < FEWEST_TASKS:
        return too_few_tasks(number, over)
    even = n**2 / float((sizes**2).sum())  # as many tasks of equal size
    if share in (0.0, 1.0):
        return _all_alike(share, sizes, (0.0, 1.0), over)
    greatest = share * (1 - share) / even  # each task all or nothing
    variance = (number - 1) * _variance(sums, sizes) + _ADDED * greatest
    variance /= number - 1 + _ADDED
    effective = min(share * (1 - share) / variance, n)
    x = student_t(_degrees(sizes), LEVEL) ** 2 / effective
    half = sqrt(x * share * (1 - share) + x * x / 4)
    low, high = (share + x / 2 - half) / (1 + x), (share + x / 2 + half) / (1 + x)
    return Interval(max(0.0, low), min(1.0, high), f"Wilson score over {number} {over}")


def mean_of(values: Sequence[float], why: str) -> float | NotEstimable:
    """Mean of observations without an interval; not estimable, for this reason, of none."""
    return fsum(values) / len(values) if values else NotEstimable(why)


def mean_over_tasks(
    values: Sequence[float],
    tasks: Sequence[Hashable],
    *,
    ends: tuple[float, float] = (-inf, inf),
    over: str = "tasks",
) -> Estimate | NotEstimable:
    """Mean of observations, with an interval over tasks.

    Where every task has the same mean, the interval rests on the ends of the scale and on the
    number of tasks; a scale without ends then gives none.

    `ends`: least and greatest value that an observation can have.
    """
    if not len(values):
        return NotEstimable("no observations")
    return _mean_of_sums(fsum(values), *_by_task(values, tasks), ends, over)


def mean_of_numbered(
    tasks: Ints, values: Floats, *, ends: tuple[float, float] = (-inf, inf)
) -> Estimate | NotEstimable:
    """Estimate of `mean_over_tasks`, tasks numbered; both of shape (observations,)."""
    if not len(values):
        return NotEstimable("no observations")
    sizes = np.bincount(tasks)
    sizes = sizes[sizes > 0]
    ordered = values[np.argsort(tasks, kind="stable")].tolist()
    edges = pairwise([0, *np.cumsum(sizes).tolist()])
    sums = np.array([fsum(ordered[start:end]) for start, end in edges])
    return _mean_of_sums(fsum(ordered), sums, sizes.astype(np.float64), ends, "tasks")


def _mean_of_sums(
    total: float, sums: Floats, sizes: Floats, ends: tuple[float, float], over: str
) -> Estimate:
    n = int(sizes.sum())
    mean = total / n
    if len(sizes) >= FEWEST_TASKS and np.abs(sums - mean * sizes).max() <= 1e-12:
        return Estimate(mean, n, _all_alike(mean, sizes, ends, over))
    variance = _variance(sums, sizes) if len(sizes) > 1 else 0.0
    return Estimate(mean, n, _t_interval(mean, variance, sizes, ends, over))


def _all_alike(
    mean: float, sizes: Floats, ends: tuple[float, float], over: str
) -> Interval | NotEstimable:
    if inf in ends or -inf in ends:
        return NotEstimable(f"all {len(sizes)} {over} have the same mean")
    even = float(sizes.sum() ** 2 / (sizes**2).sum())  # as many tasks of equal size
    far = float(1 - ((1 - LEVEL) / 2) ** (1 / even))  # of tasks of another kind, all unseen
    low, high = mean - far * (mean - ends[0]), mean + far * (ends[1] - mean)
    return Interval(low, high, f"{len(sizes)} {over}, all alike")


def _t_interval(
    value: float, variance: float, sizes: Floats, ends: tuple[float, float], over: str
) -> Interval | NotEstimable:
    if len(sizes) < FEWEST_TASKS:
        return too_few_tasks(len(sizes), over)
    half = student_t(_degrees(sizes), LEVEL) * sqrt(variance)
    low, high = max(ends[0], value - half), min(ends[1], value + half)
    return Interval(low, high, f"Student's t over {len(sizes)} {over}")


Weighted = Callable[[Floats], Floats]
"""From weights of observations, shape (draws, observations), to one number a draw; a number that
is not finite where the statistic is not defined."""


def statistic_over_tasks(
    statistic: Weighted,
    tasks: Sequence[Hashable],
    *,
    ends: tuple[float, float] = (-inf, inf),
    over: str = "tasks",
) -> Interval | NotEstimable:
    """Interval of a statistic, its variance from leaving out one task at a time.

    `statistic`: of weighted observations; an observation of a task left out weighs 0.
    """
    names = {name: place for place, name in enumerate(sorted(set(tasks), key=repr))}
    number = len(names)
    which = np.array([names[task] for task in tasks])
    weights = (which != np.arange(-1, number)[:, None]).astype(np.float64)
    whole, *without = statistic(weights).tolist()
    sizes = np.bincount(which).astype(np.float64)
    return leave_one_out(whole, without, sizes, ends=ends, over=over)


def leave_one_out(
    whole: float,
    without: Sequence[float],
    sizes: Floats,
    *,
    ends: tuple[float, float] = (-inf, inf),
    over: str = "tasks",
) -> Interval | NotEstimable:
    """Interval of `statistic_over_tasks`, from the values that the statistic has.

    `whole`: of all observations. `without`: of all but those of one task, for each task. `sizes`:
    shape (tasks,).
    """
    number = len(sizes)
    if number < FEWEST_TASKS:
        return too_few_tasks(number, over)
    if not np.isfinite([whole, *without]).all():
        return NotEstimable(f"not defined without one of the {over}")
    variance = (number - 1) / number * fsum((one - whole) ** 2 for one in without)
    if variance <= 1e-18:
        return NotEstimable(f"the same without any of the {number} {over}")
    return _t_interval(whole, variance, sizes, ends, over)


def _by_task(values: Sequence[float], tasks: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Shape (tasks,) each: sum and number of observations, whatever the order of the input."""
    groups = by_key(zip(tasks, values, strict=True))
    ordered = [groups[task] for task in sorted(groups, key=repr)]
    return np.array([fsum(g) for g in ordered]), np.array([float(len(g)) for g in ordered])


def _variance(sums: Floats, sizes: Floats) -> float:
    """Variance of a ratio of sums, shape (tasks,), residuals corrected for their weights (CR2)."""
    n = sizes.sum()
    residuals = sums - sizes * (sums.sum() / n)
    return float((residuals**2 / (1 - sizes / n)).sum() / n**2)


def _degrees(sizes: Floats) -> float:
    """Satterthwaite's degrees of freedom of `_variance`. `sizes`: shape (tasks,).

    They are those of a sample in which all observations of a task agree, so that one large task
    costs some; tasks of equal size have their number less one.
    """
    h = sizes / sizes.sum()
    w, v = 1 / np.sqrt(1 - h), sizes**2
    d, p, q, total = w**2 * v, w * v, w * h, v.sum()
    trace = (d - 2 * p * q + total * q**2).sum()
    pp, qq, pq = fsum(p * p), fsum(q * q), fsum(p * q)  # the same on every processor
    off = 2 * pp * qq + 2 * pq**2 + total**2 * qq**2 - 4 * total * pq * qq
    square = (d**2).sum() + 2 * (d * (total * q**2 - 2 * p * q)).sum() + off
    return max(1.0, float(trace**2 / square))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@lru_cache(maxsize=1024)
def student_t(df: float, level: float) -> float:
    """The t between which and its negative Student's distribution has `level` of its mass.

    With t = √df tan(a) the mass up to the angle a is that of cos(a)^(df − 1). Its integral is
    concave, so that Newton's steps from 0 approach the angle from below.

    `df`: degrees of freedom, at least 1; need not be whole. Returns it with 12 digits: those behind
    them depend on the processor.
    """
    wanted = level * sqrt(pi) / 2 * exp(lgamma(df / 2) - lgamma((df + 1) / 2))
    angle = step = 0.0
    for _ in range(200):
        mass = fsum(_WEIGHTS * np.cos(angle / 2 * (_NODES + 1)) ** (df - 1)) * angle / 2
        step = (wanted - mass) / cos(angle) ** (df - 1)
        angle += step
        if step <= 1e-15 * angle:
            break
    return float(f"{sqrt(df) * tan(angle):.12g}")


def flips_by_task(
    differences: Sequence[float], tasks: Sequence[Hashable], *, seed: int
) -> PermutationTest | NotEstimable:
    """Test that a mean difference within pairs is zero over tasks, by flipping signs of tasks.

    All pairs of one task flip together. With G tasks no p below 2^(1 − G) exists. A task without
    a difference is the same under either sign and takes no part.

    `seed`: of the draws, with more than `EXACT_UP_TO` tasks.
    """
    if not len(differences):
        return NotEstimable("no pairs")
    sums, sizes = _by_task(differences, tasks)
    units = np.rint(sums / _UNIT).astype(np.int64)
    seen = abs(int(units.sum()))
    units = np.sort(np.abs(units[units != 0]))
    exact = len(units) <= EXACT_UP_TO
    p = _counted_flips(units, seen) if exact else _drawn_flips(units.tobytes(), seen, seed)
    return PermutationTest(
        fsum(differences) / len(differences),
        p_value=p,
        n=len(differences),
        tasks=len(sums),
        spread=float(np.std(sums / sizes, ddof=1)) if len(sums) > 1 else 0.0,
        exact=exact,
        error=0.0 if exact else sqrt(p * (1 - p) / DRAWS),
    )


def _counted_flips(units: Ints, seen: int) -> float:
    """Share of all signs whose sum is as far from zero. `units`: shape (tasks,)."""
    sums = units[:1]  # the first sign may stay: a change of all signs is as far from zero
    for unit in units[1:]:
        sums = np.concatenate([sums - unit, sums + unit])
    return float((np.abs(sums) >= seen).mean()) if len(units) else 1.0


_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)
"""Byte → its eight bits."""


@lru_cache(maxsize=256)
def _drawn_flips(held: bytes, seen: int, seed: int) -> float:
    """Share of drawn signs whose sum is as far from zero: a sign is the top bit of a random byte.

    Eight signs make a byte, and what each byte adds is looked up in a table of their eight units.
    Nothing is drawn for a sum so large that no draw reaches it, by Hoeffding's inequality.

    `held`: the units as bytes, by which equal tests are known.
    """
    units = np.frombuffer(held, dtype=np.int64)
    if 2 * DRAWS * exp(-((seen / float(np.linalg.norm(units))) ** 2) / 2) < _NEVER:
        return 1 / (DRAWS + 1)
    eights = np.pad(units, (0, -len(units) % 8)).reshape(-1, 8)
    table, starts = (eights @ _BITS.T).ravel(), 256 * np.arange(len(eights))
    reached, batch = 0, max(1, 2_000_000 // len(units))
    seeds = [seed, crc32(held), crc32(str(seen).encode())]
    drawn = _random_bytes(seeds, batch * len(units))
    for start, signs in zip(range(0, DRAWS, batch), drawn, strict=False):
        bits = np.packbits(signs.reshape(batch, -1)[: DRAWS - start] & 128, axis=1)
        positive = table.take(bits + starts).sum(axis=1)
        reached += int(np.count_nonzero(np.abs(2 * positive - units.sum()) >= seen))
    return (reached + 1) / (DRAWS + 1)


def _random_bytes(seeds: Sequence[int], length: int) -> Iterator[Bytes]:
    """Shape (length,): what `bytes(length)` of a generator gives each time, without its copies.

    It takes whole halves of the words that are drawn, so two of its answers are whole words.
    """
    words = np.random.default_rng(seeds).bit_generator
    while True:
        two = words.random_raw(-(-length // 4)).astype("<u8", copy=False).view(np.uint8)
        yield from two.reshape(2, -1)[:, :length]


def labels_within_pairs(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], *, seed: int
) -> float:
    """Two-sided p of a difference on these tasks and personas alone, were they run again.

    Which runs of a pair were made under which condition is permuted within the pair. It says
    nothing of other tasks. It holds with one run a condition; more give it power.

    `first`: per pair, at least one, the runs under one condition.
    """
    shapes = by_key(
        ((len(two), len(one)), [*two, *one]) for one, two in zip(first, second, strict=True)
    )
    rng = np.random.default_rng([seed, crc32(repr(sorted(shapes.items())).encode())])
    observed, drawn = 0.0, np.zeros(DRAWS_WITHIN)
    for (taken, left), rows in sorted(shapes.items()):
        runs = np.array(sorted(rows), dtype=float)
        weight, fixed = 1 / taken + 1 / left, runs.sum(axis=1) / left
        observed += float((weight * runs[:, :taken].sum(axis=1) - fixed).sum())
        shuffled = rng.permuted(np.broadcast_to(runs, (DRAWS_WITHIN, *runs.shape)), axis=2)
        differences = shuffled[:, :, :taken].sum(axis=2)
        differences *= weight  # in place: memory for another array takes longer than the product
        differences -= fixed
        drawn += differences.sum(axis=1)
    reached = np.abs(drawn) >= abs(observed) - _UNIT * len(first)
    return float((np.count_nonzero(reached) + 1) / (DRAWS_WITHIN + 1))


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """Holm's step-down correction over one family, in the mapping's order.

    A family is all that one sentence or table shows.

    Returns the same keys with the adjusted p-values.
    """
    adjusted: dict[K, float] = {}
    largest = 0.0
    for i, key in enumerate(sorted(p_values, key=lambda k: p_values[k])):
        largest = max(largest, min(1.0, (len(p_values) - i) * p_values[key]))
        adjusted[key] = largest
    return {key: adjusted[key] for key in p_values}


def fewest_tasks(contrasts: int) -> int:
    """Tasks with which one of so many contrasts can be shown: 2^(1 − tasks) < α / contrasts."""
    return ceil(1 + log2(contrasts / ALPHA))


def detectable(tasks: int, spread: float, contrasts: int = 1) -> float | NotEstimable:
    """Least mean difference that so many tasks show with 80 % power, in a family of contrasts.

    Found by simulation of paired successes; sign flips of tasks, Holm's first step. `spread`:
    standard deviation of the tasks' mean differences.
    """
    if tasks < fewest_tasks(contrasts):
        return NotEstimable(
            f"too few tasks for {contrasts} contrasts: {tasks}, it takes {fewest_tasks(contrasts)}"
        )
    alpha = ALPHA / contrasts
    quantiles = student_t(tasks - 1, 1 - alpha) + student_t(tasks - 1, 2 * POWER - 1)
    least = quantiles * spread * sqrt(_TIES / (tasks - 1))
    if 2.0 ** (2 - tasks) > alpha:  # only if every task differs in the same direction
        together = NormalDist().inv_cdf(POWER ** (1 / tasks)) + _NO_DIFFERENCE
        least = max(least, spread * together)
    return least


def tasks_for(difference: float, spread: float, contrasts: int = 1) -> int:
    """Fewest tasks that show a difference with 80 % power; `spread` as in `detectable`."""
    for tasks in count(fewest_tasks(contrasts)):
        least = detectable(tasks, spread, contrasts)
        if not isinstance(least, NotEstimable) and least <= difference:
            return tasks
    raise AssertionError("with more tasks the least difference falls to any size")


def detectable_by(test: PermutationTest, contrasts: int = 1) -> float | NotEstimable:
    """Least mean difference that as many tasks with the same spread show with 80 % power."""
    if test.tasks >= fewest_tasks(contrasts) and not test.spread:
        return NotEstimable(f"all {test.tasks} tasks have the same difference")
    return detectable(test.tasks, test.spread, contrasts)


def spread_to_expect(runs: int) -> float:
    """Spread of tasks' differences in success to expect before anything was seen.

    That of simulated successes of tasks, personas and conditions that differ by about a logit: a
    run varies by 0.17 about its chance of success, and tasks' true differences by 0.2. `runs`: of
    one task under one condition, personas times repeats.
    """
    return sqrt(2 * _WITHIN / runs + _BETWEEN**2)


# --- Partly known means --------------------------------------------------------------------------

Draw = tuple[float, float]
"""Lowest and highest value that a draw may have."""

UNKNOWN: Final[Draw] = (0.0, 1.0)
"""A share or score of which nothing is known."""


class Unit(NamedTuple):
    """One logged episode."""

    task: str
    """What intervals are over."""
    draws: tuple[Draw, ...]

    @property
    def low(self) -> float:
        return fsum(low for low, _ in self.draws) / len(self.draws)

    @property
    def high(self) -> float:
        return fsum(high for _, high in self.draws) / len(self.draws)

    @property
    def is_open(self) -> bool:
        """Something about it is not known."""
        return any(low != high for low, high in self.draws)


def known_draw(value: float | None) -> Draw:
    """A draw of a value; of anything between 0 and 1 where it is missing."""
    return UNKNOWN if value is None else (value, value)


def mean_bounds(units: Sequence[Unit]) -> Bounds:
    """What the mean over units lies between, each by the mean of its draws."""
    n = len(units)
    return Bounds(fsum(u.low for u in units) / n, fsum(u.high for u in units) / n, n)


def interval_of_mean(
    units: Sequence[Unit], *, ends: tuple[float, float] = UNKNOWN
) -> Interval | NotEstimable:
    """Interval of the mean over tasks; the spread between tasks has that between draws in it.

    Where values are not known it reaches from the lower end for the worst case to the upper
    end for the best.

    `ends`: least and greatest value that a draw can have.
    """
    tasks = [unit.task for unit in units]
    means = (
        mean_over_tasks(values, tasks, ends=ends)
        for values in ([unit.low for unit in units], [unit.high for unit in units])
    )
    worst, best = (mean.interval if isinstance(mean, Estimate) else mean for mean in means)
    if isinstance(worst, NotEstimable) or isinstance(best, NotEstimable):
        return worst if isinstance(worst, NotEstimable) else best
    return Interval(worst.low, best.high, worst.method)


# --- Families ----------------------------------------------------------------------------------

Row = TypeVar("Row", bound=Any)
"""A frozen dataclass with `test`, `p_holm` and `detectable`."""


def corrected(rows: Sequence[Row]) -> list[Row]:
    """One family with Holm's correction in `p_holm`, and what it could show in `detectable`."""
    tested = {i: row.test for i, row in enumerate(rows) if isinstance(row.test, PermutationTest)}
    values = holm({i: test.p_value for i, test in tested.items()})
    shown = {i: detectable_by(test, len(tested)) for i, test in tested.items()}
    return [
        replace(row, p_holm=values[i], detectable=shown[i]) if i in tested else row
        for i, row in enumerate(rows)
    ]
