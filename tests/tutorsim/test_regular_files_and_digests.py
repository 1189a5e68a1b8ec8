"""A pipe that a person named is refused in three parts, and never waited for."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from tutorsim import regular_files_and_digests
from tutorsim.regular_files_and_digests import open_named, read_named, sha256_named

pytestmark = pytest.mark.usefixtures("no_waiting")

ROOT = Path(__file__).parents[2]
DEMO, CLAUDE = ROOT / "cassettes/demo", ROOT / "cassettes/claude"
COMMANDS: dict[str, Sequence[object]] = {
    "rating sheet": ("rate", DEMO, "--import", "pipe.csv"),
    "rubric": ("rate", DEMO, "--export", "sheet.csv", "--rubric", "pipe.toml"),
    "claims": ("verify", CLAUDE, "--claims", "pipe.json"),
    "printed figures": ("report", CLAUDE, "--published", "pipe.toml", "-o", "page.html"),
    "prices": ("summary", CLAUDE, "--full", "--prices", "pipe.toml"),
    "study": ("run", "pipe.toml", "--dry-run"),
    "logs of another program": ("import", "mallm", "pipe.json", "-o", "log"),
    "a message to judge": ("judge", "pipe.py", "--task", "make_a_pile"),
    **{
        f"ballots, {kind}": ("check", f"pipe.{kind}") for kind in ("csv", "jsonl", "parquet", "soc")
    },
}
TASKS = {
    "sciq.jsonl": "sciq", "humaneval.jsonl": "humaneval", "mmlu.csv": "mmlu",
    "mmlu.parquet": "mmlu", "lessons.toml": "lesson", "mrbench.json": "mrbench",
}  # fmt: skip


def test_a_regular_file_is_read_and_nothing_else_is_waited_for(tmp_path):
    (tmp_path / "a[1]?*.txt").write_bytes(b"one\r\n")
    assert read_named(tmp_path / "a[1]?*.txt") == b"one\r\n"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path(os.devnull)):
        with pytest.raises(OSError, match="no regular file"):
            open_named(path)


def test_a_file_is_hashed_again_unless_it_lay_unchanged(tmp_path, monkeypatch):
    """A file of just now may change again under the same time stamp."""
    path, hashed = tmp_path / "log", []

    def counted(file, name):
        hashed.append(file.name)
        return sha256(file.read())

    monkeypatch.setattr(regular_files_and_digests, "file_digest", counted)
    path.write_bytes(b"one")
    digests = [sha256_named(path), sha256_named(path)]
    assert (digests, len(hashed)) == ([sha256(b"one").hexdigest()] * 2, 2)
    monkeypatch.setattr(regular_files_and_digests, "_SETTLED", -60.0)
    assert [sha256_named(path), sha256_named(path)] == digests
    assert len(hashed) == 3
    path.write_bytes(b"two")
    os.utime(path, (1, 1))
    assert sha256_named(path) == sha256(b"two").hexdigest()


def refused(said, named):
    assert said.code in (1, 2, 4), said
    assert "no regular file" in said.err.replace("\n", " ")
    assert named in said.err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_pipe_that_a_command_names_is_refused(command, shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [pipe] = [str(word) for word in command if str(word).startswith("pipe")]
    os.mkfifo(pipe)
    refused(shell(*command), pipe)


@pytest.mark.parametrize("name", TASKS)
def test_a_pipe_in_the_place_of_a_task_file_is_refused(name, shell, tmp_path):
    os.mkfifo(tmp_path / name)
    refused(shell("tasks", "--benchmark", TASKS[name], "--tasks", tmp_path / name), name)
