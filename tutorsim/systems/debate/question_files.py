"""Readers of six question sets in their published files, read as they are.

* `mmlu`: a folder of `*_test.csv` without a head (question, four options, letter), or Parquet or
  JSON Lines of `question`, `subject`, `choices`, `answer` (0 to 3).
* `mmlu_pro`: Parquet, JSON or JSON Lines of `question_id`, `question`, `options`, `answer`,
  `category`.
* `gpqa`: the CSV of `Question`, `Correct Answer`, `Incorrect Answer 1` to `3`, `Record ID`; options
  are put in an order drawn from the study's seed and the id.
* `strategyqa`: BIG-bench's `task.json`, with `examples` of `input` and `target_scores`.
* `musr`: a list of `context` and `questions`, or CSV or Parquet of `narrative`, `question`,
  `choices` (a list as text) and `answer_choice`.
* `squad2`: `data`, `paragraphs`, `qas`, as SQuAD 2.0 is published.

A recording holds them as JSON Lines in one form for all: the fields of `DebateTask`.
"""

from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Final

from tutorsim.errors import TaskFileError
from tutorsim.systems.debate.debate_task import BENCHMARKS, DebateBenchmark, DebateTask
from tutorsim.systems.debate.question_file_rows import json_rows, rows_of
from tutorsim.systems.debate.question_tasks import stored_text, task_of
from tutorsim.tasks.task import TaskFormat
from tutorsim.tasks.task_file_records import check_ids, decode

__all__ = ["BUILTIN", "builtin_tasks", "debate_formats", "read_debate_tasks"]

BUILTIN: Final[Mapping[str, str]] = {
    "mmlu": "mmlu.jsonl",
    "strategyqa": "strategyqa.json",
    "musr": "musr.json",
    "squad2": "squad2.json",
}
"""Benchmark → the file of its original set."""


def read_debate_tasks(benchmark: DebateBenchmark, path: Path) -> tuple[DebateTask, ...]:
    """Read the tasks of a benchmark from its published file or folder.

    Raises:
        TaskFileError: Naming file, line and field.
    """
    rows = rows_of(path, benchmark)
    tasks = tuple(task_of(row, benchmark) for row in rows)
    check_ids(rows, [task.task_id for task in tasks], field="id")
    return tasks


def debate_formats() -> dict[str, TaskFormat]:
    """How the files of each benchmark are read."""
    return {
        name: TaskFormat(
            read=partial(read_debate_tasks, name),
            write=stored_text,
            builtin=partial(builtin_tasks, name) if name in BUILTIN else None,
        )
        for name in BENCHMARKS
    }


def builtin_tasks(benchmark: DebateBenchmark) -> tuple[DebateTask, ...]:
    """The original tasks that come with the package.

    Raises:
        TaskFileError: If there are none of this benchmark.
    """
    if benchmark not in BUILTIN:
        raise TaskFileError(
            f"There is no built-in set of {benchmark}.",
            why=f"Built-in sets are there for {', '.join(BUILTIN)}.",
            hint=f"Name the published file in [benchmarks.{benchmark}] tasks.",
        )
    return _builtin(benchmark)


@cache
def _builtin(benchmark: DebateBenchmark) -> tuple[DebateTask, ...]:
    name = BUILTIN[benchmark]
    folder = resources.files("tutorsim").joinpath("systems", "debate", "tasks")
    text = decode(folder.joinpath(name).read_bytes(), name)
    return tuple(task_of(row, benchmark) for row in json_rows(text, name, benchmark))
