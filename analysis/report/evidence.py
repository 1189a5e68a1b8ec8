"""Everything a report rests on, each thing computed once and only when it is asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

from analysis.diverge import (
    Divergence,
    alternatives_of,
    diverge,
    under_order,
    with_random_ties,
    without_tie_round,
)
from analysis.invariance import FormatInvariance, format_invariance
from analysis.metrics import (
    ChanceBaseline,
    Diagnostics,
    EffectiveVotes,
    Gain,
    LabelPosition,
    NoiseFloor,
    SelfSupport,
    Success,
    chance_baselines,
    diagnostics,
    effective_votes,
    episode_counts,
    gains,
    label_positions,
    margins,
    noise_floor,
    pivotality,
    role_collapse,
    self_support,
    successes,
    winning_roles,
)
from analysis.metrics.table import turn_table
from analysis.partitions import recount_votes
from analysis.recount import OrderTable, RecountResult, RuleRow, recount, recount_rules
from analysis.report.scores import scores_by_turn
from analysis.rules import RANKING_RULES, TARGETS
from analysis.sources import Source
from analysis.statistics import Estimate, NotEstimable
from analysis.threshold import AtThreshold, at_threshold
from tutorsim.types import BALLOT_FORMATS, MAX_ROLES, PROTOCOLS

__all__ = ["Evidence"]

SEED: Final = 0
"""Of every interval and test in a report."""

THRESHOLDS: Final = (0.4, 0.7, 0.75, 0.9, 1.0)
"""Success thresholds that a report tries."""


@dataclass(frozen=True)
class Evidence:
    """A source, and what `analysis` says of it."""

    source: Source

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Every candidate, in the role-priority order."""
        return self.source.votes.order

    @cached_property
    def turns(self) -> pl.DataFrame:
        """Every voting turn: `initial_leader`, `winner`, and `flip`, false without a first vote."""
        table = turn_table(self.source)
        return table.votes.turns.with_columns(
            initial_leader=table.names(table.leader),
            winner=table.names(table.winner),
            flip=pl.Series(table.flip, dtype=pl.Boolean),
        )

    @property
    def sums_only(self) -> bool:
        """Whether there are too many turns to recount each on its own."""
        return self.source.counted is not None

    @cached_property
    def diagnostics(self) -> list[Diagnostics]:
        return diagnostics(self.source, seed=SEED)

    @cached_property
    def chance(self) -> list[ChanceBaseline]:
        return chance_baselines(self.source)

    @cached_property
    def noise(self) -> NoiseFloor | NotEstimable:
        """What re-asking alone changes; not estimable without a retest."""
        return noise_floor(self.source, seed=SEED)

    @cached_property
    def invariance(self) -> FormatInvariance | NotEstimable:
        """Ballots of one voter in two formats; not estimable where nobody was asked for two."""
        return format_invariance(self.source, seed=SEED)

    @cached_property
    def winners(self) -> pl.DataFrame:
        return winning_roles(self.source)

    @cached_property
    def margins(self) -> pl.DataFrame:
        return margins(self.source)

    @cached_property
    def pivotality(self) -> pl.DataFrame:
        return pivotality(self.source)

    @cached_property
    def effective_votes(self) -> list[EffectiveVotes]:
        return effective_votes(self.source)

    @cached_property
    def labels(self) -> list[LabelPosition | NotEstimable]:
        return label_positions(self.source, seed=SEED)

    @cached_property
    def self_support(self) -> list[SelfSupport | NotEstimable]:
        return self_support(self.source)

    @cached_property
    def episodes(self) -> dict[str, int]:
        """`episodes`, `complete`, `failed`, `tutor_fired`, `unscored`."""
        return episode_counts(self.source)

    @cached_property
    def gains(self) -> list[Gain]:
        return gains(self.source, seed=SEED)

    @cached_property
    def successes(self) -> list[Success]:
        return successes(self.source)

    @cached_property
    def scores(self) -> pl.DataFrame:
        """Mean judge score after each turn; empty without a run."""
        run = self.source.run
        turns = 0 if run is None else run.study.max_turns
        return scores_by_turn(self.source.episodes, max_turns=turns, seed=SEED)

    @cached_property
    def similarity(self) -> dict[str, dict[str, Estimate | NotEstimable]]:
        """Condition → similarity of the drafts: `initial`, `final`, `change`."""
        return role_collapse(self.source, seed=SEED)

    @cached_property
    def recount(self) -> RecountResult:
        """All questions, under the four protocols; no turn by itself where they are summed."""
        how = recount_votes if self.sums_only else recount
        return how(self.source, targets=PROTOCOLS, exempt=(0, 1, 2))

    @cached_property
    def protocols(self) -> pl.DataFrame:
        """Per turn: each protocol as target, nobody exempt, ties to the order."""
        return self.recount.per_turn.filter(
            (pl.col("exempt") == 0)
            & (pl.col("reading") == "fallback")
            & pl.col("target").is_in(PROTOCOLS)
        )

    @cached_property
    def rule_rows(self) -> list[RuleRow]:
        """Every logged protocol under every target, nobody exempt, both readings of ties."""
        six = tuple(RANKING_RULES)
        if self.sums_only:
            ranking = recount_votes(self.source, targets=six, exempt=(0,)).rules
        else:
            ranking = recount_rules(self.source, targets=six, exempt=(0,))
        rows = [r for r in (*self.recount.rules, *ranking) if r.exempt == 0]
        places = [(r.logged_protocol, r.target) for r in rows]
        order = sorted(
            range(len(rows)),
            key=lambda i: (BALLOT_FORMATS.index(places[i][0]), TARGETS.index(places[i][1])),
        )
        return [rows[i] for i in order]

    @cached_property
    def rules(self) -> list[RuleRow]:
        """`rule_rows` with ties going to the role-priority order."""
        return [r for r in self.rule_rows if r.reading == "fallback"]

    @cached_property
    def orders(self) -> OrderTable:
        """Every role-priority order, all protocols together."""
        [table] = [t for t in self.recount.orders if t.protocol is None]
        return table

    @cached_property
    def divergences(self) -> list[Divergence]:
        """Other paths: every role first in the order, other tie policies, other protocols.

        None where turns are only summed.
        """
        if self.sums_only:
            return []
        found = []
        for first in self.candidates[1:MAX_ROLES]:
            order = (first, *(c for c in self.candidates if c != first))
            found.append((under_order(self.source, order), f"{first} first in the order"))
        found.append((without_tie_round(self.source), "no tie round"))
        found.append((with_random_ties(self.source), "a lot instead of the order"))
        for target in PROTOCOLS:
            turns = self.protocols.filter(pl.col("target") == target)
            found.append((alternatives_of(turns), f"{target} voting"))
        return [diverge(self.source, winners, question=name) for winners, name in found]

    @cached_property
    def thresholds(self) -> dict[float, list[AtThreshold]]:
        """Threshold → outcomes under it; the study's own is among them. Empty without a run."""
        run = self.source.run
        if run is None:
            return {}
        tried = sorted({*THRESHOLDS, run.study.success_threshold})
        return {threshold: at_threshold(self.source, threshold) for threshold in tried}
