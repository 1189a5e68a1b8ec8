"""Counts of how turns end, held to the plain rule."""

from random import Random

import polars as pl

from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.recount.decided_turns_of_one_format_and_outcome_counts import (
    Ended,
    RecountCounts,
    turn_groups,
)
from tutorsim.analysis.recount.winners_under_other_orders_ties_electorates_readings import (
    ended_counts,
)
from tutorsim.ballot_reading_and_decisions import decide, leaders
from tutorsim.vocabularies import PROTOCOLS

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
COLUMNS = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]

Cells = tuple[str, int, str, str, str, str, int | None]


def ballots_frame(rows):
    schema = {name: pl.String() for name in COLUMNS} | {"turn": pl.Int64(), "mass": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def random_turns(seed, turns):
    """Rows, and for each turn its masses in the final vote and in a tie round or none."""
    random = Random(seed)
    rows: list[Cells] = []
    asked: list[dict[str, object]] = []
    for i in range(turns):
        names = random.sample(ROLES, random.randint(1, 4))
        candidates = [c for c in ROLES if c in names]
        final = [_ballot(random, candidates) for _ in range(random.randint(1, 4))]
        tied = decide(final, candidates, order=ROLES).tied_in_vote
        again = [_ballot(random, tied) for _ in final] if tied and random.random() < 0.7 else None
        episode, protocol = f"episode {i // 2}", random.choice(PROTOCOLS)
        place = (episode, 1 + i % 2)
        rows += _rows(place, "vote_final", protocol, candidates, final)
        rows += _rows(place, "tie_vote", protocol, tied, again or [])
        asked.append(
            {"key": (*place, protocol), "final": final, "again": again, "candidates": candidates}
        )
    return rows, asked


def _ballot(random, candidates):
    if random.random() < 0.15:
        return {}
    return {c: random.randint(0, 2) for c in candidates}


def _rows(place, stage, protocol, candidates, ballots):
    return [
        (*place, stage, protocol, f"voter {v}", c, ballot.get(c) if ballot else None)
        for v, ballot in enumerate(ballots)
        for c in candidates
    ]


def counted(table):
    """As a recount counts them."""
    votes = read_votes(table, fallback_order=ROLES)
    groups = turn_groups(votes, None, order=ROLES, own_order=ROLES)
    return sum((RecountCounts(ended=ended_counts(group)) for group in groups), RecountCounts())


def test_turns_end_as_the_plain_decisions_say():
    rows, asked = random_turns(6, 300)
    expected: dict[Ended, int] = {}
    for turn in asked:
        plain = decide(turn["final"], turn["candidates"], order=ROLES, tie_round=turn["again"])  # type: ignore[arg-type]
        protocol = turn["key"][2]  # type: ignore[index]
        led = leaders(plain.tallies)
        ended = Ended(protocol, led, plain.undecided, plain.winner)
        expected[ended] = expected.get(ended, 0) + 1
    assert counted(ballots_frame(rows)).ended == expected


def test_counts_add_up_over_partitions():
    rows, _ = random_turns(7, 200)
    table = ballots_frame(rows)
    parts = [
        counted(table.filter(pl.col("episode_id").str.slice(-1).is_in(list(digits))))
        for digits in ("012", "3456", "789")
    ]
    total = parts[0] + parts[1] + parts[2]
    assert total == counted(table)
    assert total.turns == 200
    assert RecountCounts() + total == total


def test_a_table_without_ballots_has_no_turns():
    assert counted(ballots_frame([])) == RecountCounts()
