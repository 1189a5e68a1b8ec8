"""What a command reads: a run held against its recording, or a recording, replayed first."""

import tempfile
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console import err, safe
from tutorsim.errors import LogError
from tutorsim.records import EPISODES_FILE, RUN_FILE, read_run

# --- Run or recording ----------------------------------------------------------------------------


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
        from tutorsim.runner.open_recording import is_recording  # a file of ballots needs none

        return _replayed(path, ctx) if is_recording(path) else path


def _replayed(recording: Path, ctx: click.Context) -> Path:
    from tutorsim.runner.replay import replay_into

    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="tutorsim-"))
    run = replay_into(recording, Path(folder))
    episodes = read_run(run).episodes
    err().print(
        safe(f"{recording} is a recording; its {episodes} episodes were replayed first."),
        soft_wrap=True,
    )
    return run


# --- Log against recording -----------------------------------------------------------------------


def check_logs(*paths: Path) -> None:
    """Refuse logs that are not what their recording gives; say so where there is no recording.

    Files of ballots, and folders of them, are passed over.

    Raises:
        LogError: If a log is damaged, or is not what its recording gives.
    """
    from tutorsim.runner.open_recording import check_tied

    for path in paths:
        if (path / EPISODES_FILE).is_file() and not (path / RUN_FILE).is_file():
            raise LogError(
                f"{path} holds {EPISODES_FILE} without {RUN_FILE}.",
                why="It is not a whole log: nothing says what was run, or what answered.",
                hint="Write it again with `tutorsim replay`, into a new folder.",
            )
        if (path / RUN_FILE).is_file():
            note = check_tied(path)
            if note is not None:
                err().print(safe(f"Note: {note}"), soft_wrap=True)
