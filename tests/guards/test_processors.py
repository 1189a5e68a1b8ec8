"""Answers are the same bytes on every processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "cassettes" / "demo"
KINDS = ("Prescott", "Nehalem", "Haswell", "SkylakeX")
"""Processors with SSE3, SSE4, AVX2 and AVX-512, each with its own way to multiply matrices; one
that this machine lacks is not taken, and the machine's own is instead."""


def summary(**environment: str) -> bytes:
    command = [sys.executable, "-m", "tutorsim", "summary", str(DEMO), "--json"]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, check=True, env=variables).stdout


@pytest.mark.costly
def test_a_summary_does_not_depend_on_how_a_processor_multiplies_matrices() -> None:
    found = {summary(OPENBLAS_CORETYPE=kind) for kind in KINDS}
    assert len(found) == 1
