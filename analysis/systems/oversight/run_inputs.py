"""One oversight run as its documents read it: items by condition, scores, and settings."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.systems.oversight.debate_diagnostics import Calibration, calibration
from tutorsim.analysis.systems.oversight.delivered_guidance import (
    Predicted,
    audited_turns,
    predicted,
)
from tutorsim.analysis.systems.oversight.dialogue_intervals import Over
from tutorsim.analysis.systems.oversight.other_aggregations import (
    RULES,
    AdaptiveCurve,
    Aggregated,
    adaptive_curve,
    aggregated,
)
from tutorsim.analysis.systems.oversight.scored_items import (
    by_condition,
    complete,
    judged,
    labelled,
    relabelled,
)
from tutorsim.analysis.systems.oversight.scores_by_group import (
    Difference,
    Evaluation,
    Judged,
    differences,
    evaluate,
)
from tutorsim.errors import UsageError
from tutorsim.records.oversight import OversightRecord, gold_labels

__all__ = ["Evidence", "interval_text", "scored"]


class Evidence:
    """What is counted once and shown in several places.

    Args:
        records: The run's records, failed ones among them.
        seed: Of all draws.
        settings: The study's `[oversight]` settings that are not their default.
        over: What intervals draw.
    """

    def __init__(
        self,
        records: Sequence[OversightRecord],
        *,
        seed: int,
        settings: Mapping[str, Any],
        over: Over = "dialogues",
    ) -> None:
        self.records = records
        self.seed = seed
        self.settings = settings
        self.over: Over = over

    @cached_property
    def conditions(self) -> dict[str, list[OversightRecord]]:
        """Condition → its complete items."""
        return by_condition(complete(self.records))

    @cached_property
    def has_gold(self) -> bool:
        return bool(labelled(self.records))

    @property
    def is_audit(self) -> bool:
        return any(record.audited is not None for record in self.records)

    @cached_property
    def judged(self) -> dict[str, list[Judged]]:
        """Condition → its items with gold."""
        return {name: judged(records) for name, records in self.conditions.items()}

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """Condition → scores."""
        return evaluate(self.judged, seed=self.seed, over=self.over)

    @cached_property
    def official(self) -> dict[str, Evaluation]:
        """Condition → scores under the maps of the shared task, whatever the study's."""
        groups = {
            name: judged(records, gold=_official_gold) for name, records in self.conditions.items()
        }
        return evaluate(groups, seed=self.seed, over=self.over)

    @cached_property
    def differences(self) -> list[Difference]:
        """Paired differences of the headline between conditions."""
        return differences(self.judged, seed=self.seed)

    @cached_property
    def debated(self) -> dict[str, list[OversightRecord]]:
        """Condition → its items that were debated."""
        found = {
            name: [record for record in records if record.judge is not None]
            for name, records in self.conditions.items()
        }
        return {name: records for name, records in found.items() if records}

    @cached_property
    def aggregated(self) -> dict[str, list[dict[str, Aggregated]]]:
        """Condition → its debated items under every rule, in the order of `debated`."""
        found = {
            name: [aggregated(record) for record in records]
            for name, records in self.debated.items()
        }
        return {name: [one for one in rows if one is not None] for name, rows in found.items()}

    @cached_property
    def adaptive(self) -> AdaptiveCurve | None:
        """The adaptive debate at every threshold; `None` if quick labels were not logged."""
        return adaptive_curve(self.conditions.get("hpo", []))

    @cached_property
    def calibrations(self) -> dict[str, list[Calibration]]:
        """Condition → bins of the lead's confidence; empty where it states none."""
        return {name: calibration(records) for name, records in self.conditions.items()}

    @cached_property
    def predicted(self) -> list[tuple[str, Predicted]]:
        """Who labelled, and what each rule would have delivered."""
        found = []
        for condition, records in self.conditions.items():
            turns = audited_turns(records)
            rules = list(dict.fromkeys(rule for turn in turns for rule in turn.possible))
            found += [(condition, one) for one in predicted(turns, rules)]
        return found

    def under_rules(self, condition: str) -> dict[str, list[Judged]]:
        """Rule → debated items of a condition with gold, as the rule labels them."""
        records = self.debated[condition]
        gold = judged(records)
        rows = zip(records, self.aggregated[condition], strict=True)
        known = [row for record, row in rows if record.gold is not None]
        return {rule: relabelled(gold, [row[rule][:2] for row in known]) for rule in RULES}


def _official_gold(record: OversightRecord) -> Any:
    if not record.annotation:
        return None
    return gold_labels(record.annotation, mistake_map="lenient", guidance_map="plain")


def interval_text(estimate: Estimate | NotEstimable) -> str:
    """A number with its interval as a cell."""
    if isinstance(estimate, NotEstimable):
        return "–"
    text = f"{estimate.value:.3f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{estimate.low:.3f}, {estimate.high:.3f}]"


def scored(evidence: Evidence) -> dict[str, Evaluation]:
    """Scores by condition.

    Raises:
        UsageError: If no item has gold labels.
    """
    if not evidence.has_gold:
        raise UsageError(
            "The items of this run have no gold labels, so nobody can score them.",
            why="Files of replies to be judged, and audits of runs, come without annotations.",
            hint="Score a run on a labelled file: MRBench version 1 or 2, or the development set "
            "of version 3.",
        )
    return evidence.evaluations
