"""A small study of panels of 3, 4 and 6 roles and two placebos, recorded from the stand-in."""

import signal

import polars as pl
import pytest

from tests.tutorsim.conftest import killed_after

pytestmark = [pytest.mark.loopback, pytest.mark.costly]

STUDY = """
name = "sizes"
seed = 4
conditions = ["baseline", "ranked"]
personas = ["help_avoidant"]
max_turns = 1

[panels.three]
roles = ["scaffolding", "misconception", "motivation"]

[panels.four]
roles = ["scaffolding", "misconception", "motivation", "metacognitive"]

[panels.six]
roles = ["misconception", "motivation", "metacognitive", "summing_up", "transfer", "precision"]
fallback_order = ["misconception", "motivation", "metacognitive", "transfer", "precision", \
"summing_up"]

[panels.copies]
placebo = "copied"
roles = ["scaffolding"]
size = 4

[panels.lot]
placebo = "random"
size = 3

[catalog.roles.summing_up]
title = "summing-up tutor"
objective = "gather what has been said into one sentence"
means = "Ask for the sentence, and mend it together."

[benchmarks.sciq]
limit = 2
"""
EPISODES = 2 * (1 + 5)


def test_the_study_goes_through_every_command(stand_ins, launch, shell, tmp_path):
    model = stand_ins(seed=3)
    study, rec, log = (tmp_path / name for name in ("sizes.toml", "rec", "log"))
    study.write_text(STUDY)
    command = ["run", study, "--log-dir", log, "--cassette-dir", rec]
    assert killed_after(launch(*command), model, 100) == -signal.SIGKILL
    on_disk = sum(len(p.read_bytes().splitlines()) - 1 for p in rec.glob("*.journal.jsonl"))
    before = model.requests
    said = shell(*command)
    assert said.code == 0, said.err
    calls = shell("summary", log, "--json").json()["values"]["usage"]["calls"]
    assert on_disk > 0
    assert model.requests - before <= calls - on_disk

    for workers in (1, 3):
        again = tmp_path / f"again{workers}"
        assert shell("replay", rec, "--log-dir", again, "--workers", workers).code == 0
        for name in ("episodes.jsonl", "run.json"):
            assert (again / name).read_bytes() == (log / name).read_bytes()
    said = shell("verify", rec)
    assert said.out.startswith(f"{EPISODES} of {EPISODES} episodes"), said.err
    assert shell("verify", rec, "--wordings", "current").code == 0
    batched = ("--log-dir", tmp_path / "b", "--cassette-dir", tmp_path / "brec", "--batch")
    assert shell("run", study, *batched).code == 0
    assert (tmp_path / "b" / "episodes.jsonl").read_bytes() == (log / "episodes.jsonl").read_bytes()
    _views(log, tmp_path, shell)
    _what_follows(log, rec, tmp_path, shell)


def _views(log, tmp_path, shell):
    found = shell("summary", log, "--json").json()["values"]["panels"]
    assert [len(made["roles"]) for made in found["panels"].values()] == [3, 4, 6, 4, 3]
    assert {row["panel"] for row in found["outcomes"]} == set(found["panels"])
    drawn = shell("summary", log, "--section", "panels").out
    assert "Final votes tied, by size" in drawn
    assert "scaffolding, 4 times" in drawn
    assert "panel six" in shell("summary", log, "--panel", "six").out
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    assert shell("report", log, "-o", page).code == 0
    assert shell("report", log, "-o", text).code == 0
    for path in (page, text):
        assert "Certain under another rule, by size" in path.read_text(encoding="utf-8")
    assert shell("export", log, "-o", tmp_path / "tables").code == 0
    ballots = pl.read_parquet(tmp_path / "tables" / "ballots.parquet")
    sizes = ballots.filter(stage="vote_final").group_by("panel").agg(pl.n_unique("voter"))
    assert dict(sizes.iter_rows()).items() <= {
        "three": 3, "four": 4, "six": 6, "copies": 4, "lot": 3
    }.items()  # fmt: skip
    episode = next(e for e in ballots["episode_id"] if e.endswith(".ranked.six"))
    assert "Panel: six: misconception › motivation" in shell("show", log, episode).out


def _what_follows(log, rec, tmp_path, shell):
    assert "Nothing differs" in shell("compare", log, tmp_path / "again1").out
    whole = shell("recount", log, "--targets", "simple", "--json").json()
    names = ("three", "four", "six", "copies", "lot")
    parts = [
        shell("recount", log, "--panel", n, "--targets", "simple", "--json").json() for n in names
    ]
    assert sum(part["turns"] for part in parts) == whole["turns"]
    assert shell("recount", log, "--panel", "five").code == 2
    assert shell("diverge", log, "--panel", "six", "--rule", "simple").code == 0
    branch = tmp_path / "branch"
    assert shell("branch", log, "--rule", "simple", "--cassette-dir", rec, "-o", branch).code == 0
    assert shell("verify", branch).code == 0
    assert shell("compare", log, branch).code == 0
    assert shell("retest", rec, "--repeats", 1).code == 0
    assert shell("verify", rec).code == 0
    assert shell("audit", log, "-o", tmp_path / "audit").code == 0
