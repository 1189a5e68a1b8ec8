"""Every command meets a run of every shipped system: an answer, or three parts that say why not."""

from pathlib import Path

import pytest

from tutorsim.cli import main
from tutorsim.runner import replay_into_run_folder_in_several_processes as replaying
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.standin import StandIn
from tutorsim.system_registry import load, system_names

pytestmark = pytest.mark.costly

COMMANDS = {
    "summary": (),
    "summary --json": (),
    "show": (),
    "recount": (),
    "recount --targets": ("approval", "--exempt", "0"),
    "recount --threshold": ("0.5",),
    "recount --turns": ("{out}/turns.csv",),
    "diverge": ("--rule", "approval"),
    "branch": ("--rule", "approval", "--plan"),
    "retest": ("--repeats", "2", "--sample", "40", "--seed", "1", "--plan"),
    "report": ("-o", "{out}/report.md"),
    "export": ("-o", "{out}/tables"),
    "compare": ("{run}",),
    "audit": ("--dry-run",),
    "rate": ("--export", "{out}/sheet.html"),
    "rate --rubric": ("{rubric}", "--export", "{out}/sheet.csv"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """System → a run folder of its bundled study."""
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay

    found = {}
    for name in system_names():
        recording = bundled_recording(load(name, "system").demo)
        assert recording is not None
        found[name] = tmp_path_factory.mktemp(name) / "run"
        replay(recording, log_dir=found[name])
    return found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("system", system_names())
def test_a_command_answers_or_says_why_it_does_not_apply(runs, shell, tmp_path, system, command):
    name, *options = command.split()
    run = runs[system]
    rubric = tmp_path / "rubric.toml"
    rubric.write_text('question = "Does it help?"\nscale = [1, 2, 3]\n')
    places = {"run": run, "out": tmp_path, "rubric": rubric}
    given = [text.format(**places) for text in COMMANDS[command]]
    said = shell(name, run, *options, *given)
    assert said.code in (0, 1, 2), said.err
    if said.code == 2:
        parts = [line for line in said.err.strip().splitlines() if not line.startswith("Note")]
        assert len(parts) >= 3
        assert repr(system) in said.err
        assert name in said.err
    else:
        assert said.out.strip()
        if any("{out}" in text for text in COMMANDS[command]):
            assert list(tmp_path.iterdir()) != [rubric]


@pytest.mark.parametrize("command", ["summary", "recount", "report"])
@pytest.mark.parametrize("system", system_names())
def test_a_panel_that_a_run_does_not_compare_is_refused(runs, shell, system, command):
    said = shell(command, runs[system], "--panel", "nobody")
    said.fails(2, "run has no panel 'nobody'", "It compares no panels")


def on_recording(recording, out):
    """Command → its arguments, of what is done with a recording or its study."""
    return {
        "run": (recording / "study.toml", "--dry-run", "--json"),
        "verify": (recording, "--json"),
        "verify --wordings": ("current", recording),
        "cassette list": (recording.parent,),
        "cassette show": (recording,),
        "cassette verify": (recording,),
        "cassette convert": (recording, "--to", "compressed", "-o", out / "compressed"),
    }


@pytest.mark.parametrize("command", on_recording(Path(), Path()))
@pytest.mark.parametrize("system", system_names())
def test_what_is_done_with_a_recording_works_for_every_system(shell, tmp_path, system, command):
    recording = bundled_recording(load(system, "system").demo)
    assert recording is not None
    said = shell(*command.split(), *on_recording(recording, tmp_path)[command])
    assert said.code in (0, 1) if command == "verify --wordings" else said.code == 0, said.err
    assert (said.out + said.err).strip()


@pytest.mark.parametrize("system", system_names())
def test_a_study_without_a_person_is_not_served(shell, tmp_path, system):
    recording = bundled_recording(load(system, "system").demo)
    assert recording is not None
    study = tmp_path / "study.toml"
    text = (recording / "study.toml").read_text(encoding="utf-8")
    text = text.replace('"tasks.', f'"{recording}/tasks.')
    study.write_text(text.replace('    "person",\n', ""), encoding="utf-8")
    said = shell("chat", study, "--log-dir", tmp_path / "log", "--cassette-dir", tmp_path / "rec")
    assert said.code == 2
    assert len(said.err.strip().splitlines()) >= 3
    assert "tutorsim chat" in said.err.replace("\n", " ")
    assert repr(system) in said.err.replace("\n", " ")


THOUSAND = {
    "panel": """
        conditions = ["baseline", "simple"]
        personas = ["help_avoidant", "low_confidence_novice"]
        max_turns = 1
        repeats = 50
        benchmarks.sciq.limit = 5
        """,
    "debate": """
        conditions = ["baseline", "simple"]
        repeats = 84
        benchmarks.strategyqa = {tasks = "builtin", limit = 6}
        """,
    "group": """
        conditions = ["next_speaker"]
        repeats = 99
        benchmarks.scenario = {tasks = "builtin", limit = 5}
        """,
    "oversight": """
        conditions = ["single"]
        repeats = 63
        benchmarks.mrbench.tasks = "builtin"
        """,
}
"""Studies of about 1,000 short episodes."""

READERS = {
    "summary": (),
    "recount": (),
    "export": ("-o", "{out}/tables"),
    "show": (),
    "compare": ("{recording}",),
    "report": ("-o", "{out}/report.md"),
    "verify": ("--claims", "{claims}"),
    "replay": ("--log-dir", "{out}/log"),
}


@pytest.fixture(scope="module", params=THOUSAND)
def thousand(request, tmp_path_factory):
    """A recording of about 1,000 episodes of a system, and the claims of its report."""
    folder = tmp_path_factory.mktemp(request.param)
    study, claims = folder / "study.toml", folder / "report.claims.json"
    study.write_text(f'name = "thousand"\nsystem = "{request.param}"\n{THOUSAND[request.param]}')
    to = ("--log-dir", folder / "log", "--cassette-dir", folder / "recording")
    with pytest.MonkeyPatch.context() as patch, StandIn(seed=3) as server:
        patch.setenv("ANTHROPIC_BASE_URL", server.url)
        patch.setenv("ANTHROPIC_API_KEY", "unused")
        report = ("report", folder / "log", "-o", folder / "report.md")
        for command in (("run", study, *to), report):
            patch.setattr("sys.argv", ["tutorsim", *map(str, command)])
            main()
    assert claims.is_file()
    return folder / "recording", claims


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_reader_of_a_thousand_episodes_shares_them_among_processes(
    thousand, shell, tmp_path, monkeypatch, workers, command
):
    """Processes are spawned beside the threads of polars, and given what they replay as bytes."""
    monkeypatch.setattr(replaying, "default_workers", lambda episodes: workers)
    monkeypatch.setattr(replaying, "_threads", lambda: 2)
    recording, claims = thousand
    given = [
        str(x).format(out=tmp_path, recording=recording, claims=claims) for x in READERS[command]
    ]
    said = shell(command, recording, *given)
    assert said.code == 0, said.err
    assert said.out.strip() or said.err.strip()
