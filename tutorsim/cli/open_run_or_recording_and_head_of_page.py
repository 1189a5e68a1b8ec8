"""What a command reads, a run or a recording that is replayed first, and the head of its view.

What shows a view is loaded when one is shown: a replay shows none.
"""

import gc
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutorsim.cli.console_progress_and_safe_text import listing, safe, tell
from tutorsim.errors import LogError

if TYPE_CHECKING:
    from tutorsim.analysis.ballots.recount_source import Source
    from tutorsim.cli.printed_prose_and_tables_and_published_files import Prose
    from tutorsim.records import Branch, EpisodeRecord, Provenance
    from tutorsim.vocabularies import ProvenanceKind


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
        from tutorsim.runner.find_and_check_recording import (
            is_recording,  # a file of ballots needs none
        )

        return _replayed(path, ctx) if is_recording(path) else path


def _replayed(recording: Path, ctx: click.Context) -> Path:
    from tutorsim.analysis.pages.words_and_safe_text import counted
    from tutorsim.records import read_run
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_into

    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="tutorsim-"))
    run = replay_into(recording, Path(folder))
    episodes = counted(read_run(run).episodes, "episode")
    tell(f"{recording} is a recording, which was replayed first: {episodes}.")
    return run


@contextmanager
def records_held() -> Iterator[None]:
    """Hold a command's records to its end, without a search for cycles among them."""
    from tutorsim.records import uncollected

    with uncollected():
        yield
        gc.freeze()


# --- Log against recording -----------------------------------------------------------------------


def check_logs(*paths: Path) -> None:
    """Refuse logs that are not what their recording gives; say so where there is no recording.

    Files of ballots, and folders of them, are passed over.

    Raises `LogError` if a log is damaged, or is not what its recording gives.
    """
    from tutorsim.records import EPISODES_FILE, RUN_FILE

    for path in paths:
        if (path / EPISODES_FILE).is_file() and not (path / RUN_FILE).is_file():
            raise LogError(
                f"{path} holds {EPISODES_FILE} without {RUN_FILE}.",
                why="It is not a whole log: nothing says what was run, or what answered.",
                hint="Write it again with `tutorsim replay`, into a new folder.",
            )
        if (path / RUN_FILE).is_file():
            from tutorsim.runner.find_and_check_recording import check_tied  # ballots need none

            note = check_tied(path)
            if note is not None:
                tell(f"Note: {note}")


# --- Branch notes --------------------------------------------------------------------------------


def branch_head(branch: "Branch", episodes: Sequence["EpisodeRecord"]) -> "Prose":
    """What a run that is a branch consists of."""
    # Replay and verify need no analysis.
    from tutorsim.analysis.runs.branch_counts_turns_siblings_share import (
        branch_changes,
        branch_counts,
    )
    from tutorsim.cli.printed_prose_and_tables_and_published_files import Prose, styled

    counts = branch_counts(branch, episodes)
    told = f" under {branch_changes(branch)}. Episodes: {counts.covered:,} as logged"
    if counts.draws:
        turns = listing([f"turn {turn} ({n:,})" for turn, n in counts.cursors.items()])
        failed = f", {counts.failed:,} of them failed" if counts.failed else ""
        told += (
            f", {counts.continued:,} re-simulated from {turns} on in {counts.draws:,} draws{failed}"
        )
    return Prose(
        styled(f"A branch of {branch.parent}", "bold")
        + safe(
            f"{told}. The figures of this run are of both together; an episode counts by the "
            "mean of its draws, each of which is what might have followed."
        )
    )


# --- Source head ---------------------------------------------------------------------------------


def provenance(stated: "Provenance") -> "Prose":
    """What answered the calls of a recording; the first thing that every view says."""
    from tutorsim.analysis.pages.words_and_safe_text import warning_of
    from tutorsim.cli.printed_prose_and_tables_and_published_files import Prose, styled

    models = ", ".join(stated.models) or "no model named"
    days = stated.recorded_from or "no reply recorded"
    if stated.recorded_to and stated.recorded_to != stated.recorded_from:
        days = f"{days} to {stated.recorded_to}"
    line = styled(f"Answered by: {stated.kind}", "bold") + safe(
        f" ({stated.name}), {models}, {days}."
    )
    return Prose(line + styled(f" {warning_of(stated)}", "yellow"))


def elsewhere(stated: Sequence[str], kinds: Sequence["ProvenanceKind"]) -> "Prose":
    """What is known of ballots from elsewhere: what their export said of itself, if it did."""
    from tutorsim.analysis.pages.words_and_safe_text import WARNINGS
    from tutorsim.cli.printed_prose_and_tables_and_published_files import Prose, styled

    if not stated:
        return Prose("Ballots from elsewhere: nothing is known of what cast them.")
    line = styled("Exported ballots, answered by: ", "bold") + safe(f"{'; '.join(stated)}.")
    return Prose(line + styled("".join(f" {WARNINGS[kind]}" for kind in kinds), "yellow"))


def source_shown(source: "Source", read: Sequence[str] = ()) -> Iterator["Prose"]:
    """What is looked at, what was `read` of it, and what answered its calls: the head of a view."""
    from tutorsim.cli.printed_prose_and_tables_and_published_files import Prose, caption, heading

    yield heading(source.name)
    yield from map(Prose, read)
    if source.run is None:
        yield elsewhere(source.stated, source.kinds)
    else:
        yield provenance(source.run.provenance)
        if source.run.branch is not None:
            yield branch_head(source.run.branch, source.episodes)
    for note in source.notes:
        yield caption(note)
