"""What people can rate: texts of a run with what a rater has to know, and nothing else."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

R = TypeVar("R")


class Block(NamedTuple):
    """A part of what a rater reads; the last one of an item is what is rated."""

    heading: str
    text: str


@dataclass(frozen=True)
class Place:
    """Where a text stands in the log: all that is hidden from raters."""

    episode: str
    turn: int
    role: str
    """Who wrote the text."""
    condition: str
    task: str
    """What intervals are over."""
    delivered: bool = True
    """The student read it, or wrote it."""
    judged: float | None = None
    """The model judge's score: of an answer itself, of a reply's next answer; of a reply that the
    run labels, its label of guidance; `None` without."""


class Passage(NamedTuple):
    """One text of the log."""

    blocks: tuple[Block, ...]
    place: Place


def delivered(passages: Callable[[R], Iterable[Passage]]) -> Callable[[R], Iterator[Passage]]:
    """The texts of a run that the student read."""
    return lambda run: (passage for passage in passages(run) if passage.place.delivered)


@dataclass(frozen=True)
class Item:
    """What a rater rates once."""

    id: str
    blocks: tuple[Block, ...]
    places: tuple[Place, ...]
    """Places in the order of the log, each once."""

    @property
    def text(self) -> str:
        """All that the rater reads, as it stands in a sheet."""
        return text_of(self.blocks)

    @property
    def task(self) -> str:
        return self.places[0].task

    @property
    def judged(self) -> float | None:
        """Mean of the model judge's scores of it; `None` where there is none."""
        scores = [place.judged for place in self.places if place.judged is not None]
        return sum(scores) / len(scores) if scores else None


def items_of(passages: Iterable[Passage]) -> dict[str, Item]:
    """Items by id, in the order of the log; a passage without words is none."""
    blocks: dict[str, tuple[Block, ...]] = {}
    places: dict[str, dict[Place, None]] = {}
    for passage in passages:
        if passage.blocks[-1].text.strip():
            name = digest_of(text_of(passage.blocks))
            blocks.setdefault(name, passage.blocks)
            places.setdefault(name, {})[passage.place] = None
    return {name: Item(name, shown, tuple(places[name])) for name, shown in blocks.items()}


def text_of(blocks: Sequence[Block]) -> str:
    """Headings and texts with an empty line between; one kind of line end, as files differ."""
    joined = "\n\n".join(f"{heading}:\n{text}" for heading, text in blocks)
    return with_plain_ends(joined)


def with_plain_ends(text: str) -> str:
    """A text with `\\n` for every line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def digest_of(text: str) -> str:
    """The id of the item with this text."""
    return hashlib.sha256(with_plain_ends(text).encode()).hexdigest()[:16]
