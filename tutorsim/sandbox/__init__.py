"""Verdicts on students' code: found in a message, run behind locks, decided by another process.

`Sandbox` keeps one zygote per core. For each program a zygote forks a *worker*, which finds and
runs the student's code and knows no test, and a *judge*, which holds the tests, sends arguments
to the worker and compares the plain values that come back. Both are locked before they read
anything: by a seccomp filter, namespaces, Landlock, limits and a user of their own, as far as
the machine has them. `inner` is what runs in those processes; the rest is the near side.
"""

from tutorsim.sandbox.inner.frames_layers_and_longest_program import LAYERS, Layer
from tutorsim.sandbox.protection_levels_limits_and_near_limit import (
    LEVELS,
    SETTINGS,
    Level,
    Limits,
    Setting,
)
from tutorsim.sandbox.sandbox_judges_answers_and_proves_tasks import (
    RULES_VERSION,
    Sandbox,
    TaskProblem,
    Usage,
    prove_tasks,
    require_provable,
)

__all__ = [
    "LAYERS",
    "LEVELS",
    "RULES_VERSION",
    "SETTINGS",
    "Layer",
    "Level",
    "Limits",
    "Sandbox",
    "Setting",
    "TaskProblem",
    "Usage",
    "prove_tasks",
    "require_provable",
]
