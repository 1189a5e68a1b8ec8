"""`tutorsim run`: what it refuses, plans and says. Recording itself is proved with the runner."""

import json
import re
import subprocess
import sys
import tomllib

import pytest

from tutorsim.analysis.statistics.intervals_and_tests import spread_to_expect, tasks_for

pytestmark = pytest.mark.loopback
SMALL = ("--limit", 1, "--condition", "simple", "--max-turns", 1)


def test_a_plan_counts_calls_and_prices_them_and_sends_nothing(endpoint, write_grid, shell):
    study = write_grid()
    prices = ("--prices", study.with_name("prices.toml"))
    said = shell("run", study, "--dry-run", *prices)
    said.tells(
        "Study grid: 4 episodes", "Calls: 8 (every first attempt succeeds) to 74 ", "at most 148 if"
    )
    assert re.search(r"baseline +2 +4 to 10 +[0-9.]+ to [0-9.]+\n", said.out)
    assert re.search(r"simple +2 +4 to 64 +[0-9.]+ to [0-9.]+\n", said.out)
    assert "US dollars (prices of 2026-01-01)" in said.out
    value = shell("run", study, "--dry-run", "--json", *prices).json()
    assert value["calls"] == {"least": 8, "most": 74, "ceiling": 148}
    assert set(value["tokens"]) == {"tutor-model", "judge-model", "student-model"}
    assert 0 < value["least_cost"] < value["cost"]
    values = {one["condition"]: one["calls"]["most"] for one in value["conditions"]}
    assert values == {"baseline": 10, "simple": 64}
    assert endpoint.sent == []
    assert shell("run", study, "--json").code == 2
    # Two contrasts, of a panel with the baseline on two outcomes: 2 · 2^(1 − 7) is below 0.05.
    assert "2 tasks of sciq: too few to show any difference between conditions" in said.out
    [shows] = value["shows"]
    assert (shows["tasks"], shows["contrasts"], shows["fewest_tasks"]) == (2, 2, 7)
    assert shows["difference"] is None
    assert shows["tasks_for_0_3"] == tasks_for(0.3, spread_to_expect(1), 2)


def test_the_price_of_an_unknown_model_is_shown_as_unknown(write_grid, shell):
    said = shell("run", write_grid(), "--dry-run")
    assert "tutor-model:" in said.out
    assert "(price unknown)" in said.out
    assert "unknown: no price for judge-model, student-model, tutor-model" in said.out
    # A lesson's shortest path has a price: where nobody speaks, the judge codes no message.
    shell("run", "lessons", "--set", 'models.judge="mine"', "--dry-run").tells("no price for mine")


def test_a_shipped_study_is_found_by_name(shell):
    shell("run", "published", "--dry-run").tells(
        "1,200 episodes", "20 tasks of sciq: a difference of 0.32 in success is shown over tasks"
    )


@pytest.mark.parametrize(
    "text",
    ['as_of = "x"', "models = 3", "not toml", 'as_of = "x"\n[models.m]\ninput = -1\noutput = 1'],
)
def test_a_wrong_price_table_is_refused(text, write_grid, shell, tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    shell("run", write_grid(), "--dry-run", "--prices", path).fails(2, "is no price table")
    assert shell("run", write_grid(), "--dry-run", "--prices", tmp_path / "none").code == 2


def test_recording_is_refused_in_ci_unless_asked_for(endpoint, write_grid, record, monkeypatch):
    monkeypatch.setenv("CI", "true")
    record(write_grid(), *SMALL).fails(2, "Recording is refused because CI is set.")
    assert endpoint.sent == []
    assert record(write_grid(), *SMALL, "--record-in-ci").code == 0
    assert endpoint.sent


def test_options_override_a_study_and_are_recorded(endpoint, write_grid, record, shell, tmp_path):
    said = record(
        write_grid(),
        *SMALL,
        *("--seed", 9, "--persona", "low_confidence_novice", "--repeats", 2),
        *("--blinding", "shared", "--set", 'models.tutor="other-model"'),
        *("--set", "success_threshold=0.5", "--relay", "a server of ours"),
    )
    assert said.code == 0
    assert {call.split("/")[0] for call in endpoint.sent} == {
        f"sciq.ice.low_confidence_novice.simple.r0{n}" for n in (1, 2)
    }
    run = json.loads((tmp_path / "one" / "log" / "run.json").read_text())
    study = run["study"]
    assert (study["seed"], study["blinding"], study["success_threshold"]) == (9, "shared", 0.5)
    assert study["models"]["tutor"] == "other-model"
    assert run["provenance"]["name"] == "a server of ours"
    assert shell("verify", tmp_path / "one" / "cassettes").code == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"personas": ["nobody"]}, "the catalog has no 'nobody'"),
        ({"roles": ["scaffolding"]}, "roles names 1; a panel has 3 to 8 roles"),
        ({"sed": 1}, "Did you mean 'seed'?"),
        ({"benchmarks": {}}, "benchmarks is empty"),
        ({"benchmarks": {"sciq": {"tasks": "empty.jsonl"}}}, "empty.jsonl"),
        ({"benchmarks": {"sciq": {"tasks": "none.jsonl"}}}, "none.jsonl"),
        ({"benchmarks": {"sciq": {"limit": 0}}}, "benchmarks.sciq.limit"),
    ],
)
def test_a_study_that_cannot_be_run_is_refused_with_a_message(
    settings, named, endpoint, write_grid, record, tmp_path
):
    study = write_grid(**settings)
    (study.parent / "empty.jsonl").write_text("")
    said = record(study)
    said.fails(2, named)
    assert said.err.startswith("Error: ")
    assert endpoint.sent == []
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--set", "seed"), "is no TOML assignment"),
        (("--set", "sead=3"), "Did you mean 'seed'?"),
        (("--condition", "borda"), "borda"),
        (("--max-connections", 0), "--max-connections"),
    ],
)
def test_wrong_options_are_refused(more, named, write_grid, record):
    record(write_grid(), *more).fails(2, named)


def test_folders_are_needed_to_record(write_grid, shell):
    shell("run", write_grid()).fails(2, "--log-dir and --cassette-dir")


def test_a_study_that_is_not_there_names_the_shipped_ones(shell):
    shell("run", "nowhere.toml", "--dry-run").fails(2, "published")


def test_on_a_terminal_a_bar_counts_episodes_calls_tokens_and_cost(
    endpoint, write_grid, record, monkeypatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")
    said = record(write_grid(), *SMALL)
    assert said.code == 0
    assert "1/1" in said.err
    calls = len(endpoint.sent)
    assert f"episodes · {calls} calls · {calls * 120:,} tokens · US$ 0.00 + unpriced" in said.err


def test_where_there_is_no_terminal_there_is_no_bar(endpoint, write_grid, record):
    said = record(write_grid(), *SMALL)
    assert "\x1b" not in said.err
    assert len(said.err.splitlines()) == 3
    assert "0.00 US dollars at list prices, without judge-model, student-model" in said.err
    assert said.out == ""


HEAVY = ("polars", "altair", "rich", "anthropic", "vcr", "pydantic", "scipy", "numpy")


def test_help_of_the_program_imports_nothing_heavy():
    program = (
        "import sys, runpy\n"
        "from tutorsim.cli import main\n"
        "sys.argv = ['tutorsim', '--help']\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"
    assert "Replay the bundled study" in done.stdout


def test_every_command_has_help(shell):
    from tutorsim.cli import COMMANDS

    for name in COMMANDS:
        said = shell(name, "--help")
        assert said.code == 0
        assert said.out.startswith("Usage: tutorsim ")
    for path in (("cassette", "list"), ("cassette", "show"), ("cassette", "verify")):
        assert shell(*path, "--help").code == 0


def test_an_unknown_command_names_the_nearest(shell):
    shell("reply").fails(2, "Did you mean 'replay'?")


def own_persona(name):
    """A `[catalog]` with one persona."""
    traits = [
        "prior_knowledge", "confidence", "persistence", "frustration_sensitivity", "help_seeking",
    ]  # fmt: skip
    return {"personas": {name: {"character": "Drums on the table.", **dict.fromkeys(traits, 0.5)}}}


def test_own_personas_and_roles_need_no_code(endpoint, write_grid, record, tmp_path):
    catalog = own_persona("drummer")
    said = record(write_grid(personas=["drummer"], catalog=catalog), *SMALL)
    assert said.code == 0
    kept = tomllib.loads((tmp_path / "one" / "cassettes" / "study.toml").read_text())
    assert kept["catalog"] == catalog


@pytest.mark.parametrize("characters", [230, 231])
def test_an_episode_whose_files_cannot_be_named_is_refused_by_the_dry_run(
    characters, endpoint, write_grid, record, shell, tmp_path
):
    """The longest that a dry run accepts is recorded, verified and converted."""
    benchmark, persona = "b" * 80, "p" * 80
    task = "t" * (characters - len(f"{benchmark}..{persona}.simple"))
    study = write_grid(
        conditions=["simple"],
        personas=[persona],
        catalog=own_persona(persona),
        benchmarks={benchmark: {"format": "sciq", "tasks": "questions.jsonl", "limit": 1}},
    )
    questions = study.with_name("questions.jsonl")
    questions.write_text(questions.read_text().replace('"ice"', f'"{task}"', 1))
    planned = shell("run", study, "--dry-run")
    if characters > 230:
        planned.fails(2, f"an id of {characters} characters")
        assert len(planned.err.strip().split("\n")) >= 3
        return
    assert planned.code == record(study).code == 0
    kept = tmp_path / "one" / "cassettes"
    packed = tmp_path / "packed"
    assert shell("cassette", "convert", kept, "--to", "compressed", "-o", packed).code == 0
    assert shell("verify", packed).code == 0
