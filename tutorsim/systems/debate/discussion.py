"""The discussion: who speaks when, what each sees, and when the protocol is asked.

Calls share a round if none may see another's result and the protocol cannot stop between them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.model import Answer
from tutorsim.records.debate import Message, MessageKind, PersonaRecord
from tutorsim.systems.debate.agent_prompts import (
    Speakers,
    extract_question,
    message_question,
    newest_solution,
)
from tutorsim.systems.debate.prompt_context import DebateContext
from tutorsim.systems.debate.visibility import Place, Ring, visible
from tutorsim.voting import Agreement, read_agreement

__all__ = ["Discussion", "speak"]


class Discussion:
    """Everything said so far.

    Args:
        context: The episode.
        personas: One for each agent, in order.
        agreed: The protocol, asked with the turn and all messages: index of the message whose
            solution is agreed on, or `None` to go on.
        stops: Whether the protocol can stop within a turn.
    """

    def __init__(
        self,
        context: DebateContext,
        personas: Sequence[PersonaRecord],
        *,
        agreed: Callable[[int, Sequence[Message]], int | None],
        stops: bool,
    ) -> None:
        self.context = context
        self.speakers = Speakers(context, personas)
        self.messages: list[Message] = []
        self.stops = stops
        self._turns: list[int] = []
        self._agreed = agreed
        self._ring = Ring(context.agents)

    def add(self, turn: int, message: Message) -> None:
        """Note a message."""
        self.messages.append(message)
        self._turns.append(turn)

    def agreed(self, turn: int) -> int | None:
        """Ask the protocol."""
        return self._agreed(turn, self.messages)

    def of_turn(self, turn: int) -> tuple[Message, ...]:
        """The messages of a turn."""
        pairs = zip(self._turns, self.messages, strict=True)
        return tuple(message for number, message in pairs if number == turn)

    @property
    def reading_turn(self) -> int:
        """The turn in which an agent that speaks no more sees what it has heard last."""
        after = self.context.settings.paradigm == "collective"
        return self._turns[-1] + after

    def last_of(self, agent: str) -> Message:
        """An agent's last message."""
        return next(message for message in reversed(self.messages) if message.agent == agent)

    def seen_by(self, agent: str, turn: int) -> list[tuple[int, Message]]:
        """The messages that an agent sees when it speaks in a turn, each with its turn."""
        settings = self.context.settings
        numbers = visible(
            [
                Place(message.number, number, message.agent, message.round in (0, settings.rounds))
                for number, message in zip(self._turns, self.messages, strict=True)
            ],
            reader=agent,
            turn=turn,
            ring=self._ring,
            paradigm=settings.paradigm,
            visible_turns=settings.visible_turns,
        )
        return [self._numbered(number) for number in numbers]

    def agreed_to(self, message: Message) -> str | None:
        """The solution that a message agrees to; `None` if it does not agree."""
        if message.agreement != "agree":
            return None
        return newest_solution([self._numbered(number) for number in message.shown])

    def _numbered(self, number: int) -> tuple[int, Message]:
        return self._turns[number - 1], self.messages[number - 1]


class _Part(NamedTuple):
    """One agent's part in a round of calls."""

    agent: str
    kind: MessageKind
    round: int = 0

    @property
    def stage(self) -> str:
        return f"debate_{self.round}" if self.round else "message"

    @property
    def extract_stage(self) -> str:
        """An agent speaks several times in a turn of rounds, and each call has its own key."""
        return f"extract_{self.round}" if self.round else "extract"


def speak(discussion: Discussion, turn: int) -> Flow[int | None]:
    """One turn of messages.

    Returns:
        Index of the message whose solution is agreed on, where the protocol stopped; otherwise
        `None`.
    """
    agents = discussion.context.agents
    settings = discussion.context.settings
    drafting = settings.drafting == "every" or (settings.drafting == "first" and turn == 1)
    if drafting or settings.paradigm == "collective":
        kind: MessageKind = "draft" if drafting or turn == 1 else "message"
        yield from _say(discussion, turn, [_Part(agent, kind) for agent in agents])
        return discussion.agreed(turn)
    match settings.paradigm:
        case "debate":
            return (yield from _debate(discussion, turn))
        case "report":
            return (yield from _report(discussion, turn))
        case _:
            first: MessageKind = "message" if discussion.messages else "first"
            parts = [_Part(agents[0], first), *(_Part(agent, "message") for agent in agents[1:])]
            return (yield from _in_order(discussion, turn, parts))


def _debate(discussion: Discussion, turn: int) -> Flow[int | None]:
    """A draft for all, then rounds of the others; the protocol is asked at the turn's end."""
    agents = discussion.context.agents
    yield from _say(discussion, turn, [_Part(agents[0], "draft")])
    for number in range(1, discussion.context.settings.rounds + 1):
        for agent in agents[1:]:
            yield from _say(discussion, turn, [_Part(agent, "message", number)])
    return discussion.agreed(turn)


def _report(discussion: Discussion, turn: int) -> Flow[int | None]:
    """A draft for all, then the others, who do not see one another."""
    agents = discussion.context.agents
    draft, others = _Part(agents[0], "draft"), [_Part(agent, "message") for agent in agents[1:]]
    if discussion.stops:
        return (yield from _in_order(discussion, turn, [draft, *others]))
    yield from _say(discussion, turn, [draft])
    yield from _say(discussion, turn, others)
    return None


def _in_order(discussion: Discussion, turn: int, parts: Sequence[_Part]) -> Flow[int | None]:
    """One after another; the protocol is asked after each."""
    for part in parts:
        yield from _say(discussion, turn, [part])
        agreed = discussion.agreed(turn)
        if agreed is not None:
            return agreed
    return None


def _say(discussion: Discussion, turn: int, parts: Sequence[_Part]) -> Flow[None]:
    """Messages side by side, then the solutions of the proposals among them, side by side."""
    shown = [discussion.seen_by(part.agent, turn) for part in parts]
    answers = yield from ask(
        [
            message_question(
                discussion.context,
                discussion.speakers,
                part.agent,
                turn=turn,
                stage=part.stage,
                template=_template(discussion.context, part.kind),
                shown=seen,
            )
            for part, seen in zip(parts, shown, strict=True)
        ]
    )
    start = len(discussion.messages) + 1
    said = [
        _message(discussion.context, start + i, part, shown[i], answer)
        for i, (part, answer) in enumerate(zip(parts, answers, strict=True))
    ]
    for message in (yield from _with_solutions(discussion.context, turn, parts, said)):
        discussion.add(turn, message)


def _template(context: DebateContext, kind: MessageKind) -> str:
    generator = context.settings.generator
    tail = "_reasoning" if generator == "reasoning" else ""
    if kind in ("draft", "first"):
        return f"draft{tail}"
    if context.settings.paradigm == "collective":
        return f"improve{tail}"
    return f"message_{generator}"


def _message(
    context: DebateContext,
    number: int,
    part: _Part,
    shown: Sequence[tuple[int, Message]],
    answer: Answer[str],
) -> Message:
    text = answer.value or ""
    return Message(
        number=number,
        agent=part.agent,
        round=part.round,
        kind=part.kind,
        shown=tuple(message.number for _, message in shown),
        text=text,
        agreement=_agreement(context, part.kind, text),
        status="missing" if answer.value is None else "valid",
        attempts=answer.attempts,
    )


def _agreement(context: DebateContext, kind: MessageKind, text: str) -> Agreement:
    if kind != "message" or context.settings.paradigm == "collective":
        return "none"
    return read_agreement(text, context.settings.agreement_reading) if text else "unclear"


def _with_solutions(
    context: DebateContext, turn: int, parts: Sequence[_Part], said: Sequence[Message]
) -> Flow[list[Message]]:
    """The messages with what the proposals among them propose."""
    messages = list(said)
    proposals = [i for i, message in enumerate(said) if message.agreement != "agree"]
    if context.settings.generator == "reasoning":
        for i in proposals:
            messages[i] = said[i].model_copy(update={"solution": said[i].text})
        return messages
    asked = [i for i in proposals if said[i].text]
    answers = yield from ask(
        [
            extract_question(
                context,
                turn=turn,
                stage=parts[i].extract_stage,
                agent=parts[i].agent,
                text=said[i].text,
            )
            for i in asked
        ]
    )
    for i in proposals:
        messages[i] = said[i].model_copy(update={"solution": ""})
    for i, answer in zip(asked, answers, strict=True):
        given = answer.value is not None
        messages[i] = said[i].model_copy(
            update={
                "solution": answer.value if given else said[i].text,
                "solution_status": "valid" if given else "repaired",
            }
        )
    return messages
