import polars as pl
import pytest

from tutorsim.errors import TaskFileError
from tutorsim.systems.oversight.train_lead_adapter import read_examples

ROW = {"conversation": "bus", "split": "train", "system": "You label.", "user": "Hm?", "gold": "{}"}


@pytest.fixture
def write(tmp_path):
    def rows(*changes):
        path = tmp_path / "lead_examples.parquet"
        pl.DataFrame([{**ROW, **change} for change in changes]).write_parquet(path)
        return path

    return rows


def test_examples_are_read_by_their_split(write):
    found = read_examples(write({}, {"gold": "{1}"}, {"split": "test", "conversation": "ribbon"}))
    assert [one.gold for one in found["train"]] == ["{}", "{1}"]
    assert [one.conversation for one in found["test"]] == ["ribbon"]


def test_a_dialogue_in_both_splits_is_refused_by_its_name(write):
    with pytest.raises(TaskFileError, match="dialogue 'bus' are in both") as error:
        read_examples(write({}, {"split": "test"}))
    assert "labels that it has seen" in error.value.why


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"split": "dev"}, "line 1, field split: 'dev' is neither"),
        ({"gold": ""}, "line 1, field gold"),
        ({"user": None}, "line 1, field user"),
        ({"split": "test"}, "no example is of the split train"),
    ],
)
def test_a_table_that_cannot_be_learnt_from_is_refused_by_line_and_field(write, change, named):
    with pytest.raises(TaskFileError, match=named):
        read_examples(write(change))


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("conversation,split\n")
    with pytest.raises(TaskFileError, match="cannot be read as Parquet"):
        read_examples(tmp_path / "x.csv")
