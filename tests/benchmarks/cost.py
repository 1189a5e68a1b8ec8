"""What a command costs: processor time of all its threads, time that passed, and memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

TUTORSIM: Final = str(Path(sys.executable).with_name("tutorsim"))
MEASURED: Final = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
passed, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, passed, used.ru_maxrss * 1024]))
"""
"""Runs a command from a small process: a large one's memory would be counted as the child's."""


class Cost(NamedTuple):
    """What one run of a command took."""

    processor: float
    """Seconds, all threads and processes together."""
    passed: float
    """Seconds."""
    memory: int
    """Bytes that it held at most."""

    def words(self) -> str:
        """What stands beside the processor time: it alone says little on a busy machine."""
        load = os.getloadavg()[0]
        return f"{self.passed:.1f} s passed at load {load:.1f}, {self.memory / 1e6:,.0f} MB"


def cost_of(*arguments):
    """Run `tutorsim` once in a process of its own."""
    command = [sys.executable, "-c", MEASURED, TUTORSIM, *map(str, arguments)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=True, capture_output=True, env=environment)
    return Cost(*json.loads(done.stdout))


def note(side_by_side, what, cost, *, target):
    side_by_side.note(
        what=f"{what} ({cost.words()})",
        reference="none (processor time)",
        target=target,
        ratio=cost.processor,
        unit="s",
    )


def measured(side_by_side, *arguments, rounds=3):
    """The cheapest of some runs of a command."""
    costs: list[Cost] = []
    side_by_side.benchmark.pedantic(lambda: costs.append(cost_of(*arguments)), rounds=rounds)
    return min(costs)
