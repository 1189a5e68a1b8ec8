"""Files of tasks, whatever package reads them."""

from dataclasses import replace

import pytest

from tutorsim.errors import TaskFileError
from tutorsim.tasks import TaskFormat
from tutorsim.tasks.files import builtin, load_tasks


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "A")])
def test_tasks_of_another_package_stay_apart_by_their_ids(tmp_path, ids):
    """Whatever reads the file, two tasks of one name would write one episode."""
    tasks = [replace(builtin("sciq")[0], task_id=one) for one in ids]
    form = TaskFormat(lambda path: tasks)
    with pytest.raises(TaskFileError, match=r"several tasks with the id 'a'"):
        load_tasks("gases", tmp_path / "gases.jsonl", formats={"gases": form})


def test_a_file_that_another_package_cannot_read_is_named(tmp_path):
    form = TaskFormat(lambda path: path.read_text())
    with pytest.raises(TaskFileError, match=r"gases.jsonl cannot be read"):
        load_tasks("gases", tmp_path / "gases.jsonl", formats={"gases": form})
