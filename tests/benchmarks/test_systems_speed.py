"""How long the systems' own questions take: recounts, readings, scores, audits, demos.

Fewer debates and items than ten thousand, which take minutes to make:
`TUTORSIM_BENCH_EPISODES=1000 pytest tests/benchmarks/test_systems_speed.py -n 0`.
"""

import json
import os
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np
import polars as pl
import pytest
import tomli_w

from tests.benchmarks.cost import measured, note
from tests.benchmarks.making import log_stand_in
from tutorsim.analysis.systems.oversight.label_accuracy import Judged, evaluate
from tutorsim.cli.audit_labels_delivered_replies import possible_in
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay
from tutorsim.systems.oversight.audit_study_of_replies_of_a_run import audit_study
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import read_mrbench

EPISODES: Final = int(os.environ.get("TUTORSIM_BENCH_EPISODES", "10000"))
TUTORS: Final = 8
"""Replies to one dialogue."""


def shipped(*place):
    """The text of a data file of the package."""
    return resources.files("tutorsim").joinpath(*place).read_text(encoding="utf-8")


def debates(folder):
    """The run of one debate that never stops on each of so many questions."""
    text = shipped("systems", "debate", "tasks", "mmlu.jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    with (folder / "mmlu.jsonl").open("w", encoding="utf-8") as file:
        for i in range(EPISODES):
            row = rows[i % len(rows)]
            file.write(json.dumps({**row, "question": f"{row['question']} (case {i})"}) + "\n")
    return made(folder, "debate", "full", {"mmlu": {"tasks": "mmlu.jsonl"}})


def items(folder):
    """The run of one moderated debate on each of so many replies, with quick labels before it."""
    rows = dialogues(EPISODES // TUTORS)
    (folder / "bench.json").write_text(json.dumps(rows), encoding="utf-8")
    settings = {"oversight": {"adaptive": "log"}}
    return made(folder, "oversight", "hpo", {"mrbench": {"tasks": "bench.json"}}, **settings)


def made(folder, system, condition, benchmarks, **settings):
    head = {"name": "made", "system": system, "seed": 3, "conditions": [condition]}
    path = folder / "study.toml"
    study = {**head, "benchmarks": benchmarks, **settings}
    path.write_text(tomli_w.dumps(study), encoding="utf-8")
    return log_stand_in(folder / "log", load_study(path))


def dialogues(count, tutors=()):
    """So many rows of an MRBench file, made of the built-in ones.

    Args:
        count: Rows.
        tutors: Replies in each row; eight where nothing is said.
    """
    rows = json.loads(shipped("systems", "oversight", "builtin.json"))
    found = []
    for i in range(count):
        row = rows[i % len(rows)]
        replies = list(row["anno_llm_responses"].values())
        number = tutors[i] if tutors else TUTORS
        told = {f"Tutor{k}": replies[k % len(replies)] for k in range(number)}
        name = f"{row['conversation_id']}-{i}"
        found.append({**row, "conversation_id": name, "anno_llm_responses": told})
    return found


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """Runs by what makes them, each made once."""
    return cache(lambda make: make(tmp_path_factory.mktemp(make.__name__)))


@pytest.mark.parametrize(
    ("make", "target", "memory"),
    [(debates, "at most 30 s, 1 GB", 1e9), (items, "at most 5 s", None)],
    ids=["debate", "oversight"],
)
def test_a_recount_of_whole_episodes(side_by_side, run_of, make, target, memory):
    """Debates that never stopped under every protocol; opinions under every aggregation."""
    run = run_of(make)
    cost = measured(side_by_side, "recount", run.folder)
    assert run.episodes == EPISODES // TUTORS * TUTORS
    assert memory is None or cost.memory <= memory
    what = f"`tutorsim recount` of {run.episodes:,} episodes: {make.__name__}, {run.calls:,} calls"
    note(side_by_side, what, cost, target=target)


def test_a_report_of_debates(side_by_side, run_of, tmp_path):
    run = run_of(debates)
    cost = measured(side_by_side, "report", run.folder, "-o", tmp_path / "page.html", rounds=1)
    what = f"`tutorsim report` of {run.episodes:,} debates"
    note(side_by_side, what, cost, target="at most 10 s, 1 GB")


@pytest.mark.parametrize("system", ["debate", "oversight"])
def test_a_demo(side_by_side, tmp_path, system):
    arguments = ("demo", "--system", system, "--log-dir", tmp_path / "log")
    cost = measured(side_by_side, *arguments)
    note(side_by_side, f"`tutorsim demo --system {system}`", cost, target="at most 20 s")


def test_reading_labelled_replies(side_by_side, tmp_path):
    """As many dialogues and replies as the development set of MRBench V3 has."""
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(dialogues(300, [9] * 76 + [8] * 224)), encoding="utf-8")
    found = side_by_side.benchmark.pedantic(lambda: read_mrbench(path), rounds=5)
    assert len(found) == 2_476
    what = "reading an MRBench file of 300 dialogues with 2,476 replies"
    side_by_side.note_time(what=what, target="at most 1 s")


@pytest.mark.parametrize("over", ["dialogues", "items"])
def test_scoring_ten_thousand_items(side_by_side, over):
    labels = np.random.default_rng(5).integers(0, (2, 3, 2, 3), (10_000, 4)).tolist()
    judged = [
        Judged(f"i{i}", f"d{i // TUTORS}", (gold, helps), (said, told))
        for i, (gold, helps, said, told) in enumerate(labels)
    ]
    found = side_by_side.benchmark.pedantic(lambda: evaluate({"all": judged}, over=over), rounds=3)
    assert found["all"].items == 10_000
    what = f"scores of 10,000 items with intervals over {over}"
    side_by_side.note_time(what=what, target="at most 10 s")


def test_votes_of_ten_agents(side_by_side, tmp_path):
    """Two votes in each format, every agent on every ballot: all rules, up to two exempt."""
    rng, names = np.random.default_rng(3), [f"agent_{i}" for i in range(1, 11)]
    cast: dict[str, Callable[[], Any]] = {
        "simple": lambda: np.eye(10, dtype=int)[rng.integers(10)],
        "ranked": lambda: rng.permutation(10),
        "cumulative": lambda: rng.multinomial(25, np.ones(10) / 10),
        "approval": lambda: (rng.random(10) < 0.4).astype(int),
    }
    rows = [
        (f"e{vote}", 1, "vote_final", voter, candidate, int(mass), form)
        for vote, form in enumerate([*cast, *cast])
        for voter in names
        for candidate, mass in zip(names, cast[form](), strict=True)
    ]
    columns = ["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(tmp_path / "ballots.parquet")
    cost = measured(side_by_side, "recount", tmp_path / "ballots.parquet", "--full")
    what = "`tutorsim recount` of eight votes of ten agents on ten answers, all rules, k to 2"
    note(side_by_side, what, cost, target="at most 5 s a vote")


def test_joining_an_audit_to_its_run(side_by_side, make_recording, tmp_path):
    """Every final proposal of the published grid, and who could have won under each rule."""
    grid = make_recording()
    replay(grid.folder, log_dir=tmp_path / "log")
    joined = side_by_side.benchmark.pedantic(
        lambda: audit_study(tmp_path / "log", possible=possible_in, seed=7), rounds=3
    )
    items = joined.tasks["audit"]
    assert sum(bool(one.audited.possible) for one in items) > len(items) / 2
    side_by_side.note_time(
        what=f"`tutorsim audit` of {grid.episodes:,} episodes: {len(items):,} proposals, and who "
        "could have won",
        target="at most 10 s",
    )
