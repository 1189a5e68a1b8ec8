"""Panels of one run beside one another, and the ties that a panel's size alone lets expect."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import comb, factorial, fsum
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS, BallotForm
from tutorsim.analysis.ballots.recount_source import Source, of_panel
from tutorsim.analysis.pages.cells_and_tables import Table, estimate, part_of, plain, present
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.statistics.array_types import Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    SEED,
    Estimate,
    NotEstimable,
    corrected,
    to_json,
)
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    BASELINE,
    Contrast,
    against,
    chance_words,
    contrasts_between,
)
from tutorsim.analysis.systems.panel.student_outcomes import (
    Rounds,
    cells_of,
    outcome_of,
    repeats_of,
    rounds_of,
    success_rate,
    units_of,
)
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    Diagnostics,
    diagnostics,
    turn_diagnostics,
)
from tutorsim.records import EpisodeRecord
from tutorsim.records.run_head_and_reading_run_folders_and_retests import (
    PanelMakeup,
    makeup_words,
    panels_of,
)
from tutorsim.vocabularies import BALLOT_FORMATS, CUMULATIVE_BUDGET, PROTOCOLS, TOP_SCORE, Protocol

# --- Ties under random ballots -------------------------------------------------------------------

DRAWS: Final = 40_000
"""Votes drawn where counting takes too much: the standard error of a share is at most 0.0025."""
_CELLS: Final = 1 << 21
"""Cells of the lattice of totals up to which ballots are counted."""


@dataclass(frozen=True)
class UniformChance:
    """What random ballots give, for n voters on as many candidates under one protocol."""

    protocol: Protocol
    size: int
    tied: float
    fallback: float
    flip: float
    exact: bool
    """Counted; otherwise drawn, with a standard error of at most 0.0025."""


@dataclass(frozen=True)
class Leaders:
    """How many candidates lead a vote of random ballots."""

    shares: tuple[float, ...]
    """Chance that exactly s lead, s from 1."""
    exact: bool


@lru_cache(maxsize=256)
def uniform_chance(
    protocol: Protocol, size: int, *, budget: int = CUMULATIVE_BUDGET, tie_round: bool = True
) -> UniformChance:
    """Tie, fallback and flip of a panel under uniformly random ballots.

    `size`: voters, and candidates. `tie_round`: whether a tied final vote goes to another round.
    """
    final = leaders_by_chance(protocol, size, size, budget=budget)
    left = list(final.shares)
    exact = final.exact
    if tie_round:
        left = [final.shares[0]] + [0.0] * (size - 1)
        for tied, share in enumerate(final.shares[1:], start=2):
            again = leaders_by_chance(protocol, size, tied, budget=budget)
            exact = exact and again.exact
            for s, part in enumerate(again.shares):
                left[s] += share * part
    led, won = _first(final.shares, size), _first(left, size)
    return UniformChance(
        protocol=protocol,
        size=size,
        tied=1 - final.shares[0],
        fallback=1 - left[0],
        flip=1 - fsum(led * won),
        exact=exact,
    )


@lru_cache(maxsize=256)
def leaders_by_chance(
    protocol: Protocol, voters: int, candidates: int, *, budget: int = CUMULATIVE_BUDGET
) -> Leaders:
    """How many lead a vote of uniformly random ballots."""
    if protocol == "simple":
        return Leaders(_of_choices(voters, candidates), True)
    if protocol == "approval":
        return Leaders(_of_sets(voters, candidates), True)
    form = FORMATS[protocol]
    most = form.widest(candidates, budget, TOP_SCORE)
    if not form.scale and (voters * most + 1) ** (candidates - 1) <= _CELLS:
        return Leaders(_counted(protocol, voters, candidates, budget), True)
    return Leaders(_drawn(protocol, voters, candidates, budget), False)


def _first(shares: list[float] | tuple[float, ...], size: int) -> Floats:
    """Chance of each place of the order to be the first of the set that is left.

    A set of s from m candidates, all alike, has place i first in C(m - 1 - i, s - 1) of C(m, s)
    cases.
    """
    return np.array(
        [
            sum(share * comb(size - 1 - i, s) / comb(size, s + 1) for s, share in enumerate(shares))
            for i in range(size)
        ]
    )


def _of_choices(n: int, m: int) -> tuple[float, ...]:
    """One label a ballot: the ways to give s candidates the most, and the others fewer."""
    found = [0] * m
    for most in range(1, n + 1):
        for s in range(1, min(m, n // most) + 1):
            rest = n - s * most
            ways = factorial(n) // (factorial(most) ** s * factorial(rest))
            found[s - 1] += comb(m, s) * ways * _below(rest, m - s, most)
    return tuple(ways / m**n for ways in found)


@lru_cache(maxsize=4096)
def _below(n: int, m: int, bound: int) -> int:
    """Ways to spread n ballots over m candidates, fewer than `bound` on each."""
    if m == 0:
        return int(n == 0)
    return sum(comb(n, k) * _below(n - k, m - 1, bound) for k in range(min(n, bound - 1) + 1))


def _of_sets(n: int, m: int) -> tuple[float, ...]:
    """A set a ballot: each candidate's total is binomial, independent of the others'."""
    ways = [comb(n, k) for k in range(n + 1)]
    fewer = [sum(ways[:k]) for k in range(n + 1)]
    return tuple(
        sum(comb(m, s) * ways[k] ** s * fewer[k] ** (m - s) for k in range(n + 1)) / 2 ** (n * m)
        for s in range(1, m + 1)
    )


def _counted(protocol: Protocol, n: int, m: int, budget: int) -> tuple[float, ...]:
    """Totals of all but the last candidate on a lattice, from the transform of one ballot's.

    The last one's total is what is left of the whole mass, which all ballots of the format share.
    """
    form = FORMATS[protocol]
    side = n * form.widest(m, budget, TOP_SCORE) + 1
    one = np.zeros((side,) * (m - 1))
    ballots = _every_ballot(form, m, budget)
    one[tuple(ballots[:-1])] = 1 / ballots.shape[1]
    axes = tuple(range(m - 1))
    chance = np.fft.irfftn(np.fft.rfftn(one, axes=axes) ** n, s=one.shape, axes=axes)
    totals = np.indices(one.shape).reshape(m - 1, -1)
    whole = n * int(ballots[:, 0].sum())
    every = np.concatenate([totals, whole - totals.sum(axis=0, keepdims=True)])
    possible = every[-1] >= 0
    led = (every == every.max(axis=0)).sum(axis=0)[possible]
    shares = np.bincount(led, weights=chance.reshape(-1)[possible], minlength=m + 1)[1:]
    return tuple(np.maximum(shares, 0.0).tolist())


def _every_ballot(form: BallotForm, m: int, budget: int) -> Ints:
    """Every ballot of a format as masses, one a column."""
    ballots = np.indices((form.widest(m, budget, TOP_SCORE) + 1,) * m).reshape(m, -1)
    return ballots[:, form.valid(ballots.T, budget)]


def _drawn(protocol: Protocol, n: int, m: int, budget: int) -> tuple[float, ...]:
    draw, form = np.random.default_rng(SEED), FORMATS[protocol]
    totals: Ints = np.zeros((DRAWS, m), dtype=np.int64)
    for _ in range(n):
        if form.scale:
            totals += draw.integers(0, TOP_SCORE, size=totals.shape, endpoint=True)
        elif form.budget:  # every split of the points is as likely as every other
            totals += draw.multinomial(budget, draw.dirichlet(np.ones(m), size=DRAWS))
        elif form.listed == "order":
            totals += draw.permuted(np.tile(np.arange(m), (DRAWS, 1)), axis=1)
        else:
            totals += draw.choice(_every_ballot(form, m, budget), size=DRAWS, axis=1).T
    led = (totals == totals.max(axis=1, keepdims=True)).sum(axis=1)
    return tuple((np.bincount(led, minlength=m + 1)[1:] / DRAWS).tolist())


# --- Panels compared -----------------------------------------------------------------------------

_NAMES: Final = {
    "success": "success",
    "final_score": "last judge score",
    "tied": "final votes tied",
    "fallback": "decided by the order",
    "flip": "flips",
}
"""What panels are contrasted on; the last three are shares of a pair's turns."""
_MEANT: Final = {
    "tied": "Tied: several led the final vote.",
    "fallback": "Fallback: counting left several, the tie round too; the order decided.",
    "flip": "Flip: the first vote's leader, a tie going to the order, did not win.",
}
"""Shares of turns, which random ballots have too."""


@dataclass(frozen=True)
class PanelVotes:
    """How one panel decided under one protocol, and what random ballots would give its size."""

    panel: str
    size: int
    found: Diagnostics
    chance: UniformChance | NotEstimable

    def share(self, measure: str) -> Estimate | NotEstimable:
        """The share of turns that were tied, left to the order, or flipped."""
        rates = (self.found.tie_rate, self.found.fallback_rate, self.found.flip)
        return dict(zip(_MEANT, rates, strict=True))[measure]

    def by_chance(self, measure: str) -> str:
        """The share of turns that random ballots would tie, leave to the order or flip."""
        if isinstance(self.chance, NotEstimable):
            return plain(self.chance)
        return f"{'' if self.chance.exact else '~'}{getattr(self.chance, measure):.3f}"


@dataclass(frozen=True)
class PanelOutcome:
    """What became of the students of one panel under one condition."""

    benchmark: str
    panel: str
    size: int
    condition: str
    episodes: int
    success: Estimate | NotEstimable
    score: Estimate | NotEstimable
    """The last judge score."""
    rounds: Rounds


@dataclass(frozen=True)
class PanelsView:
    """What a run that compares panels says of them, each thing computed once."""

    source: Source

    def __bool__(self) -> bool:
        """Whether the run compares panels at all."""
        return bool(self.panels)

    @property
    def panels(self) -> Mapping[str, PanelMakeup]:
        return panels_of(self.source.run)

    @cached_property
    def cells(self) -> list[tuple[tuple[str, ...], list[EpisodeRecord]]]:
        """Episodes that a panel taught, by benchmark and condition."""
        every = cells_of(self.source.episodes, "benchmark", "condition")
        return [cell for cell in every if cell[0][1] != BASELINE]

    @cached_property
    def votes(self) -> list[PanelVotes]:
        """Each protocol and panel: ties, fallback and flips beside those of random ballots."""
        found = []
        for name, makeup in self.panels.items():
            assert self.source.run is not None
            size, study = len(makeup.roles), self.source.run.panel
            for row in diagnostics(of_panel(self.source, name)):
                chance: UniformChance | NotEstimable = NotEstimable(
                    "a branch changes who votes, or how"
                )
                if study.branch is None:
                    rule = study.rich_protocol if row.protocol == "rich" else row.protocol
                    budget, again = study.cumulative_budget, study.tie_policy == "tie_round"
                    chance = uniform_chance(rule, size, budget=budget, tie_round=again)
                found.append(PanelVotes(name, size, row, chance))
        return sorted(found, key=lambda row: BALLOT_FORMATS.index(row.found.protocol))

    @cached_property
    def outcomes(self) -> list[PanelOutcome]:
        """Each condition and panel: what became of the students."""
        found = []
        for cell, episodes in self.cells:
            by_panel = dict(cells_of(episodes, "panel"))
            for name, makeup in self.panels.items():
                if own := by_panel.get((name,)):
                    (benchmark, condition), rate = cell, success_rate(cell, own)
                    found.append(
                        PanelOutcome(
                            *(benchmark, name, len(makeup.roles), condition, rate.episodes),
                            success=rate.rate,
                            score=units_of(own, lambda e: e.final_correctness).mean((0, 1)),
                            rounds=rounds_of(cell, own),
                        )
                    )
        return found

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """Every panel against the study's first, under each condition and on each measure.

        The family of Holm's correction is all of them, of every benchmark and measure.
        """
        pairs = against(self.panels, next(iter(self.panels), None))
        values = self._measures() if pairs else {}
        found = [
            row
            for benchmark in dict.fromkeys(of for (of, _), _ in self.cells)
            for measure, value in values.items()
            for (of, condition), episodes in self.cells
            if of == benchmark
            for row in contrasts_between(
                {name: repeats_of(own, value) for (name,), own in cells_of(episodes, "panel")},
                pairs,
                cluster=itemgetter(1),
                ends=(-1, 1),
                measured=f"in {_NAMES[measure]} ({condition})",
                benchmark=benchmark,
                condition=condition,
                outcome=measure,
            )
        ]
        return corrected(found)

    def _measures(self) -> dict[str, Callable[[EpisodeRecord], float | None]]:
        """Each measure of an episode; those of votes are the means of its voted turns."""
        turns = turn_diagnostics(self.source).select("episode_id", *_MEANT)
        means = turns.group_by("episode_id").agg(pl.col(*_MEANT).cast(pl.Float64).mean())
        shares = means.rows_by_key("episode_id", named=True, unique=True)

        def share(measure: str, episode: EpisodeRecord) -> float | None:
            found: float | None = shares.get(episode.episode_id, {}).get(measure)
            return found

        return {
            "success": partial(outcome_of, outcome="success"),
            "final_score": partial(outcome_of, outcome="final_score"),
            **{measure: partial(share, measure) for measure in _MEANT},
        }

    def words(self) -> str:
        """Which differences between panels are beyond chance."""
        return chance_words(self.contrasts, between="panels", largest=1)

    def tables(self) -> tuple[Table, ...]:
        """Who sits where, how each panel voted, what became of its students, and contrasts."""
        return present(
            roster_table(self),
            *(_votes_table(OnMeasure(self, measure)) for measure in _MEANT),
            outcomes_table(self),
            *(panel_contrasts_table(OnMeasure(self, measure)) for measure in _NAMES),
        )

    def to_json(self) -> dict[str, object]:
        """The comparison as values."""
        return {
            "panels": {name: made.model_dump(mode="json") for name, made in self.panels.items()},
            "votes": to_json(self.votes),
            "outcomes": to_json(self.outcomes),
            "contrasts": to_json(list(map(_values, self.contrasts))),
        }


class OnMeasure(NamedTuple):
    """Panels compared on one measure."""

    view: PanelsView
    measure: str

    @property
    def named(self) -> str:
        """The measure as a title begins with it."""
        return _NAMES[self.measure].capitalize()


def _values(row: Contrast) -> dict[str, object]:
    tested = row.values("first", "second", "test", "p_holm", "difference", "detectable")
    return {**row.values("benchmark", "condition"), "measure": row.outcome, **tested}


# --- Tables of panels ----------------------------------------------------------------------------


@table("panels", "The panels")
def roster_table(of: PanelsView) -> Iterator[Row]:
    """Roles in the panel's order, to whose first a tie goes that counting leaves. Placebos show
    what chosen roles are worth: copies of one role differ in nothing but their draws, and roles by
    lot are no design. Voters see labels alone, never a role's name or a copy's number."""
    for name, made in of.panels.items():
        yield {"panel": name, "made of": makeup_words(made), "size": len(made.roles)}


@table("panel-{measure}", "{named}, by size", meant=lambda of: _MEANT[of.measure], draws=DRAWS)
def _votes_table(of: OnMeasure) -> Iterator[Row]:
    """Share of turns [95 % interval over tasks]. {meant} By chance: every voter draws its ballot
    uniformly from all that the protocol allows, independently; counted exactly, or, marked ~, from
    {draws:,} drawn votes (standard error at most 0.0025). Sizes differ by chance alone: look at a
    share beside its chance first."""
    for row in of.view.votes:
        yield {
            "protocol": row.found.protocol,
            "panel": row.panel,
            "size": row.size,
            "turns": row.found.turns,
            of.measure: estimate(row.share(of.measure)),
            "by chance": row.by_chance(of.measure),
        }


@table("panel-outcomes", "What became of the students, by panel")
def outcomes_table(of: PanelsView) -> Iterator[Row]:
    """Means over complete episodes [95 % intervals over tasks]. Score: the judge's last. Turns:
    tutoring turns of an episode, 0 where the first attempt succeeded."""
    several = len({row.benchmark for row in of.outcomes}) > 1
    for row in of.outcomes:
        yield {
            **({"benchmark": row.benchmark} if several else {}),
            "condition": row.condition,
            "panel": row.panel,
            "size": row.size,
            "episodes": row.episodes,
            "success": estimate(row.success),
            "score": estimate(row.score),
            "turns": estimate(row.rounds.mean),
        }


@table(
    "panel-contrasts-{measure}",
    "{named}: one panel against another",
    shares=lambda of: "; shares of the turns of a pair" * (of.measure in _MEANT),
    every=lambda of: len(of.view.contrasts),
)
def panel_contrasts_table(of: OnMeasure) -> Iterator[Row]:
    """Mean difference [95 % interval over tasks] to the study's first panel, paired on task and
    persona{shares}. First attempts are drawn separately in each episode. p: signs flipped by task,
    exact unless marked ~, with Holm's correction over all {every} contrasts of panels. Detectable:
    the least mean difference that so many tasks with this spread would show with 80 % power."""
    rows = [row for row in of.view.contrasts if row.outcome == of.measure]
    several = len({row.benchmark for row in rows}) > 1
    columns = ("condition", "difference of", "pairs", "difference", "p", "detectable")
    for row in rows:
        yield row.cells(*(("benchmark",) * several), *columns)


@table("panel-certain", "Certain under another rule, by size")
def certain_table(of: Any) -> Iterator[Row]:
    """Turns with exactly one possible winner under each protocol, ties going to the fallback order:
    what ballots of one format tell of another gets less as panels grow. Not settled: answers (over
    the four columns) that would take more work than is allowed, counted as not certain."""
    recounted = pl.concat([of.recount.turns_under(target) for target in PROTOCOLS])
    panel_of = {e.episode_id: e.panel for e in of.source.episodes}
    panel = pl.col("episode_id").replace_strict(panel_of, default=None, return_dtype=pl.String)
    turns = recounted.filter(reading="fallback").with_columns(panel=panel)
    turns = turns.filter(pl.col("panel").is_not_null())
    counts = turns.group_by("logged_protocol", "panel", "target").agg(
        turns=pl.len(),
        certain=pl.col("necessary_winner").is_not_null().sum(),
        unsettled=(~pl.col("settled")).sum(),
    )
    cells = {row[:3]: row[3:] for row in counts.iter_rows()}
    for protocol in BALLOT_FORMATS:
        for name, made in panels_of(of.source.run).items():
            own = {target: cells.get((protocol, name, target)) for target in PROTOCOLS}
            if any(own.values()):
                yield {
                    "protocol": protocol,
                    "panel": name,
                    "size": len(made.roles),
                    **{f"under {t}": part_of(c[1], c[0]) if c else "–" for t, c in own.items()},
                    "not settled": sum(c[2] for c in own.values() if c),
                }
