"""Which tasks of a set are asked, and in what order their options stand: drawn by a hash."""

import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Literal

from tutorsim.systems.debate.debate_task import DebateTask
from tutorsim.tasks.answer_scores import LETTERS

__all__ = ["formula_size", "in_drawn_order", "sampled"]


def formula_size(population: int) -> int:
    """How many tasks the debate study draws: Cochran's size for 95 % and ± 5 points, corrected.

    n = ⌈n₀ / (1 + (n₀ - 1) / N)⌉ with n₀ = 1.96² · 0.25 / 0.05².
    """
    first = 1.96**2 * 0.25 / 0.05**2
    return math.ceil(first / (1 + (first - 1) / population))


def sampled(
    tasks: Sequence[DebateTask], size: int | Literal["formula"] | None, *, seed: int
) -> tuple[DebateTask, ...]:
    """So many tasks, drawn by a hash of seed and id, in the order of the file."""
    if size is None:
        return tuple(tasks)
    count = formula_size(len(tasks)) if size == "formula" else size
    drawn = sorted(tasks, key=lambda task: _hash(seed, task.task_id))[:count]
    kept = {task.task_id for task in drawn}
    return tuple(task for task in tasks if task.task_id in kept)


def in_drawn_order(task: DebateTask, seed: int) -> DebateTask:
    """The task, with the options of `gpqa`, whose file names the right one first, in an order
    drawn from seed and id; any order of the file gives the same one."""
    if task.benchmark != "gpqa":
        return task
    options = sorted(task.options, key=lambda text: _hash(seed, task.task_id, text))
    right = task.options[LETTERS.index(task.gold[0])]
    return replace(task, options=tuple(options), gold=(LETTERS[options.index(right)],))


def _hash(*parts: object) -> bytes:
    return sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
