"""Answers stay as they were; one that changes on purpose changes its text in `said/`.

`python -m tests.guards` writes them again, and lists what changed.
"""

import pytest

from tests.guards.items import COSTLY, GUARDED, changes, held, items_of, kept_as, place_of

MARKS = dict.fromkeys(COSTLY, (pytest.mark.costly,))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ())) for name in GUARDED]
)
def test_answers_are_those_that_are_kept(name, tmp_path):
    changed = "\n".join(changes(held(name), items_of(name, tmp_path.resolve())))
    if changed:
        pytest.fail(
            f"{changed}\nRun `python -m tests.guards {name!r}` if that is meant.", pytrace=False
        )


@pytest.mark.parametrize("name", GUARDED)
def test_the_file_of_a_source_is_what_its_items_give(name):
    assert place_of(name).read_text("utf-8") == kept_as(held(name))
