"""Answers stay as they were; one that changes on purpose changes its text in `said/`.

`python -m tests.guards` writes them again, and lists what changed.
"""

from pathlib import Path

import pytest

from tests.guards.items import COSTLY, GUARDED, held, items_of, kept_as, place_of

MARKS = dict.fromkeys(COSTLY, (pytest.mark.costly,))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ())) for name in GUARDED]
)
def test_answers_are_those_that_are_kept(name: str, tmp_path: Path) -> None:
    expected, found = held(name), items_of(name, tmp_path.resolve())
    changed = {
        item: found.get(item) for item in found | expected if found.get(item) != expected.get(item)
    }
    wanted = {item: expected.get(item) for item in changed}
    assert changed == wanted, f"{name}: run `python -m tests.guards {name!r}` if that is meant"


@pytest.mark.parametrize("name", GUARDED)
def test_the_file_of_a_source_is_what_its_items_give(name: str) -> None:
    assert place_of(name).read_text("utf-8") == kept_as(held(name))
