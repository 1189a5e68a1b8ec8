"""The recording that a branch continues: what it answers, and what it must answer.

Before an episode's cursor every call is the parent's, and one that it cannot answer is refused:
nothing is paid for there. After the cursor the parent may still answer, as long as the path is
its own and the request is the very one that it recorded. Once another winner was delivered the
flow marks its calls as fresh, and the parent answers none of them, even where the text is equal.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tutorsim.errors import ChangedCallError, RecordingError, RecordingRefused, UsageError
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.model import CALL_HEADER, Call, CallKey
from tutorsim.plan import PANEL_STAGES
from tutorsim.records import Branch
from tutorsim.replay import Cassette, VerdictStore, folder_error, make_folder, read_cassette
from tutorsim.replay.interaction import Interaction, cassette_name, check_same
from tutorsim.replay.recording import Tape
from tutorsim.runner.opening import Recording
from tutorsim.study import EpisodeSpec, LoadedStudy

__all__ = ["Parent", "check_parent"]


class Parent:
    """A finished recording, and the branch of it that is being recorded.

    Args:
        recording: The parent.
        branch: What the branch changes.
    """

    def __init__(self, recording: Recording, branch: Branch) -> None:
        self.recording = recording
        self.branch = branch
        self.verdicts = VerdictStore(recording.folder)
        self._cassette = lru_cache(maxsize=64)(self._read)

    def cassette(self, spec: EpisodeSpec) -> Cassette:
        """The parent's cassette of an episode."""
        return self._cassette(spec.parent_id)

    def answer(self, spec: EpisodeSpec, call: Call, *, fresh: bool) -> Interaction | None:
        """What the parent recorded for a call, under the branch's own episode.

        Args:
            spec: The branch's episode.
            call: What is asked.
            fresh: The path has left the parent's.

        Returns:
            The interaction; `None` where the call is to be paid for.

        Raises:
            RecordingRefused: If a call before the cursor is not in the parent.
            ChangedCallError: If it is there with another request.
        """
        if fresh:
            return None
        one = self.cassette(spec).interactions.get(str(call.key))
        if one is None:
            self._check_after_cursor(spec, call.key)
            return None
        try:
            check_same(cassette_name(spec.parent_id), one, call)
        except ChangedCallError:
            if self.is_before_cursor(spec, call.key):
                raise
            return None
        headers = {**one.request_headers, CALL_HEADER: f"{spec.episode_id}/{call.key}"}
        return replace(one, request_headers=headers)

    def gave(self, spec: EpisodeSpec, one: Interaction) -> bool:
        """Whether a reply on a branch's tape is the parent's."""
        own = self.cassette(spec).interactions.get(one.key)
        return own is not None and own.response == one.response

    def is_before_cursor(self, spec: EpisodeSpec, key: CallKey) -> bool:
        """Whether a call comes before the first decision that the alternative takes."""
        taken_up = self.branch.episodes.get(spec.parent_id)
        if taken_up is None:
            return True
        return key.turn < taken_up.turn or (key.turn == taken_up.turn and key.stage in PANEL_STAGES)

    def answers(self, spec: EpisodeSpec, call: Call, tape: Tape, *, fresh: bool) -> bool:
        """Whether the parent answers a call; its reply is then on the tape."""
        one = self.answer(spec, call, fresh=fresh)
        if one is None:
            return False
        held = tape.held(call.key)
        if held is None:
            tape.adopt(one)
        return held is None or held.response == one.response

    def verdict(self, run: CodeRun, store: VerdictStore) -> CodeResult | None:
        """The recorded verdict on a program, kept in the branch's store; `None` without one."""
        return store.adopt(run, self.verdicts)

    def link_covered(self, folder: Path) -> None:
        """Give a folder the cassettes of covered episodes, without a second copy of their content.

        They are hard links, so the folder is whole even when the parent is gone; where the file
        system has none they are copied.

        Raises:
            FolderError: If the folder cannot be written.
        """
        make_folder(folder)
        for episode_id in self.branch.covered:
            source = self.recording.folder / cassette_name(episode_id)
            target = folder / source.name
            try:
                _link(source, target)
            except OSError as error:
                raise folder_error(target, error) from error

    def _read(self, episode_id: str) -> Cassette:
        entry = self.recording.entries[episode_id]
        cassette = read_cassette(self.recording.folder, episode_id)
        if cassette.sha256 != entry.cassette_sha256:
            raise RecordingError(
                f"{cassette.name} of the parent was edited after it was recorded.",
                why="Its digest is not the manifest's.",
                hint="Restore the file from version control.",
            )
        return cassette

    def _check_after_cursor(self, spec: EpisodeSpec, key: CallKey) -> None:
        if self.is_before_cursor(spec, key):
            raise RecordingRefused(
                f"{spec.episode_id}: call {key} comes before the branch and is not in the parent.",
                why="Nothing is paid for before the first turn that the alternative decides.",
                hint="Branch with the tutorsim, prompts and tasks that the parent was recorded "
                "with.",
            )


def _link(source: Path, target: Path) -> None:
    if target.exists():
        return
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copyfile(source, target)


def check_parent(loaded: LoadedStudy, parent: Parent | None) -> None:
    """Refuse to record a branch's study without its parent.

    Raises:
        UsageError: If the study is a branch's and no parent is given.
    """
    if loaded.study.branch is not None and parent is None:
        raise UsageError(
            f"{loaded.study.name} is the study of a branch and cannot be run on its own.",
            why="Everything before its cursors comes from the recording that it continues.",
            hint="Give the `tutorsim branch` command again to go on with it.",
        )
