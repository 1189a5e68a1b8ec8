"""A job: what the runner plans, records, resumes, replays and verifies.

A study is a job, the study of a branch too, and a retest is one beside the study that it is of. A
job is made of pieces: each has a flow, and a tape, a cassette and a record of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tutorsim.mechanisms.flow import CodeResult, CodeRun, Flow
from tutorsim.model import CallKey
from tutorsim.records import EpisodeLine, Failure, Provenance
from tutorsim.replay import Cassette, EpisodeEntry, episode_entry
from tutorsim.replay.manifest import Digests
from tutorsim.study import EpisodeSpec
from tutorsim.systems import LoadedStudy

if TYPE_CHECKING:  # a replay needs nothing that sends
    from tutorsim.runner.branching import ParentEpisode
    from tutorsim.runner.person import Hearing

__all__ = ["Job", "Lines", "Piece", "study_piece"]

R = TypeVar("R")
"""Record of a piece."""
E = TypeVar("E", bound=Digests)
"""What a manifest says of a piece."""
F = TypeVar("F")
"""What a finished job comes to."""


@dataclass(frozen=True)
class Piece(Generic[R, E]):
    """One tape's worth of a job."""

    id: str
    """Name of the episode that it is of, and of its tape."""
    flow: Callable[[], Flow[R]]
    entry: Callable[[R, str, Cassette], E]
    """From the record, its line and the cassette to the manifest's entry."""
    order: Callable[[list[CallKey]], list[CallKey]] = list
    """From the calls as they were asked to their order on tape."""


def study_piece(loaded: LoadedStudy, spec: EpisodeSpec) -> Piece[EpisodeLine, EpisodeEntry]:
    """An episode as a piece of its study."""

    def entry(record: EpisodeLine, line: str, cassette: Cassette) -> EpisodeEntry:
        return episode_entry(record, line, cassette, loaded.system.outcome(record))

    return Piece(spec.episode_id, lambda: loaded.episode(spec), entry)


class Lines(Protocol):
    """Receives the log lines of a job's pieces, in order."""

    def add(self, line: str, episode_id: str, seconds: float) -> None:
        """Add the next piece's line, without its line end."""


class Job(Generic[R, E, F]):
    """A job that is being recorded: its pieces, and what its flows ask for beside replies."""

    study_digest: str
    """Of the study that the job is of."""
    pieces: Sequence[Piece[R, E]]
    """In the order of the log."""
    kept_from: str | None = None
    """Study digest of cassettes that stand in the folder as another recording wrote them."""
    stands_until_done: bool = False
    """What an earlier command finished stays whole until all of this one is on tape."""

    def failed(self, piece_id: str, key: CallKey) -> Failure | None:
        """How a call failed before; `None` for a call that is to be made."""
        return None

    def prior(self, piece_id: str) -> "ParentEpisode | None":
        """What a parent holds of a piece."""
        return None

    def hearing(self, piece_id: str) -> "Hearing | None":
        """Who hears a person in a piece."""
        return None

    async def judge(self, run: CodeRun) -> CodeResult:
        """The verdict on a program."""
        raise NotImplementedError

    def finish(self, entries: Sequence[E], provenance: Provenance) -> F:
        """Write manifest and log, once every piece is on tape and every line in the log."""
        raise NotImplementedError
