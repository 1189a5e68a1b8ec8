"""Panels of one run beside one another: what size and roles do to votes and outcomes.

The unit of a contrast is a pair of task and persona, as between conditions; repeats and turns of a
pair are averaged. A share of turns is over the turns that were voted on, so a pair whose first
attempt succeeded has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import polars as pl

from tutorsim.analysis.ballots.one_panel_of_a_run import of_panel
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.metrics.shift_flip_tie_fallback_rates import (
    Diagnostics,
    diagnostics,
    turn_diagnostics,
)
from tutorsim.analysis.metrics.ties_under_random_ballots import UniformChance, uniform_chance
from tutorsim.analysis.outcomes.condition_contrasts import corrected, paired_difference
from tutorsim.analysis.outcomes.student_scores import (
    Pair,
    Rounds,
    cells_of,
    outcome_of,
    paired_values,
    rounds,
    success_rates,
    unit_means,
)
from tutorsim.analysis.runs.run_panels import panels_of
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    mean_over_tasks,
    to_json,
)
from tutorsim.records import EpisodeRecord
from tutorsim.vocabularies import BALLOT_FORMATS

__all__ = [
    "MEASURES",
    "Measure",
    "PanelContrast",
    "PanelOutcome",
    "PanelVotes",
    "VoteMeasure",
    "panel_contrasts",
    "panel_outcomes",
    "panel_votes",
]

Measure = Literal["success", "final_score", "tied", "fallback", "flip"]
"""What panels are contrasted on; the last three are shares of a pair's turns."""
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)

VoteMeasure = Literal["tied", "fallback", "flip"]
"""Shares of turns, which random ballots have too."""

Values = Mapping[str, Mapping[Pair, float]]
"""Panel → pair → value."""


@dataclass(frozen=True)
class PanelVotes:
    """How one panel decided under one protocol, and what random ballots would give its size."""

    panel: str
    size: int
    found: Diagnostics
    chance: UniformChance | NotEstimable

    def share(self, measure: VoteMeasure) -> Estimate | NotEstimable:
        """The share of turns that were tied, left to the order, or flipped."""
        rates = {
            "tied": self.found.tie_rate,
            "fallback": self.found.fallback_rate,
            "flip": self.found.flip,
        }
        return rates[measure]

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


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

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class PanelContrast:
    """Two panels under one condition: `second` − `first`, paired on task and persona."""

    benchmark: str
    condition: str
    measure: Measure
    first: str
    second: str
    test: PermutationTest | NotEstimable
    p_holm: float | None
    """Corrected over all contrasts of panels; `None` without a test."""
    difference: Estimate | NotEstimable
    detectable: float | NotEstimable
    """The least difference that so many tasks with this spread would show with 80 % power."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def panel_votes(source: Source) -> list[PanelVotes]:
    """Diagnostics of each protocol and panel, beside what random ballots give panels of its size.

    Args:
        source: A run; one that compares no panels has none.
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
        cells = dict(cells_of(own, "benchmark", "condition"))
        for row in success_rates(own):
            if row.condition == "baseline":
                continue
            cell = row.benchmark, row.condition
            found.append(
                PanelOutcome(
                    *(row.benchmark, name, len(makeup.roles), row.condition, row.episodes),
                    success=row.rate,
                    score=_last_score(cells[cell]),
                    rounds=turns[cell],
                )
            )
    order = list(dict.fromkeys((row.benchmark, row.condition) for row in found))
    return sorted(found, key=lambda row: order.index((row.benchmark, row.condition)))


def _last_score(episodes: Sequence[EpisodeRecord]) -> Estimate | NotEstimable:
    units = unit_means(episodes, lambda e: e.final_correctness)
    known = [(value, task) for value, task in units if value is not None]
    return mean_over_tasks([value for value, _ in known], [task for _, task in known], ends=(0, 1))


def panel_contrasts(source: Source, *, seed: int = 0) -> list[PanelContrast]:
    """Every panel against the study's first, under each condition and on each measure.

    The family of Holm's correction is all of them, of every benchmark and measure.
    """
    names = list(panels_of(source.run))
    if len(names) < 2:
        return []
    shares = _turn_shares(source)
    found = []
    cells = [
        cell for cell in cells_of(source, "benchmark", "condition") if cell[0][1] != "baseline"
    ]
    for benchmark in dict.fromkeys(cell[0] for cell, _ in cells):
        for measure in MEASURES:
            rows = [
                row
                for (of, condition), episodes in cells
                if of == benchmark
                for row in _against_first(
                    (benchmark, condition, measure),
                    _values(episodes, measure, shares),
                    names,
                    seed,
                )
            ]
            found += rows
    return corrected(found)


Shares = Mapping[str, Mapping[Measure, float]]


def _turn_shares(source: Source) -> Shares:
    """Episode → measure → share of its voted turns."""
    turns = turn_diagnostics(source).select("episode_id", "tied", "fallback", "flip")
    found: dict[str, dict[Measure, float]] = {}
    for (episode,), rows in turns.group_by("episode_id", maintain_order=True):
        measures: tuple[Measure, ...] = ("tied", "fallback", "flip")
        means = {name: rows.get_column(name).cast(pl.Float64).mean() for name in measures}
        found[str(episode)] = {n: float(m) for n, m in means.items() if isinstance(m, float)}
    return found


def _values(episodes: Sequence[EpisodeRecord], measure: Measure, shares: Shares) -> Values:
    def value(episode: EpisodeRecord) -> float | None:
        if measure == "success" or measure == "final_score":
            return outcome_of(episode, measure)
        return shares.get(episode.episode_id, {}).get(measure)

    return paired_values(episodes, value, by=lambda e: e.panel or "")


def _against_first(
    cell: tuple[str, str, Measure], values: Values, names: Sequence[str], seed: int
) -> list[PanelContrast]:
    first, *others = names
    rows = []
    for second in others:
        test, difference = paired_difference(
            values.get(first, {}), values.get(second, {}), ends=(-1, 1), seed=seed
        )
        unknown = NotEstimable("no pairs")
        rows.append(PanelContrast(*cell, first, second, test, None, difference, unknown))
    return rows
