"""Files of tasks, whatever package reads them."""

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.programs import verdicts
from tutorsim.cli.tasks_and_program_judge import tasks as tasks_command
from tutorsim.errors import FolderError, TaskFileError, UsageError
from tutorsim.tasks import (
    CodeTask,
    ScienceTask,
    TaskFormat,
    builtin,
    dump_tasks,
    load_tasks,
    read_humaneval,
    read_sciq,
    safe_id,
    tasks_digest,
)


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


# --- Tasks ----------------------------------------------------------------------------------------

QUESTION = {
    "question": "What do plants take from the air?", "distractor3": "helium",
    "distractor1": "oxygen", "distractor2": "soil", "correct_answer": "carbon dioxide",
    "support": "",
}  # fmt: skip
PROGRAM = {
    "task_id": "Toy/0",
    "prompt": "def one():\n",
    "entry_point": "one",
    "canonical_solution": "    return 1\n",
    "test": "def check(candidate):\n    assert candidate() == 1\n",
}


def write_lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def refusal(read, path):
    with pytest.raises(TaskFileError) as caught:
        read(path)
    assert path.name in caught.value.what
    return caught.value.what


# --- The published formats -------------------------------------------------------------------


def test_a_sciq_list_is_read_and_questions_are_named_by_place(tmp_path):
    path = tmp_path / "sciq.json"
    path.write_text(json.dumps([QUESTION, QUESTION | {"support": "Because."}], indent=1))
    first, second = read_sciq(path)
    assert first == ScienceTask(
        "sciq-0001",
        "What do plants take from the air?",
        "carbon dioxide",
        ("oxygen", "soil", "helium"),
        "",
    )
    assert (second.task_id, second.support, second.benchmark) == ("sciq-0002", "Because.", "sciq")


def test_json_lines_of_sciq_may_have_blank_lines_and_unknown_fields(tmp_path):
    path = tmp_path / "sciq.jsonl"
    path.write_text(f"\n{json.dumps(QUESTION | {'grade': 8})}\r\n\n{json.dumps(QUESTION)}")
    assert [task.task_id for task in read_sciq(path)] == ["sciq-0001", "sciq-0002"]


def test_humaneval_is_read_plain_and_compressed(tmp_path):
    plain = write_lines(tmp_path / "h.jsonl", PROGRAM)
    packed = tmp_path / "h.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_humaneval(plain) == read_humaneval(packed) == (CodeTask(**PROGRAM),)
    assert read_humaneval(plain)[0].benchmark == "humaneval"


@pytest.mark.skipif("TUTORSIM_PUBLISHED_DATA" not in os.environ, reason="no published data")
def test_the_published_files_are_read_in_full():
    folder = Path(os.environ["TUTORSIM_PUBLISHED_DATA"])
    programs = read_humaneval(folder / "HumanEval.jsonl.gz")
    questions = read_sciq(folder / "sciq_test_200.json")
    assert (len(programs), len(questions)) == (164, 200)
    assert sum(not task.support for task in questions) == 26
    assert len({safe_id(task.task_id) for task in programs}) == 164


# --- What is refused, and where ---------------------------------------------------------------


@pytest.mark.parametrize("field", [*QUESTION])
def test_a_missing_sciq_field_is_named_with_its_line(tmp_path, field):
    less = {name: value for name, value in QUESTION.items() if name != field}
    path = write_lines(tmp_path / "t.jsonl", QUESTION, less)
    assert f"line 2, field {field}: it is missing" in refusal(read_sciq, path)


@pytest.mark.parametrize("field", [*PROGRAM])
@pytest.mark.parametrize(
    ("value", "said"),
    [(7, "a number, not text"), (None, "null, not text"), (["x"], "a list"), (" \n", "empty")],
)
def test_a_wrong_humaneval_field_is_named_with_its_line(tmp_path, field, value, said):
    path = write_lines(tmp_path / "t.jsonl", PROGRAM | {field: value})
    message = refusal(read_humaneval, path)
    assert f"line 1, field {field}: it is " in message
    assert said in message


def test_lines_are_counted_inside_a_json_list(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(f"[\n{json.dumps(QUESTION)},\n\n{{\n}}]")
    assert "line 4, field question" in refusal(read_sciq, path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"question": ', "line 1: this is not JSON"),
        ("[\n{},\n{oops}]", "line 3: this is not JSON"),
        ("[{} {}]", "line 1: the list should go on or end here, but there is '{}]'"),
        ("[{}", "line 1: the list should go on or end here, but there is the end of the file"),
        ("[]\n[]", "the list should go on or end here"),
        ("{} {}", "line 1: there is more after the object"),
        ('"text"', "line 1: this is text, not an object"),
        ("[true]", "line 1: this is a truth value, not an object"),
        ("\ufeff{}", "line 1: it starts with a byte-order mark"),
        ("", "there is no task in it"),
        (" \n\n", "there is no task in it"),
        ("[ ]", "there is no task in it"),
        ("[" * 100_000, "line 1: this JSON cannot be read"),
        ('{"question": "\\ud800"}', "line 1, field question: it holds half of a surrogate pair"),
    ],
)
def test_a_file_that_is_no_list_of_tasks_is_refused_at_its_line(tmp_path, text, said):
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    assert said in refusal(read_sciq, path)


def test_bytes_that_are_not_utf8_are_refused_at_their_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(json.dumps(QUESTION).encode() + b"\n\xff\n")
    assert "line 2: this is not UTF-8" in refusal(read_sciq, path)


def test_a_truncated_gzip_is_refused_at_the_line_where_it_ends(tmp_path):
    path = tmp_path / "t.jsonl.gz"
    lines = "".join(json.dumps(PROGRAM | {"task_id": f"Toy/{i}"}) + "\n" for i in range(200))
    path.write_bytes(gzip.compress(lines.encode())[:-200])
    assert re.search(r"line \d\d+: the compressed data ends early", refusal(read_humaneval, path))


@pytest.mark.parametrize("data", [b"", b"no gzip", b"\x1f\x8b"])
def test_a_gz_file_that_is_no_gzip_is_refused(tmp_path, data):
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(data)
    refusal(read_humaneval, path)


@pytest.mark.parametrize("second", ["Toy/0", "TOY/0"])
def test_an_id_that_is_taken_is_refused_whatever_its_case(tmp_path, second):
    path = write_lines(tmp_path / "t.jsonl", PROGRAM, PROGRAM | {"task_id": second})
    said = refusal(read_humaneval, path)
    assert f"line 2, field task_id: {second!r} is already the id on line 1." in said


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", "x" * 81),  # too long for the name of a file
        *(("entry_point", name) for name in ("two words", "class", "1st")),
        ("test", "assert one() == 1"),  # no `check`
    ],
)
def test_a_field_that_cannot_be_used_is_refused_by_its_name(tmp_path, field, value):
    assert read_humaneval(write_lines(tmp_path / "t.jsonl", PROGRAM | {"task_id": "x" * 80}))
    path = write_lines(tmp_path / "t.jsonl", PROGRAM | {field: value})
    assert f"field {field}" in refusal(read_humaneval, path)


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_a_path_that_cannot_be_read_is_refused(tmp_path, name):
    refusal(read_sciq, tmp_path / name)


# --- Loading, writing, naming -----------------------------------------------------------------


def test_a_limit_takes_the_first_tasks(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", QUESTION, QUESTION, QUESTION)
    assert [task.task_id for task in load_tasks("sciq", path, 2)] == ["sciq-0001", "sciq-0002"]
    assert len(load_tasks("sciq", path, 9)) == len(load_tasks("sciq", path)) == 3
    assert load_tasks("humaneval", "builtin", 1) == builtin("humaneval")[:1]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_leaves_nothing_is_refused(limit):
    with pytest.raises(TaskFileError, match="leaves no task"):
        load_tasks("sciq", "builtin", limit)


@pytest.mark.parametrize("kind", ["sciq", "humaneval"])
def test_written_tasks_are_read_back_equal_and_with_the_same_bytes(tmp_path, kind):
    tasks = builtin(kind)[3:7]
    dump_tasks(kind, tasks, tmp_path / "a")
    assert load_tasks(kind, tmp_path / "a") == tasks
    dump_tasks(kind, load_tasks(kind, tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(texts, min_size=5, max_size=5), st.text(st.characters(codec="utf-8")))
@settings(max_examples=60)
def test_any_text_survives_writing_and_reading(tmp_path_factory, parts, support):
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    task = ScienceTask("x", parts[0], parts[1], tuple(parts[2:5]), support)
    dump_tasks("sciq", [task], path)
    assert read_sciq(path) == (task,)


def test_tasks_of_another_benchmark_are_not_written(tmp_path):
    with pytest.raises(TaskFileError, match="is no task of humaneval"):
        dump_tasks("humaneval", builtin("sciq"), tmp_path / "t.jsonl")


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(FolderError, match=r"absent.t\.jsonl cannot be written"):
        dump_tasks("sciq", builtin("sciq"), tmp_path / "absent" / "t.jsonl")


def test_the_digest_changes_with_any_field_and_with_the_order():
    tasks = builtin("sciq")[:2]
    changed = [(replace(tasks[0], support="other"), tasks[1]), tasks[::-1], tasks[:1]]
    assert tasks_digest(tasks) == tasks_digest(list(tasks))
    assert len({tasks_digest(tasks), *map(tasks_digest, changed)}) == 4


@pytest.mark.parametrize(
    ("task_id", "escaped"),
    [
        ("HumanEval/0", "HumanEval_2F0"),
        ("a_b", "a_5Fb"),
        ("..", "_2E_2E"),
        ("é", "_C3_A9"),
        ("running-max", "running-max"),
    ],
)
def test_ids_are_escaped_byte_by_byte(task_id, escaped):
    assert safe_id(task_id) == escaped


@given(st.text(st.characters(codec="utf-8")))
@settings(max_examples=60)
def test_an_escaped_id_can_be_read_back(task_id):
    # So no two ids escape to one.
    escaped = safe_id(task_id)
    assert re.fullmatch(r"[A-Za-z0-9_-]*", escaped)
    data = re.sub(rb"_(..)", lambda m: bytes.fromhex(m[1].decode()), escaped.encode())
    assert data.decode() == task_id


# --- The original set --------------------------------------------------------------------------


def test_there_are_twenty_original_tasks_of_each_kind():
    assert [len(builtin("sciq")), len(builtin("humaneval"))] == [20, 20]


def test_distractors_differ_from_the_answer_and_every_question_has_support():
    for task in builtin("sciq"):
        assert len({task.correct_answer, *task.distractors}) == 4, task.task_id
        assert task.support, task.task_id


BODIES = {
    "reference": lambda task: task.canonical_solution,
    "nothing": lambda task: "    return None\n",
}


@pytest.mark.parametrize(("body", "passes"), [("reference", True), ("nothing", False)])
def test_every_reference_passes_its_tests_and_an_empty_body_fails(body, passes):
    programs = {
        task.task_id: f"{task.prompt}{BODIES[body](task)}\n{task.test}\ncheck({task.entry_point})"
        for task in builtin("humaneval")
    }
    assert verdicts(programs) == dict.fromkeys(programs, passes)


# --- The command --------------------------------------------------------------------------------


def told(*arguments):
    done = CliRunner().invoke(tasks_command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_the_command_lists_both_original_sets():
    assert "seasons" in told()
    assert "running-max" in told()


def test_the_command_lists_a_file_as_json(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", QUESTION)
    listed = json.loads(told("--tasks", str(path), "--benchmark", "sciq", "--json"))
    assert listed == [
        {"benchmark": "sciq", "task_id": "sciq-0001", "text": "What do plants take from the air?"}
    ]


@pytest.mark.parametrize("before", [True, False])
def test_show_takes_its_options_before_or_after_its_name(tmp_path, before):
    path = write_lines(tmp_path / "t.jsonl", PROGRAM)
    options = ["--tasks", str(path), "--benchmark", "humaneval"]
    arguments = [*options, "show", "Toy/0"] if before else ["show", "Toy/0", *options]
    assert "def check(candidate):" in told(*arguments)


def test_show_prints_a_task_as_json():
    shown = json.loads(told("show", "tides", "--json"))
    assert shown["correct_answer"].startswith("the gravity of the Moon")


def test_escapes_in_a_task_are_shown_and_not_sent_to_the_terminal(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", QUESTION | {"question": "\x1b[31m[bold]?"})
    options = ["--tasks", str(path), "--benchmark", "sciq"]
    for arguments in (options, ["show", "sciq-0001", *options]):
        assert "\\x1b[31m[bold]?" in told(*arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["show", "tide"], "tides"), (["--tasks", "t.jsonl"], "--benchmark")],
    ids=["the nearest id", "the benchmark of a file"],
)
def test_what_is_asked_wrongly_is_refused_with_what_to_give(arguments, named):
    with pytest.raises(UsageError, match=named):
        told(*arguments)
