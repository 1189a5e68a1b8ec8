import json
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorsim.analysis.ballots.malformed_rows import FileRows
from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import typed_columns
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError, UsageError
from tutorsim.tasks.read_task_files_jsonl_parquet_sciq_humaneval import read_parquet

HEAD = "episode_id,turn,stage,voter,candidate,mass,protocol"


def csv_file(folder, *lines, head=HEAD):
    file = folder / "mine.csv"
    file.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    return file


def write(frame, file):
    """Write a table in the form that the ending names."""
    forms = {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson}
    forms[file.suffix](file)


def ballot(voter, masses, protocol, stage="final"):
    return [
        f"e,1,{stage},{voter},{c},{'' if m is None else m},{protocol}" for c, m in masses.items()
    ]


def cast(protocol, stage="final", /, **masses):
    """Rows of ballots: voter = masses of a, b, c and so on."""
    ballots = ((voter, dict(zip("abcd", given, strict=False))) for voter, given in masses.items())
    return [row for voter, given in ballots for row in ballot(voter, given, protocol, stage)]


def mass_of(file):
    frame = open_source(file).ballots
    return {(v, c): m for v, c, m in frame.select("voter", "candidate", "mass").iter_rows()}


def test_a_file_of_the_required_columns_has_the_whole_schema(tmp_path):
    file = csv_file(tmp_path, *ballot("007", {"a b": 1, "c": 0}, "simple"))
    source = open_source(file)
    assert source.ballots.schema == BALLOTS_SCHEMA
    assert source.name == "mine.csv"
    assert source.fallback_order is None
    assert source.run is None
    assert source.ballots.select(
        "run_id", "episode_id", "turn", "stage", "voter", "candidate", "mass", "ballot_status"
    ).rows() == [
        ("mine", "e", 1, "vote_final", "007", "a b", 1, "valid"),
        ("mine", "e", 1, "vote_final", "007", "c", 0, "valid"),
    ]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_the_same_ballots_come_out_of_every_format(tmp_path, form):
    rows = [
        *ballot("1", {"x": 2, "y": 1, "z": 0}, "ranked"),
        *ballot("2", dict.fromkeys("xyz"), "ranked"),
    ]
    plain = open_source(csv_file(tmp_path, *rows)).ballots
    file = tmp_path / f"again.{form}"
    write(plain, file)
    assert open_source(file).ballots.equals(plain)


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_dashes_beside_numbers_give_nothing_in_every_format(tmp_path, form):
    file = tmp_path / f"b.{form}"
    write(pl.DataFrame({"voter": ["v", "w"], "a": [3, 2], "b": ["-", "-"], "c": [1, 2]}), file)
    assert {candidate for _, candidate in mass_of(file)} == {"a", "c"}


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    ("named", "beside"),
    [("a[1]", "a1"), ("q?", "qx"), ("*", "z"), ("d[1]/e", "d1/e"), ("~/b", "b"), ("{a,b}", "b")],
)
def test_a_name_is_that_file_and_no_pattern(named, beside, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, voter in ((beside, "another"), (named, "own")):
        file = Path(f"{name}.{form}")
        file.parent.mkdir(exist_ok=True)
        plain = pl.read_csv(csv_file(tmp_path, *ballot(voter, {"x": 1, "y": 0}, "simple")))
        write(plain, file.absolute())
    assert set(mass_of(Path(f"{named}.{form}"))) == {("own", "x"), ("own", "y")}
    if form == "parquet":
        assert {row.fields["voter"] for row in read_parquet(file)} == {"own"}


def test_json_numbers_name_voters_as_their_digits(tmp_path):
    file = tmp_path / "b.jsonl"
    row = {"episode_id": 5, "turn": 1, "stage": "final", "voter": 7, "protocol": "simple"}
    lines = [json.dumps(row | {"candidate": c, "mass": m}) for c, m in (("x", 1.0), ("y", 0))]
    file.write_text("\n".join(lines))
    assert mass_of(file) == {("7", "x"): 1, ("7", "y"): 0}


STRANGE = {
    "lists": (pl.concat_list("voter"), "v"),  # of voters, one
    "structures": (pl.struct("voter"), '{"voter":"v"}'),
    "bytes": (pl.col("voter").cast(pl.Binary), "v"),
    "durations": (pl.duration(minutes=pl.len()), '"0:02:00"'),
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("column", ["voter", "mass", "remark"])
def test_cells_of_other_types_are_texts(tmp_path, kind, column):
    """A name may be any text; what is no number is refused with its row, and a remark not read."""
    cells, text = STRANGE[kind]
    file, names = tmp_path / "b.parquet", ["voter", "candidate", "mass", "protocol"]
    rows = [("v", "a", 1, "simple"), ("v", "b", 0, "simple")]
    frame = pl.DataFrame(rows, names, orient="row")
    frame.with_columns(cells.alias(column)).write_parquet(file)
    if column == "mass":
        with pytest.raises(BallotFileError, match=r"row 1: mass .* is not a whole number"):
            open_source(file)
    else:
        assert set(open_source(file).ballots["voter"]) == {text if column == "voter" else "v"}


def test_a_column_of_no_type_is_an_empty_one(tmp_path):
    pl.DataFrame({"voter": ["v", "w"], "choice": ["a", "b"], "weight": [None, None]}).write_parquet(
        tmp_path / "b.parquet"
    )
    with pytest.raises(BallotFileError, match="row 1: None in “weight” is no weight"):
        open_source(tmp_path / "b.parquet")


def test_numbers_that_are_not_a_number_are_missing_in_parquet(tmp_path):
    file = tmp_path / "b.parquet"
    pl.DataFrame(
        {
            "episode_id": [1] * 4,
            "turn": [1] * 4,
            "stage": ["final"] * 4,
            "voter": ["v", "v", "w", "w"],
            "candidate": ["x", "y"] * 2,
            "mass": [1.0, 0.0, float("nan"), float("nan")],
            "protocol": ["approval"] * 4,
        }
    ).write_parquet(file)
    assert mass_of(file) == {("v", "x"): 1, ("v", "y"): 0, ("w", "x"): None, ("w", "y"): None}


REFUSED = {
    "two entries": (
        [*cast("simple", v=(1, 0)), "e,1,final,v,a,1,simple"],
        3,
        "two entries for 'a'",
    ),
    "two entries side by side": (
        [f"e,1,final,v,{c},1,approval" for c in "aabb"],
        2,
        "two entries for 'a'",
    ),
    "contradicting entries for a lone candidate": (
        ["e,1,final,v,a,1,approval", "e,1,final,v,a,0,approval"],
        2,
        "two entries for 'a'",
    ),
    "ranking of nobody": (cast("ranked", v=(0, 0, 0)), 1, "hole"),
    "hole in a ranking that leaves one out": (cast("ranked", w=(3, 2, 1, 0), v=(3, 0)), 5, "hole"),
    "unknown protocol": (cast("dice", v=(1,)), 1, "unknown protocol 'dice'"),
    "unknown stage": (
        [*cast("simple", v=(1,)), *cast("simple", "noon", v=(1,))],
        2,
        "unknown stage 'noon'",
    ),
    "points over the others' sum": (
        cast("cumulative", u=(20, 5), v=(25, 0), w=(25, 1)),
        5,
        "sum to 26, not to 25",
    ),
    "half a point": (cast("approval", v=(1, 0.5)), 2, "'0.5' is not a whole number"),
    "too much": (ballot("v", {"a": 10**9 + 1}, "simple"), 1, "is not a whole number up to 10^9"),
    "the most": (ballot("v", {"a": 10**9}, "simple"), 1, "sums to 1000000000"),
    "infinite": (cast("simple", v=("inf", 0)), 1, "not a whole number"),
    "half an abstention": (cast("simple", v=(1, None)), 2, "none for others"),
    "no voter": (["e,1,final,,a,1,simple"], 1, "no voter"),
    "turn in words": (["e,first,final,v,a,1,simple"], 1, "turn 'first'"),
    # a 1, b 1, c 0: the tie is between a and b
    "a loser in the tie round": (
        [*cast("simple", v=(1, 0, 0), w=(0, 1, 0)), *cast("simple", "tie", v=(0, 0, 1))],
        9,
        "'c', which was not tied",
    ),
    # a 1, b 1, c 1: three are tied, the round is between two
    "a tie round that leaves one out": (
        [*cast("simple", u=(1, 0, 0), v=(0, 1, 0), w=(0, 0, 1)), *cast("simple", "tie", v=(0, 1))],
        10,
        "leaves out 'c'",
    ),
    "a stranger in the tie round": (
        [*cast("simple", v=(1,)), *ballot("v", {"b": 1}, "simple", "tie")],
        2,
        "which the final vote has not",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_make_no_ballot_are_refused_with_file_row_and_reason(tmp_path, case):
    rows, row, reason = REFUSED[case]
    with pytest.raises(BallotFileError) as refused:
        open_source(csv_file(tmp_path, *rows))
    assert f"mine.csv, row {row}: " in refused.value.what
    assert reason in refused.value.what


def test_a_status_that_contradicts_the_masses_is_refused(tmp_path):
    file = csv_file(tmp_path, "e,1,final,v,a,1,simple,abstained", head=HEAD + ",ballot_status")
    with pytest.raises(BallotFileError, match="row 1: the ballot_status of voter 'v' contradicts"):
        open_source(file)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_blank_lines_are_no_rows_but_count(tmp_path, form):
    good = ["e,1,final,v,a,1,simple", "", "e,1,final,w,a,1,simple", ""]
    bad = [*good, "e,1,final,x,a,-1,simple"]

    def write(lines):
        file = tmp_path / f"b.{form}"
        if form == "jsonl":
            names = HEAD.split(",")
            lines = [
                json.dumps(dict(zip(names, line.split(","), strict=True))) if line else ""
                for line in lines
            ]
        file.write_text("\n".join([HEAD, *lines] if form == "csv" else lines) + "\n")
        return file

    assert mass_of(write(good)) == {("v", "a"): 1, ("w", "a"): 1}
    with pytest.raises(BallotFileError, match="row 5: the mass -1 is negative"):
        open_source(write(bad))


def test_true_and_false_are_written_as_words_or_digits(tmp_path):
    said = pl.DataFrame({"row": range(5), "approved": ["True", "1", " false", "0", ""]})
    said = said.with_columns(pl.lit("1").alias(name) for name in HEAD.split(","))
    typed = typed_columns(FileRows(said, Path("b"))).frame
    assert typed["approved"].to_list() == [True, True, False, False, None]


def test_a_cut_json_line_is_refused_by_its_number(tmp_path):
    file = tmp_path / "b.jsonl"
    file.write_text('{"episode_id": "e"}\n{"epis')
    with pytest.raises(BallotFileError, match="row 2 is no JSON object"):
        open_source(file)


def test_nothing_stated_or_given_is_an_abstention_but_approving_nobody_is_a_ballot(tmp_path):
    none = {"a": 0, "b": 0}
    rows = [
        *ballot("v", dict.fromkeys("ab"), "approval"),
        *ballot("w", none, "approval"),
        *[line.replace("e,1", "e,2") for line in ballot("v", none, "simple")],
        *[line.replace("e,1", "e,3") for line in ballot("v", none, "cumulative")],
    ]
    frame = open_source(csv_file(tmp_path, *rows)).ballots
    found = frame.unique(["turn", "voter"], maintain_order=True)
    assert found.select("turn", "voter", "ballot_status", "mass").rows() == [
        (1, "v", "abstained", None),
        (1, "w", "valid", 0),
        (2, "v", "abstained", None),
        (3, "v", "abstained", None),
    ]


def test_candidates_left_out_have_no_mass_and_the_reader_says_so(tmp_path):
    file = csv_file(tmp_path, *cast("simple", v=(1,)), *ballot("w", {"b": 1}, "simple"))
    assert mass_of(file) == {("v", "a"): 1, ("v", "b"): 0, ("w", "b"): 1, ("w", "a"): 0}
    assert open_source(file).notes == (
        "mine.csv: 2 of the ballots left candidates out; they have no mass there.",
    )


def test_turns_without_a_final_vote_are_named(tmp_path):
    file = csv_file(tmp_path, *cast("simple", "initial", v=(1, 0)))
    assert open_source(file).notes == ("1 of the turns had no final vote and were not recounted.",)


def test_a_column_that_stands_twice_is_refused(tmp_path):
    file = csv_file(tmp_path, "e,1,final,v,a,1,simple,0", head=f"{HEAD},mass")
    with pytest.raises(BallotFileError) as refused:
        open_source(file)
    assert "the column mass more than once" in refused.value.why


def test_namesakes_are_different_voters_where_the_user_says_so(tmp_path):
    rows = [*cast("simple", v=(1, 0)), *cast("simple", v=(0, 1))]
    file = csv_file(tmp_path, *rows)
    source = open_source(file, hints=Hints(namesakes=True))
    cells = source.ballots.select("voter", "candidate", "mass").iter_rows()
    assert {(voter, candidate): mass for voter, candidate, mass in cells} == {
        ("v #1", "a"): 1,
        ("v #1", "b"): 0,
        ("v #2", "a"): 0,
        ("v #2", "b"): 1,
    }
    assert "2 ballots of voters who share a name" in source.notes[0]


def test_the_budget_is_what_the_ballots_sum_to_unless_it_is_stated(tmp_path):
    file = csv_file(tmp_path, *cast("cumulative", v=(7, 3)))
    assert open_source(file).budget == 10
    assert open_source(csv_file(tmp_path, *cast("simple", v=(1,)))).budget == 25
    file = csv_file(tmp_path, *cast("cumulative", v=(7, 3)))
    with pytest.raises(BallotFileError, match="sum to 10, not to 25"):
        open_source(file, hints=Hints(budget=25))


NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name.strip() != "")


@pytest.mark.costly
@settings(max_examples=20, deadline=None)
@given(
    episode=NAMES,
    voters=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    candidates=st.lists(NAMES, min_size=1, max_size=4, unique=True),
    form=st.sampled_from(["csv", "parquet", "jsonl"]),
)
def test_identifiers_may_be_any_text(tmp_path_factory, episode, voters, candidates, form):
    rows = [
        {"episode_id": episode, "turn": 1, "stage": "final", "voter": v, "candidate": c,
         "mass": len(candidates) - 1 - place, "protocol": "ranked"}
        for v in voters
        for place, c in enumerate(candidates)
    ]  # fmt: skip
    frame = pl.DataFrame(rows)
    file = tmp_path_factory.mktemp("any") / f"b.{form}"
    write(frame, file)
    ballots = open_source(file).ballots
    assert set(ballots.select("voter", "candidate", "mass").rows()) == {
        (r["voter"], r["candidate"], r["mass"]) for r in rows
    }
    assert set(ballots["episode_id"]) == {episode}


@pytest.mark.skipif("TUTORSIM_PUBLISHED_DATA" not in os.environ, reason="no published data here")
def test_published_ballots_of_llm_discussions_are_read_as_they_stand():
    file = Path(os.environ["TUTORSIM_PUBLISHED_DATA"]) / "mallm_ballots.csv"
    source = open_source(file, hints=Hints(namesakes=True))
    # 427 discussions with ballots; 239 stand under a name that their round has more than once.
    assert source.ballots["episode_id"].n_unique() == 427
    assert source.ballots.height == 11337
    assert source.ballots["mass"].sum() == 9450
    assert source.notes == (
        "mallm_ballots.csv was read as: not used: model, dataset, paradigm.",
        "mallm_ballots.csv: 239 ballots of voters who share a name in their round were numbered.",
    )


def turns_of_many(count):
    """Ranked turns with a first and a final vote, by three voters over three candidates."""
    rows = [
        (f"e{e}", turn, stage, voter, name, (place + e + turn + len(stage) * v) % 3, "ranked")
        for e in range(count)
        for turn in (1, 2)
        for stage in ("vote_initial", "vote_final")
        for v, voter in enumerate(("u", "v", "w"))
        for place, name in enumerate("abc")
    ]
    return pl.DataFrame(rows, schema=HEAD.split(","), orient="row")


@pytest.mark.costly
def test_rows_in_any_sequence_and_any_files_are_the_same_source(tmp_path):
    table = turns_of_many(6)
    (tmp_path / "whole").mkdir()
    table.write_csv(tmp_path / "whole" / "b.csv")
    expected = open_source(tmp_path / "whole").votes
    layouts = {
        "shuffled": [table.sample(fraction=1, shuffle=True, seed=3)],
        "reversed": [table.reverse()],
        "by stage": [table.sort("stage", maintain_order=True)],
        "one stage a file": table.partition_by("stage"),
        "one voter a file": table.partition_by("voter"),
        "every other row": [table.gather_every(2), table.gather_every(2, offset=1)],
    }
    for name, parts in layouts.items():
        for ending in ("csv", "parquet", "jsonl"):
            folder = tmp_path / f"{name} {ending}"
            folder.mkdir()
            for i, part in enumerate(parts):
                write(part, folder / f"{i}.{ending}")
            votes = open_source(folder).votes
            assert votes.turns.equals(expected.turns), folder
            assert (votes.order, votes.voters) == (expected.order, expected.voters)
            for mine, theirs in zip(votes.stages, expected.stages, strict=True):
                assert [r.masses.tolist() for r in mine] == [r.masses.tolist() for r in theirs]


def test_a_bad_row_of_a_second_file_is_named_there(tmp_path):
    turns_of_many(2).write_csv(tmp_path / "a.csv")
    bad = (
        turns_of_many(3)
        .filter(pl.col("episode_id") == "e2")
        .with_columns(mass=pl.when(pl.int_range(pl.len()) == 4).then(7).otherwise("mass"))
    )
    bad.write_csv(tmp_path / "b.csv")
    with pytest.raises(BallotFileError, match=r"b.csv, row 4: the ranking of 'v' has a hole"):
        open_source(tmp_path)


def test_the_same_file_twice_is_refused(tmp_path):
    for name in ("a.csv", "b.csv"):
        turns_of_many(1).write_csv(tmp_path / name)
    with pytest.raises(BallotFileError, match=r"b.csv, row 1: voter 'u' has two entries|second"):
        open_source(tmp_path)


def test_nothing_decides_a_tie_unless_the_user_gives_an_order(tmp_path):
    file = csv_file(
        tmp_path, *ballot("v", {"b": 1, "a": 0}, "simple"), *ballot("w", {"b": 0, "a": 1}, "simple")
    )
    assert open_source(file).fallback_order is None
    given = open_source(file, hints=Hints(fallback_order=("b",)))
    assert given.fallback_order == ("b", "a")
    for order, why in ((("x",), "'x' is no candidate"), (("b", "b"), "A candidate is in it twice")):
        with pytest.raises(UsageError, match=why):
            open_source(file, hints=Hints(fallback_order=order))


def test_zeros_in_an_approval_are_noted(tmp_path):
    file = csv_file(tmp_path, *cast("approval", v=(0, 0)), *cast("approval", w=(1, 0)))
    assert open_source(file).notes == (
        "1 of the approval ballots had only zeros: such a voter approves of nobody, while "
        "an abstention has empty masses.",
    )


def test_hints_are_for_ballots_from_elsewhere(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="for ballots from elsewhere"):
        open_source(tmp_path, hints=Hints(protocol="simple"))


def test_files_of_other_columns_are_read_together(tmp_path):
    (tmp_path / "a.csv").write_text("voter,choice,label\nv,ann,A\nw,ben,B\n")
    (tmp_path / "b.csv").write_text("voter,ann,ben,run_id\nx,1,0,r\ny,0,1,r\n")
    rows = open_source(tmp_path).ballots.filter(pl.col("mass") == 1)
    assert rows.select("run_id", "voter", "candidate").rows() == [
        *(("a", "v", "ann"), ("a", "w", "ben")),
        *(("r", "x", "ann"), ("r", "y", "ben")),
    ]
