"""The person who takes part in an episode, as the recorder sees them."""

from collections.abc import Sequence
from typing import Protocol

from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import Heard, Listen
from tutorsim.model import Call
from tutorsim.replay.person_inputs import InputStore

__all__ = ["Hearing", "Person"]


class Person(Protocol):
    """Somebody at a page."""

    async def hear(self, listen: Listen) -> Heard:
        """Wait for what the person says, at most as long as the flow listens."""
        ...

    def kept(self, listen: Listen, heard: Heard) -> None:
        """What was heard is on disk, from now or from an earlier command."""
        ...

    def asking(self, calls: Sequence[Call], shown: object = None) -> None:
        """These calls are under way; none are once it is called with an empty sequence.

        Args:
            calls: The calls.
            shown: What the person may see meanwhile; `None`: nothing new.
        """
        ...


class Hearing:
    """What one episode hears: first what is on disk, then the person.

    Args:
        episode_id: The episode.
        store: Where inputs are kept.
        person: Who is at the page; `None` in a recording without one.
    """

    def __init__(self, episode_id: str, store: InputStore, person: Person | None) -> None:
        self._episode_id = episode_id
        self._store = store
        self._person = person
        self._count = 0

    async def hear(self, listen: Listen) -> Heard:
        """What was heard here, kept before it is given back.

        Raises:
            UsageError: If nobody is there to be heard.
            ChangedCallError: If the recorded input was heard elsewhere.
            FolderError: If it cannot be kept.
        """
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
                why="`tutorsim run` records simulated lessons only.",
                hint="Use `tutorsim chat` for this study.",
            )
        return self._person
