from pathlib import Path
from random import Random

import polars as pl
import pytest

from tutorsim.analysis.ballots.malformed_rows import FileRows, check_ballots, notes_together
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import PROTOCOLS


def columns(protocol, masses):
    """One ballot of one voter, as `typed_columns` gives it."""
    n = len(masses)
    given = {
        "episode_id": ["e"] * n,
        "turn": [1] * n,
        "stage": ["final"] * n,
        "voter": ["v"] * n,
        "candidate": [f"c{i}" for i in range(n)],
        "mass": masses,
        "protocol": [protocol] * n,
    }
    frame = pl.DataFrame(given, schema_overrides={"mass": pl.Int64})
    absent = [pl.lit(None, t).alias(c) for c, t in BALLOTS_SCHEMA.items() if c not in given]
    return frame.with_columns(absent).with_row_index("row", 1)


def checked(frame, budget=None):
    """The ballots of a frame, and their budget."""
    rows, found = check_ballots(FileRows(frame, Path("b.csv")), budget=budget)
    return rows.frame, found


def by_hand(protocol, masses, budget):
    """`valid`, `abstained`, or nothing where the masses are no ballot: the rules one by one."""
    given = [mass for mass in masses if mass is not None]
    if not given:
        return "abstained"
    if protocol == "ranked":  # those left out stand below, whether or not places count them
        named = len(given)
        wholes = [list(range(top - named + 1, top + 1)) for top in (named - 1, len(masses) - 1)]
        return "valid" if sorted(given) in wholes else None
    if len(given) < len(masses) or min(given) < 0:
        return None
    if protocol in ("simple", "cumulative") and sum(given) == 0:
        return "abstained"
    makes = {
        "simple": sorted(given) == [0] * (len(given) - 1) + [1],
        "cumulative": sum(given) == budget,
        "approval": max(given) <= 1,
    }
    return "valid" if makes[protocol] else None


@pytest.mark.costly
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_ballot_is_what_the_rules_say_one_by_one(protocol):
    random = Random(protocol)
    seen = set()
    for _ in range(60):
        m = random.randint(1, 4)
        masses: list[int | None] = [random.choice([0, 0, 1, 1, 2, 3]) for _ in range(m)]
        if random.random() < 0.3:
            masses = [None if random.random() < 0.7 else mass for mass in masses]
        if protocol == "ranked" and random.random() < 0.4:
            masses = list(random.sample(range(m), m))
        wanted = by_hand(protocol, masses, budget=3)
        seen.add(wanted)
        if wanted is None:
            with pytest.raises(BallotFileError):
                checked(columns(protocol, masses), budget=3)
        else:
            found = checked(columns(protocol, masses), budget=3)[0]
            assert set(found["ballot_status"]) == {wanted}
            given = [mass for mass in masses if mass is not None]
            below = protocol == "ranked" and m - 1 - max(given, default=0)
            kept = [None if mass is None else mass + below for mass in masses]
            assert found["mass"].to_list() == (kept if wanted == "valid" else [None] * m)
    assert seen == {None, "valid", "abstained"}


def test_the_budget_is_the_most_frequent_sum_and_refused_where_two_are():
    def ballots(*sums):
        frames = [
            columns("cumulative", [total - 1, 1]).with_columns(pl.lit(f"v{i}").alias("voter"))
            for i, total in enumerate(sums)
        ]
        return pl.concat(frames).with_columns(row=pl.int_range(1, pl.len() + 1))

    assert checked(ballots(7, 7))[1] == 7
    for sums, row in [((5, 9, 9), 1), ((9, 5, 9), 3)]:
        with pytest.raises(BallotFileError, match=f"row {row}: .* sum to 5, not to 9"):
            checked(ballots(*sums))
    with pytest.raises(BallotFileError, match="as many ballots sum to 9 points as to 5"):
        checked(ballots(5, 9))


def test_notes_on_parts_add_up_where_they_say_the_same():
    notes = [
        "2 of the turns had to wait.",
        "Columns were guessed.",
        "30 of the turns had to wait.",
        "Columns were guessed.",
    ]
    assert notes_together(notes) == ("32 of the turns had to wait.", "Columns were guessed.")


def test_an_unknown_stage_is_refused_beside_whole_ballots():
    final = columns("simple", [1, 0])
    early = final.with_columns(voter=pl.lit("w"), stage=pl.lit("early"))
    both = pl.concat([final, early]).with_columns(row=pl.int_range(1, pl.len() + 1))
    with pytest.raises(BallotFileError, match="row 3: unknown stage 'early'"):
        checked(both)
