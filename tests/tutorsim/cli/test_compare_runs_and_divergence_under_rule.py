"""`tutorsim compare` pairs runs and says what answered each."""

import json

import pytest

from tutorsim.records import EPISODES_FILE


def test_a_run_differs_in_nothing_from_itself(shell, built):
    value = shell("compare", built.folder, built.folder, "--json").json()["values"]
    assert (value["pairs"], value["only_first"], value["only_second"]) == (20, 0, 0)
    differences = [row["difference"] for row in value["outcomes"]]
    assert {d["value"] for d in differences if "value" in d} == {0}
    assert {share["value"] for share in value["same_winner"].values()} == {1}


def test_differences_are_second_minus_first(shell, built, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_bytes((built.folder / "run.json").read_bytes())
    worse = [record.model_copy(update={"success": False}) for record in built.episodes]
    lines = [json.dumps(record.model_dump(mode="json")) for record in worse]
    (other / EPISODES_FILE).write_text("\n".join(lines) + "\n")
    value = shell("compare", built.folder, other, "--json").json()["values"]
    rows = [row for row in value["outcomes"] if row["outcome"] == "success"]
    assert rows
    for row in rows:
        assert row["difference"]["value"] == -row["first"]


def test_both_provenances_are_shown(shell, built, with_failures):
    shown = shell("compare", built.folder, with_failures.folder).out
    assert "10 pairs in both runs. Only in the first: 10" in shown
    assert "First: stand-in: built by a test" in shown
    assert "Second: stand-in: built by a test" in shown


def test_runs_that_share_no_pair_are_not_compared(shell, built, empty_run):
    said = shell("compare", built.folder, empty_run.folder)
    said.fails(2, "share no episode that both have complete")


def test_a_missing_run_is_named(shell, built, tmp_path):
    done = shell("compare", built.folder, tmp_path / "absent")
    assert done.code in (2, 4)
    assert "absent" in done.err


# --- `tutorsim compare PARENT BRANCH`: logged, bounded and re-simulated figures stand apart -------


@pytest.fixture
def value(shell, branched):
    """A branch beside its parent, as JSON."""
    done = shell("compare", branched.parent.folder, branched.child.folder, "--json")
    return done.json()["values"]


def test_json_holds_every_cell_and_path(value, branched):
    assert (value["parent"], value["child"], value["changes"]) == ("parent", "child", "rule ranked")
    cells = {(cell["benchmark"], cell["condition"]): cell for cell in value["cells"]}
    assert "baseline" not in {condition for _, condition in cells}
    branch = branched.child.run.study.branch
    continued = sum(cell["continued"] for cell in cells.values())
    assert (continued, len(branch.episodes)) == (5, 5)
    assert sum(cell["left_out"] for cell in cells.values()) == 1
    assert [path["episode_id"] for path in value["paths"] if path["turn"]] == list(branch.episodes)
    for cell in cells.values():
        assert cell["covered"] + cell["continued"] + cell["left_out"] == cell["episodes"]
        for row in cell["outcomes"]:
            assert row["before"]["low"] <= row["after"]["low"]
            assert row["after"]["high"] <= row["before"]["high"]
        assert ("value" in cell["outcomes"][0]["estimate"]) == (cell["left_out"] == 0)


def test_calls_taken_over_and_paid_for_are_all_calls(value, branched):
    calls = [cell["calls"] for cell in value["cells"]]
    draws = [e for e in branched.child.episodes if e.branch]
    assert sum(c["reused"] + c["paid"] for c in calls) == sum(len(e.calls) for e in draws)
    # Every draw takes over its start, and pays for four ranked ballots at least.
    assert all(c["paid"] >= 4 for c in calls if c["reused"])


@pytest.mark.costly
def test_a_way_of_leaving_the_path_and_an_episode_are_told(shell, value, branched):
    shown = shell("compare", branched.parent.folder, branched.child.folder).out
    left = sum(e.branch.left is not None for e in branched.child.episodes if e.branch)
    assert sum(m["draws"] for cell in value["cells"] for m in cell["moves"]) == left > 0
    for name in branched.child.run.study.branch.episodes:
        assert name in shown
    assert "Logged, and re-simulated: each draw, and their mean" in shown


def test_single_draws_come_with_their_warning(shell, branched, tmp_path):
    child = branched.child
    branch = child.run.study.branch.model_copy(update={"continuations": 1})
    study = child.run.study.model_copy(update={"branch": branch})
    kept = [e for e in child.episodes if not e.branch or e.branch.continuation == 1]
    run = child.run.model_copy(update={"study": study})
    (tmp_path / "run.json").write_text(run.model_dump_json() + "\n")
    lines = "".join(e.model_dump_json() + "\n" for e in kept)
    (tmp_path / "episodes.jsonl").write_text(lines)
    shown = shell("compare", branched.parent.folder, tmp_path).out
    assert "a single draw of an episode is not what would" in shown
    [draws] = [line for line in shown.splitlines() if line.startswith("episode")]
    assert draws.split() == ["episode", "from", "turn", "logged", "draws", "mean", "draw"]
    assert "a single draw does not give" in shown


def test_two_runs_that_are_no_parent_and_branch_are_paired_as_ever(shell, branched):
    shown = shell("compare", branched.child.folder, branched.parent.folder).out
    assert "23 pairs in both runs. Only in the first: 0; only in the second: 1" in shown
    assert "a branch of" not in shown.partition("Do the runs differ?")[2]


@pytest.mark.parametrize("command", ["compare", "summary"])
def test_a_screen_fits_80_columns(shell, branched, command):
    runs = (branched.parent.folder, branched.child.folder)[: 2 if command == "compare" else 1]
    done = shell(command, *runs, columns=80)
    rules = [line for line in done.out.splitlines() if line.startswith("───")]
    assert rules
    assert max(map(len, rules)) <= 80
