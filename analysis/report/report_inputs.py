"""Everything a report rests on, each thing computed once and only when it is asked for."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.identify import TieReading
from tutorsim.analysis.metrics.chance_baseline import ChanceBaseline, chance_baselines
from tutorsim.analysis.metrics.invariance import FormatInvariance, format_invariance
from tutorsim.analysis.metrics.proposal_similarity import role_collapse
from tutorsim.analysis.metrics.retest.noise_floor import NoiseFloor, noise_floor
from tutorsim.analysis.metrics.shift_flip_tie_fallback_rates import (
    Diagnostics,
    diagnostics,
    winning_roles,
)
from tutorsim.analysis.metrics.turn_table import turn_table
from tutorsim.analysis.metrics.voting_power import pivotality
from tutorsim.analysis.outcomes.condition_contrasts import Contrast
from tutorsim.analysis.outcomes.student_scores import (
    OUTCOMES,
    Gain,
    Success,
    episode_counts,
    gains,
    successes,
)
from tutorsim.analysis.outcomes.success_threshold import AtThreshold, at_threshold
from tutorsim.analysis.outcomes.where_other_rules_diverge import (
    Divergence,
    alternatives_of,
    diverge,
    under_order,
    with_random_ties,
    without_tie_round,
)
from tutorsim.analysis.recount import OrderTable, RecountResult, RuleRow, recount, recount_rules
from tutorsim.analysis.report.provenance_warning import WARNINGS
from tutorsim.analysis.report.scores_by_turn import scores_by_turn
from tutorsim.analysis.runs.published_figures import PublishedFigure, published_figures
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.views.beside_published import beside_published
from tutorsim.analysis.views.cells import Table
from tutorsim.analysis.views.condition_contrasts import contrasts_of
from tutorsim.analysis.views.decision_tables import diagnostics_table, winners_table
from tutorsim.analysis.views.noise_floor import noise_told
from tutorsim.analysis.views.panels_compared import PanelsView
from tutorsim.analysis.views.student_outcomes import few_tasks_words, gains_table
from tutorsim.records import StopCount, odd_stops, stop_counts
from tutorsim.vocabularies import BALLOT_FORMATS, MAX_ROLES, PROTOCOLS

__all__ = ["SEED", "Evidence"]

SEED: Final = 0
"""Of every interval and test in a report."""

THRESHOLDS: Final = (0.4, 0.7, 0.75, 0.9, 1.0)
"""Success thresholds that a report tries."""


@dataclass(frozen=True)
class Evidence:
    """A source, and what `analysis` says of it."""

    source: Source
    published: tuple[PublishedFigure, ...] = field(default_factory=published_figures)
    """Printed figures to stand beside the run's."""

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """Conditions against one another, on every outcome."""
        return contrasts_of(self.source, OUTCOMES, seed=SEED)

    @cached_property
    def panels(self) -> PanelsView:
        """The run's panels beside one another; false where it compares none."""
        return PanelsView(self.source, SEED)

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Every candidate, in the fallback order."""
        return self.source.votes.order

    @cached_property
    def turns(self) -> pl.DataFrame:
        """Every voting turn: `initial_leader`, `winner`, and `flip`, false without a first vote.

        Without a logged order, what several lead or win has no leader or winner.
        """
        return turn_table(self.source).turns(ordered=not self.unordered)

    @property
    def unordered(self) -> bool:
        """Whether no order is logged: ballots from elsewhere without one."""
        return not self.source.ordered

    @property
    def as_logged(self) -> str:
        """What the figures are of; a branch's are not all logged."""
        run = self.source.run
        return "Logged and re-simulated together" if run and run.branch else "As logged"

    @property
    def held(self) -> str:
        """Ends the caption of a chart of what happened."""
        return f"{self.as_logged}; nothing is recounted."

    @property
    def no_winner(self) -> str:
        """Why no turn has a winner, where none has."""
        if self.turns.is_empty():
            return "No turn was put to a vote"
        return "Counting left every turn tied, and no order is logged"

    @cached_property
    def diagnostics(self) -> list[Diagnostics]:
        return diagnostics(self.source)

    @cached_property
    def pivotality(self) -> pl.DataFrame:
        """How often each voter's ballot decides, by protocol."""
        return pivotality(self.source)

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
        return format_invariance(self.source)

    @cached_property
    def winners(self) -> pl.DataFrame:
        return winning_roles(self.source)

    @property
    def gains_table(self) -> Table | None:
        """Scores before and after tutoring."""
        return gains_table(self.gains, few_tasks_words(self.source.episodes))

    @property
    def diagnostics_table(self) -> Table | None:
        """Shift, flip, ties and fallback per protocol, beside what is known of their floor."""
        notes = [noise_told(self.noise)]
        if self.published_table is None:
            notes.append("The published study's figures for this table are not in the package.")
        return diagnostics_table(self.diagnostics, notes, ordered=not self.unordered)

    @property
    def winners_table(self) -> Table | None:
        """Wins per role and protocol."""
        protocols = [row.protocol for row in self.diagnostics]
        rows, ordered = self.winners.to_dicts(), not self.unordered
        return winners_table(rows, self.candidates, protocols, ordered=ordered)

    @cached_property
    def published_table(self) -> Table | None:
        """The run's figures beside the printed ones; `None` where no cell is in both."""
        return beside_published(
            self.diagnostics,
            self.winners.to_dicts(),
            self.gains,
            figures=self.published,
            kinds=self.source.kinds,
            label=" ".join(WARNINGS[kind] for kind in self.source.kinds),
        )

    @cached_property
    def episodes(self) -> dict[str, int]:
        """`episodes`, `complete`, `failed`, `tutor_fired`, `unscored`."""
        return episode_counts(self.source)

    @cached_property
    def gains(self) -> list[Gain]:
        return gains(self.source)

    @cached_property
    def successes(self) -> list[Success]:
        return successes(self.source)

    @cached_property
    def stops(self) -> list[StopCount]:
        """Replies that did not come to their own end."""
        return odd_stops(stop_counts(self.source.episodes))

    @property
    def threshold(self) -> float | None:
        """The study's success threshold; `None` without a run."""
        return self.source.run.panel.success_threshold if self.source.run else None

    @cached_property
    def scores(self) -> pl.DataFrame:
        """Mean judge score after each turn; empty without a run."""
        run = self.source.run
        turns = 0 if run is None else run.panel.max_turns
        return scores_by_turn(self.source.episodes, max_turns=turns)

    @cached_property
    def similarity(self) -> dict[str, dict[str, Estimate | NotEstimable]]:
        """Condition → similarity of the drafts: `initial`, `final`, `change`."""
        return role_collapse(self.source)

    @cached_property
    def recount(self) -> RecountResult:
        """All questions, under the four protocols."""
        return recount(self.source, targets=PROTOCOLS)

    @property
    def reading(self) -> TieReading:
        """What a tie means in this report: `fallback`, or `set` where no order is logged."""
        return "set" if self.unordered else "fallback"

    @cached_property
    def rule_rows(self) -> list[RuleRow]:
        """Every logged protocol under every target, nobody exempt, both readings of ties."""
        others = [target for target in TARGETS if target not in PROTOCOLS]
        further = recount_rules(self.source, targets=others, exempt=(0,))
        rows = [r for r in (*self.recount.rules, *further) if r.exempt == 0]
        places = [(r.logged_protocol, r.target) for r in rows]
        order = sorted(
            range(len(rows)),
            key=lambda i: (BALLOT_FORMATS.index(places[i][0]), TARGETS.index(places[i][1])),
        )
        return [rows[i] for i in order]

    @cached_property
    def rules(self) -> list[RuleRow]:
        """`rule_rows` with ties going to the fallback order, if there is one."""
        return [r for r in self.rule_rows if r.reading == self.reading]

    @cached_property
    def orders(self) -> OrderTable:
        """Every fallback order, all protocols together."""
        [table] = [t for t in self.recount.orders if t.protocol is None]
        return table

    @cached_property
    def divergences(self) -> list[Divergence]:
        """Other paths: every role first in the order, other tie policies, other protocols.

        None where no order is logged that could be left.
        """
        if self.unordered:
            return []
        found = []
        for first in self.candidates[1:MAX_ROLES]:
            order = (first, *(c for c in self.candidates if c != first))
            found.append((under_order(self.source, order), f"{first} first in the order"))
        found.append((without_tie_round(self.source), "no tie round"))
        found.append((with_random_ties(self.source), "a lot instead of the order"))
        for target in PROTOCOLS:
            turns = self.recount.turns_under(target).filter(reading=self.reading)
            found.append((alternatives_of(turns), f"{target} voting"))
        return [diverge(self.source, winners, question=name) for winners, name in found]

    @cached_property
    def thresholds(self) -> dict[float, list[AtThreshold]]:
        """Threshold → outcomes under it; the study's own is among them. Empty without a run."""
        if self.threshold is None:
            return {}
        tried = sorted({*THRESHOLDS, self.threshold})
        return {threshold: at_threshold(self.source, threshold) for threshold in tried}
