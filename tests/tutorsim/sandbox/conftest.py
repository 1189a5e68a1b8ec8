"""Sandboxes at every level that this machine offers, opened once, and a task to judge for."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tutorsim.errors import SandboxUnavailable
from tutorsim.sandbox import Limits, Sandbox

SHORT = Limits(cpu=0.4, wall=6.0, tests_cpu=0.4, output=64 << 10)
PROMPT = """import math

def times(n):
    return 37 * n

def solve(n):
    \"\"\"A line through the points that only the tests know.\"\"\"
"""
TEST = """
def check(candidate):
    assert candidate(3) == 122
    assert solve(0) == 11
    assert candidate(n=100) == 3711
    assert [candidate(n) for n in (1, 2)] == [48, 85]
"""
TERMS = {"prompt": PROMPT, "entry_point": "solve", "test": TEST}
WAYS: dict[str, dict[str, Any]] = {
    "strong": {"level": "strong"},
    "no-namespaces": {"level": "no-namespaces"},
    "filter-only": {"level": "filter-only"},
    "without landlock": {"without": frozenset({"landlock"})},
    "without uid": {"without": frozenset({"uid"})},
    "filter alone, same user": {"level": "filter-only", "without": frozenset({"uid"})},
}
"""The three levels, and the layers switched off one by one."""
LONG = frozenset({"no-namespaces", "without landlock", "without uid"})
"""Ways that the default run leaves out: another one has fewer layers and the same corpus."""
COSTLY = frozenset({"filter alone, same user", "filter-only"})
"""Ways that are left to CI."""


def _marks(way):
    slow, costly = way in LONG, way in COSTLY
    return [pytest.mark.slow] * slow + [pytest.mark.costly] * costly


def corpus(name):
    """A file of corpus beside this one."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


class Bench:
    """One open sandbox and the task that every program here is for."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.right = corpus("honest")["right"]["program"]

    def __call__(self, program, **terms):
        return self.sandbox.judge_program(program, **{**TERMS, **terms})


@pytest.fixture(scope="session", params=[pytest.param(way, marks=_marks(way)) for way in WAYS])
def bench(request):
    """A sandbox in each way that this machine offers."""
    with Sandbox(limits=SHORT, workers=2, **WAYS[request.param]) as sandbox:
        try:
            assert sandbox.level
        except SandboxUnavailable as error:
            pytest.skip(f"not offered here: {error.why}")
        yield Bench(sandbox)


@pytest.fixture(scope="session")
def best():
    """A sandbox at the strongest level that this machine offers."""
    with Sandbox(limits=SHORT, workers=2) as sandbox:
        yield Bench(sandbox)
