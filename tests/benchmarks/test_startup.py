"""How soon the command line answers: processes of their own, beside one that only imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay import replay

TUTORSIM = str(Path(sys.executable).with_name("tutorsim"))


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def imports_only():
    run(sys.executable, "-c", "import click, rich")


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The bundled study, replayed."""
    recording = bundled_recording()
    assert recording is not None
    folder = tmp_path_factory.mktemp("demo")
    replay(recording, log_dir=folder)
    return str(folder)


def test_help_starts_at_once(side_by_side):
    found = side_by_side.time(imports_only, lambda: run(TUTORSIM, "--help"), rounds=10)
    side_by_side.note(
        what="`tutorsim --help`",
        reference='`python -c "import click, rich"`',
        target="at most 2 × its time",
        ratio=found.candidate / found.reference,
        unit="× its time",
    )


def test_a_summary_takes_less_than_a_second(side_by_side, demo_run):
    found = side_by_side.time(imports_only, lambda: run(TUTORSIM, "summary", demo_run), rounds=5)
    side_by_side.note(
        what="`tutorsim summary` of the bundled study",
        reference=f'none (`python -c "import click, rich"` takes {found.reference:.2f} s)',
        target="under 1 s",
        ratio=found.candidate,
        unit="s",
    )


def test_a_report_takes_less_than_ten_seconds(side_by_side, demo_run, tmp_path):
    page = tmp_path / "page.html"
    found = side_by_side.time(
        imports_only, lambda: run(TUTORSIM, "report", demo_run, "-o", str(page)), rounds=2
    )
    side_by_side.note(
        what="`tutorsim report` of the bundled study",
        reference=f'none (`python -c "import click, rich"` takes {found.reference:.2f} s)',
        target="under 10 s",
        ratio=found.candidate,
        unit="s",
    )
