"""The pieces of work that the runner plans, records, resumes, replays and verifies.

The pieces of a study are episodes; those of a retest are episodes whose prompts are asked again:

    piece = study_piece(loaded, spec)
    record = drive(piece.flow(), world)
    entry = piece.entry(record, line, cassette)  # what a manifest says of it

Beside them stand the person who takes part in a piece, and the event loop that calls are made in.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tutorsim.errors import SandboxError, UsageError
from tutorsim.kernel.flow_drivers_and_call_log import Flow, Listen, PersonInput
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Call, CallKey
from tutorsim.records import EpisodeLine
from tutorsim.replay import Cassette, EpisodeEntry, episode_entry
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import Digests
from tutorsim.replay.program_verdicts_and_person_inputs import InputStore

# --- Job -----------------------------------------------------------------------------------------

R = TypeVar("R")
"""Record of a piece."""
E = TypeVar("E", bound=Digests)
"""What a manifest says of a piece."""


class Piece(NamedTuple, Generic[R, E]):
    """What one tape of a job holds: an episode, or what of it is asked again."""

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


# --- Event loop ----------------------------------------------------------------------------------

T = TypeVar("T")


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end in an event loop of its own.

    A loop wakes itself through a pair of sockets, as the sandbox talks to its processes through
    one: a process that can have none is told so before a loop is half made.
    """
    import asyncio  # a replay makes no call, and starts without either
    import socket

    try:
        for end in socket.socketpair():
            end.close()
    except OSError as error:
        work.close()
        raise SandboxError(
            "This process cannot open a pair of sockets.",
            why=f"Calls and the sandbox each need one: {error.strerror or error}.",
            hint="Raise the limit of open files (`ulimit -n`), or close other programs; then give "
            "the same command again. What was recorded stays usable.",
        ) from error
    return asyncio.run(work)


# --- Person --------------------------------------------------------------------------------------


class Person(Protocol):
    """Somebody at a page."""

    async def hear(self, listen: Listen) -> PersonInput:
        """Wait for what the person says, at most as long as the flow listens."""
        ...

    def kept(self, listen: Listen, heard: PersonInput) -> None:
        """What was heard is on disk, from now or from an earlier command."""
        ...

    def asking(self, calls: Sequence[Call], shown: object = None) -> None:
        """Tell the person that calls are under way; no calls: none are any more.

        `shown` is what the person may see meanwhile; `None`: nothing new.
        """
        ...


class RefusedMessage(ValueError):
    """A message that is not taken; its text says why.

    Its status is 422 for a message that is none, 429 for one to send again a little later, 409 for
    one that comes while no episode goes on.
    """

    def __init__(self, why: str, *, status: int = 422) -> None:
        super().__init__(why)
        self.status = status


class Hearing:
    """What one episode hears: first what is on disk, then the person.

    The person is `None` in a recording without one.
    """

    def __init__(self, episode_id: str, store: InputStore, person: Person | None) -> None:
        self._episode_id = episode_id
        self._store = store
        self._person = person
        self._count = 0

    async def hear(self, listen: Listen) -> PersonInput:
        """What was heard here, kept before it is given back."""
        self._count += 1
        heard = self._store.find(self._episode_id, self._count, listen)
        if heard is None:
            heard = await self._person_there().hear(listen)
            self._store.add(self._episode_id, self._count, listen, heard)
        if self._person is not None:
            self._person.kept(listen, heard)
        return heard

    def asking(self, calls: Sequence[Call], shown: object = None) -> None:
        """Tell the page, where there is one, who is being asked, and what it may show."""
        if self._person is not None:
            self._person.asking(calls, shown)

    def _person_there(self) -> Person:
        if self._person is None:
            raise UsageError(
                f"{self._episode_id} has a person in it, and none is here.",
                why="`tutorsim run` records episodes without a person only.",
                hint="Use `tutorsim chat` for this study.",
            )
        return self._person
