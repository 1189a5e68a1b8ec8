"""What an oversight run's pages are counted from: its items, and what several tables share."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tutorsim.analysis.systems.oversight.audit import (
    Predicted,
    audited_turns,
    predicted,
)
from tutorsim.analysis.systems.oversight.effect_of_debate import (
    AdaptiveCurve,
    Calibration,
    adaptive_curve,
    calibration,
)
from tutorsim.analysis.systems.oversight.reread_replies import reread
from tutorsim.analysis.systems.oversight.scores import (
    Difference,
    Evaluation,
    Over,
    by_condition,
    by_text,
    complete,
    differences,
    evaluate,
    judged,
)
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records import SystemSettings
from tutorsim.vocabularies import Reading


class Evidence:
    """A run's items, and what is counted of them once and shown in several places.

    Args:
        run: The run.
        over: What intervals are over.
        reading: How the logged replies are read.
    """

    def __init__(
        self, run: SystemRun, over: Over = "dialogues", reading: Reading = "standard"
    ) -> None:
        study = run.head.study
        assert isinstance(study, SystemSettings)
        self.run, self.over, self.seed = run, over, study.seed
        self.settings: Mapping[str, Any] = study.settings.get("oversight", {})
        self.records = by_text(run.episodes)
        if reading != "standard":
            self.records = [reread(record, reading) for record in self.records]
        self.conditions = by_condition(complete(self.records))
        self.judged = {name: judged(records) for name, records in self.conditions.items()}
        self.has_gold = any(self.judged.values())

    @cached_property
    def scores(self) -> dict[str, Evaluation]:
        """Condition → scores."""
        return evaluate(self.judged, over=self.over)

    @cached_property
    def differences(self) -> list[Difference]:
        """Paired differences of the headline between conditions."""
        return differences(self.judged, seed=self.seed)

    @cached_property
    def adaptive(self) -> AdaptiveCurve | None:
        """The adaptive debate at every threshold; `None` if quick labels were not logged."""
        return adaptive_curve(self.conditions.get("hpo", []))

    @cached_property
    def calibrations(self) -> list[tuple[str, Calibration]]:
        """Condition and bin of the lead's confidence."""
        return [(name, one) for name, rs in self.conditions.items() for one in calibration(rs)]

    @cached_property
    def predicted(self) -> list[tuple[str, Predicted]]:
        """Who labelled, and what each rule would have delivered."""
        found = []
        for condition, records in self.conditions.items():
            turns = audited_turns(records)
            rules = list(dict.fromkeys(rule for turn in turns for rule in turn.possible))
            found += [(condition, one) for one in predicted(turns, rules)]
        return found
