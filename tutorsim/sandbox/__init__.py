"""Verdicts on students' code: found in a message, run behind locks, decided by another process."""

from tutorsim.sandbox.levels import LAYERS, LEVELS, SETTINGS, Layer, Level, Limits, Setting
from tutorsim.sandbox.proving import TaskProblem, prove_tasks
from tutorsim.sandbox.sandbox import RULES_VERSION, Sandbox, judge_code
from tutorsim.sandbox.verdict import Usage

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
    "judge_code",
    "prove_tasks",
]
