"""A table that is plain to see passes every check unchanged, and no other is let through."""

from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.drawn import drawn_ballot
from tutorsim.analysis.ballots import malformed_rows
from tutorsim.analysis.ballots.table_to_arrays import plain_budget
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.ballot_reading_and_decisions import leaders, tally
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import PROTOCOLS

pytestmark = pytest.mark.costly

FILE = Path("made.parquet")


def masses(random, protocol, among):
    return drawn_ballot(random, protocol, among, blank=0, points=5)


def turn_rows(random, episode):
    protocol, among = PROTOCOLS[episode % 4], ["a", "b", "c"][: random.choice([2, 3])]
    final = {v: masses(random, protocol, among) for v in "xyz"}
    led = leaders(tally(final.values(), among))
    stages = {"initial": {v: masses(random, protocol, among) for v in "xyz"}, "final": final}
    if len(led) > 1:
        stages["tie"] = {v: masses(random, protocol, list(led)) for v in "xyz"}
    return [
        [f"e{episode}", 1, stage, voter, candidate, mass, protocol]
        for stage, ballots in stages.items()
        for voter, ballot in ballots.items()
        for candidate, mass in ballot.items()
    ]


def damage(random, rows):
    """Something that may or may not be a mistake."""
    row = random.choice(rows)
    match random.choice(["none", "mass", "drop", "double", "protocol", "stage", "candidate"]):
        case "mass":
            row[5] = random.choice([None, -1, 0, 1, 2, 5, 6])
        case "drop":
            rows.remove(row)
        case "double":
            rows.append(list(row))
        case "protocol":
            row[6] = random.choice(PROTOCOLS)
        case "stage":
            row[2] = random.choice(["initial", "final", "tie", "vote_final"])
        case "candidate":
            row[4] = random.choice("abc")
        case _:
            random.shuffle(rows)


def columns(rows):
    names = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
    given_ = pl.DataFrame(rows, schema={n: BALLOTS_SCHEMA[n] for n in names}, orient="row")
    absent = [pl.lit(None, t).alias(n) for n, t in BALLOTS_SCHEMA.items() if n not in names]
    return given_.with_columns(absent).with_row_index("row", 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_what_is_plain_to_see_is_what_every_check_passes(seed):
    random = Random(seed)
    rows = [row for episode in range(4) for row in turn_rows(random, episode)]
    if seed % 4:
        damage(random, rows)
    frame = columns(rows)
    budget = plain_budget(frame, None)
    assert budget is not None or seed % 4
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(malformed_rows, "plain_budget", lambda *_: None)
        try:
            slow, points = malformed_rows.check_ballots(malformed_rows.FileRows(frame, FILE))
        except BallotFileError:
            assert budget is None
            return
    if budget is not None:
        fast, found = malformed_rows.check_ballots(malformed_rows.FileRows(frame, FILE))
        assert (found, fast.assumed) == (points, slow.assumed)
        kept = BALLOTS_SCHEMA.names()
        assert fast.frame.select(kept).equals(slow.frame.select(kept))


def test_a_stated_budget_is_held_to():
    frame = columns([["e", 1, "final", "x", c, m, "cumulative"] for c, m in (("a", 5), ("b", 0))])
    assert [plain_budget(frame, budget) for budget in (None, 5, 6)] == [5, 5, None]
