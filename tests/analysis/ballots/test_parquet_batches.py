"""Ballots read in pieces are the ballots read at once; what cannot be read so is told."""

from dataclasses import replace
from random import Random

import numpy as np
import polars as pl
import pytest

from tutorsim.analysis.ballots import parquet_batches
from tutorsim.analysis.ballots.parquet_batches import batched, whole_turns
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.ballots.table_to_arrays import read_votes, without_empty
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Rounds, joined
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import places_of
from tutorsim.ballot_reading_and_decisions import leaders, tally
from tutorsim.errors import BallotFileError, UsageError

NAMES = ("ann", "bob", "cyd")
PROTOCOLS = ("simple", "ranked", "cumulative", "approval")


def a_ballot(random, protocol, among):
    if random.random() < 0.1:
        return dict.fromkeys(among)
    if protocol == "ranked":
        return dict(zip(random.sample(among, len(among)), range(len(among)), strict=True))
    if protocol == "approval":
        return {c: random.randint(0, 1) for c in among}
    chosen = random.choice((*among, None))
    return {c: (25 if protocol == "cumulative" else 1) * (c == chosen) for c in among}


def turn_rows(random, episode, turn):
    protocol = PROTOCOLS[episode % 4]
    final = {v: a_ballot(random, protocol, NAMES) for v in NAMES}
    led = leaders(tally([{c: n or 0 for c, n in b.items()} for b in final.values()], NAMES))
    stages = {"vote_final": final}
    if random.random() < 0.7:
        stages = {"vote_initial": {v: a_ballot(random, protocol, NAMES) for v in NAMES}} | stages
    if len(led) > 1 and random.random() < 0.7:
        stages["tie_vote"] = {v: a_ballot(random, protocol, led) for v in NAMES}
    task = f"t{episode % 5}" if episode % 3 else " "
    cast = "repaired" if turn == 2 else "valid"
    return [
        (
            *(f"e{episode}", task, turn, stage, v, c, f"L{(i + episode) % 3}", mass, protocol),
            "abstained" if mass is None else cast,
        )
        for stage, ballots in stages.items()
        for v, ballot in ballots.items()
        for i, (c, mass) in enumerate(ballot.items())
    ]


COLUMNS = (
    *("episode_id", "task", "turn", "stage", "voter", "candidate", "label", "mass", "protocol"),
    "ballot_status",
)


def a_table(seed, episodes=24):
    random = Random(seed)
    rows = [row for e in range(episodes) for t in (1, 2) for row in turn_rows(random, e, t)]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def same(one, other):
    """Whether two readings are equal in every cell."""
    named = [one.turns.equals(other.turns), one.episodes.equals(other.episodes)]
    named += [getattr(one, n) == getattr(other, n) for n in ("order", "voters", "labels")]
    rounds = [
        (getattr(a, name), getattr(b, name))
        for mine, theirs in zip(one.stages, other.stages, strict=True)
        for a, b in zip(mine, theirs, strict=True)
        for name in Rounds.__dataclass_fields__
    ]
    return all(named) and all(np.array_equal(a, b) for a, b in rounds)


@pytest.mark.parametrize("together", [1, 9, 1_000])
@pytest.mark.parametrize("batch", [7, 60, 10_000])
def test_parts_together_are_the_whole(batch, together, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "BATCH", batch)
    monkeypatch.setattr(parquet_batches, "_LOOKED_AT", batch)
    table = a_table(batch)
    table.write_parquet(tmp_path / "b.parquet")
    batches = open_source(tmp_path / "b.parquet").batches
    parts = list(batches.parts(together=together, shown=True))
    assert not any(part.looked_at for part in parts)
    found = joined([part.votes for part in parts])
    assert same(found, without_empty(read_votes(table)))


def test_a_batch_is_read_when_it_is_asked_for(monkeypatch):
    """So what a slow reader holds does not grow with the file."""
    table, read = a_table(3), list[int]()
    collect = pl.LazyFrame.collect

    def noted(rows):
        found = collect(rows)
        read.append(found.height)
        return found

    monkeypatch.setattr(pl.LazyFrame, "collect", noted)
    batches = whole_turns(table.lazy(), 60)
    first = next(batches)
    assert (sum(read), first.height > 0) == (60, True)
    assert pl.concat([first, *batches]).drop("row").equals(table)


@pytest.mark.parametrize(
    "changed",
    [
        lambda t: pl.concat([t, t.head(1)]),
        lambda t: t.with_columns(voter=pl.lit(" ")),
        lambda t: t.with_columns(voter=pl.lit(None, pl.String)),
        lambda t: t.with_columns(episode_id=pl.lit("")),
        lambda t: pl.concat([t, t.tail(1).with_columns(stage=pl.lit("vote"))]),
        lambda t: t.with_columns(protocol=pl.lit("plurality")),
        lambda t: pl.concat([t, t.tail(1).with_columns(protocol=pl.lit("simple"))]),
        lambda t: t.with_columns(pl.col("mass").cast(pl.Float64)),
        lambda t: t.with_columns(pl.col("turn").cast(pl.String)),
        lambda t: t.drop("voter"),
        lambda t: t.clear(),
    ],
    ids=[
        *("rows apart", "blank voter", "no voter", "blank episode", "unknown stage", "synonym"),
        *("two protocols", "floats", "text", "no column", "no rows"),
    ],
)
def test_a_table_that_cannot_be_read_in_batches_says_so(changed, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "_LOOKED_AT", 20)
    changed(a_table(1)).write_parquet(tmp_path / "b.parquet")
    assert batched([tmp_path / "b.parquet"], Hints()) is None


def test_a_damaged_column_is_refused_when_the_file_is_opened(tmp_path):
    file = tmp_path / "b.parquet"
    a_table(1).write_parquet(file)
    data = file.read_bytes()
    labels = data.index(b"label") - 100  # a column's description stands behind its cells
    file.write_bytes(data[:labels] + bytes(20) + data[labels + 20 :])
    with pytest.raises(BallotFileError, match=r"b\.parquet cannot be read as ballots"):
        open_source(file)


def test_categories_are_read_in_batches(tmp_path):
    table = a_table(1).with_columns(pl.col("voter").cast(pl.Categorical))
    table.write_parquet(tmp_path / "b.parquet")
    assert batched([tmp_path / "b.parquet"], Hints()) is not None


@pytest.mark.parametrize("column", ["candidate", "voter"])
def test_names_that_differ_in_case_alone_are_asked_about(column, tmp_path):
    of_one = pl.when(pl.col("turn") == 1).then(pl.col(column).str.to_uppercase())
    table = a_table(1).with_columns(of_one.otherwise(column).alias(column))
    table.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(UsageError, match=f"The {column}s 'ANN', 'ann' differ in case"):
        batched([tmp_path / "b.parquet"], Hints())


def test_the_budget_of_rich_ballots_is_what_their_points_sum_to(tmp_path):
    table = a_table(1).filter(pl.col("protocol") == "simple")
    table = table.with_columns(protocol=pl.lit("rich"), points=10 * pl.col("mass"))
    table.write_parquet(tmp_path / "b.parquet")
    assert batched([tmp_path / "b.parquet"], Hints()).points == 10


def by_rows(path):
    """The same source by its rows alone."""
    found = open_source(path)
    return replace(found, batches=None, told=None)


def test_sound_ballots_are_opened_without_their_rows(tmp_path, monkeypatch):
    file = tmp_path / "votes.parquet"
    a_table(3).write_parquet(file)
    monkeypatch.setattr(parquet_batches, "BATCH", 100)
    found = open_source(file)
    assert same(found.votes, by_rows(file).votes)
    assert found.statuses.rows() == by_rows(file).statuses.rows()
    assert "ballots" not in vars(found)
    assert found.ballots.height == a_table(3).height
    assert (found.budget, found.name) == (25, "votes.parquet")
    assert places_of(found.votes)["task"].null_count() == 16


def test_turns_in_several_files_are_one_table(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "BATCH", 100)
    table = a_table(4)
    first = pl.col("episode_id").is_in([f"e{i}" for i in range(9)])
    table.filter(first).write_parquet(tmp_path / "a.parquet")
    table.filter(~first).write_parquet(tmp_path / "b.parquet")
    assert same(open_source(tmp_path).votes, by_rows(tmp_path).votes)


def first_of(table, status):
    return table.get_column("ballot_status").index_of(status)


@pytest.mark.parametrize(
    "changed",
    [
        lambda t: t.sort("voter", maintain_order=True),
        lambda t: t.with_columns(ballot_status=None),
        lambda t: t.filter(pl.int_range(pl.len()) != 30),
        lambda t: pl.concat([t, t.with_columns(episode_id="z" + pl.col("episode_id"))[:9]]),
        lambda t: t.with_columns(
            ballot_status=pl.when(pl.int_range(pl.len()) == first_of(t, "valid"))
            .then(pl.lit("repaired"))
            .otherwise("ballot_status")
        ),
    ],
    ids=[
        "rows apart",
        "no status",
        "a candidate left out",
        "more turns",
        "two statuses of a ballot",
    ],
)
def test_what_needs_a_look_is_read_row_by_row(changed, tmp_path, monkeypatch):
    """What a file says as Parquet it says as CSV, refusals too."""
    monkeypatch.setattr(parquet_batches, "BATCH", 100)
    table = changed(a_table(5))
    table.write_parquet(tmp_path / "b.parquet")
    table.write_csv(tmp_path / "b.csv")
    found, expected = (opened_or_refused(tmp_path / f"b.{form}") for form in ("parquet", "csv"))
    if isinstance(expected, str) or isinstance(found, str):
        assert str(found).replace("parquet", "csv") == expected
    else:
        assert same(found.votes, expected.votes)
        assert [n.replace("parquet", "csv") for n in found.notes] == list(expected.notes)
        for votes in (part.votes for part in open_source(tmp_path / "b.parquet").parts()):
            decided = [turn for rounds in votes.final for turn in rounds.turn.tolist()]
            assert sorted(decided) == [*range(votes.turns.height)]


def test_an_episode_in_two_files_is_read_row_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "BATCH", 100)
    table = a_table(6)
    first = pl.col("stage") == "vote_final"
    table.filter(first).write_parquet(tmp_path / "a.parquet")
    again = table.with_columns(voter=pl.col("voter") + "!").filter(first)
    again.write_parquet(tmp_path / "b.parquet")
    assert open_source(tmp_path).batches is None


def opened_or_refused(file):
    try:
        found = open_source(file)
        return found if found.votes else ""
    except BallotFileError as refused:
        return refused.what
