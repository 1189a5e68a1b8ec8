"""Tasks, and readers for the two published task files."""

from tutorsim.tasks.read_task_files_jsonl_parquet_sciq_humaneval import (
    FORMATS,
    builtin,
    load_tasks,
    read_humaneval,
    read_sciq,
)
from tutorsim.tasks.task_types_ids_digests_and_scoring import (
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
