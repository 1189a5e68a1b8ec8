"""Tasks, and readers for the two published task files."""

from tutorsim.tasks.task_and_answer_scoring import (
    CodeTask,
    ScienceTask,
    Task,
    TaskFormat,
    dump_tasks,
    safe_id,
    tasks_digest,
)
from tutorsim.tasks.task_files_and_their_formats import (
    FORMATS,
    builtin,
    load_tasks,
    read_humaneval,
    read_sciq,
)

__all__ = [
    "FORMATS",
    "CodeTask",
    "ScienceTask",
    "Task",
    "TaskFormat",
    "builtin",
    "dump_tasks",
    "load_tasks",
    "read_humaneval",
    "read_sciq",
    "safe_id",
    "tasks_digest",
]
