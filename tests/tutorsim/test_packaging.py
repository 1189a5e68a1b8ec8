"""What is installed: from an archive, from a clone without links, and under which licence."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
COPYLEFT = re.compile(r"(?<!L)(?<!Lesser )\bA?GPL|(?<!Lesser )General Public License", re.I)
POSIX_ONLY = """
import os, signal, sys
for module, names in {signal: ["SIGHUP", "SIGKILL"], os: ["fork", "getuid", "register_at_fork",
        "sched_getaffinity", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK"]}.items():
    for name in names:
        delattr(module, name)
sys.modules |= dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios"))
from tutorsim.cli import main
main()
"""
"""Runs a command with what Windows does not have taken away."""


def ran(*words, cwd, **environment):
    """What a command printed; it must end well."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CI")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def clone(folder, *, links):
    """This working tree as a clone has it, with symbolic links or with texts in their place."""
    git = ["git", "-c", f"core.symlinks={str(links).lower()}"]
    ran(*git, "clone", "-q", ROOT, folder, cwd=ROOT)
    changed = ran("git", "ls-files", "-mo", "--exclude-standard", "--deduplicate", cwd=ROOT)
    for name in changed.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    return folder


def bare(folder):
    """A new environment without packages: the search path of programs that finds it first."""
    ran(sys.executable, "-m", "venv", folder, cwd=ROOT)
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.costly
def test_the_wheel_made_from_the_source_archive_runs_where_nothing_else_is(tmp_path):
    made = {}
    for links in (True, False):
        out = tmp_path / f"dist-{links}"
        sources = clone(tmp_path / f"clone-{links}", links=links)
        assert (sources / "tutorsim/analysis").is_symlink() is links
        ran(sys.executable, "-m", "build", "-o", out, sources, cwd=tmp_path)
        [wheel] = out.glob("*.whl")
        made[links] = wheel
    assert made[True].read_bytes() == made[False].read_bytes()
    there = bare(tmp_path / "env")
    constraints = ROOT / "constraints.txt"
    ran("python", "-m", "pip", "install", "-q", "-c", constraints, wheel, cwd=tmp_path, **there)
    said = ran("tutorsim", "demo", "--log-dir", tmp_path / "run", cwd=tmp_path, **there)
    assert "120 episodes replayed" in said
    assert (tmp_path / "run/report.html").stat().st_size > 100_000
    assert '"analysis": true' in ran("tutorsim", "doctor", "--json", cwd=tmp_path, **there)


@pytest.mark.costly
def test_the_workflow_s_steps_run_in_a_clone_without_links(tmp_path):
    there = bare(tmp_path / "env")
    sources = clone(tmp_path / "clone", links=False)
    steps = [one["run"] for one in WORKFLOW["jobs"]["recordings"]["steps"] if "run" in one]
    for step in steps:
        ran("bash", "-e", "-c", step, cwd=sources, **there)
    assert any("--claims" in step for step in steps)
    shutil.rmtree(tmp_path / "env/lib/python{}.{}/site-packages/tutorsim".format(*sys.version_info))
    ran("python", "-m", "tutorsim", "summary", "runs/demo", cwd=sources, **there)


def test_the_workflow_asks_for_every_system_and_python():
    matrix = WORKFLOW["jobs"]["recordings"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    checked = [one.get("run") for one in WORKFLOW["jobs"]["checks"]["steps"]]
    assert ".ci/run" in checked


@pytest.mark.parametrize(
    "command",
    [
        "verify cassettes/claude",
        "replay cassettes/group --log-dir {}/run --workers 1",
        "summary cassettes/oversight-audit",
        pytest.param("report cassettes/claude -o {}/page.html", marks=pytest.mark.costly),
        pytest.param("run cassettes/debate/study.toml --dry-run", marks=pytest.mark.costly),
    ],
)
def test_what_needs_no_sandbox_needs_nothing_that_windows_lacks(command, tmp_path):
    words = command.format(tmp_path).split()
    ran(sys.executable, "-c", POSIX_ONLY, *words, cwd=ROOT)


def required(names):
    """Packages that are installed with these requirements, without extras; directly or not."""
    found: set[str] = set()
    while names:
        one = Requirement(names.pop())
        wanted = one.marker is None or one.marker.evaluate({"extra": ""})
        if wanted and one.name not in found:
            found.add(one.name)
            names += metadata.requires(one.name) or []
    return found


def test_no_required_package_is_under_the_gpl():
    """The licence is MIT: nothing that a user must install may ask for more."""

    def licence(name):
        facts = metadata.metadata(name)
        classified = [c for c in facts.get_all("Classifier", []) if c.startswith("License")]
        stated = [*facts.get_all("License-Expression", []), *facts.get_all("License", [])]
        return "; ".join([*classified, *(text.strip().splitlines()[0] for text in stated if text)])

    assert COPYLEFT.search(licence("krippendorff"))
    assert not COPYLEFT.search("LGPL-2.1; GNU Lesser General Public License")
    packages = required(list(PROJECT["dependencies"]))
    assert {"numpy", "httpcore2"} <= packages
    assert {name for name in packages if COPYLEFT.search(licence(name))} == set()
