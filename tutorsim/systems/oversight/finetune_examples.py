"""What a tuned lead learns from: the table `lead_examples` of an exported run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tutorsim.errors import TaskFileError
from tutorsim.tasks.parquet_task_files import read_parquet
from tutorsim.tasks.task_file_records import Row, refuse

__all__ = ["LeadExample", "read_examples"]

SPLITS: Final = ("train", "test")
_COLUMNS: Final = ("conversation", "split", "system", "user", "gold")


class LeadExample(NamedTuple):
    """One call to the lead, and the reply that the gold labels give."""

    conversation: str
    split: str
    """`train` or `test`."""
    system: str
    user: str
    gold: str
    """A JSON object as the lead is asked for."""


def read_examples(path: Path) -> Mapping[str, tuple[LeadExample, ...]]:
    """Read the examples by split.

    Args:
        path: `lead_examples.parquet`, as `tutorsim export` writes it.

    Raises:
        TaskFileError: If the file cannot be read, a column is missing or holds no text, nothing
            is there to train on, or the replies to one dialogue are in both splits: the labels
            of a test dialogue would then be learnt.
    """
    found = [_example(row) for row in read_parquet(path)]
    splits = {name: tuple(one for one in found if one.split == name) for name in SPLITS}
    _check_splits(path, splits["train"], splits["test"])
    return splits


def _example(row: Row) -> LeadExample:
    values = [row.fields.get(name) for name in _COLUMNS]
    for name, value in zip(_COLUMNS, values, strict=True):
        if not isinstance(value, str) or not value:
            refuse(row, name, "it is missing, empty or no text")
    example = LeadExample(*map(str, values))
    if example.split not in SPLITS:
        refuse(row, "split", f"{example.split!r} is neither train nor test")
    return example


def _check_splits(path: Path, train: Sequence[LeadExample], test: Sequence[LeadExample]) -> None:
    both = {one.conversation for one in train} & {one.conversation for one in test}
    if both:
        raise TaskFileError(
            f"{path}: replies to the dialogue {min(both)!r} are in both splits.",
            why="A lead tuned on some of them would be tested on labels that it has seen.",
            hint="Export the run again with `tutorsim export`, which splits by dialogue, or join "
            "tables of several runs without changing their column `split`.",
        )
    if not train:
        raise TaskFileError(
            f"{path}: no example is of the split train.",
            why="About a fifth of the dialogues is kept for testing; of very few, all can be.",
            hint="Export a run over more dialogues.",
        )
