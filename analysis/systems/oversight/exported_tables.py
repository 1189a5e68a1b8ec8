"""Tables of an oversight run for other programs."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import polars as pl

from tutorsim.analysis.runs.exported_tables import PLACE, SHARED_TABLES, Table, place_of
from tutorsim.records import RunRecord
from tutorsim.records.oversight import Labels, OversightRecord

Row = tuple[Any, ...]

EPISODES_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "repeat": pl.Int64(),
        "status": pl.String(),  # complete or failed
        "conversation": pl.String(),  # items of one are one cluster
        "tutor": pl.String(),
        "mistake": pl.Int64(),  # null: unjudged or failed; so is guidance
        "guidance": pl.Int64(),
        "unjudged": pl.Boolean(),
        "gold_mistake": pl.Int64(),  # null without gold, and so are the next three
        "gold_guidance": pl.Int64(),
        "mistake_correct": pl.Boolean(),
        "guidance_correct": pl.Boolean(),
        "confidence": pl.Float64(),  # of the lead; null where it states none
        "skipped": pl.Boolean(),  # the debate was skipped
        "audited_episode": pl.String(),  # null unless the item is of an audit; so the next four
        "audited_turn": pl.Int64(),
        "audited_role": pl.String(),
        "audited_delivered": pl.Boolean(),
        "audited_condition": pl.String(),
        "calls": pl.Int64(),
    }
)
"""One row per item and condition."""

OPINIONS_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "agent": pl.String(),
        "mistake": pl.Int64(),  # null: could not be read; so is guidance
        "guidance": pl.Int64(),
        "confidence": pl.Float64(),  # null for agents that state none
    }
)
"""Labels held at the end of a debate, one row per agent."""

LEAD_EXAMPLES_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "conversation": pl.String(),
        "split": pl.String(),  # train or test, by the dialogue
        "system": pl.String(),
        "user": pl.String(),
        "gold": pl.String(),  # the answer as the JSON object that the lead is asked for
    }
)
"""What the lead was asked, and the answer that gold labels give: what a tuned lead learns from."""

_TEST_SHARE: Final = 0.2


def split_of(dialogue: str) -> str:
    """`train` or `test`: about a fifth of the dialogues, whatever else is in the file.

    Drawn by the text: one dialogue under two ids is in one split.
    """
    drawn = int.from_bytes(sha256(f"split\x1f{dialogue}".encode()).digest()[:8]) / 2**64
    return "test" if drawn < _TEST_SHARE else "train"


def _pair(labels: Labels | None) -> Row:
    return (None, None) if labels is None else (labels.mistake, labels.guidance)


def _episode_rows(record: OversightRecord, run: RunRecord) -> Iterator[Row]:
    audited = record.audited
    named: Row = (None,) * 5
    if audited is not None:
        named = (audited.episode, audited.turn, audited.role, audited.delivered, audited.condition)
    yield (
        *place_of(record, run),
        record.repeat,
        record.status,
        record.conversation,
        record.tutor,
        *_pair(record.label),
        record.unjudged,
        *_pair(record.gold),
        record.scores.get("mistake"),
        record.scores.get("guidance"),
        record.lead.confidence if record.lead else None,
        record.skipped,
        *named,
        len(record.calls),
    )


def _opinion_rows(record: OversightRecord, run: RunRecord) -> Iterator[Row]:
    for opinion in record.opinions if record.status == "complete" else ():
        yield (
            *place_of(record, run),
            opinion.agent,
            *_pair(opinion.labels),
            opinion.confidence,
        )


def _example_rows(record: OversightRecord, run: RunRecord) -> Iterator[Row]:
    if record.gold is None or record.lead_prompt is None or record.status != "complete":
        return
    yield (
        *place_of(record, run),
        record.conversation,
        split_of(record.dialogue_text),
        record.lead_prompt.system,
        record.lead_prompt.user,
        json.dumps(_answer(record.gold)),
    )


def _answer(gold: Labels) -> dict[str, Any]:
    """The object that a lead with the gold labels would reply."""
    seen = "points at the mistake" if gold.mistake else "passes over the mistake"
    helped = ("gives no help or the solution", "helps in part", "leads to a next step")
    return {
        "mistake_identified": bool(gold.mistake),
        "guidance_quality": gold.guidance,
        "confidence": 1.0,
        "reasoning": f"The reply {seen} and {helped[gold.guidance]}.",
    }


TABLES: Final[dict[str, Table]] = {
    "episodes": Table(EPISODES_SCHEMA, _episode_rows),
    "opinions": Table(OPINIONS_SCHEMA, _opinion_rows),
    "lead_examples": Table(LEAD_EXAMPLES_SCHEMA, _example_rows),
    **SHARED_TABLES,
}
"""Every table of an oversight run by name."""
