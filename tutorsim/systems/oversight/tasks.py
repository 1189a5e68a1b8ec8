"""The items of a study: which file, the built-in set, a sample of dialogues, and writing back."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Final

from tutorsim.records.oversight import first_ids
from tutorsim.systems.oversight.audited_replies import read_audited, written_audited
from tutorsim.systems.oversight.labelled_item import Item
from tutorsim.systems.oversight.mrbench import published_rows, read_mrbench, read_mrbench_text
from tutorsim.tasks import Task, TaskFormat

__all__ = ["FORMATS", "builtin_items", "sampled"]


@cache
def builtin_items() -> tuple[Item, ...]:
    """The original set: eight dialogues, two replies each, in the form of version 2."""
    file = resources.files("tutorsim.systems.oversight") / "builtin.json"
    return read_mrbench_text(file.read_text(encoding="utf-8"), "builtin.json")


def sampled(items: Sequence[Task], count: int | None, *, seed: int) -> tuple[Task, ...]:
    """So many dialogues, drawn by hash, with all of their items in the order given.

    A dialogue is told by its text, and drawn by the first of its ids. A draw does not depend on
    which other dialogues there are, so a sample of a sample of the same size is the sample.
    """
    said = [item for item in items if isinstance(item, Item)]
    ids = first_ids((item.conversation, item.dialogue_text) for item in said)
    names = [item.conversation if item.audited else ids[item.dialogue_text] for item in said]
    drawn = sorted(set(names), key=lambda name: _place(seed, name))[:count]
    return tuple(item for item, name in zip(items, names, strict=True) if name in set(drawn))


def _place(seed: int, name: str) -> bytes:
    return sha256(f"{seed}\x1fsample\x1f{name}".encode()).digest()


def _written(items: Sequence[Task]) -> str:
    """Items as a published file of their version."""
    rows = published_rows([item for item in items if isinstance(item, Item)])
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


FORMATS: Final[Mapping[str, TaskFormat]] = {
    "mrbench": TaskFormat(read_mrbench, builtin_items, "tasks.{}.json", _written, asked="response"),
    "audit": TaskFormat(read_audited, None, "tasks.{}.jsonl", written_audited, asked="response"),
}
"""Benchmark → how its items are read and written."""
