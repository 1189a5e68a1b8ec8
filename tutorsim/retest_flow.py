"""A retest: which prompts of a recording are asked again, and the flow that asks them.

Nothing is built again: a prompt is the recorded request, its labels are those of the log. What
cannot be read, or was cut off, is asked once more with the reminder, as in the run.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import Flow, ask_each
from tutorsim.mechanisms.retest_prompts import AskedTogether, Prompt
from tutorsim.model import Answer, CallKey, Question, Request
from tutorsim.records import Failure, RetestRecord

__all__ = [
    "Asking",
    "Design",
    "askings",
    "attempts_together",
    "drawn_turns",
    "recorded_request",
    "retest_flow",
]


@dataclass(frozen=True)
class Design:
    """What a retest asks."""

    repeats: int
    """Further askings of every prompt."""
    stages: tuple[str, ...]
    """In the order of a turn."""
    sample: int | None = None
    """Number of turns drawn; `None` for all."""
    seed: int = 0
    """What they are drawn by."""
    ask_cut_off_again: bool = False
    """Whether a reply that was cut off is asked for once more."""

    @classmethod
    def of(cls, held: object) -> "Design":
        """The design that a head or a session file states."""
        return cls(**{field.name: getattr(held, field.name) for field in fields(cls)})

    def covers(self, other: "Design") -> bool:
        """Whether everything that the other asks is asked by this one too."""
        return (
            self.repeats >= other.repeats
            and set(self.stages) >= set(other.stages)
            and (self.sample is None or self._draws_all_of(other))
        )

    def _draws_all_of(self, other: "Design") -> bool:
        """Draws are nested: a larger one by the same seed holds a smaller one."""
        if self.sample is None or other.sample is None:
            return False
        return self.seed == other.seed and self.sample >= other.sample


def drawn_turns(turns: Iterable[tuple[str, int]], design: Design) -> frozenset[tuple[str, int]]:
    """Draw turns, each by a digest of its own, so that neither order nor repeats matter.

    Args:
        turns: Episode and turn of every turn that can be asked again; one may come repeatedly.
        design: How many to draw, and by which seed.
    """
    if design.sample is None:
        return frozenset(turns)

    def place(turn: tuple[str, int]) -> bytes:
        return hashlib.sha256(f"{design.seed}\n{turn[0]}\n{turn[1]}".encode()).digest()

    return frozenset(sorted(set(turns), key=place)[: design.sample])


def recorded_request(prompt: Prompt[Any], requests: Mapping[str, str]) -> Request:
    """The request of a prompt, as it was recorded.

    Args:
        prompt: The prompt.
        requests: Call key → body, as recorded, of the whole episode.

    Raises:
        UsageError: If it cannot be sent again as it was.
    """
    try:
        return Request.from_text(requests[str(prompt.key)])
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"The prompt of call {prompt.key} cannot be asked again as it was.",
            why=str(error),
            hint="Only recordings that this package made can be retested.",
        ) from error


class Asking(NamedTuple):
    """One prompt, to be asked for another time."""

    prompt: Prompt[Any]
    question: Question[Any]


def askings(
    sets: Iterable[AskedTogether[Any]],
    requests: Mapping[str, str],
    repeats: int,
    *,
    if_cut_off: str | None,
) -> Iterator[Asking]:
    """Every prompt with every repeat, in call order: by set, repeat and prompt.

    Args:
        sets: What is asked again of an episode.
        requests: Call key → body, as recorded, of the whole episode.
        repeats: Further askings of each.
        if_cut_off: What a second asking adds where the first reply was cut off.

    Raises:
        UsageError: If a prompt cannot be sent again as it was.
    """
    for one in sets:
        recorded = [recorded_request(prompt, requests) for prompt in one.prompts]
        for repeat in range(1, repeats + 1):
            for prompt, request in zip(one.prompts, recorded, strict=True):
                yield Asking(prompt, prompt.question(request, repeat, if_cut_off=if_cut_off))


def retest_flow(
    episode_id: str,
    sets: Sequence[AskedTogether[Any]],
    repeats: int,
    questions: Sequence[Question[Any]],
) -> Flow[RetestRecord]:
    """Ask an episode's prompts again.

    A repeat counts where every prompt of a set was answered.

    Args:
        episode_id: The episode.
        sets: What is asked again.
        repeats: Further askings of each.
        questions: Those of `askings`, in the same order.
    """
    coming = iter((yield from ask_each(questions)))
    votes = [record for one in sets for record in one.records(*_counting(one, repeats, coming))]
    return RetestRecord(episode_id=episode_id, votes=tuple(votes))


def _counting(
    one: AskedTogether[Any], repeats: int, coming: Iterator[Answer[Any] | Failure]
) -> tuple[list[list[Answer[Any]]], tuple[Failure, ...]]:
    """The repeats of a set that count, and the failures of the others."""
    asked = [[next(coming) for _ in one.prompts] for _ in range(repeats)]
    answered = [[a for a in answers if isinstance(a, Answer)] for answers in asked]
    failures = tuple(a for answers in asked for a in answers if isinstance(a, Failure))
    return [answers for answers in answered if len(answers) == len(one.prompts)], failures


def attempts_together(keys: Sequence[CallKey]) -> list[CallKey]:
    """Calls in the order of a retest's tape: a second asking behind its first."""
    first = {key: place for place, key in enumerate(keys) if key.attempt == 1}
    return sorted(keys, key=lambda key: (first[key._replace(attempt=1)], key.attempt))
