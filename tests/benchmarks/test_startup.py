"""How soon the command line answers: processes of their own, beside one that only imports."""

import subprocess
import sys

from tests.benchmarks.cost import TUTORSIM


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def imports_only():
    run(sys.executable, "-c", "import click, rich")


def test_help_starts_at_once(side_by_side):
    found = side_by_side.time(imports_only, lambda: run(TUTORSIM, "--help"), rounds=10)
    side_by_side.note(
        what="`tutorsim --help`",
        reference='`python -c "import click, rich"`',
        target="at most 2 × its time",
        ratio=found.candidate / found.reference,
        unit="× its time",
    )
