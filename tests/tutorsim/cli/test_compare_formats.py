"""Wherever voters were asked in two formats, comparisons say how far they choose the same."""

import json

import pytest

pytestmark = pytest.mark.costly


def test_a_comparison_looks_within_each_run_and_across(shell, several_formats):
    folder = several_formats.folder
    found = shell("compare", folder, folder, "--json").json()["values"]["format_invariance"]
    assert set(found) == {"first", "second", "across"}
    assert found["first"] == found["second"]
    pairs = {(p["given"], p["other"]) for p in found["first"]["pairs"]}
    assert ("ranked", "simple") in pairs
    assert ("rich", "approval") in pairs
    assert all(other != "rich" for _, other in pairs)
    assert "not_estimable" in found["first"]["again"]


def test_a_comparison_shows_pairs_of_formats(shell, several_formats):
    shown = shell("compare", several_formats.folder, several_formats.folder, "--full").out
    assert "One voter, the same drafts, two formats" in shown
    assert "across" not in shown
    assert shown.count("both runs") > 1
    assert "No prompt was re-asked" in shown


def test_without_two_formats_a_comparison_says_that_nothing_tests_it(shell, built, with_failures):
    shown = shell("compare", built.folder, with_failures.folder, "--full").out
    assert shown.count("the assumption is untested.") == 2  # in each run


def test_a_recount_quotes_how_far_the_sets_can_be_trusted(shell, several_formats):
    done = shell(
        "recount", several_formats.folder, "--targets", "simple", "--exempt", "0", "--full"
    )
    lines = [line for line in done.out.splitlines() if "in two formats" in line]
    [quote] = lines
    assert "simple to ranked" in quote
    assert "is unknown, as none was asked again. With k voters exempt" in quote
    value = shell("recount", several_formats.folder, "--targets", "simple", "--json").json()
    assert value["format_invariance"]["from_vote"]["n"] > 0


def test_a_recount_without_such_ballots_says_that_its_assumption_is_untested(shell, built):
    options = ("--targets", "simple", "--exempt", "0", "--full")
    shown = shell("recount", built.folder, *options).out
    assert "preferences are the same in every format" in shown
    assert "the assumption is untested." in shown
    assert "untested" not in shell("recount", built.folder, "--section", "orders").out


def test_a_branch_that_asked_for_another_rules_ballots_is_evidence(shell, branched):
    """At its first turn it holds the logged ballots and those of the rule, on the same proposals.

    The continuations of an episode share that turn, which counts once.
    """
    done = shell("compare", branched.parent.folder, branched.child.folder, "--json")
    found = json.loads(done.out)["values"]["format_invariance"]
    assert "not_estimable" in found["first"]
    pairs = {(pair["given"], pair["other"]): pair["turns"] for pair in found["second"]["pairs"]}
    held = [
        (episode.branch.parent_episode, turn.turn)
        for episode in branched.child.episodes
        for turn in episode.turns
        if episode.branch and episode.status == "complete" and "simple" in turn.ballots_as
    ]
    assert pairs["ranked", "simple"] == pairs["simple", "ranked"]
    assert len(set(held)) <= pairs["ranked", "simple"] < len(held)
    shown = shell("compare", branched.parent.folder, branched.child.folder).out
    assert "One voter, the same drafts, two formats" in shown
