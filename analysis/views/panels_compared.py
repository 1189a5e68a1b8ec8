"""Panels of one run beside one another, as tables that every view draws."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, get_args

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.metrics.ties_under_random_ballots import DRAWS
from tutorsim.analysis.outcomes.panels_compared import (
    MEASURES,
    Measure,
    PanelContrast,
    PanelOutcome,
    PanelVotes,
    VoteMeasure,
    panel_contrasts,
    panel_outcomes,
    panel_votes,
)
from tutorsim.analysis.runs.run_panels import makeup_words, panels_of
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, to_json
from tutorsim.analysis.views.cells import Table, estimate, part_of, plain, table
from tutorsim.analysis.views.condition_contrasts import chance_words, p_words
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS

__all__ = ["PanelsView", "certain_table"]

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
_OF_TURNS: Final[dict[Measure, str]] = dict.fromkeys(_VOTES, "; shares of the turns of a pair")
_BY_CHANCE: Final = (
    "By chance: every voter draws its ballot uniformly from all that the protocol allows, "
    f"independently; counted exactly, or, marked ~, from {DRAWS:,} drawn votes (standard error at "
    "most 0.0025). Sizes differ by chance alone: look at a share beside its chance first."
)


@dataclass(frozen=True)
class PanelsView:
    """What a run that compares panels says of them, each thing computed once."""

    source: Source
    seed: int = 0

    @cached_property
    def votes(self) -> list[PanelVotes]:
        """Each protocol and panel: ties, fallback and flips beside chance."""
        return panel_votes(self.source)

    @cached_property
    def outcomes(self) -> list[PanelOutcome]:
        """Each condition and panel: what became of the students."""
        return panel_outcomes(self.source)

    @cached_property
    def contrasts(self) -> list[PanelContrast]:
        """Every panel against the study's first."""
        return panel_contrasts(self.source, seed=self.seed)

    def __bool__(self) -> bool:
        """Whether the run compares panels at all."""
        return bool(panels_of(self.source.run))

    def words(self) -> str:
        """Which differences between panels are beyond chance."""
        return chance_words(self.contrasts, _told, _measured, between="panels", largest=1)

    def tables(self) -> tuple[Table, ...]:
        """Who sits where, how each panel voted, what became of its students, and contrasts."""
        found = (
            self.roster_table(),
            *(self._votes_table(measure) for measure in _VOTES),
            self.outcomes_table(),
            *(self.contrast_table(measure) for measure in MEASURES),
        )
        return tuple(made for made in found if made is not None)

    def to_json(self) -> dict[str, object]:
        """The same as values."""
        return {
            "panels": {n: m.model_dump(mode="json") for n, m in panels_of(self.source.run).items()},
            "votes": to_json(self.votes),
            "outcomes": to_json(self.outcomes),
            "contrasts": to_json(self.contrasts),
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
        rows = [row for row in self.contrasts if row.measure == measure]
        several = len({row.benchmark for row in rows}) > 1
        return table(
            f"panel-contrasts-{measure}",
            f"{_NAMES[measure].capitalize()}: one panel against another",
            "Mean difference [95 % interval over tasks] to the study's first panel, paired on task "
            f"and persona{_OF_TURNS.get(measure, '')}. First attempts are drawn separately in each "
            "episode. p: signs flipped by task, exact unless marked ~, with Holm's correction "
            f"over all {len(self.contrasts)} contrasts of panels. Detectable: the least mean "
            "difference that so many tasks with this spread would show with 80 % power.",
            [
                *(("benchmark",) if several else ()),
                *("condition", "difference of", "pairs", "difference", "p", "detectable"),
            ],
            [
                (
                    *((row.benchmark,) if several else ()),
                    *(
                        row.condition,
                        f"{row.second} − {row.first}",
                        getattr(row.difference, "n", 0),
                    ),
                    *(estimate(row.difference, signed=True), p_words(row), plain(row.detectable)),
                )
                for row in rows
            ],
        )


def certain_table(source: Source, per_turn: pl.DataFrame) -> Table | None:
    """Turns of each panel whose winner under another protocol the ballots settle.

    Args:
        source: A run that compares panels.
        per_turn: A recount's turns under the four protocols, nobody exempt, one reading of ties.
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
    return f"{'' if row.chance.exact else '~'}{row.chance.share(measure):.3f}"


def _told(row: PanelContrast) -> str:
    value = getattr(row.difference, "value", 0.0)
    return f"{row.second} − {row.first} {value:+.2f} {_measured(row)}".replace("-", "−")


def _measured(row: PanelContrast) -> str:
    return f"in {_NAMES[row.measure]} ({row.condition})"
