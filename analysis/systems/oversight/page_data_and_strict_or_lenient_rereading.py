"""What an oversight run's pages are counted from: its items, and what several tables share.

The logged replies are read again here, more strictly or more leniently: exact, and without a call.
The first reply that can be read under a reading counts. One that the run could read and a strict
reader cannot would have been asked for again; nobody recorded that, so it has no labels.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from tutorsim.analysis.pages.numbers_printed_in_studies import printed
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import Contrast
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    AdaptiveCurve,
    Calibration,
    adaptive_curve,
    calibration,
)
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    Predicted,
    audited_turns,
    predicted,
)
from tutorsim.analysis.systems.oversight.label_accuracy import (
    Evaluation,
    Over,
    baselines,
    by_condition,
    by_text,
    complete,
    differences,
    evaluate,
    judged,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.ballot_reading_and_decisions import decide
from tutorsim.records import SystemSettings
from tutorsim.records.oversight import (
    CANDIDATES,
    LABELS,
    Labels,
    LeadLabels,
    OversightRecord,
    Spoken,
    right_labels,
)
from tutorsim.systems.oversight.reply_reading import (
    read_judgment,
    read_lead,
    read_stress,
    read_thesis,
    salvage_thesis,
)
from tutorsim.vocabularies import Reading

PUBLISHED: Final = "tutorsim.analysis:data/oversight.toml"


class Evidence:
    """A run's items, and what is counted of them once and shown in several places.

    `over`: what intervals are over.
    """

    def __init__(
        self, run: SystemRun, over: Over = "dialogues", reading: Reading = "standard"
    ) -> None:
        study = run.head.study
        assert isinstance(study, SystemSettings)
        self.run, self.over, self.seed = run, over, study.seed
        self.beside = printed(PUBLISHED, run.head)
        """Printed figures to stand beside the run's."""
        self.settings: Mapping[str, Any] = study.settings.get("oversight", {})
        self.records = by_text(run.episodes)
        if reading != "standard":
            self.records = [reread(record, reading) for record in self.records]
        self.conditions = by_condition(complete(self.records))
        self.judged = {name: judged(records) for name, records in self.conditions.items()}
        self.has_gold = any(self.judged.values())

    def printed(self, quantity: str, *where: str, **cell: str) -> float | None:
        """The first figure of exactly this cell in any of these places; `None` if none stands
        beside the run's."""
        known = {
            one.where: one.value
            for one in self.beside
            if (one.quantity, one.cell) == (quantity, cell)
        }
        return next((known[place] for place in where if place in known), None)

    @cached_property
    def scores(self) -> dict[str, Evaluation]:
        """Condition → scores."""
        return evaluate(self.judged, over=self.over)

    @cached_property
    def trivial(self) -> dict[str, Evaluation]:
        """Trivial baseline → its scores on the gold of the condition with most items."""
        return baselines(max(self.judged.values(), key=len, default=[]))

    @cached_property
    def differences(self) -> list[Contrast]:
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


# --- Readings of replies -------------------------------------------------------------------------

S = TypeVar("S", bound=Spoken)


def reread(record: OversightRecord, reading: Reading) -> OversightRecord:
    """An item with the labels that its logged replies have under a reading.

    Prompts stay as they were: what an agent read of another's reply is its text. The `standard`
    reading gives the item as logged; ballots stay as logged under every reading.
    """
    if record.status != "complete":
        return record
    label = reread_label(record, reading)
    sides = tuple(dict.fromkeys(message.agent for message in record.messages))
    thesis, salvage = (partial(how, reading=reading) for how in (read_thesis, salvage_thesis))
    judged = partial(read_judgment, sides=sides, reading=reading)
    judge, swapped = (
        said and _again(said, ("winner", "labels", "confidence"), judged)
        for said in (record.judge, record.judge_swapped)
    )
    stress = partial(read_stress, reading=reading)
    changed = {
        "quick": record.quick and _lead(record.quick, reading),
        "messages": tuple(_again(said, ("labels",), thesis, salvage) for said in record.messages),
        "judge": judge,
        "judge_swapped": swapped,
        "stress": record.stress and _again(record.stress, ("labels", "severity"), stress),
        "lead": record.lead and _lead(record.lead, reading),
        "alone": tuple(_lead(said, reading) for said in record.alone),
        "label": label,
        "unjudged": label is None,
        "scores": right_labels(label, record.gold),
    }
    return record.model_copy(update=changed)


def reread_label(record: OversightRecord, reading: Reading) -> Labels | None:
    """The outcome of a complete item under a reading; `None`: unjudged."""
    if record.alone:
        return _voted([_lead(said, reading).labels for said in record.alone])
    said = record.lead or record.quick  # a skipped debate ended with the quick labels
    return None if said is None else _lead(said, reading).labels


def _lead(said: LeadLabels, reading: Reading) -> LeadLabels:
    read = partial(read_lead, reading=reading)
    return _again(said, ("labels", "confidence"), read, partial(read, attempt=said.attempts))


def _again(
    said: S,
    names: Sequence[str],
    read: Callable[[str], Any],
    salvage: Callable[[str], Any] = lambda reply: None,
) -> S:
    """What an agent said, with the fields of these names as the first readable reply states them.

    `salvage`: reads what can be read of the last reply, where none is readable as a whole.
    """
    first = None if said.raw_first is None else read(said.raw_first)
    found = first or read(said.raw) or salvage(said.raw)
    return said.model_copy(update={name: found and getattr(found, name) for name in names})


def _voted(said: Sequence[Labels | None]) -> Labels | None:
    """The majority per label; `None` if no reply can be read."""
    votes = [labels for labels in said if labels is not None]
    if not votes:
        return None
    found = {}
    for name in LABELS:
        masses = [{f"{name}_{getattr(labels, name)}": 1} for labels in votes]
        won = decide(masses, CANDIDATES[name], order=CANDIDATES[name]).winner
        found[name] = int(won.rpartition("_")[2])
    return Labels.model_validate(found)
