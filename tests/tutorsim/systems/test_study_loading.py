"""Benchmarks under names of their own."""

import json

import pytest

from tutorsim.errors import StudyError
from tutorsim.kernel.load_and_check_study_file import load_recorded_study, load_study

STUDY = """
name = "own"
conditions = ["simple"]
personas = ["help_avoidant"]
max_turns = 1

[benchmarks.{name}]
{settings}
"""
ROW = {
    "question": "Which gas do plants take in?", "correct_answer": "carbon dioxide",
    "distractor1": "oxygen", "distractor2": "nitrogen", "distractor3": "helium", "support": "",
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    """Writes a study of one benchmark, and a file of tasks beside it."""

    def write(name, settings):
        (tmp_path / "own.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
        path = tmp_path / "own.toml"
        path.write_text(STUDY.format(name=name, settings=settings), encoding="utf-8")
        return path

    return write


OWN = 'format = "sciq"\ntasks = "own.jsonl"'


def test_an_own_file_stands_under_its_own_name(written):
    own = load_study(written("trivia", OWN))
    [spec] = own.grid()
    assert spec.episode_id == "trivia.sciq-0001.help_avoidant.simple"
    assert spec.task.benchmark == "trivia"
    as_sciq = load_study(written("sciq", 'tasks = "own.jsonl"'))
    assert own.digest() != as_sciq.digest()
    assert own.used() == as_sciq.used()


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("trivia", 'tasks = "own.jsonl"', "has no benchmark 'trivia'"),
        ("trivia", 'format = "scq"\ntasks = "own.jsonl"', "has no format 'scq'"),
        ("trivia", 'format = "humaneval"\ntasks = "own.jsonl"', "cannot stand under the name"),
        ("humaneval", OWN, "'humaneval' is a benchmark of its own"),
        ("trivia", 'format = "sciq"', "stands under its own name only"),
        ('"../x"', OWN, "String should match pattern"),
    ],
)
def test_names_and_formats_that_do_not_fit_are_refused(written, name, settings, said):
    with pytest.raises(StudyError, match=said):
        load_study(written(name, settings))


@pytest.mark.costly
@pytest.mark.loopback
def test_an_own_benchmark_is_replayed_and_named_by_all(written, record, shell, endpoint, tmp_path):
    said = record(written("trivia", OWN))
    assert said.code == 0, said.err
    folder, log = next(tmp_path.rglob("manifest.json")).parent, next(tmp_path.rglob("run.json"))
    assert (folder / "tasks.trivia.jsonl").is_file()
    assert [spec.benchmark for spec in load_recorded_study(folder).grid()] == ["trivia"]
    assert shell("verify", folder).out.startswith("1 of 1 episodes")
    for command in ("summary", "recount"):
        assert shell(command, log.parent).code == 0
    assert "trivia" in shell("summary", log.parent).out
    page = tmp_path / "report.md"
    assert shell("report", log.parent, "-o", page).code == 0
    assert "trivia" in page.read_text(encoding="utf-8")
