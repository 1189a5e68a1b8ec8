"""An event loop where the machine gives the sockets of one, and a clear error where not."""

import errno
import os

from click.testing import CliRunner

from tutorsim.cli.run_and_dry_run import run
from tutorsim.errors import SandboxError
from tutorsim.runner.pieces_of_work_person_heard_event_loop import run_in_loop


def _refuse(*_, **__):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def _seven():
    return 7


def test_work_runs_to_its_end():
    assert run_in_loop(_seven()) == 7


def test_a_run_without_a_pair_of_sockets_is_told_so_in_three_parts(tmp_path, monkeypatch):
    study = tmp_path / "pilot.toml"
    study.write_text(
        'name = "pilot"\nconditions = ["simple"]\npersonas = ["help_avoidant"]\n'
        "[benchmarks.sciq]\nlimit = 1\n"
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    monkeypatch.setattr("socket.socketpair", _refuse)
    folders = ["--log-dir", str(tmp_path / "log"), "--cassette-dir", str(tmp_path / "tape")]

    ended = CliRunner().invoke(run, [str(study), *folders])

    assert isinstance(ended.exception, SandboxError)
    assert ended.exception.exit_code == 6
    assert os.strerror(errno.EMFILE) in ended.exception.why
    assert ended.exception.hint
