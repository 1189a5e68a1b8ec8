"""Wherever voters were asked in two formats, comparisons say how far they choose the same."""

import json
from typing import Any


def test_a_comparison_looks_within_each_run_and_across(tutorsim: Any, several_formats: Any) -> None:
    folder = several_formats.folder
    done = tutorsim("compare", folder, folder, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["format_invariance"]
    assert set(found) == {"first", "second", "across"}
    assert found["first"] == found["second"]
    pairs = {(p["given"], p["other"]) for p in found["first"]["pairs"]}
    assert ("ranked", "simple") in pairs
    assert ("rich", "approval") in pairs
    assert all(other != "rich" for _, other in pairs)
    assert "not_estimable" in found["first"]["again"]


def test_a_comparison_shows_pairs_of_formats(tutorsim: Any, several_formats: Any) -> None:
    shown = tutorsim("compare", several_formats.folder, several_formats.folder).stdout
    assert "Format invariance" in shown
    assert "simple to ranked" in shown
    assert "No prompt was re-asked" in shown


def test_without_two_formats_a_comparison_says_that_nothing_tests_it(
    tutorsim: Any, built: Any, empty_run: Any
) -> None:
    shown = tutorsim("compare", built.folder, empty_run.folder).stdout
    assert shown.count("the assumption is untested.") == 3
