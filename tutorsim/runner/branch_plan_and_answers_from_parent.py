"""A branch of a recording: what it changes, what its parent answers, and what it will ask for.

Before an episode's cursor every call is the parent's, and one that it cannot answer is refused:
nothing is paid for there. After the cursor the parent may still answer, as long as the path is
its own and the request is the very one that it recorded. Once another winner was delivered the
flow marks its calls as fresh, and the parent answers none of them, even where the text is equal.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from tutorsim.errors import ChangedCallError, RecordingError, RecordingRefused, UsageError
from tutorsim.kernel.cost_plan import between
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import CallRange, LoadedStudy, sum_of
from tutorsim.model import CALL_HEADER, Call, CallKey
from tutorsim.records import Branch
from tutorsim.replay import Cassette, VerdictStore, folder_error, make_folder
from tutorsim.replay.cassette_file import (
    cassette_file,
    parse_cassette,
    read_cassette_file,
    write_cassette_file,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    Interaction,
    cassette_name,
    check_same,
)
from tutorsim.replay.recording_transport_tapes_and_journals import Tape
from tutorsim.runner.find_and_check_recording import Recording
from tutorsim.vocabularies import Protocol, TiePolicy

RESTORE = "Restore the file from version control."


@dataclass(frozen=True)
class ParentEpisode:
    """An episode of the parent, for one episode of the branch."""

    spec: EpisodeSpec
    """The branch's episode."""
    cursor: int | None
    """The first turn that the alternative decides; `None` where the episode is covered."""
    before_decision: tuple[str, ...]
    """Stages of that turn that come before its decision."""
    read: Callable[[], Cassette]

    @cached_property
    def cassette(self) -> Cassette:
        """What the parent recorded; read when it is first asked for."""
        return self.read()

    def answer(self, call: Call, *, fresh: bool) -> Interaction | None:
        """What the parent recorded for a call, under the branch's own episode.

        `None` if the call is to be paid for. A call before the cursor that the parent lacks, or has
        with another request, is refused. `fresh`: the path has left the parent's.
        """
        if fresh:
            return None
        one = self.cassette.interactions.get(str(call.key))
        if one is None:
            self._check_after_cursor(call.key)
            return None
        try:
            check_same(cassette_name(self.spec.parent_id), one, call)
        except ChangedCallError:
            if self.is_before_cursor(call.key):
                raise
            return None
        headers = {**one.request_headers, CALL_HEADER: f"{self.spec.episode_id}/{call.key}"}
        return one._replace(request_headers=headers)

    def answers(self, call: Call, tape: Tape, *, fresh: bool) -> bool:
        """Whether the parent answers a call; its reply is then on the tape."""
        held = tape.held(call.key)
        if self.cursor is None and held is not None:
            return True  # the tape is the parent's own cassette
        one = self.answer(call, fresh=fresh)
        if one is None:
            return False
        if held is None:
            tape.adopt(one)
        return held is None or held.response == one.response

    def gave(self, one: Interaction) -> bool:
        """Whether a reply on the branch's tape is the parent's."""
        if self.cursor is None:
            return True
        own = self.cassette.interactions.get(one.key)
        return own is not None and own.response == one.response

    def is_before_cursor(self, key: CallKey) -> bool:
        """Whether a call comes before the first decision that the alternative takes."""
        if self.cursor is None:
            return True
        if key.turn == self.cursor:
            return key.stage in self.before_decision
        return key.turn < self.cursor

    def _check_after_cursor(self, key: CallKey) -> None:
        if self.is_before_cursor(key):
            raise RecordingRefused(
                f"{self.spec.episode_id}: call {key} comes before the branch and is not in the "
                "parent.",
                why="Nothing is paid for before the first turn that the alternative decides.",
                hint="Branch with the tutorsim, prompts and tasks that the parent was recorded "
                "with.",
            )


class Parent:
    """A finished recording, and the branch of it that is being recorded."""

    def __init__(self, recording: Recording, branch: Branch) -> None:
        self.recording = recording
        self.branch = branch
        self.verdicts = VerdictStore(recording.folder)
        self._cassette = lru_cache(maxsize=8)(self._read)  # continuations come one after another

    def episode(self, spec: EpisodeSpec) -> ParentEpisode:
        """What the parent has for an episode of the branch."""
        taken_up = self.branch.episodes.get(spec.parent_id)
        cursor = None if taken_up is None else taken_up.turn
        stages = self.recording.loaded.system.before_decision
        return ParentEpisode(spec, cursor, stages, partial(self._cassette, spec.parent_id))

    def verdict(self, run: CodeRun, store: VerdictStore) -> CodeResult | None:
        """The recorded verdict on a program, kept in the branch's store; `None` without one."""
        return store.adopt(run, self.verdicts)

    def link_covered(self, folder: Path) -> None:
        """Give a folder the cassettes of covered episodes, without a second copy of their content.

        They are hard links, so the folder is whole even when the parent is gone; where the file
        system has none, or the parent keeps them compressed, they are written once more. A cassette
        that was edited, here or in the parent, is a `RecordingError`.
        """
        make_folder(folder)
        for episode_id in self.branch.covered:
            text = self._text(episode_id)
            source = cassette_file(self.recording.folder, episode_id, "text")
            target = cassette_file(folder, episode_id, "text")
            try:
                if not (_is_same(source, target, text) or _linked(source, target)):
                    write_cassette_file(folder, episode_id, text, "text")
            except OSError as error:
                raise folder_error(target, error) from error

    def _read(self, episode_id: str) -> Cassette:
        return parse_cassette(self._text(episode_id), episode_id)

    def _text(self, episode_id: str) -> bytes:
        text = read_cassette_file(self.recording.folder, episode_id)
        if hashlib.sha256(text).hexdigest() != self.recording.entries[episode_id].cassette_sha256:
            raise RecordingError(
                f"{cassette_name(episode_id)} of the parent was edited after it was recorded.",
                why="Its digest is not the manifest's.",
                hint=RESTORE,
            )
        return text


def _is_same(source: Path, target: Path, text: bytes) -> bool:
    """Whether a covered cassette stands where it belongs."""
    if not target.exists():
        return False
    if not (source.exists() and source.samefile(target)) and target.read_bytes() != text:
        raise RecordingError(
            f"{target} is not the cassette that the parent recorded.",
            why="Episodes that the alternative cannot change are kept as they were logged.",
            hint="Move the file away and give the same command again.",
        )
    return True


def _linked(source: Path, target: Path) -> bool:
    if source.is_symlink() or not source.exists():
        return False
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def check_parent(loaded: LoadedStudy, parent: Parent | None) -> None:
    """Refuse to record a branch's study without its parent."""
    if loaded.branch is not None and parent is None:
        raise UsageError(
            f"{loaded.study.name} is the study of a branch and cannot be run on its own.",
            why="Everything before its cursors comes from the recording that it continues.",
            hint="Give the `tutorsim branch` command again to go on with it.",
        )


@dataclass(frozen=True)
class Alternative:
    """What a branch changes; `None` leaves a thing as it was logged."""

    rule: Protocol | None = None
    fallback_order: tuple[str, ...] | None = None
    """Every role of the logged panel."""
    tie_policy: TiePolicy | None = None
    roles: tuple[str, ...] | None = None
    """The panel once another winner was delivered."""
    model: str | None = None
    """The tutors' model once another winner was delivered."""


@dataclass(frozen=True)
class EpisodePlan:
    """What one episode of the parent takes to continue."""

    episode_id: str
    benchmark: str
    condition: str
    turn: int
    """The cursor: the first turn that the alternative decides."""
    first_paid: str
    """Key of the first call that the parent cannot answer."""
    reused: int
    """Calls taken over before that one, all continuations together."""
    calls: CallRange
    """Calls to pay for, all continuations together."""
    tokens: tuple[int, int]
    """Estimated input and output tokens of the longest path without second askings."""
    least_cost: float | None
    """US dollars; `None` where a price is unknown."""
    cost: float | None
    """Cost of the longest path."""
    shrinks: float
    """Width by which the worst-case bounds of its benchmark and condition shrink, at most."""

    @property
    def worth(self) -> float:
        """Width per dollar at the middle of the range; per call where a price is unknown."""
        if self.least_cost is None or self.cost is None or not self.cost:
            return self.shrinks / max((self.calls.least + self.calls.most) / 2, 1)
        return self.shrinks / ((self.least_cost + self.cost) / 2)


@dataclass(frozen=True)
class BranchPlan:
    """What a branch takes."""

    episodes: tuple[EpisodePlan, ...]
    """The one that shrinks the bounds most per dollar first."""
    covered: int
    """Episodes that the alternative cannot change."""
    reused: int
    """Calls taken over, those of covered episodes among them."""
    calls: CallRange
    tokens: tuple[int, int]
    least_cost: float | None
    cost: float | None
    prices_as_of: str
    share: float | None = None
    """How long the parent's episodes are, from 0, the shortest, to 1, the longest; `None` where
    they can have one length only."""

    @classmethod
    def of(
        cls,
        plans: Sequence[EpisodePlan],
        covered: int,
        kept: int,
        prices_as_of: str,
        share: float | None,
    ) -> "BranchPlan":
        """The sum of some episodes; `kept` are the calls of the covered ones."""
        return cls(
            episodes=tuple(plans),
            covered=covered,
            reused=kept + sum(plan.reused for plan in plans),
            calls=sum_of([plan.calls for plan in plans]),
            tokens=(sum(p.tokens[0] for p in plans), sum(p.tokens[1] for p in plans)),
            least_cost=total_cost(plan.least_cost for plan in plans),
            cost=total_cost(plan.cost for plan in plans),
            prices_as_of=prices_as_of,
            share=share,
        )

    @property
    def expected_cost(self) -> float | None:
        """The cost as far from the least to the most as the parent's episodes are long."""
        return between(self.least_cost, self.cost, self.share)

    def limited(self, limit: int, *, also: Set[str]) -> "BranchPlan":
        """The plan of so many episodes, those first that shrink the bounds most per dollar.

        Those in `also` stay, whatever they shrink.
        """
        kept = self.reused - sum(plan.reused for plan in self.episodes)
        chosen = [
            plan
            for place, plan in enumerate(self.episodes)
            if place < limit or plan.episode_id in also
        ]
        return BranchPlan.of(chosen, self.covered, kept, self.prices_as_of, self.share)


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum; `None` where a cost is unknown."""
    found = list(costs)
    known = [cost for cost in found if cost is not None]
    return sum(known) if len(known) == len(found) else None


class Branching(NamedTuple):
    """How a system's recordings are branched: what `tutorsim branch` asks of the system."""

    study: Callable[..., LoadedStudy]
    """From the parent, its log, an `Alternative` and the first turn that it decides in each
    episode to the study of the branch."""
    plan: Callable[..., BranchPlan]
    """From that study, the `Parent`, its log and prices to what the branch takes."""
