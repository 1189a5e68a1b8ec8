"""What each system adds to analysis: its tables, summary, report, traces and outcomes.

A system's view is one value of `View`, named in `tutorsim.system_registry` or by the `view` of
another package's system. Commands find it by the run's head.
"""

from tutorsim.analysis.systems.paired_comparison import compare_conditions, compare_system_runs
from tutorsim.analysis.systems.system_view import SystemRun, View, framed, open_run, view_of

__all__ = [
    "SystemRun",
    "View",
    "compare_conditions",
    "compare_system_runs",
    "framed",
    "open_run",
    "view_of",
]
