"""A debate with ties through the house: recorded, replayed, in a batch, killed, asked again."""

import json
import random
from types import SimpleNamespace

import pytest
import tomli_w

from tests.tutorsim.conftest import killed_after
from tutorsim.replay import read_manifest
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.systems.debate.scripted_replies import _willing

pytestmark = pytest.mark.loopback

STUDY = {
    "name": "ties",
    "system": "debate",
    "seed": 3,
    "conditions": ["approval", "unanimity"],
    "benchmarks": {"strategyqa": {"tasks": "builtin", "limit": 3}},
    "debate": {"vote_from": 1, "max_turns": 3, "confidence": True},
}


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(tomli_w.dumps(STUDY), encoding="utf-8")
    return path


@pytest.fixture
def recorded(study, model, shell, tmp_path):
    folder = tmp_path / "rec"
    said = shell("run", study, "--log-dir", tmp_path / "log", "--cassette-dir", folder)
    assert said.code == 0, said.err
    return folder


def lines_of(folder):
    return (folder / "episodes.jsonl").read_bytes()


def test_a_debate_with_ties_replays_to_the_same_bytes(recorded, shell, tmp_path):
    lines = lines_of(tmp_path / "log")
    assert b'"vote_held"' in lines
    for name, options in {"one": ("--workers", 1), "two": ("--workers", 2)}.items():
        assert shell("replay", recorded, "--log-dir", tmp_path / name, *options).code == 0
        assert lines_of(tmp_path / name) == lines
    assert shell("verify", recorded).code == 0


def test_one_turn_of_a_debate_is_shown_alone(recorded, shell, tmp_path):
    log = tmp_path / "log"
    records = [json.loads(line) for line in lines_of(log).splitlines()]
    name = next(one["episode_id"] for one in records if len(one["turns"]) > 1)
    assert "(#1, turn 1, " in shell("show", log, name).out
    alone = shell("show", log, name, "--turn", 2)
    assert ", turn 2, " in alone.out
    assert ", turn 1, " not in alone.out
    [turn] = shell("show", log, name, "--turn", 2, "--json").json()["turns"]
    assert turn["turn"] == 2


def test_questions_with_equal_options_are_recorded_told_once_and_verified(model, shell, tmp_path):
    (tmp_path / "mmlu").mkdir()
    (tmp_path / "mmlu" / "art_test.csv").write_text("Q?,w,x,x,v,C\nR?,a,b,c,d,A\n")
    changes = {"conditions": ["baseline"], "benchmarks": {"mmlu": {"tasks": "mmlu"}}}
    (tmp_path / "study.toml").write_text(tomli_w.dumps(STUDY | changes), encoding="utf-8")
    folders = ("--log-dir", tmp_path / "log", "--cassette-dir", tmp_path / "rec")
    said = shell("run", tmp_path / "study.toml", *folders)
    told = " ".join(said.err.split())
    assert (said.code, told.count("1 of 2 tasks of mmlu have equal options, 'art-0001'")) == (0, 1)
    stored, _ = map(json.loads, (tmp_path / "rec" / "tasks.mmlu.jsonl").read_text().splitlines())
    assert (stored["options"], stored["gold"]) == (["w", "x", "x", "v"], ["C"])
    said = shell("verify", tmp_path / "rec")
    assert (said.code, "equal options" in said.err) == (0, False)


@pytest.mark.costly
def test_a_batch_gives_the_log_of_direct_calls(recorded, study, shell, tmp_path):
    options = ("--log-dir", tmp_path / "batch-log", "--cassette-dir", tmp_path / "batch", "--batch")
    assert shell("run", study, *options).code == 0
    assert lines_of(tmp_path / "batch-log") == lines_of(tmp_path / "log")


@pytest.mark.costly
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_after_kills_the_bytes_are_the_same(recorded, study, model, launch, shell, tmp_path, seed):
    """Three kills a run: while it starts, while it asks, while it writes, or after its end."""
    draw = random.Random(seed)
    folders = ["--log-dir", tmp_path / "again", "--cassette-dir", tmp_path / "killed"]
    connections = ("--max-connections", draw.choice([1, 2, 8]))
    asked, before = model.requests, model.requests
    for moment in sorted(draw.randrange(asked) for _ in range(3)):
        running = launch("run", study, *connections, *folders)
        killed_after(running, model, before + moment, seconds=draw.uniform(0, 0.3))
    said = shell("run", study, *folders)
    assert said.code == 0, said.err
    assert lines_of(tmp_path / "again") == lines_of(tmp_path / "log")
    assert shell("verify", tmp_path / "killed").code == 0
    assert model.requests - before <= asked + 3 * connections[1]  # what was kept is not asked again


@pytest.mark.costly
def test_deciding_votes_are_asked_again_and_recounted(recorded, shell, tmp_path):
    said = shell("retest", tmp_path / "log", "--repeats", 1, "--cassette-dir", recorded)
    assert said.code == 0, said.err
    assert shell("recount", tmp_path / "log").code == 0
    told = shell("recount", tmp_path / "log", "--set", "vote_from=1,2", "--json").json()
    assert told


@pytest.mark.costly
def test_the_bundled_recording_is_small_and_verifies(shell):
    folder = bundled_recording("debate")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 600_000
    assert len(read_manifest(folder).episodes) == 70
    assert shell("verify", folder).code == 0


@pytest.mark.costly
def test_the_demo_of_debates_needs_no_network_and_gives_equal_bytes(shell, tmp_path):
    for name in ("a", "b"):
        assert shell("demo", "--system", "debate", "--log-dir", tmp_path / name).code == 0
    for file in ("episodes.jsonl", "run.json", "report.html"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_critic_of_the_stand_in_agrees_less_often():
    critic, other = (
        SimpleNamespace(asking=SimpleNamespace(user=f"Only if you find it {word}, agree."))
        for word in ("flawless", "right")
    )
    assert 0 < _willing(critic, None) < _willing(other, None) < 1
