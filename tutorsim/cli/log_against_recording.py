"""Every command that reads a log holds it against its recording first."""

from pathlib import Path

from tutorsim.cli.console import err, safe
from tutorsim.errors import LogError
from tutorsim.records import EPISODES_FILE, RUN_FILE

__all__ = ["check_logs"]


def check_logs(*paths: Path) -> None:
    """Refuse logs that are not what their recording gives; say so where there is no recording.

    Files of ballots, and folders of them, are passed over.

    Raises:
        LogError: If a log is damaged, or is not what its recording gives.
    """
    from tutorsim.runner.log_digest_check import check_tied

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
