"""Wherever voters were asked in two formats, comparisons say how far they choose the same."""

import json

import pytest

pytestmark = pytest.mark.costly


def test_a_comparison_looks_within_each_run_and_across(tutorsim, several_formats):
    folder = several_formats.folder
    done = tutorsim("compare", folder, folder, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["values"]["format_invariance"]
    assert set(found) == {"first", "second", "across"}
    assert found["first"] == found["second"]
    pairs = {(p["given"], p["other"]) for p in found["first"]["pairs"]}
    assert ("ranked", "simple") in pairs
    assert ("rich", "approval") in pairs
    assert all(other != "rich" for _, other in pairs)
    assert "not_estimable" in found["first"]["again"]


def test_a_comparison_shows_pairs_of_formats(tutorsim, several_formats):
    shown = tutorsim("compare", several_formats.folder, several_formats.folder, "--full").stdout
    assert "One voter, the same drafts, two formats" in shown
    assert "across" not in shown
    assert shown.count("both runs") > 1
    assert "No prompt was re-asked" in shown


def test_without_two_formats_a_comparison_says_that_nothing_tests_it(
    tutorsim, built, with_failures
):
    shown = tutorsim("compare", built.folder, with_failures.folder, "--full").stdout
    assert shown.count("the assumption is untested.") == 2  # in each run


def test_a_recount_quotes_how_far_the_sets_can_be_trusted(tutorsim, several_formats):
    done = tutorsim(
        "recount", several_formats.folder, "--targets", "simple", "--exempt", "0", "--full"
    )
    lines = [line for line in done.stdout.splitlines() if "in two formats" in line]
    [quote] = lines
    assert "simple to ranked" in quote
    assert "is unknown, as none was asked again. With k voters exempt" in quote
    value = json.loads(
        tutorsim("recount", several_formats.folder, "--targets", "simple", "--json").stdout
    )
    assert value["format_invariance"]["from_vote"]["n"] > 0


def test_a_recount_without_such_ballots_says_that_its_assumption_is_untested(tutorsim, built):
    options = ("--targets", "simple", "--exempt", "0", "--full")
    shown = tutorsim("recount", built.folder, *options).stdout
    assert "preferences are the same in every format" in shown
    assert "the assumption is untested." in shown
    assert "untested" not in tutorsim("recount", built.folder, "--section", "orders").stdout


def test_a_branch_that_asked_for_another_rules_ballots_is_evidence(tutorsim, branched):
    """At its first turn it holds the logged ballots and those of the rule, on the same proposals.

    The continuations of an episode share that turn, which counts once.
    """
    done = tutorsim("compare", branched.parent.folder, branched.child.folder, "--json")
    found = json.loads(done.stdout)["values"]["format_invariance"]
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
    shown = tutorsim("compare", branched.parent.folder, branched.child.folder).stdout
    assert "One voter, the same drafts, two formats" in shown
