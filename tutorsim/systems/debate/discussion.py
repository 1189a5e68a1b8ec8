"""The discussion: who speaks when, who sees which message, and when the protocol is asked.

Calls share a round if none may see another's result and the protocol cannot stop between them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar

from tutorsim.kernel.flow import Flow, ask
from tutorsim.kernel.scene import indented
from tutorsim.model import Answer, Question
from tutorsim.records.debate import Message, MessageKind, Paradigm, PersonaRecord, flag
from tutorsim.systems.debate.end_of_debate import End, Moment, consensus_rule, end_of, moments
from tutorsim.systems.debate.scene import DebateContext, read_text, shown_role
from tutorsim.voting import read_agreement

# --- Paradigms: which messages reach which agents -------------------------------------------------


Ring = tuple[str, ...]
"""The agents, in order."""


class Place(NamedTuple):
    """Where in a debate a message was said."""

    number: int
    turn: int
    agent: str
    last_round: bool
    """Said in the turn's last round, or in a turn without rounds; only `debate` has rounds."""


Reaches = Callable[[Place, str, Ring], bool]
"""Whether a message reaches a reader other than its author."""


def _next(ring: Ring, agent: str) -> str:
    return ring[(ring.index(agent) + 1) % len(ring)]


def _debate(message: Place, reader: str, ring: Ring) -> bool:
    if message.agent == ring[0]:
        return True
    if reader == ring[0]:
        return message.last_round
    return reader == _next(ring[1:], message.agent)


PARADIGMS: Final[Mapping[Paradigm, Reaches]] = {
    "memory": lambda message, reader, ring: True,
    "relay": lambda message, reader, ring: reader == _next(ring, message.agent),
    "report": lambda message, reader, ring: ring[0] in (message.agent, reader),
    "debate": _debate,
    "collective": lambda message, reader, ring: True,
}
"""Whom a message reaches, its author apart, whom it always reaches."""


def visible(
    messages: Sequence[Place],
    *,
    reader: str,
    turn: int,
    ring: Ring,
    paradigm: Paradigm,
    visible_turns: int | Literal["all"],
) -> tuple[int, ...]:
    """Numbers of the messages that an agent sees when it speaks in a turn, oldest first.

    `visible_turns` earlier turns are shown beside the current one. Paradigm `collective` has no use
    for it: there, everybody sees the turn before and no other.
    """

    def in_window(said: int) -> bool:
        if paradigm == "collective":
            return said == turn - 1
        return visible_turns == "all" or said >= turn - visible_turns

    reaches = PARADIGMS[paradigm]
    return tuple(
        message.number
        for message in messages
        if in_window(message.turn) and (message.agent == reader or reaches(message, reader, ring))
    )


# --- The discussion -------------------------------------------------------------------------------


T = TypeVar("T")
Shown = Sequence[tuple[int, Message]]
"""Messages that an agent sees, each with its turn."""

_GAPS: Final = re.compile(r"\n{3,}")


class Discussion:
    """A debate so far: who takes part, and everything said."""

    def __init__(self, context: DebateContext, personas: Sequence[PersonaRecord]) -> None:
        self.context = context
        self.messages: list[Message] = []
        self._places: list[Place] = []
        self._names = {one.agent: f"{one.agent} ({shown_role(one.role)})" for one in personas}
        self._parts = {one.agent: context.part_played(one) for one in personas}

    # --- what was said ----------------------------------------------------------------------

    def add(self, turn: int, message: Message) -> None:
        """Note a message."""
        last = message.round in (0, self.context.settings.rounds)
        self.messages.append(message)
        self._places.append(Place(message.number, turn, message.agent, last))

    def of_turn(self, turn: int) -> tuple[Message, ...]:
        """The messages of a turn."""
        return tuple(self.messages[one.number - 1] for one in self._places if one.turn == turn)

    def last_of(self, agent: str) -> Message:
        """An agent's last message."""
        return next(message for message in reversed(self.messages) if message.agent == agent)

    def end(self, turn: int, *, over: bool, leading: tuple[str, ...] = ()) -> End | None:
        """How the debate ends now, where `leading` lead a vote; `None` if it goes on."""
        flags = [flag(message) for message in self.messages]
        moment = Moment(turn, over, flags, leading, self.context.agents)
        return end_of(self.context.condition, moment, self.context.setup)

    # --- what an agent sees -----------------------------------------------------------------

    def seen_by(self, agent: str, turn: int | None = None) -> Shown:
        """The messages that an agent sees in a turn; without a turn, those that it heard last."""
        settings = self.context.settings
        if turn is None:
            turn = self._places[-1].turn + (settings.paradigm == "collective")
        return self._numbered(
            visible(
                self._places,
                reader=agent,
                turn=turn,
                ring=self.context.agents,
                paradigm=settings.paradigm,
                visible_turns=settings.visible_turns,
            )
        )

    def agreed_to(self, message: Message) -> str | None:
        """The solution that a message agrees to; `None` if it does not agree."""
        return _newest(self._numbered(message.shown)) if message.agreement == "agree" else None

    def _numbered(self, numbers: Sequence[int]) -> Shown:
        return [(self._places[one - 1].turn, self.messages[one - 1]) for one in numbers]

    # --- what an agent is asked -------------------------------------------------------------

    def question(
        self,
        turn: int,
        stage: str,
        agent: str,
        template: str,
        read: Callable[[str], T | None],
        *,
        reminder: str = "text_reminder",
        may_lack: bool = True,
        **values: object,
    ) -> Question[T]:
        """Ask an agent in the part that it plays; values that may be empty leave no gap behind."""
        user = self.context.fill(template, **values)
        user = _GAPS.sub("\n\n", user) if may_lack else user
        system = self.part_of(agent)
        return self.context.asking(
            turn, stage, agent, read, system=system, user=user, reminder=reminder
        )

    def part_of(self, agent: str) -> str:
        """An agent's system text."""
        return self._parts[agent]

    def paragraphs(self, reader: str, shown: Shown) -> str:
        """Messages as named paragraphs, the reader's own ones marked."""
        settings, part = self.context.settings, self.context.wordings.part
        bare = settings.paradigm == "collective" and settings.collective_shows == "solutions"
        return "\n\n".join(
            part(
                "own_message" if message.agent == reader else "other_message",
                name=self._names[message.agent],
                turn=turn,
                text=indented((message.solution or "") if bare else message.text)
                or self.context.blank,
            )
            for turn, message in shown
        )


class _Part(NamedTuple):
    """One agent's part in a round of calls."""

    agent: str
    kind: MessageKind
    round: int = 0

    def stage(self, name: str) -> str:
        """An agent speaks several times in a turn of rounds, and each call has its own key."""
        return f"{name}_{self.round}" if self.round else {"debate": "message"}.get(name, name)


def speak(discussion: Discussion, turn: int) -> Flow[End | None]:
    """One turn of messages.

    Returns:
        How the debate ends before any vote of the turn; `None` if it goes on.
    """
    rounds = _rounds(discussion, turn)
    kinds = [part.kind for parts in rounds for part in parts]
    asked, said = moments(kinds, discussion.context.setup), 0
    for parts in rounds:
        yield from _say(discussion, turn, parts)
        said += len(parts)
        end = discussion.end(turn, over=said == len(kinds)) if said in asked else None
        if end is not None:
            return end
    return None


def _rounds(discussion: Discussion, turn: int) -> list[list[_Part]]:
    """Who speaks side by side, and what comes after what."""
    settings, agents = discussion.context.settings, discussion.context.agents
    drafting = settings.drafting == "every" or (settings.drafting == "first" and turn == 1)
    if drafting or settings.paradigm == "collective":
        kind: MessageKind = "draft" if drafting or turn == 1 else "message"
        return [[_Part(agent, kind) for agent in agents]]
    first: MessageKind = "message" if discussion.messages else "first"
    opening = [_Part(agents[0], first if settings.paradigm in ("memory", "relay") else "draft")]
    others = [_Part(agent, "message") for agent in agents[1:]]
    if settings.paradigm == "debate":
        numbers = range(1, settings.rounds + 1)
        return [opening, *([one._replace(round=n)] for n in numbers for one in others)]
    if settings.paradigm == "report" and consensus_rule(discussion.context.condition) is None:
        return [opening, others]
    return [opening, *([one] for one in others)]


def _say(discussion: Discussion, turn: int, parts: Sequence[_Part]) -> Flow[None]:
    """Messages side by side, then the solutions of the proposals among them, side by side."""
    shown = [discussion.seen_by(part.agent, turn) for part in parts]
    answers = yield from ask(
        [_asked(discussion, turn, *pair) for pair in zip(parts, shown, strict=True)]
    )
    start = len(discussion.messages) + 1
    said = [
        _message(discussion.context, start + i, part, shown[i], answers[i])
        for i, part in enumerate(parts)
    ]
    solved = yield from _solutions(discussion.context, turn, parts, said)
    for message, solution in zip(said, solved, strict=True):
        discussion.add(turn, message.model_copy(update=solution))


def _asked(discussion: Discussion, turn: int, part: _Part, shown: Shown) -> Question[str]:
    context, current = discussion.context, _newest(shown)
    fill, template = context.wordings.fill, _template(context, part.kind)
    messages = discussion.paragraphs(part.agent, shown)
    none = fill("current_none") if template == "message_free" else ""
    return discussion.question(
        *(turn, part.stage("debate"), part.agent, template, read_text),
        said=fill("said", messages=messages) if shown else fill("said_nothing"),
        current=none if current is None else fill("current", solution=indented(current)),
        think=context.fill_if(context.settings.chain_of_thought, "think"),
    )


def _template(context: DebateContext, kind: MessageKind) -> str:
    generator, paradigm = context.settings.generator, context.settings.paradigm
    if kind == "message" and paradigm != "collective":
        return f"message_{generator}"
    name = "improve" if kind == "message" else "draft"
    return f"{name}_reasoning" if generator == "reasoning" else name


def _message(
    context: DebateContext, number: int, part: _Part, shown: Shown, answer: Answer[str]
) -> Message:
    text, settings = answer.value or "", context.settings
    tagged = part.kind == "message" and settings.paradigm != "collective"
    said = read_agreement(text, settings.agreement_reading) if text else "unclear"
    return Message(
        number=number,
        agent=part.agent,
        round=part.round,
        kind=part.kind,
        shown=tuple(message.number for _, message in shown),
        text=text,
        agreement=said if tagged else "none",
        status="valid" if text else "missing",
        attempts=answer.attempts,
    )


def _solutions(
    context: DebateContext, turn: int, parts: Sequence[_Part], said: Sequence[Message]
) -> Flow[list[dict[str, Any]]]:
    """What the messages propose: nothing if they agree, else what can be extracted, or all."""
    bare = context.settings.generator == "reasoning"
    proposing = [i for i, message in enumerate(said) if message.agreement != "agree"]
    asked = [i for i in proposing if said[i].text and not bare]
    answers = yield from ask(
        [
            context.extract(turn, parts[i].stage("extract"), parts[i].agent, said[i].text)
            for i in asked
        ]
    )
    found = {i: {"solution": said[i].text} for i in proposing}
    for i, answer in zip(asked, answers, strict=True):
        status = "repaired" if answer.value is None else "valid"
        found[i] = {"solution": answer.value or said[i].text, "solution_status": status}
    return [found.get(i, {}) for i in range(len(said))]


def _newest(shown: Shown) -> str | None:
    """The solution of the newest proposal among messages; `None` if there is none."""
    return next((message.solution for _, message in reversed(shown) if message.solution), None)
