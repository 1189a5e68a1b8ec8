"""A scene: what stays the same throughout an episode, and the one way in which its flow asks.

A system's scene adds its task and settings. Its flow then says of every call what is asked and
how the reply is read; templates, call keys, reminders and labels are the scene's.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import Protocol, TypeVar

from tutorsim.mechanisms.author_labels import labelled
from tutorsim.mechanisms.ballot_answers import ballot_from
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.model import Call, Question
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import BallotFormat
from tutorsim.vocabularies import Protocol as VoteProtocol
from tutorsim.voting import RULES, Choice, read_ballot, repair_ballot

__all__ = ["MakeCall", "Scene", "Wordings", "vote"]

T = TypeVar("T")
F = TypeVar("F", bound=BallotFormat)


class Wordings(Protocol):
    """Templates by name."""

    def fill(self, template: str, **values: object) -> str: ...
    def part(self, template: str, **values: object) -> str: ...


class MakeCall(Protocol):
    """Makes the call of a stage, to the model of its agent."""

    def __call__(self, turn: int, stage: str, agent: str, *, system: str, user: str) -> Call: ...


def _nothing(reply: str) -> None:
    """What is salvaged of a reply by default."""


class Scene:
    """One episode's constants; a system's scene says where they come from."""

    wordings: Wordings
    call: MakeCall

    @property
    def shared(self) -> Mapping[str, object]:
        """Values that every template of the episode can name."""
        return {}

    @cached_property
    def blank(self) -> str:
        """What stands for a text that is empty."""
        return self.wordings.part("no_text")

    @cached_property
    def _reminders(self) -> dict[str, str]:
        """What a second asking adds, by its template: the same for every call of an episode."""
        return {}

    def fill(self, template: str, **values: object) -> str:
        """A template with what the episode shares and these values."""
        return self.wordings.fill(template, **self.shared, **values)

    def fill_if(self, wanted: bool, template: str, **values: object) -> str:
        """A sentence that follows another, or nothing."""
        return f" {self.fill(template, **values)}" if wanted else ""

    def labelled(self, texts: Mapping[str, str], labels: Mapping[str, str]) -> str:
        """Texts of candidates as paragraphs under their labels."""
        return labelled(texts, labels, blank=self.blank)

    def asking(
        self,
        turn: int,
        stage: str,
        agent: str,
        read: Callable[[str], T | None],
        *,
        system: str,
        user: str,
        reminder: str = "text_reminder",
        salvage: Callable[[str], T | None] = _nothing,
    ) -> Question[T]:
        """Ask an agent.

        Args:
            turn: The turn, from 0.
            stage: The stage of the call's key.
            agent: Who is asked.
            read: Reads the reply; `None` has it asked once more.
            system: The whole system text.
            user: The whole prompt.
            reminder: Template of what a second asking adds.
            salvage: Reads what can be read of the second reply when `read` cannot.
        """
        call = self.call(turn, stage, agent, system=system, user=user)
        if reminder not in self._reminders:
            self._reminders[reminder] = self.wordings.fill(reminder)
        return Question(call, read, self._reminders[reminder], salvage)

    def ballot(
        self,
        turn: int,
        stage: str,
        agent: str,
        labels: Mapping[str, str],
        *,
        form: BallotFormat,
        budget: int,
        system: str,
        template: str = "vote",
        **values: object,
    ) -> Question[Choice]:
        """Ask an agent for a ballot.

        Args:
            turn: The turn, from 0.
            stage: The stage of the call's key.
            agent: Who votes.
            labels: Label → candidate, as this voter sees them.
            form: The ballot's format.
            budget: Points that a cumulative or rich ballot must sum to.
            system: The whole system text.
            template: What is asked; it shows the candidates, and says how to vote as `$ballot`.
            **values: What it shows beside the ballot.
        """
        shown = tuple(labels)
        ballot = self.wordings.fill(
            f"ballot_{form}",
            example=_example(form, shown, budget),
            count=len(shown),
            budget=budget,
        )
        return self.asking(
            *(turn, stage, agent, partial(read_ballot, labels=shown, form=form, budget=budget)),
            system=system,
            user=self.fill(template, ballot=ballot, **values),
            reminder="vote_reminder",
            salvage=partial(repair_ballot, labels=shown, form=form, budget=budget),
        )


@lru_cache(maxsize=256)
def _example(form: BallotFormat, shown: tuple[str, ...], budget: int) -> str:
    """A well-formed ballot; every voter of a vote is shown the same one."""
    return RULES[form].example(shown, budget)


def vote(
    voters: Sequence[str],
    candidates: Sequence[str],
    labels: Mapping[str, Mapping[str, str]],
    forms: Mapping[F, VoteProtocol],
    question: Callable[[F, str], Question[Choice]],
) -> Flow[dict[F, tuple[BallotRecord, ...]]]:
    """A ballot of every voter in every format, all side by side.

    Args:
        voters: Who votes.
        candidates: On whom.
        labels: Voter → label → candidate, as shown.
        forms: The formats, each with the protocol that its ballots count under.
        question: From a format and a voter to what is asked.
    """
    answers = yield from ask([question(form, voter) for form, voter in product(forms, voters)])
    answer = iter(answers)
    return {
        form: tuple(
            ballot_from(voter, labels[voter], candidates, next(answer), form=form, rule=rule)
            for voter in voters
        )
        for form, rule in forms.items()
    }
