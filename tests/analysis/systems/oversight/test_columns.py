import json

import polars as pl
import pytest

from tutorsim.analysis.systems.oversight.exported_tables_lead_examples_recounted_labels import (
    TABLES,
    split_of,
)
from tutorsim.records.oversight import LABELS
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import VOTING_CONDITIONS
from tutorsim.systems.oversight.reply_reading import read_lead


@pytest.fixture(scope="module")
def frames(played):
    return {name: table.frame(played.episodes, played.head) for name, table in TABLES.items()}


def test_only_votes_that_decided_are_in_the_ballots(frames):
    ballots = frames["ballots"]
    assert set(ballots["condition"]) == set(VOTING_CONDITIONS)
    assert set(ballots["stage"]) == {"vote_final"}
    voters = {"self_consistency": 5, "ensemble": 3}
    for condition, candidates in (("self_consistency", 5), ("ensemble", 5)):
        rows = ballots.filter(condition=condition)
        assert rows.height == 16 * voters[condition] * candidates


def test_opinions_are_diagnostic(frames):
    diagnostic = frames["diagnostic_ballots"]
    assert set(diagnostic["stage"]) == {"vote_opinion"}
    assert not set(diagnostic["condition"]) & {*VOTING_CONDITIONS, "single"}
    turns = diagnostic.filter(condition="hpo").group_by("turn").agg(pl.col("voter").n_unique())
    assert dict(turns.iter_rows()) == {1: 5, 2: 5}


def test_an_item_has_one_row_with_its_labels_and_gold(played, frames):
    episodes = frames["episodes"]
    assert episodes.height == len(played.episodes)
    judged = episodes.filter(pl.col("unjudged").not_())
    right = judged["guidance"] == judged["gold_guidance"]
    assert right.to_list() == judged["guidance_correct"].to_list()


def test_examples_for_a_lead_are_what_it_was_asked_and_the_gold_answer(played, frames):
    examples = frames["lead_examples"]
    assert not set(examples["condition"]) & set(VOTING_CONDITIONS)
    by_name = {record.episode_id: record for record in played.episodes}
    for row in examples.iter_rows(named=True):
        record = by_name[row["episode_id"]]
        assert read_lead(row["gold"]).labels == record.gold
        assert "mistake_identified" in row["user"]
        assert json.dumps(record.annotation) not in row["user"]


def test_a_dialogue_is_in_one_split_only(frames):
    splits = frames["lead_examples"].group_by("conversation").agg(pl.col("split").n_unique())
    assert splits["split"].max() == 1
    drawn = [split_of(f"dialogue {i}") for i in range(1000)]
    assert 150 < drawn.count("test") < 250


def test_every_label_has_a_turn_of_its_own(played):
    for record in played.episodes:
        if record.condition in VOTING_CONDITIONS and not record.unjudged:
            assert [turn.turn for turn in record.turns] == [1, 2]
            assert len(record.turns) == len(LABELS)
