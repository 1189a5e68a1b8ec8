"""Where a command wants a run, a recording will do: it is replayed first."""

import tempfile
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console import err, safe
from tutorsim.records import read_run

__all__ = ["RunPath"]


class RunPath(click.Path):
    """A run folder or a file of ballots; of a recording's folder, the run that it replays to.

    The replay goes to a temporary folder of the recording's name, which is removed when the
    command ends; ratings beside the recording go with it. It opens no socket.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if ctx is None or not path.is_dir():
            return path
        from tutorsim.runner.recording_as_run import is_recording  # a file of ballots needs none

        return _replayed(path, ctx) if is_recording(path) else path


def _replayed(recording: Path, ctx: click.Context) -> Path:
    from tutorsim.runner.recording_as_run import replay_into

    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="tutorsim-"))
    run = replay_into(recording, Path(folder))
    episodes = read_run(run).episodes
    err().print(
        safe(f"{recording} is a recording; its {episodes} episodes were replayed first."),
        soft_wrap=True,
    )
    return run
