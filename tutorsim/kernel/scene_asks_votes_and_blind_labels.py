"""A scene: what stays the same throughout an episode, and the one way in which its flow asks.

A system subclasses `Scene`. Its flow asks `yield from ask([scene.asking(…), …])` and holds votes
with `yield from vote(voters, candidates, labels, forms, question)`. Authors' names are replaced by
labels, and answers become logged ballots, here and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from itertools import product
from typing import Protocol, TypeVar, cast

from tutorsim.ballot_reading_and_decisions import (
    RULES,
    Choice,
    cast_as,
    masses_of,
    read_ballot,
    repair_ballot,
    resolve,
)
from tutorsim.kernel.flow_drivers_and_call_log import Flow, Round
from tutorsim.model import Answer, Call, Question
from tutorsim.records import BallotRecord, Failure
from tutorsim.vocabularies import LABELS, BallotFormat, BallotStatus, LabelOrder
from tutorsim.vocabularies import Protocol as VoteProtocol

# --- Asking, and asking once more ---------------------------------------------------------------

T = TypeVar("T")


def ask(questions: Sequence[Question[T]], *, shown: object = None) -> Flow[list[Answer[T]]]:
    """Ask side by side; ask once more, again side by side, what could not be read or was cut off.

    A reply that was cut off is asked for again where its call says how. Of the second reply what
    can be read counts; where nothing can, the first one does.

    Args:
        questions: Independent questions, with attempt 1 in their keys.
        shown: What a person who takes part may see meanwhile.

    Returns:
        One answer per question, in the same order.
    """
    return cast("Flow[list[Answer[T]]]", _answers(questions, each=False, shown=shown))


def ask_each(questions: Sequence[Question[T]]) -> Flow[list[Answer[T] | Failure]]:
    """Ask several questions, as `ask` does, that have nothing to do with one another.

    Returns:
        One answer per question, in the same order; the failure of a question whose call failed.
    """
    return _answers(questions, each=True)


def _answers(
    questions: Sequence[Question[T]], *, each: bool, shown: object = None
) -> Flow[list[Answer[T] | Failure]]:
    if not questions:
        return []
    replies = yield Round(tuple([one.call for one in questions]), each=each, shown=shown)
    assert isinstance(replies, tuple)
    answers: list[Answer[T] | Failure] = []
    unread: list[tuple[int, Answer[T]]] = []
    second: list[Call] = []
    for question, reply in zip(questions, replies, strict=True):
        if isinstance(reply, Failure):
            answers.append(reply)
            continue
        answer = Answer(question.read(reply.text), reply.text, None, False, 1)
        cut_off = question.call.if_cut_off is not None and reply.is_cut_off
        if answer.value is None or cut_off:
            unread.append((len(answers), answer))
            second.append(_second(question, cut_off=cut_off))
        answers.append(answer)
    if second:
        replies = yield Round(tuple(second), each=each)
        assert isinstance(replies, tuple)
        for (i, first), reply in zip(unread, replies, strict=True):
            if isinstance(reply, Failure):
                answers[i] = reply
            else:
                answers[i] = _retried(questions[i], first, reply.text)
    return answers


def _second(question: Question[T], *, cut_off: bool) -> Call:
    key, more = question.call.key._replace(attempt=2), question.reminder
    if cut_off:
        more = question.call.if_cut_off or more
    return Call(key, question.call.request.followed_by(more))


def _retried(question: Question[T], first: Answer[T], last: str) -> Answer[T]:
    value = question.read(last)
    salvaged = value is None
    if value is None:
        value = question.salvage(last)
    if value is None:
        value = first.value
    return Answer(value, last, first.raw, salvaged=salvaged and value is not None, attempts=2)


# --- Author labels -------------------------------------------------------------------------------


def draw_labels(
    candidates: Sequence[str],
    *,
    seed: int,
    episode_id: str,
    turn: int,
    stage: str,
    reader: str,
    blinding: LabelOrder,
    alphabet: str = LABELS,
) -> dict[str, str]:
    """Label → candidate for one reader, in label order.

    With `shared` everybody reads the same labels throughout a turn; with `listed` everybody reads
    the candidates in their given order.

    Args:
        candidates: Whom the labels stand for; at most as many as the alphabet has letters.
        seed: The study's seed.
        episode_id: The episode; a continuation's draws are those of the episode it continues.
        turn: The turn.
        stage: What the labels are read for.
        reader: Who reads them.
        blinding: How labels are drawn.
        alphabet: The labels, in order.
    """
    if blinding == "listed":
        return dict(zip(alphabet, candidates, strict=False))
    before = f"{seed}\x1f{episode_id}\x1f{turn}\x1f"
    if blinding == "per_reader":
        before = f"{before}{stage}\x1f{reader}\x1f"
    hashed = sorted([(sha256(f"{before}{name}".encode()).digest(), name) for name in candidates])
    return dict(zip(alphabet, [name for _, name in hashed], strict=False))


def labelled(texts: Mapping[str, str], labels: Mapping[str, str], *, blank: str) -> str:
    """`A: text` paragraphs in label order.

    Args:
        texts: Candidate → text.
        labels: Label → candidate.
        blank: What stands for a text that is empty.
    """
    return "\n\n".join(
        [f"{label}: {indented(texts[name]) or blank}" for label, name in labels.items()]
    )


@lru_cache(maxsize=256)
def indented(text: str) -> str:
    """The text with every line after the first indented.

    Text from a model can then never start a line, so it cannot pass for a label or a heading.
    """
    return "\n  ".join(text.strip().splitlines())


# --- Ballot answers ------------------------------------------------------------------------------


def ballot_question(
    call: Call, labels: Sequence[str], *, form: BallotFormat, budget: int, reminder: str
) -> Question[Choice]:
    """Ask for a ballot: how the reply is read, and what is read of a second one.

    Args:
        call: The first asking.
        labels: As shown to the voter, in order.
        form: The format that is asked for.
        budget: Points that a cumulative or rich ballot must sum to.
        reminder: What a second asking adds.
    """
    return Question(
        call,
        lambda reply: read_ballot(reply, labels, form=form, budget=budget),
        reminder,
        lambda reply: repair_ballot(reply, labels, form=form, budget=budget),
    )


def ballot_from(
    voter: str,
    labels: Mapping[str, str],
    candidates: Sequence[str],
    answer: Answer[Choice],
    *,
    form: BallotFormat,
    rule: VoteProtocol,
) -> BallotRecord:
    """A ballot on candidates; an abstention where neither reply could be read.

    Args:
        voter: Who cast it.
        labels: Label → candidate, as shown.
        candidates: Whom the ballot is about.
        answer: What was read.
        form: The format that was asked for.
        rule: The protocol that the ballot counts under.
    """
    parsed = None if answer.value is None else resolve(answer.value, labels)
    status: BallotStatus = "repaired" if answer.salvaged else "valid"
    return BallotRecord(
        voter=voter,
        protocol=form,
        counted_as=None if form == rule else rule,
        labels=dict(labels),
        raw=answer.raw,
        parsed=parsed,
        mass=masses_of(parsed, candidates, protocol=rule),
        ballot_status="abstained" if parsed is None else status,
        attempts=answer.attempts,
        raw_first=answer.raw_first,
    )


def counted_as(ballot: BallotRecord, rule: VoteProtocol) -> BallotRecord | None:
    """A ballot as it counts under another protocol; `None` where it does not determine one.

    An abstention stays one.
    """
    cast = None
    if ballot.parsed is not None:
        cast = cast_as(ballot.parsed, form=ballot.protocol, protocol=rule)
        if cast is None:
            return None
    return replace(
        ballot,
        counted_as=None if ballot.protocol == rule else rule,
        mass=masses_of(cast, tuple(ballot.mass), protocol=rule),
    )


# --- Scene ---------------------------------------------------------------------------------------

F = TypeVar("F", bound=BallotFormat)


class Wordings(Protocol):
    """Templates by name."""

    def fill(self, template: str, **values: object) -> str: ...
    def part(self, template: str, **values: object) -> str: ...


class MakeCall(Protocol):
    """Makes the call of a stage, to the model of its agent."""

    def __call__(self, turn: int, stage: str, agent: str, *, system: str, user: str) -> Call: ...


def nothing(reply: str) -> None:
    """What is salvaged of a reply by default."""


class Scene:
    """What stays the same throughout an episode, and the one way in which its flow asks.

    A system whose prompts share more makes a subclass, which may have further attributes:

        scene = Scene(loaded.catalog, loaded.call)
        question = scene.asking(1, "solve", "agent_1", str.strip, system="…", user="…")
        [answer] = yield from ask([question])

    `asking` reminds by the template `text_reminder`; `ballot` asks by `vote` and `ballot_FORMAT`
    and reminds by `vote_reminder`; `no_text` stands for a text that is empty.

    Args:
        wordings: The templates.
        call: Makes the calls, to the model of each agent.
    """

    def __init__(self, wordings: Wordings, call: MakeCall) -> None:
        self.wordings = wordings
        self.call = call

    @property
    def shared(self) -> Mapping[str, object]:
        """Values that every template of the episode can name."""
        return {}

    @cached_property
    def blank(self) -> str:
        """What stands for a text that is empty."""
        return self.wordings.part("no_text")

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Templates without values, as reminders are: the same for every call of an episode."""
        return {}

    @cached_property
    def _ballots(self) -> dict[tuple[BallotFormat, tuple[str, ...], int], str]:
        """How to vote, by format, labels and budget: the same for every voter of a vote."""
        return {}

    def fill(self, template: str, **values: object) -> str:
        """A template with what the episode shares and these values."""
        if shared := self.shared:
            values = {**shared, **values}
        return self.wordings.fill(template, **values)

    def text(self, template: str) -> str:
        """A template that needs no value, filled once."""
        if template not in self._texts:
            self._texts[template] = self.wordings.fill(template)
        return self._texts[template]

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
        salvage: Callable[[str], T | None] = nothing,
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
        return Question(call, read, self.text(reminder), salvage)

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
        asked = (form, shown, budget)
        if asked not in self._ballots:
            example = RULES[form].example(shown, budget)
            self._ballots[asked] = self.wordings.fill(
                f"ballot_{form}", example=example, count=len(shown), budget=budget
            )
        return self.asking(
            turn,
            stage,
            agent,
            partial(read_ballot, labels=shown, form=form, budget=budget),
            system=system,
            user=self.fill(template, ballot=self._ballots[asked], **values),
            reminder="vote_reminder",
            salvage=partial(repair_ballot, labels=shown, form=form, budget=budget),
        )


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
