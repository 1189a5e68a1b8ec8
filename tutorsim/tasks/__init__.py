"""Tasks, and readers for the two published task files."""

from tutorsim.tasks.task_files_and_their_formats import (
    FORMATS,
    builtin,
    load_tasks,
    read_humaneval,
    read_sciq,
)
from tutorsim.tasks.tasks_and_scoring_of_choices_and_passages import (
    CodeTask,
    ScienceTask,
    Task,
    TaskFormat,
    dump_tasks,
    safe_id,
    tasks_digest,
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
