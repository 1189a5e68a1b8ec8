"""Panels of one run beside one another, and the ties that a panel's size alone lets expect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import comb, factorial, fsum
from operator import itemgetter
from typing import Final, Literal, get_args

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.properties_of_ballot_formats import FORMATS, BallotForm
from tutorsim.analysis.ballots.recount_source import Source, of_panel
from tutorsim.analysis.pages.cells_and_tables import (
    Table,
    estimate,
    of_rows,
    part_of,
    plain,
    present,
    table,
)
from tutorsim.analysis.statistics.array_types import Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    SEED,
    Estimate,
    NotEstimable,
    corrected,
    to_json,
)
from tutorsim.analysis.systems.paired_comparison import (
    BASELINE,
    Contrast,
    against,
    chance_words,
    contrast_headline,
    contrasts_between,
)
from tutorsim.analysis.systems.panel.shifts_flips_and_ties_beside_chance import (
    Diagnostics,
    diagnostics,
    turn_diagnostics,
)
from tutorsim.analysis.systems.panel.student_outcomes import (
    Rounds,
    cells_of,
    outcome_of,
    repeats_of,
    rounds,
    success_rates,
    units_of,
)
from tutorsim.records import EpisodeRecord
from tutorsim.records.run_folders_of_any_version_and_retests import makeup_words, panels_of
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

Measure = Literal["success", "final_score", "tied", "fallback", "flip"]
"""What panels are contrasted on; the last three are shares of a pair's turns."""
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)

VoteMeasure = Literal["tied", "fallback", "flip"]
"""Shares of turns, which random ballots have too."""


@dataclass(frozen=True)
class PanelVotes:
    """How one panel decided under one protocol, and what random ballots would give its size."""

    panel: str
    size: int
    found: Diagnostics
    chance: UniformChance | NotEstimable

    def share(self, measure: VoteMeasure) -> Estimate | NotEstimable:
        """The share of turns that were tied, left to the order, or flipped."""
        rates = (self.found.tie_rate, self.found.fallback_rate, self.found.flip)
        return rates[_VOTES.index(measure)]


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


def panel_votes(source: Source) -> list[PanelVotes]:
    """Diagnostics of each protocol and panel, beside what random ballots give panels of its size.

    `source`: a run; one that compares no panels has none.
    """
    run = source.run
    found = []
    for name, makeup in panels_of(run).items():
        assert run is not None
        size, study = len(makeup.roles), run.panel
        for row in diagnostics(of_panel(source, name)):
            chance: UniformChance | NotEstimable = NotEstimable(
                "a branch changes who votes, or how"
            )
            if study.branch is None:
                rule = study.rich_protocol if row.protocol == "rich" else row.protocol
                chance = uniform_chance(
                    rule,
                    size,
                    budget=study.cumulative_budget,
                    tie_round=study.tie_policy == "tie_round",
                )
            found.append(PanelVotes(name, size, row, chance))
    return sorted(found, key=lambda row: BALLOT_FORMATS.index(row.found.protocol))


def panel_outcomes(source: Source) -> list[PanelOutcome]:
    """Success, last score and turns by benchmark, condition and panel."""
    found = []
    for name, makeup in panels_of(source.run).items():
        own = of_panel(source, name)
        turns = {(row.benchmark, row.condition): row for row in rounds(own)}
        cells = dict(cells_of(own.episodes, "benchmark", "condition"))
        for row in success_rates(own):
            if row.condition == BASELINE:
                continue
            cell = row.benchmark, row.condition
            found.append(
                PanelOutcome(
                    *(row.benchmark, name, len(makeup.roles), row.condition, row.episodes),
                    success=row.rate,
                    score=units_of(cells[cell], lambda e: e.final_correctness).mean((0, 1)),
                    rounds=turns[cell],
                )
            )
    order = list(dict.fromkeys((row.benchmark, row.condition) for row in found))
    return sorted(found, key=lambda row: order.index((row.benchmark, row.condition)))


def panel_contrasts(source: Source) -> list[Contrast]:
    """Every panel against the study's first, under each condition and on each measure.

    The family of Holm's correction is all of them, of every benchmark and measure.
    """
    names = list(panels_of(source.run))
    if len(names) < 2:
        return []
    shares = _turn_shares(source)
    every = cells_of(source.episodes, "benchmark", "condition")
    cells = [cell for cell in every if cell[0][1] != BASELINE]
    found = [
        row
        for benchmark in dict.fromkeys(of for (of, _), _ in cells)
        for measure in MEASURES
        for (of, condition), episodes in cells
        if of == benchmark
        for row in contrasts_between(
            {
                panel: repeats_of(own, _value(measure, shares))
                for (panel,), own in cells_of(episodes, "panel")
            },
            against(names, names[0]),
            cluster=itemgetter(1),
            ends=(-1, 1),
            measured=f"in {_NAMES[measure]} ({condition})",
            benchmark=benchmark,
            condition=condition,
            outcome=measure,
        )
    ]
    return corrected(found)


Shares = Mapping[str, Mapping[Measure, float | None]]


def _turn_shares(source: Source) -> Shares:
    """Episode → measure → share of its voted turns."""
    turns = turn_diagnostics(source).select("episode_id", *_VOTES)
    means = turns.group_by("episode_id").agg(pl.col(_VOTES).cast(pl.Float64).mean())
    return {row[0]: dict(zip(_VOTES, row[1:], strict=True)) for row in means.iter_rows()}


def _value(measure: Measure, shares: Shares) -> Callable[[EpisodeRecord], float | None]:
    if measure == "success" or measure == "final_score":
        return partial(outcome_of, outcome=measure)
    return lambda episode: shares.get(episode.episode_id, {}).get(measure)


# --- Tables of panels ----------------------------------------------------------------------------

_NAMES: Final[dict[Measure, str]] = {
    "success": "success",
    "final_score": "last judge score",
    "tied": "final votes tied",
    "fallback": "decided by the order",
    "flip": "flips",
}
_VOTES: Final[tuple[VoteMeasure, ...]] = get_args(VoteMeasure)
_MEANT: Final[dict[VoteMeasure, str]] = {
    "tied": "Tied: several led the final vote.",
    "fallback": "Fallback: counting left several, the tie round too; the order decided.",
    "flip": "Flip: the first vote's leader, a tie going to the order, did not win.",
}
_BY_CHANCE: Final = (
    "By chance: every voter draws its ballot uniformly from all that the protocol allows, "
    f"independently; counted exactly, or, marked ~, from {DRAWS:,} drawn votes (standard error at "
    "most 0.0025). Sizes differ by chance alone: look at a share beside its chance first."
)


@dataclass(frozen=True)
class PanelsView:
    """What a run that compares panels says of them, each thing computed once."""

    source: Source

    @cached_property
    def votes(self) -> list[PanelVotes]:
        """Each protocol and panel: ties, fallback and flips beside chance."""
        return panel_votes(self.source)

    @cached_property
    def outcomes(self) -> list[PanelOutcome]:
        """Each condition and panel: what became of the students."""
        return panel_outcomes(self.source)

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """Every panel against the study's first."""
        return panel_contrasts(self.source)

    def __bool__(self) -> bool:
        """Whether the run compares panels at all."""
        return bool(panels_of(self.source.run))

    def headline(self) -> str:
        """Whether any difference between panels is beyond chance."""
        return contrast_headline(self.contrasts)

    def words(self) -> str:
        """Which differences between panels are beyond chance."""
        return chance_words(self.contrasts, between="panels", largest=1)

    def tables(self) -> tuple[Table, ...]:
        """Who sits where, how each panel voted, what became of its students, and contrasts."""
        return present(
            self.roster_table(),
            *(self._votes_table(measure) for measure in _VOTES),
            self.outcomes_table(),
            *(self.contrast_table(measure) for measure in MEASURES),
        )

    def to_json(self) -> dict[str, object]:
        """The same as values."""
        return {
            "panels": {n: m.model_dump(mode="json") for n, m in panels_of(self.source.run).items()},
            "votes": to_json(self.votes),
            "outcomes": to_json(self.outcomes),
            "contrasts": to_json(list(map(_values, self.contrasts))),
        }

    def roster_table(self) -> Table | None:
        """Who sits on each panel, and whom it prefers where counting leaves a tie."""
        return table(
            "panels",
            "The panels",
            "Roles in the panel's order, to whose first a tie goes that counting leaves. Placebos "
            "show what chosen roles are worth: copies of one role differ in nothing but their "
            "draws, and roles by lot are no design. Voters see labels alone, never a role's name "
            "or a copy's number.",
            ["panel", "made of", "size"],
            [
                (name, makeup_words(made), len(made.roles))
                for name, made in panels_of(self.source.run).items()
            ],
        )

    def _votes_table(self, measure: VoteMeasure) -> Table | None:
        """One share of turns by protocol and panel, beside random ballots."""
        return table(
            f"panel-{measure}",
            f"{_NAMES[measure].capitalize()}, by size",
            f"Share of turns [95 % interval over tasks]. {_MEANT[measure]} {_BY_CHANCE}",
            ["protocol", "panel", "size", "turns", measure, "by chance"],
            [
                (
                    *(row.found.protocol, row.panel, row.size, row.found.turns),
                    *(estimate(row.share(measure)), _chance(row, measure)),
                )
                for row in self.votes
            ],
        )

    def outcomes_table(self) -> Table | None:
        """Success, last score and turns by condition and panel."""
        several = len({row.benchmark for row in self.outcomes}) > 1
        return table(
            "panel-outcomes",
            "What became of the students, by panel",
            "Means over complete episodes [95 % intervals over tasks]. Score: the judge's last. "
            "Turns: tutoring turns of an episode, 0 where the first attempt succeeded.",
            [
                *(("benchmark",) if several else ()),
                *("condition", "panel", "size", "episodes", "success", "score", "turns"),
            ],
            [
                (
                    *((row.benchmark,) if several else ()),
                    *(row.condition, row.panel, row.size, row.episodes),
                    *(estimate(row.success), estimate(row.score), estimate(row.rounds.mean)),
                )
                for row in self.outcomes
            ],
        )

    def contrast_table(self, measure: Measure) -> Table | None:
        """Every panel against the study's first, on one measure."""
        rows = [row for row in self.contrasts if row.outcome == measure]
        several = len({row.benchmark for row in rows}) > 1
        return of_rows(
            f"panel-contrasts-{measure}",
            f"{_NAMES[measure].capitalize()}: one panel against another",
            "Mean difference [95 % interval over tasks] to the study's first panel, paired on task "
            f"and persona{'; shares of the turns of a pair' * (measure in _VOTES)}. First attempts "
            "are drawn separately in each episode. p: signs flipped by task, exact unless marked "
            f"~, with Holm's correction over all {len(self.contrasts)} contrasts of panels. "
            "Detectable: the least mean difference that so many tasks with this spread would show "
            "with 80 % power.",
            [row.cells(*(("benchmark",) * several), *_COLUMNS) for row in rows],
        )


_COLUMNS: Final = ("condition", "difference of", "pairs", "difference", "p", "detectable")


def _values(row: Contrast) -> dict[str, object]:
    tested = row.values("first", "second", "test", "p_holm", "difference", "detectable")
    return {**row.values("benchmark", "condition"), "measure": row.outcome, **tested}


def certain_table(source: Source, per_turn: pl.DataFrame) -> Table | None:
    """Turns of each panel whose winner under another protocol the ballots settle.

    `per_turn`: a recount's turns under the four protocols, nobody exempt, one reading of ties.
    """
    panel_of = {e.episode_id: e.panel for e in source.episodes}
    panel = pl.col("episode_id").replace_strict(panel_of, default=None, return_dtype=pl.String)
    turns = per_turn.with_columns(panel=panel).filter(pl.col("panel").is_not_null())
    counts = turns.group_by("logged_protocol", "panel", "target").agg(
        turns=pl.len(),
        certain=pl.col("necessary_winner").is_not_null().sum(),
        unsettled=(~pl.col("settled")).sum(),
    )
    cells = {row[:3]: row[3:] for row in counts.iter_rows()}
    rows = []
    for protocol in BALLOT_FORMATS:
        for name, made in panels_of(source.run).items():
            own = [cells.get((protocol, name, target)) for target in PROTOCOLS]
            if any(own):
                shares = ["–" if c is None else part_of(c[1], c[0]) for c in own]
                left = sum(c[2] for c in own if c is not None)
                rows.append((protocol, name, len(made.roles), *shares, left))
    return table(
        "panel-certain",
        "Certain under another rule, by size",
        "Turns with exactly one possible winner under each protocol, ties going to the "
        "fallback order: what ballots of one format tell of another gets less as panels "
        "grow. Not settled: answers (over the four columns) that would take more work than is "
        "allowed, counted as not certain.",
        ["protocol", "panel", "size", *(f"under {target}" for target in PROTOCOLS), "not settled"],
        rows,
    )


def _chance(row: PanelVotes, measure: VoteMeasure) -> str:
    if isinstance(row.chance, NotEstimable):
        return plain(row.chance)
    return f"{'' if row.chance.exact else '~'}{getattr(row.chance, measure):.3f}"
