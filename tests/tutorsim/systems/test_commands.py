"""Every command meets a run of every shipped system: an answer, or three parts that say why not."""

from pathlib import Path

import pytest

from tutorsim.bundled_recordings import bundled_recording
from tutorsim.system_registry import load, system_names

pytestmark = pytest.mark.costly

COMMANDS = {
    "summary": (),
    "summary --json": (),
    "show": (),
    "recount": ("--targets", "approval", "--exempt", "0"),
    "diverge": ("--rule", "approval"),
    "branch": ("--rule", "approval", "--plan"),
    "retest": ("--repeats", "2", "--sample", "40", "--seed", "1", "--plan"),
    "report": ("-o", "{out}/report.md"),
    "export": ("-o", "{out}/tables"),
    "compare": ("{run}",),
    "rate": ("--export", "{out}/sheet.html"),
    "rate --rubric": ("{rubric}", "--export", "{out}/sheet.csv"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """System → a run folder of its bundled study."""
    from tutorsim.runner.replaying import replay

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
