"""The systems that studies can be of, and how a study file becomes a study of one.

`tutorsim.systems.system` says what a system is; each has a package of its own here.
"""

from tutorsim.systems.study_loading import (
    load_recorded_study,
    load_study,
    system_named,
    write_study,
)
from tutorsim.systems.system import BallotReading, CallRange, LoadedStudy, System, sum_of

__all__ = [
    "BallotReading",
    "CallRange",
    "LoadedStudy",
    "System",
    "load_recorded_study",
    "load_study",
    "sum_of",
    "system_named",
    "write_study",
]
