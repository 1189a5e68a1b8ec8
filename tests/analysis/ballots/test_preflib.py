import re

import pytest

from tutorsim.analysis.ballots.preflib import preflib_text, read_preflib
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.errors import BallotFileError


def write(folder, suffix, *orders, voters=None, m=3):
    file = folder / f"vote.{suffix}"
    head = [f"# NUMBER ALTERNATIVES: {m}"]
    head += [f"# NUMBER VOTERS: {voters}"] * (voters is not None)
    head += [f"# ALTERNATIVE NAME {i}: {'ABCDEFGH'[i - 1]}" for i in range(1, m + 1)]
    file.write_text("\n".join([*head, *orders]) + "\n")
    return file


def profile(file):
    frame = open_source(file).ballots
    voters = [
        dict(ballot.select("candidate", "mass").iter_rows())
        for ballot in frame.partition_by("voter", maintain_order=True)
    ]
    return frame["protocol"][0], voters


def test_strict_complete_orders_are_rankings_and_multiplicities_are_voters(tmp_path):
    file = write(tmp_path, "soc", "2: 1,2,3", "1: 3, 1, 2", voters=3)
    first = {"A": 2, "B": 1, "C": 0}
    assert profile(file) == ("ranked", [first, first, {"A": 1, "B": 0, "C": 2}])
    frame = open_source(file).ballots
    assert frame["voter"].unique(maintain_order=True).to_list() == ["1", "2", "3"]
    assert frame.row(0, named=True)["episode_id"] == "vote"
    assert set(frame["stage"]) == {"vote_final"}


@pytest.mark.parametrize("suffix", ["soi", "toi"])
def test_strict_orders_that_leave_candidates_out_are_rankings(tmp_path, suffix):
    file = write(tmp_path, suffix, "1: 2,1", "1: 3", "1: 1,2,3")
    assert profile(file) == (
        "ranked",
        [{"A": 1, "B": 2, "C": None}, {"A": None, "B": None, "C": 2}, {"A": 2, "B": 1, "C": 0}],
    )
    assert open_source(file).notes[0].startswith("2 of the rankings left candidates out")


def test_a_weak_order_is_read_alike_whatever_the_others_are(tmp_path):
    # A = B before C: 3 + 3 + 0. C before A = B: 4 + 1 + 1. B alone: 4 + 1 + 1.
    file = write(tmp_path, "toc", "1: {1,2},3", "1: 3,{1,2}")
    first = {"A": 3, "B": 3, "C": 0}
    assert profile(file) == ("cumulative", [first, {"A": 1, "B": 1, "C": 4}])
    file = write(tmp_path, "toc", "1: {1,2},3", "1: 3,2,1")
    assert profile(file) == ("cumulative", [first, {"A": 0, "B": 2, "C": 4}])
    assert profile(write(tmp_path, "toi", "1: 2", "1: {1,2}"))[1][0] == {"A": 1, "B": 4, "C": 1}
    assert "weak orders, as points" in open_source(file).notes[0]


def test_a_format_that_the_file_contradicts_is_refused(tmp_path):
    file = write(tmp_path, "toc", "1: {1,2},3")
    with pytest.raises(BallotFileError) as error:
        open_source(file, hints=Hints(protocol="approval"))
    assert "read as cumulative" in error.value.why
    assert open_source(file, hints=Hints(protocol="cumulative")).ballots.height == 3


@pytest.mark.parametrize("suffix", ["toi", "toc"])
def test_other_weak_orders_are_points_by_averaged_borda(tmp_path, suffix):
    order = {"toi": "1: 1,{2,3}", "toc": "1: 1,{2,3},4"}[suffix]
    strict = "1: 4,3,2,1"
    file = write(tmp_path, suffix, order, strict, m=4)
    # Twice the Borda points: A before B = C before D, whom the .toi leaves out.
    tied = {"A": 6, "B": 3, "C": 3, "D": 0}
    assert profile(file) == ("cumulative", [tied, {"A": 0, "B": 2, "C": 4, "D": 6}])
    source = open_source(file)
    assert source.budget == 12
    assert "weak orders" in source.notes[0]


def test_two_categories_are_an_approval_ballot(tmp_path):
    file = write(tmp_path, "cat", "1: {1,3},{2}", "1: 2,{1,3}", "1: {},{1,2,3}", "1: {1,2,3},{}")
    approved = [(1, 0, 1), (0, 1, 0), (0, 0, 0), (1, 1, 1)]
    assert profile(file) == ("approval", [dict(zip("ABC", one, strict=True)) for one in approved])


@pytest.mark.parametrize(
    ("suffix", "order", "reason"),
    [
        ("soc", "1: 1,2", "line 5: the ranking has 2 of 3 candidates"),
        ("toc", "1: {1,2}", "line 5: the ranking has 2 of 3 candidates"),
        ("soc", "1: 1,{2,3}", "line 5: a tie in a file of strict orders"),
        ("soi", "1: {1,2}", "line 5: a tie in a file of strict orders"),
        ("toi", "1: 1,1", "line 5: two entries for alternative 1"),
        ("soc", "1: 1,2,4", "line 5: alternative 4 is not in the head"),
        ("soc", "0: 1,2,3", "line 5: an order of nobody"),
        ("soc", "-1: 1,2,3", "line 5: '-1: 1,2,3' is no order"),
        ("soc", "1,2,3", "line 5: '1,2,3' is no order"),
        ("toc", "1: {1,2,3", "line 5: '1: {1,2,3' is no order"),
        ("cat", "1: 1,2,3", "line 5: an approval has two categories"),
        ("soc", "1000000000: 1,2,3", "1000000000 voters are more than"),
    ],
)
def test_lines_that_are_no_ballot_are_refused(tmp_path, suffix, order, reason):
    with pytest.raises(BallotFileError) as refused:
        open_source(write(tmp_path, suffix, order))
    assert reason in refused.value.what


def test_a_head_whose_counts_do_not_hold_is_refused(tmp_path):
    with pytest.raises(BallotFileError, match="counts 3 voters, the orders 1"):
        open_source(write(tmp_path, "soc", "1: 1,2,3", voters=3))
    with pytest.raises(BallotFileError, match="holds no orders"):
        open_source(write(tmp_path, "soc"))
    empty = tmp_path / "b.toi"
    empty.write_text("1:\n", encoding="utf-8")
    with pytest.raises(BallotFileError, match="names no alternative"):
        open_source(empty)


def test_alternatives_without_names_are_called_by_their_numbers(tmp_path):
    file = tmp_path / "v.soi"
    file.write_text("# NUMBER ALTERNATIVES: 3\n2: 3\n")
    assert profile(file) == ("ranked", [{"1": None, "2": None, "3": 2}] * 2)
    file.write_text("2: 3,1\n")
    assert profile(file) == ("ranked", [{"1": 0, "3": 1}] * 2)
    file.write_text("# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: A\n1: 1\n")
    with pytest.raises(BallotFileError, match="counts 3 alternatives, and 1 are named"):
        open_source(file)


def test_a_folder_of_files_is_one_source_unless_budgets_differ(tmp_path):
    write(tmp_path, "soc", "1: 1,2,3").rename(tmp_path / "one.soc")
    write(tmp_path, "cat", "1: {1},{2,3}").rename(tmp_path / "two.cat")
    assert open_source(tmp_path).ballots["episode_id"].unique().sort().to_list() == ["one", "two"]
    write(tmp_path, "toi", "1: 1,{2,3}", "1: 2,1,3").rename(tmp_path / "three.toi")
    write(tmp_path, "toi", "1: 1,2", "1: {2,3}", m=4).rename(tmp_path / "four.toi")
    with pytest.raises(BallotFileError, match=re.escape("[6, 12]")):
        open_source(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_what_is_written_is_valid_to_preflibs_own_tools(tmp_path):
    preflibtools = pytest.importorskip("preflibtools.instances")
    orders = [((2,), (1,), (3,)), ((1,), (2,), (3,)), ((2,), (1,), (3,))]
    file = tmp_path / "x.soc"
    file.write_text(
        preflib_text("soc", "x.soc", "Title\nwith a line", ["a", "b\n# X: 1", "c"], orders)
    )
    stock = preflibtools.OrdinalInstance(str(file))
    assert stock.full_profile() == [orders[0], orders[0], orders[1]]
    assert (stock.num_voters, stock.num_alternatives, stock.num_unique_orders) == (3, 3, 2)
    assert stock.alternatives_name == {1: "a", 2: "b # X: 1", 3: "c"}
    assert stock.title == "Title with a line"
    assert read_preflib(file).frame.height == 9

    approvals = [((1, 3), (2,)), ((), (1, 2, 3))]
    file = tmp_path / "x.cat"
    file.write_text(preflib_text("cat", "x.cat", "T", ["a", "b", "c"], approvals))
    stock = preflibtools.CategoricalInstance(str(file))
    assert sorted(stock.preferences) == sorted(approvals)
    assert (stock.num_voters, stock.num_categories) == (2, 2)
    assert read_preflib(file).frame["mass"].sum() == 2


def categories(folder, *lines):
    file = folder / "c.cat"
    names = [f"# ALTERNATIVE NAME {i}: {'ABC'[i - 1]}" for i in (1, 2, 3)]
    file.write_text("\n".join(["# NUMBER ALTERNATIVES: 3", *names, *lines]) + "\n")
    return file


def test_the_names_of_categories_say_which_one_approves(tmp_path):
    no_first = ("# CATEGORY NAME 1: No", "# CATEGORY NAME 2: Yes", "1: {1,2},{3}")
    source = open_source(categories(tmp_path, *no_first))
    assert dict(source.ballots.select("candidate", "mass").iter_rows()) == {"A": 0, "B": 0, "C": 1}
    assert source.notes == ()
    odd = ("# CATEGORY NAME 1: Often", "# CATEGORY NAME 2: Rarely", "1: {1,2},{3}")
    source = open_source(categories(tmp_path, *odd))
    assert dict(source.ballots.select("candidate", "mass").iter_rows()) == {"A": 1, "B": 1, "C": 0}
    assert source.notes == ("c.cat was read as: the first category, “Often”, approves.",)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("1: {1},{2}",), "line 5: alternative 'C' is in no category"),
        (("# NUMBER UNIQUE PREFERENCES: 3", "1: {1},{2,3}"), "counts 3 unique orders"),
        (("# CATEGORY NAME 1: No", "# CATEGORY NAME 2: Against", "1: {1},{2,3}"), "do not tell"),
    ],
)
def test_categories_that_do_not_hold_are_refused(tmp_path, lines, reason):
    with pytest.raises(BallotFileError, match=re.escape(reason)):
        open_source(categories(tmp_path, *lines))


def test_what_answered_is_in_the_head_and_comes_back(tmp_path):
    text = preflib_text("soc", "x.soc", "T", ["a", "b"], [((1,), (2,))], provenance="stand-in: me")
    file = tmp_path / "x.soc"
    file.write_text(text)
    assert open_source(file).stated == ("stand-in: me",)
