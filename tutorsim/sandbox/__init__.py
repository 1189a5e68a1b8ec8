"""Verdicts on students' code: found in a message, run behind locks, decided by another process."""

from tutorsim.sandbox.levels import LAYERS, LEVELS, SETTINGS, Layer, Level, Limits, Setting
from tutorsim.sandbox.sandbox import RULES_VERSION, Sandbox
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
    "Usage",
]
