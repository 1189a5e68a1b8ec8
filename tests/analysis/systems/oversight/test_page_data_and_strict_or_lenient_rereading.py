import json

import pytest

from tests.analysis.made import tables_of
from tutorsim.analysis.systems.oversight.page_data_and_strict_or_lenient_rereading import reread
from tutorsim.analysis.systems.oversight.page_tables_and_first_sentence import recount
from tutorsim.errors import UsageError
from tutorsim.records.oversight import Labels, LeadLabels, OversightRecord


def test_the_standard_reading_of_every_played_item_is_its_log(played):
    for record in played.episodes:
        assert reread(record, "standard") == record


def test_a_strict_reader_never_labels_what_the_run_did_not_nor_otherwise(played):
    fewer = 0
    for record in played.episodes:
        if record.condition in ("self_consistency", "ensemble"):
            continue  # where voters drop out, another label can win
        label = reread(record, "strict").label
        fewer += label is None and record.label is not None
        assert label in (None, record.label)
    assert fewer > 0


def reply(guidance, text="{}"):
    fields = {"mistake_identified": True, "guidance_quality": guidance, "confidence": 0.5}
    return text.format(json.dumps({**fields, "reasoning": "It asks."}))


def said(agent, *raws):
    first = raws[0] if len(raws) == 2 else None
    return LeadLabels(
        agent=agent, raw=raws[-1], raw_first=first, attempts=len(raws), labels=None, confidence=None
    )


def item(*, gold=(1, 2), **fields):
    return OversightRecord(
        episode_id="mrbench.x.none.c", benchmark="mrbench", task_id="x", variant="none",
        condition="c", conversation="x", gold=Labels(mistake=gold[0], guidance=gold[1]), **fields,
    )  # fmt: skip


# What the lead replied first, and again → guidance under strict, standard and lenient readings.
HAND = [
    ((reply(2),), (2, 2, 2)),
    ((reply(2, "So: {}"),), (None, 2, 2)),
    ((reply("1"), reply(2)), (2, 2, 1)),
    ((reply("1"), reply("2")), (None, 2, 1)),
    (("no", "none"), (None, None, None)),
]


@pytest.mark.parametrize(("raws", "expected"), HAND)
def test_the_first_reply_that_a_reading_can_read_counts(raws, expected):
    record = item(lead=said("lead", *raws))
    for reading, guidance in zip(("strict", "standard", "lenient"), expected, strict=True):
        found = reread(record, reading)
        assert (found.label and found.label.guidance) == guidance
        assert found.unjudged == (guidance is None)
        assert found.scores["guidance"] == (guidance == 2)


def test_votes_are_counted_again_over_what_can_be_read():
    # standard: 0, 0, 2, so 0; strict reads the last two only: a tie, which guidance 0 wins by
    # the fallback order; with one more 2 it is 2.
    raws = [reply(0, "So: {}"), reply(0), reply(2)]
    record = item(alone=tuple(said(f"sample_{i}", raw) for i, raw in enumerate(raws)))
    assert reread(record, "standard").label == Labels(mistake=1, guidance=0)
    assert reread(record, "strict").label == Labels(mistake=1, guidance=0)
    more = item(alone=(*record.alone, said("sample_3", reply(2)), said("sample_4", reply(2))))
    assert reread(more, "standard").label == Labels(mistake=1, guidance=2)


@pytest.mark.costly
def test_a_recount_shows_every_reading_and_can_be_made_under_one(played):
    def tables(**changes):
        found = recount(played, {key: (value,) for key, value in changes.items()})
        return {name: table.data for name, table in tables_of(found).items()}

    logged, strict = tables(), tables(reading="strict")
    rows = {(r["condition"], r["reading"]): r for r in logged["readings"].iter_rows(named=True)}
    for condition in {condition for condition, _ in rows}:
        assert rows[condition, "standard"]["changed"] == 0
    assert rows["hpo", "strict"]["unjudged"] > rows["hpo", "standard"]["unjudged"]
    assert strict["readings"].equals(logged["readings"])
    lead = strict["aggregation"].filter(condition="hpo", rule="lead")
    assert lead["unjudged"][0] == rows["hpo", "strict"]["unjudged"]


def test_another_reading_is_refused_with_those_that_there_are(played):
    with pytest.raises(UsageError, match="reading=kind") as error:
        recount(played, {"reading": ("kind",)})
    assert "reading=strict|standard|lenient" in error.value.hint
