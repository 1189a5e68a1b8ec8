"""`tutorsim compare` pairs runs and says what answered each."""

import json

from tutorsim.records import EPISODES_FILE


def test_a_run_differs_in_nothing_from_itself(tutorsim, built):
    done = tutorsim("compare", built.folder, built.folder, "--json")
    value = json.loads(done.stdout)["values"]
    assert done.exit_code == 0
    assert (value["pairs"], value["only_first"], value["only_second"]) == (20, 0, 0)
    differences = [row["difference"] for row in value["outcomes"]]
    assert {d["value"] for d in differences if "value" in d} == {0}
    assert {share["value"] for share in value["same_winner"].values()} == {1}


def test_differences_are_second_minus_first(tutorsim, built, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_bytes((built.folder / "run.json").read_bytes())
    worse = [record.model_copy(update={"success": False}) for record in built.episodes]
    lines = [json.dumps(record.model_dump(mode="json")) for record in worse]
    (other / EPISODES_FILE).write_text("\n".join(lines) + "\n")
    value = json.loads(tutorsim("compare", built.folder, other, "--json").stdout)["values"]
    rows = [row for row in value["outcomes"] if row["outcome"] == "success"]
    assert rows
    for row in rows:
        assert row["difference"]["value"] == -row["first"]


def test_both_provenances_are_shown(tutorsim, built, with_failures):
    shown = tutorsim("compare", built.folder, with_failures.folder).stdout
    assert "10 pairs in both runs. Only in the first: 10" in shown
    assert "First: stand-in: built by a test" in shown
    assert "Second: stand-in: built by a test" in shown


def test_runs_that_share_no_pair_are_not_compared(tutorsim, built, empty_run):
    done = tutorsim("compare", built.folder, empty_run.folder)
    assert done.exit_code == 2
    assert "share no episode that both have complete" in done.stderr


def test_a_missing_run_is_named(tutorsim, built, tmp_path):
    done = tutorsim("compare", built.folder, tmp_path / "absent")
    assert done.exit_code in (2, 4)
    assert "absent" in done.stderr
