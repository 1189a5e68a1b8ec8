"""`tutorsim check`: what a file of ballots is read as, before anything is counted."""

import json

import pytest


def test_check_says_what_was_read_and_assumed(shell, tmp_path):
    file = tmp_path / "b.csv"
    file.write_text("Wähler;ann;ben\nv;2,5;7,5\nw;10;0\n")
    shell("check", file, "--map", "voter=Wähler").tells(
        "voter in “Wähler”; one column a candidate (ann, ben)", "sums to 100", "No order is logged"
    )
    value = shell("check", file, "--map", "voter=Wähler", "--json").json()
    assert value["files"][0]["shape"] == "wide"
    assert value["candidates"] == ["ann", "ben"]
    assert [v["ballots"] for v in value["votes"]] == [2]


def test_check_of_an_imported_run_lists_its_votes_and_what_its_logs_leave_open(shell, tmp_path):
    answers = [{"model": name, "response": f"{name} says"} for name in ("ann", "ben", "cyd")]
    ranks = [{"model": "ann", "ranking": "", "parsed_ranking": ["Response B", "Response A"]}]
    ranks += [
        {"model": name, "ranking": "", "parsed_ranking": [f"Response {c}" for c in "CBA"]}
        for name in ("ben", "cyd")
    ]
    said = {"role": "assistant", "stage1": answers, "stage2": ranks}
    said["stage3"] = {"model": "ann", "response": "so"}
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "Why?"}, said]}))
    run = tmp_path / "run"
    assert shell("import", "council", file, "-o", run).code == 0
    shell("check", run).tells("What the logs leave open")
    value = shell("check", run, "--json").json()
    assert [(one["voters"], one["candidates"]) for one in value["votes"]] == [(3, 3)]
    assert [one["votes"] for one in value["told"]] == [1]  # of ann's ranking, which leaves out C
    said = shell("check", run, "--fallback-order", "ann,ben")
    said.fails(2, "is a run, which logs what decided its ties")


@pytest.mark.parametrize("command", ["check", "recount", "summary", "report", "export", "diverge"])
@pytest.mark.parametrize("name", ["b.csv", "b.jsonl", "b.soc"])
def test_a_heading_without_ballots_is_refused_by_every_command(shell, tmp_path, command, name):
    file = tmp_path / name
    heading = "episode_id,turn,stage,voter,candidate,mass,protocol\n"
    file.write_text({"b.csv": heading, "b.jsonl": "\n", "b.soc": "# TITLE: x\n"}[name])
    options = {"export": ["-o", tmp_path / "out"], "diverge": ["--rule", "simple"]}
    done = shell(command, file, *options.get(command, []))
    assert done.code == 2
    assert "holds no orders" in done.err or "no rows" in done.err or "blank" in done.err


@pytest.mark.costly
@pytest.mark.parametrize("command", ["recount", "summary", "report", "export", "diverge"])
def test_turns_without_a_final_vote_end_no_command(shell, tmp_path, command):
    file = tmp_path / "b.csv"
    file.write_text("voter,stage,choice\nv,initial,a\nw,initial,b\n")
    out = tmp_path / "out"
    options = {"export": ["-o", out], "diverge": ["--rule", "simple"], "report": ["-o", "r.html"]}
    options["report"] = ["-o", tmp_path / "r.html"]
    done = shell(command, file, *options.get(command, []))
    assert done.code == 0, done.err


def test_check_of_a_run_lists_its_votes_and_names_no_order(shell, built):
    done = shell("check", built.folder)
    done.tells("vote_final")
    assert "No order is logged" not in done.out  # a run logs its own
    assert "with the same options" not in done.out


def test_a_mapping_of_nothing_and_a_scale_without_two_ends_are_refused(shell, tmp_path):
    file = tmp_path / "b.csv"
    file.write_text("voter,choice\nv,a\nw,b\n")
    shell("check", file, "--map", "voters=Wähler").fails(2, "--map voter=NAME")
    for text in ("ten", "1,2,3", "3,3"):
        shell("check", file, "--scale", text).fails(2, f"--scale {text} is no scale")
