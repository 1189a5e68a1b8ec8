"""What a panel's pages rest on, computed once each, and a run beside the published figures."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Rounds
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import turn_table
from tutorsim.analysis.identify.possible_winners import TieReading
from tutorsim.analysis.pages.cells_and_tables import Table, estimate, number
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed, by_language_model, printed
from tutorsim.analysis.pages.words_and_safe_text import WARNINGS, spoken
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.recount_plan_and_own_rules import RecountTable
from tutorsim.analysis.recount.result_models import OrderTable, RecountResult, RuleRow
from tutorsim.analysis.recount.same_voter_in_two_formats import format_invariance
from tutorsim.analysis.recount.success_under_other_score_thresholds import THRESHOLDS, at_threshold
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import branch_counts
from tutorsim.analysis.statistics.noise_floor_of_retests import noise_floor
from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import role_collapse
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import Contrast
from tutorsim.analysis.systems.panel import first_divergent_turns_and_success_bounds as divergence
from tutorsim.analysis.systems.panel import student_outcomes as students
from tutorsim.analysis.systems.panel import winning_roles_ties_ballots_shift_flip_chance as votes
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    HEAD_OUTCOMES,
    contrasts_of,
)
from tutorsim.analysis.systems.panel.panels_compared_and_ties_of_random_ballots import PanelsView
from tutorsim.analysis.systems.panel.self_support_labels_pivotality_margins import pivotality
from tutorsim.analysis.systems.system_view_opened_run_and_cost import NOTHING_ASKED, Asked, usage
from tutorsim.vocabularies import BALLOT_FORMATS, MAX_ROLES, PROTOCOLS

T = TypeVar("T")

# --- Beside published ----------------------------------------------------------------------------

PUBLISHED: Final = "tutorsim.analysis:data/published.toml"
"""Printed figures of the study."""

_UNLABELLED: Final = "nothing is known of what answered it."

_Place = tuple[str, str | None, str, str | None]
"""Quantity, benchmark, condition, role."""


@table(
    "published",
    "Beside the published study",
    secondary=("where",),
    label=lambda of: " ".join(WARNINGS[kind] for kind in of.source.kinds) or _UNLABELLED,
)
def beside_published(of: "Evidence") -> Iterator[Row]:
    """This run's figures, with 95 % intervals, and the printed ones. This run: {label} Shift, flip
    and fallback are per turn; wins are shares of the turns of a protocol; scores and tests are
    means over tutored episodes. The published fallback rate may mean ties, or ties that the order
    decided."""
    places = ("benchmark", "condition", "role")
    known = {(f.quantity, *map(f.cell.get, places)): f for f in of.published}
    for place, own in _figures(of):
        quantity, benchmark, condition, role = place
        found, turns = known.get(place), known.get(("turns", None, condition, None))
        if found is None or (quantity == "wins" and turns is None):
            continue
        yield {
            "quantity": spoken(quantity),
            "of": benchmark or role or "",
            "condition": condition,
            f"this run ({', '.join(of.source.kinds) or 'unknown'})": own,
            "published": _wins(found.value, turns.value)
            if turns and quantity == "wins"
            else number(found.value, digits=2),
            "where": found.where,
        }


def _figures(of: "Evidence") -> Iterator[tuple[_Place, str]]:
    """The run's figures that may be printed too, each as its cell."""
    for row in of.diagnostics:
        for quantity in ("shift", "flip", "tie_rate", "fallback_rate"):
            yield (quantity, None, row.protocol, None), estimate(getattr(row, quantity))
    turns = dict(of.winners.group_by("protocol").agg(pl.col("wins").sum()).iter_rows())
    for protocol, role, wins in of.winners.select("protocol", "role", "wins").iter_rows():
        yield ("wins", None, protocol, role), _wins(wins, turns[protocol])
    for gain in of.gains:
        for part in ("initial", "final", "gain"):
            place = (f"{gain.measure}_{part}", gain.benchmark, gain.condition, None)
            yield place, estimate(getattr(gain, part))


def _wins(part: float, whole: float) -> str:
    return f"{part:.15g} of {whole:.15g}, " + (f"{100 * part / whole:.0f} %" if whole else "–")


# --- Report inputs -------------------------------------------------------------------------------


def _once(compute: Callable[[Source], T]) -> cached_property[T]:
    """What is computed of the source, once, when it is asked for."""
    return cached_property(lambda evidence: compute(evidence.source))


def _held(rounds: Sequence[Rounds]) -> bool:
    """Whether any turn has such a round."""
    return any(len(part.turn) for part in rounds)


@dataclass(frozen=True)
class Evidence:
    """A source, and what `analysis` says of it."""

    source: Source
    asked: Asked = NOTHING_ASKED
    """Printed figures to stand beside the run's, prices, episodes to show."""
    brief: bool = False
    """Whether it is for a summary, which compares conditions on what comes first alone."""

    panels = _once(PanelsView)
    """The run's panels beside one another; false where it compares none."""
    diagnostics = _once(votes.diagnostics)
    pivotality = _once(pivotality)
    """How often each voter's ballot decides, by protocol."""
    chance = _once(votes.chance_baselines)
    noise = _once(noise_floor)
    """What re-asking alone changes; not estimable without a retest."""
    invariance = _once(format_invariance)
    """Ballots of one voter in two formats; not estimable where nobody was asked for two."""
    winners = _once(votes.winning_roles)
    success = _once(students.success_rates)
    rounds = _once(students.rounds)
    gains = _once(students.gains)
    successes = _once(students.successes)
    similarity = _once(role_collapse)
    """Condition → similarity of the drafts, `initial` and `final`."""
    candidates = _once(lambda source: source.votes.order)
    """Every candidate, in the fallback order."""
    unordered = _once(lambda source: not source.ordered)
    """Whether no order is logged: ballots from elsewhere without one."""
    unit = _once(lambda source: "vote" if source.run is None else "turn")
    """What a decision is called."""
    turns = _once(lambda source: turn_table(source).turns(ordered=source.ordered))
    """Every voting turn: `initial_leader`, `winner`, and `flip`, false without a first vote.
    Without a logged order, what several lead or win has no leader or winner."""
    tie_rounds = _once(lambda source: source.run is not None or _held(source.votes.tie))
    """Whether a tie may have gone to a round of its own; in a file there are some, or none."""
    once = _once(
        lambda source: source.run is None and not _held(source.votes.initial + source.votes.tie)
    )
    """Ballots from elsewhere that hold neither first votes nor tie rounds."""
    ballots = _once(lambda source: source.statuses.to_dicts())
    """Ballots by protocol, stage and status, in the table's order."""
    threshold = _once(lambda source: source.run.panel.success_threshold if source.run else None)
    """The study's success threshold; `None` without a run."""
    branched = _once(
        lambda source: (
            branch_counts(source.run.branch, source.episodes)
            if source.run and source.run.branch
            else None
        )
    )
    """What the run took up of another and continued; `None` unless it is a branch."""
    scores = _once(students.scores_by_turn)

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """Conditions against one another, in a report on every outcome."""
        return contrasts_of(self.source, HEAD_OUTCOMES if self.brief else students.OUTCOMES)

    @property
    def as_logged(self) -> str:
        """What the figures are of; a branch's are not all logged."""
        if self.source.run is None:
            return "As cast"
        return "Logged and re-simulated together" if self.branched else "As logged"

    @property
    def held(self) -> str:
        """Ends the caption of a chart of what happened."""
        return f"{self.as_logged}; nothing is recounted."

    @property
    def no_winner(self) -> str:
        """Why no turn has a winner, where none has."""
        if self.turns.is_empty():
            return "Nothing was put to a vote"
        return f"Counting left every {self.unit} tied, and no order is logged"

    @property
    def diagnostics_notes(self) -> str:
        """What is known of the floor of shift and flips, and of figures to set beside them."""
        absent = " The published study's figures for this table are not in the package."
        missing = self.source.run and self.published and self.published_table is None
        return votes.noise_told(self.noise) + (absent if missing else "")

    @property
    def published(self) -> tuple[Printed, ...]:
        """Printed figures to stand beside the run's; ballots from elsewhere have those given."""
        given, source = self.asked.published, self.source
        if given is None:
            return () if source.run is None else printed(PUBLISHED, source)
        return given if by_language_model(source) else ()

    @cached_property
    def published_table(self) -> Table | None:
        """The run's figures beside the printed ones; `None` where no cell is in both."""
        return beside_published(self)

    @cached_property
    def grid(self) -> dict[str, Any]:
        """How many episodes there are, and of what."""
        episodes = self.source.episodes
        tasks = {(e.benchmark, e.task_id) for e in episodes}
        return {
            "episodes": len(episodes),
            "complete": sum(e.status == "complete" for e in episodes),
            "failed": sum(e.status == "failed" for e in episodes),
            "tasks": dict(sorted(Counter(benchmark for benchmark, _ in tasks).items())),
            "personas": list(dict.fromkeys(e.persona for e in episodes)),
            "conditions": list(dict.fromkeys(e.condition for e in episodes)),
        }

    @property
    def voted(self) -> bool:
        """Whether any turn was put to a vote."""
        return self.turns.height > 0

    @cached_property
    def usage(self) -> dict[str, Any]:
        """Calls, tokens and what they cost."""
        calls = (call for episode in self.source.episodes for call in episode.calls)
        return usage(calls, self.asked.prices)

    @cached_property
    def recount(self) -> RecountResult:
        """All questions but that of orders, under the four protocols."""
        tables: tuple[RecountTable, ...] = ("policies", "electorates", "readings", "kept")
        return recount(self.source, targets=PROTOCOLS, tables=tables)

    @property
    def reading(self) -> TieReading:
        """What a tie means in this report: `fallback`, or `set` where no order is logged."""
        return "set" if self.unordered else "fallback"

    @cached_property
    def rule_rows(self) -> list[RuleRow]:
        """Every logged protocol under every target, nobody exempt, both readings of ties."""
        others = [target for target in TARGETS if target not in PROTOCOLS]
        further = recount(self.source, targets=others, exempt=(0,), tables=("kept",)).rules
        rows = [r for r in (*self.recount.rules, *further) if r.exempt == 0]
        return sorted(
            rows, key=lambda r: (BALLOT_FORMATS.index(r.logged_protocol), TARGETS.index(r.target))
        )

    @cached_property
    def rules(self) -> list[RuleRow]:
        """`rule_rows` with ties going to the fallback order, if there is one."""
        return [r for r in self.rule_rows if r.reading == self.reading]

    @cached_property
    def orders(self) -> OrderTable:
        """Every fallback order, all protocols together."""
        found = recount(self.source, targets=(), exempt=(0,), tables=("orders",))
        [table] = [t for t in found.orders if t.protocol is None]
        return table

    @cached_property
    def divergences(self) -> list[divergence.Divergence]:
        """Other paths: every role first in the order, other tie policies, other protocols.

        None where no order is logged that could be left.
        """
        if self.unordered:
            return []
        found = {
            f"{first} first in the order": divergence.under_order(self.source, (first,))
            for first in self.candidates[1:MAX_ROLES]
        }
        found["no tie round"] = divergence.without_tie_round(self.source)
        found["a lot instead of the order"] = divergence.with_random_ties(self.source)
        for target in PROTOCOLS:
            turns = self.recount.turns_under(target).filter(reading=self.reading)
            found[f"{target} voting"] = divergence.alternatives_of(turns)
        return [
            divergence.diverge(self.source, winners, question=name)
            for name, winners in found.items()
        ]

    @cached_property
    def thresholds(self) -> dict[float, list[Row]]:
        """Threshold → outcomes under it; the study's own is among them. Empty without a run."""
        if self.threshold is None:
            return {}
        tried = sorted({*THRESHOLDS, self.threshold})
        return {threshold: at_threshold(self.source, threshold) for threshold in tried}
