"""Answers stay as they were, byte for byte; one that changes on purpose changes its hash.

`python -m tests.guards` writes the hashes again.
"""

import json
from pathlib import Path

import pytest

from tests.guards.items import GUARDED, HASHES, hashes_of

MARKS = {"20,000 turns": pytest.mark.slow}  # two minutes of what 400 turns hold in CI


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=MARKS.get(name, pytest.mark.costly)) for name in GUARDED),
        "refused files",
    ],
)
def test_answers_are_those_of_the_hashes(name: str, tmp_path: Path) -> None:
    expected = json.loads(HASHES.read_text(encoding="utf-8"))[name]
    found = hashes_of(name, tmp_path.resolve())
    changed = [item for item in found | expected if found.get(item) != expected.get(item)]
    assert not changed, f"{name}: run `python -m tests.guards {name!r}` if that is meant"
