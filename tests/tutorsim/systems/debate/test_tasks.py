"""Question sets in their published files."""

import csv
import json

import polars as pl
import pytest

from tutorsim.errors import TaskFileError
from tutorsim.systems.debate.tasks import (
    BENCHMARKS,
    DebateTask,
    builtin_tasks,
    formula_size,
    in_drawn_order,
    read_debate_tasks,
    sampled,
    stored_text,
)

GPQA_HEAD = [
    "Question",
    "Correct Answer",
    *(f"Incorrect Answer {n}" for n in (1, 2, 3)),
    "Record ID",
]


def write_csv(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


@pytest.fixture
def published(tmp_path):
    """Benchmark → a small file in its published form."""
    folder = tmp_path / "mmlu"
    folder.mkdir()
    write_csv(folder / "law_test.csv", [["Q, one?", "w", "x", "y\nz", "v", "C"]])
    write_csv(folder / "art_test.csv", [["Q2?", "1", "2", "3", "4", "A"], ["Q3?", *"abcd", "D"]])
    pro = [
        {"question_id": 70, "question": "P?", "options": list("abcdefghij"), "answer": "J"}
        | {"category": "law", "answer_index": 9}
    ]
    pl.DataFrame(pro).write_parquet(tmp_path / "pro.parquet")
    story = {"context": "A story.", "questions": [{"question": "Who?", "choices": ["Ann", "Bo"]}]}
    story["questions"][0]["answer"] = 1
    qas = [
        {"id": "5a", "question": "What?", "is_impossible": False}
        | {"answers": [{"text": "tea", "answer_start": 0}, {"text": "tea", "answer_start": 4}]},
        {"id": "5b", "question": "Why?", "is_impossible": True, "answers": []}
        | {"plausible_answers": [{"text": "tea", "answer_start": 0}]},
    ]
    squad = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": "tea"}]}]}
    squad["data"][0]["paragraphs"][0]["qas"] = qas
    examples = [{"input": "Is it?", "target_scores": {"Yes": 0, "No": 1}}]
    return {
        "mmlu": folder,
        "mmlu_pro": tmp_path / "pro.parquet",
        "gpqa": write_csv(
            tmp_path / "gpqa.csv", [GPQA_HEAD, ["G?", "r", "w1", "w2", "w3", "rec1"]]
        ),
        "strategyqa": write_json(tmp_path / "task.json", {"name": "s", "examples": examples}),
        "musr": write_json(tmp_path / "murder.json", [story]),
        "squad2": write_json(tmp_path / "dev.json", squad),
    }


def test_published_files_are_read_as_they_are(published):
    read = {name: read_debate_tasks(name, path) for name, path in published.items()}
    assert [task.task_id for task in read["mmlu"]] == ["art-0001", "art-0002", "law-0001"]
    assert read["mmlu"][2].options == ("w", "x", "y\nz", "v")
    assert [task.gold for task in read["mmlu"]] == [("A",), ("D",), ("C",)]
    [pro] = read["mmlu_pro"]
    assert (pro.task_id, pro.gold, len(pro.options)) == ("70", ("J",), 10)
    [gpqa] = read["gpqa"]
    assert sorted(gpqa.options) == ["r", "w1", "w2", "w3"]
    assert gpqa.options["ABCD".index(gpqa.gold[0])] == "r"
    [strategy] = read["strategyqa"]
    assert (strategy.options, strategy.gold) == (("Yes", "No"), ("B",))
    [musr] = read["musr"]
    assert (musr.gold, musr.kind) == (("Bo",), "names")
    assert [task.gold for task in read["squad2"]] == [("tea",), ()]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_what_a_recording_holds_reads_back_equal(published, tmp_path, name):
    tasks = read_debate_tasks(name, published[name])
    path = tmp_path / "again.jsonl"
    path.write_text(stored_text(tasks))
    assert read_debate_tasks(name, path) == tasks
    assert set(json.loads(path.read_text().splitlines()[0])) == {
        *("task_id", "benchmark", "question", "options", "gold", "context", "category")
    }
    path.write_text("".join(json.dumps(task.published()) + "\n" for task in tasks))
    assert read_debate_tasks(name, path) == tasks  # as recordings before held them


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_equal_options_are_kept_by_their_place(tmp_path, form):
    """Nine published questions of MMLU have two; every form of the file says the same."""
    path, texts = tmp_path / f"art_test.{form}", ["w", "x", "x", "v"]
    row = {"question": "Q?", "subject": "art", "choices": texts, "answer": 2}
    match form:
        case "csv":
            write_csv(path, [["Q?", *texts, "C"]])
        case "jsonl":
            write_json(path, [row])
        case "parquet":
            pl.DataFrame([row]).write_parquet(path)
    [task] = tasks = read_debate_tasks("mmlu", path)
    assert (task.options, task.gold) == (("w", "x", "x", "v"), ("C",))
    assert [task.score(text).value for text in ("C", "B", "x", "C) x")] == [1, 0, 0, 1]
    assert task.wrong_options() == ("A) w", "D) v")
    stored = tmp_path / "stored.jsonl"
    stored.write_text(stored_text(tasks))
    assert read_debate_tasks("mmlu", stored) == tasks


def test_options_of_gpqa_move_with_the_seed_and_a_drawn_order_stays(published):
    [task] = read_debate_tasks("gpqa", published["gpqa"])
    drawn = [in_drawn_order(task, seed) for seed in range(9)]
    assert len({one.options for one in drawn}) > 1
    assert all(one.options["ABCD".index(one.gold[0])] == "r" for one in drawn)
    assert [in_drawn_order(one, seed) for seed, one in enumerate(drawn)] == drawn


@pytest.mark.parametrize(("name", "count"), [("mmlu", 10), ("strategyqa", 10), ("musr", 3)])
def test_builtin_sets_are_there(name, count):
    tasks = builtin_tasks(name)
    assert len(tasks) == count
    assert all(task.score(_right(task)).value == 1 for task in tasks)


def _right(task):
    return task.gold[0] if task.gold else "unknown"


def test_half_of_the_builtin_passages_have_no_answer():
    tasks = builtin_tasks("squad2")
    assert [bool(task.gold) for task in tasks].count(True) == len(tasks) // 2 == 4


@pytest.mark.parametrize("name", ["mmlu_pro", "gpqa"])
def test_where_there_is_no_builtin_set_it_is_said(name):
    with pytest.raises(TaskFileError, match=f"no built-in set of {name}"):
        builtin_tasks(name)


@pytest.mark.parametrize(
    ("name", "row", "field"),
    [
        ("mmlu_pro", {"options": ["a", "b"], "gold": ["C"], "task_id": "t"}, "gold"),
        ("mmlu_pro", {"options": ["a", "b"], "gold": "A", "task_id": "t"}, "gold"),
        ("squad2", {"gold": [1], "task_id": "t"}, "gold"),
        ("mmlu_pro", {"options": ["a", "b"], "answer": "C"}, "answer"),
        ("mmlu_pro", {"options": "__import__('os').getcwd()", "answer": "A"}, "options"),
        ("mmlu_pro", {"options": ["a", "\ud800"], "answer": "A"}, "options"),
        ("mmlu_pro", {"question": "\ud800", "options": ["a", "b"], "answer": "A"}, "question"),
        ("mmlu", {"choices": ["a", "b"], "answer": 2}, "answer"),
        ("mmlu", {"choices": ["a", "b"], "answer": True}, "answer"),
        ("musr", {"choices": "Ann, Bo", "narrative": "n", "answer_choice": "Ann"}, "choices"),
        ("musr", {"choices": "['Ann', 'Bo']", "narrative": "n", "answer_choice": "Cy"}, "answer_"),
        ("strategyqa", {"input": "i", "target_scores": {"Yes": 1, "No": 1}}, "target_scores"),
        ("squad2", {"id": "1", "context": "c", "answers": None}, "answers"),
    ],
)
def test_a_faulty_record_is_refused_with_file_line_and_field(tmp_path, name, row, field):
    path = tmp_path / "tasks.jsonl"
    whole = {"question_id": 1, "question": "q", "category": "", "subject": "s"} | row
    path.write_text("\n" + json.dumps(whole) + "\n")
    with pytest.raises(TaskFileError, match=rf"tasks\.jsonl, line 2, field {field}"):
        read_debate_tasks(name, path)


def test_a_choices_cell_is_read_and_never_run(tmp_path):
    rows = [["narrative", "question", "choices", "answer_index", "answer_choice"]]
    rows.append(["A story", "Who?", "['Ann', 'Bo']", "0", "Ann"])
    [task] = read_debate_tasks("musr", write_csv(tmp_path / "musr.csv", rows))
    assert (task.options, task.gold) == (("Ann", "Bo"), ("Ann",))


def test_the_formula_gives_the_sizes_of_the_study():
    sizes = [formula_size(n) for n in (14042, 12032, 546, 2289, 250, 11873)]
    assert sizes == [374, 373, 226, 330, 152, 373]


def test_a_smaller_draw_is_part_of_a_larger_one():
    tasks = [DebateTask(f"t{i}", "mmlu", "q", ("a", "b"), ("A",)) for i in range(300)]
    small, large = sampled(tasks, 50, seed=3), sampled(tasks, 100, seed=3)
    assert (len(small), len(large)) == (50, 100)
    assert set(small) < set(large)
    assert [int(task.task_id[1:]) for task in small[:5]] == [5, 25, 28, 33, 34]  # on every machine
    assert sampled(tasks, 50, seed=4) != small
