"""What an oversight run exports: its tables, examples that a lead is tuned by, recounted labels."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from tutorsim.analysis.runs.exported_tables import (
    SHARED_TABLES,
    Parts,
    Table,
    real,
    table_of,
    text,
    whole,
    yes,
)
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    Aggregated,
    aggregated,
)
from tutorsim.analysis.systems.oversight.label_accuracy import pair_of
from tutorsim.analysis.systems.oversight.page_data_and_strict_or_lenient_rereading import reread
from tutorsim.analysis.systems.oversight.page_tables_and_first_sentence import chosen
from tutorsim.records.oversight import LabelName, OversightRecord
from tutorsim.vocabularies import READINGS, Reading

_TEST_SHARE: Final = 0.2


def split_of(dialogue: str) -> str:
    """`train` or `test`: about a fifth of the dialogues, whatever else is in the file.

    Drawn by the text: one dialogue under two ids is in one split.
    """
    drawn = int.from_bytes(sha256(f"split\x1f{dialogue}".encode()).digest()[:8]) / 2**64
    return "test" if drawn < _TEST_SHARE else "train"


def _examples(record: OversightRecord) -> list[Parts]:
    whole = record.gold is not None and record.lead_prompt is not None
    return [(record,)] if whole and record.status == "complete" else []


def _lead_answer(record: OversightRecord) -> str:
    """The object that a lead with the gold labels would reply."""
    gold = record.gold
    assert gold is not None
    seen = "points at the mistake" if gold.mistake else "passes over the mistake"
    helped = ("gives no help or the solution", "helps in part", "leads to a next step")
    said = {
        "mistake_identified": bool(gold.mistake),
        "guidance_quality": gold.guidance,
        "confidence": 1.0,
        "reasoning": f"The reply {seen} and {helped[gold.guidance]}.",
    }
    return json.dumps(said)


TABLES: Final[dict[str, Table]] = {
    "episodes": table_of(
        repeat=whole(),
        status=text(),  # complete or failed
        conversation=text(),  # items of one are one cluster
        tutor=text(),
        mistake=whole("label.mistake"),  # null: unjudged or failed; so is guidance
        guidance=whole("label.guidance"),
        unjudged=yes(),
        gold_mistake=whole("gold.mistake"),  # null without gold, as are the next three
        gold_guidance=whole("gold.guidance"),
        mistake_correct=yes(lambda record: record.scores.get("mistake")),
        guidance_correct=yes(lambda record: record.scores.get("guidance")),
        confidence=real("lead.confidence"),  # null where it states none
        skipped=yes(),  # the debate was skipped
        audited_episode=text("audited.episode"),  # null unless of an audit; so the next 4
        audited_turn=whole("audited.turn"),
        audited_role=text("audited.role"),
        audited_delivered=yes("audited.delivered"),
        audited_condition=text("audited.condition"),
        calls=whole(lambda record: len(record.calls)),
    ),
    "opinions": table_of(
        lambda record: (
            (record, one, one.labels) for one in record.opinions if record.status == "complete"
        ),
        ("record", "opinion", "labels"),
        agent=text("opinion.agent"),
        mistake=whole(),  # null: could not be read; so is guidance
        guidance=whole(),
        confidence=real("opinion.confidence"),  # null where none is stated
    ),
    "lead_examples": table_of(
        _examples,
        conversation=text(),
        split=text(lambda record: split_of(record.dialogue_text)),  # train or test, by the dialogue
        system=text("lead_prompt.system"),
        user=text("lead_prompt.user"),
        gold=text(_lead_answer),  # the answer as the JSON object that the lead is asked for
    ),
    **SHARED_TABLES,
}
"""Every table of an oversight run by name: items, labels held at the end of a debate by agent, and
what a tuned lead learns from: what the lead was asked, and the answer that gold labels give."""


def outcomes_under(changes: Mapping[str, tuple[str, ...]]) -> Table:
    """The table of each item's labels under each reading and each way to put opinions together.

    `changes`: as `recount` takes them; a reading leaves out the others. Raises `UsageError` if
    another setting or value is given.
    """
    reading = chosen(changes).get("reading")
    readings: Sequence[Reading] = (reading,) if reading else READINGS

    def came(record: OversightRecord) -> Iterator[Parts]:
        for name in readings if record.status == "complete" else ():
            read = record if name == "standard" else reread(record, name)
            for rule, labels, confidence in _labels_of(read):
                yield record, name, rule, confidence, labels

    return table_of(
        came,
        ("record", "reading", "rule", "confidence", "labels"),
        repeat=whole("record.repeat"),
        reading=text("reading"),  # how the logged replies are read
        rule=text("rule"),  # as_run, quick (no debate), or another way to
        mistake=whole(),  # put the opinions together; null: no label; so is guidance
        guidance=whole(),
        ties=whole(),  # labels, of the two, that were tied
        confidence=real("confidence"),  # of who labels, under as_run and quick
        mistake_correct=yes(_right("mistake")),  # null without gold; without a label false
        guidance_correct=yes(_right("guidance")),
    )


def _right(label: LabelName) -> Callable[..., bool | None]:
    def right(record: OversightRecord, *parts: Any) -> bool | None:
        gold = record.gold
        return None if gold is None else getattr(parts[-1], label) == getattr(gold, label)

    return right


def _labels_of(record: OversightRecord) -> Iterator[tuple[str, Aggregated, float | None]]:
    """Rule → both labels and their ties, and the confidence of who states them."""
    lead, quick = record.lead, record.quick
    stated = lead or quick
    confidence = stated.confidence if stated else None
    yield "as_run", Aggregated(*pair_of(record.label), 0), confidence
    if quick and not record.skipped:
        yield "quick", Aggregated(*pair_of(quick.labels), 0), quick.confidence
    others = aggregated(record) if record.judge is not None else None
    for rule, labels in (others or {}).items():
        if rule != "lead":
            yield rule, labels, None
