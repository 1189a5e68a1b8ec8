"""Episodes message by message: one form for all systems, each made when somebody looks at it.

shown = Episodes(run.episodes, trace, {"it ended undecided": lambda one: not one.decided})
shown[0].outcome                                  # what came of the first, in a few words
Episodes(run.episodes, trace, named=["sciq.a"])   # that one alone
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tutorsim.errors import UsageError
from tutorsim.records import RunRecord

MOST_EPISODES: Final = 2_000
"""Episodes that a page holds; of larger runs it holds telling ones and the first of the others."""


# --- One episode ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    """One message, ballot or decision."""

    speaker: str
    text: str
    note: str = ""
    """What else is known of it: when, to whom, how it was read. Empty for nothing."""
    quiet: bool = False
    """Something that was not said aloud, such as a thought or a ballot."""
    chosen: bool = False
    """What won, or was delivered."""
    aside: str = ""
    """Why it was said, as whoever said it told; empty for nothing."""


@dataclass(frozen=True)
class Group:
    """A title with the messages under it, such as the first drafts of a turn.

    Without a message it is the heading of all that follows, such as a turn.
    """

    title: str
    messages: tuple[Message, ...] = ()
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Grid:
    """A small table, such as the ballots of a vote."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """Lines below it: what a row has no room for."""


EpisodePart = Message | Group | Grid


@dataclass(frozen=True)
class Episode:
    """One episode, message by message."""

    id: str
    parts: tuple[EpisodePart, ...]
    outcome: str = ""
    """What came of it, in a few words: a winner, a label, an answer."""
    line: str = ""
    """What else stands in its head, such as scores or the beginning of a reply."""
    facts: tuple[tuple[str, str], ...] = ()
    """Name → value: what is known of the whole."""
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a filter → what the episode is under it."""
    why: str = ""
    """Why it is shown; empty for one that is there as all are."""


class Run(NamedTuple):
    """The run of an episode, as far as it is needed to tell the episode."""

    head: RunRecord
    with_messages: bool = False
    """What a person wrote may be quoted."""


# --- All episodes of a run -----------------------------------------------------------------------

Telling = Mapping[str, Callable[[Any], bool]]
"""Why an episode is worth a look → whether a record is one."""


class Episodes:
    """The episodes that a page shows: first one for each thing worth a look, then the others.

    `telling`: what is worth a look. An episode already there for one thing serves the others too;
    failed ones are never there for anything. `named`: ids of those to show alone, in this order.
    Raises `UsageError` if the run holds no episode of a name.
    """

    def __init__(
        self,
        records: Sequence[Any],
        make: Callable[[Any], Episode],
        telling: Telling = MappingProxyType({}),
        named: Iterable[str] = (),
    ) -> None:
        self._records, self._make, self._telling = records, make, telling
        self._named = tuple(dict.fromkeys(named))
        known = [record.episode_id for record in records] if self._named else []
        for name in self._named:
            if name not in known:
                raise UsageError(
                    f"The run holds no episode {name!r}.",
                    why=f"It holds {len(known)}, for example {next(iter(known), 'none')!r}.",
                    hint="`tutorsim show RUN PART` finds an episode by parts of its id.",
                )

    @property
    def total(self) -> int:
        """Number of episodes of the run."""
        return len(self._records)

    @property
    def ids(self) -> list[str]:
        """Ids of the episodes shown, in order."""
        return [record.episode_id for record, _ in self._shown]

    def told(self) -> Iterator[Episode]:
        """Episodes that were named, or are there for a reason; the first, where none is."""
        reasons = [pair for pair in self._shown if pair[1]] or self._shown[:1]
        told = self._shown if self._named else reasons
        return (self._episode(record, why) for record, why in told)

    @cached_property
    def _shown(self) -> list[tuple[Any, str]]:
        """Record and reason, in the order of the page."""
        by_id = {record.episode_id: record for record in self._records}
        if self._named:
            return [(by_id[name], "") for name in self._named]
        reasons = self._reasons()
        worth = [(by_id[name], "; ".join(why)) for name, why in reasons.items()]
        others = ((r, "") for r in self._records if r.episode_id not in reasons)
        return [*worth, *islice(others, max(MOST_EPISODES - len(worth), 0))]

    def _reasons(self) -> dict[str, list[str]]:
        """Id of an episode that is worth a look → why, in the order of `telling`."""
        chosen: dict[str, list[str]] = {}
        complete = [record for record in self._records if record.status == "complete"]
        for fits in self._telling.values():
            holders = (record for record in complete if fits(record))
            first = next(holders, None)
            if first is not None and not any(
                fits(record) for record in complete if record.episode_id in chosen
            ):
                chosen[first.episode_id] = []
        for record in complete:
            if record.episode_id in chosen:
                fitting = (why for why, fits in self._telling.items() if fits(record))
                chosen[record.episode_id] += fitting
        return chosen

    def _episode(self, record: Any, why: str) -> Episode:
        made = self._make(record)
        return replace(made, why=why) if why else made

    def __len__(self) -> int:
        return len(self._shown)

    def __iter__(self) -> Iterator[Episode]:
        return (self._episode(record, why) for record, why in self._shown)

    def __getitem__(self, place: int) -> Episode:
        return self._episode(*self._shown[place])


def usual_marks(record: Any, variant: str = "Variant") -> dict[str, tuple[str, ...]]:
    """What an episode of any system can be found by.

    `variant`: what stands between task and condition in the system's ids.
    """
    return {
        "Condition": (record.condition,),
        variant: (record.variant,),
        "Task": (f"{record.benchmark}.{record.task_id}",),
    }


NO_EPISODES: Final = Episodes((), lambda record: record)
