"""What a verdict on a program takes beside a fork of the process that asks for it."""

import json
import subprocess
import sys
from typing import Final

import pytest

from tutorsim.errors import SandboxUnavailable
from tutorsim.sandbox import Sandbox

MEASURED: Final = """
import json, os, time
from tutorsim.sandbox import Sandbox

asked = {
    "prompt": "",
    "entry_point": "add",
    "test": "def check(candidate):\\n    assert candidate(1, 2) == 3 and candidate(2, 2) == 4\\n",
}

def verdict():
    found, _ = sandbox.judge_program("def add(a, b):\\n    return a + b\\n", **asked)
    assert found.verdict.outcome == "pass"

def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)

best = {verdict: 60.0, fork: 60.0}
with Sandbox("strong", workers=1) as sandbox:
    verdict()
    for _ in range(400):
        for run in best:
            time.sleep(0.006)
            started = time.perf_counter()
            run()
            best[run] = min(best[run], time.perf_counter() - started)
print(json.dumps([best[fork], best[verdict]]))
"""
"""Runs in a small process, with pauses in which the sandbox makes ready for the next program."""


def test_a_verdict_beside_a_fork(side_by_side):
    try:
        with Sandbox("strong") as sandbox:
            assert sandbox.level == "strong"
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    measure = [sys.executable, "-c", MEASURED]
    done = side_by_side.benchmark.pedantic(
        subprocess.run, (measure,), {"check": True, "capture_output": True}, rounds=1
    )
    fork, verdict = json.loads(done.stdout)
    side_by_side.note(
        what=f"verdict on a program, warm ({1000 * verdict:.1f} ms)",
        reference=f"a bare fork ({1000 * fork:.1f} ms)",
        target="at most 1.8 × its time",
        ratio=verdict / fork,
        unit="× its time",
    )
