"""The discussion: its scene, who speaks when, who sees what, and the challenges after it.

Calls share a round if none may see another's result and the protocol cannot stop between them.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar

from tutorsim.kernel.flow_drivers_and_call_log import Flow
from tutorsim.kernel.scene_asks_votes_and_blind_labels import (
    MakeCall,
    Scene,
    Wordings,
    ask,
    draw_labels,
    indented,
)
from tutorsim.model import Answer, Question
from tutorsim.records.debate import (
    ChallengeRecord,
    DebateSetup,
    Message,
    MessageKind,
    Paradigm,
    PersonaRecord,
    flag,
)
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import (
    End,
    Moment,
    consensus_rule,
    end_of,
    moments,
    read_agreement,
)
from tutorsim.systems.debate.published_question_sets import DebateTask
from tutorsim.systems.debate.settings import DebateSettings

# --- Reply reading -------------------------------------------------------------------------------

_CONFIDENCE: Final = re.compile(
    r"\n[ \t>*_#]*CONFIDENCE[ \t*_]*:[ \t*_]*([0-9]{1,3})[ \t]*(?:%|/[ \t]*100)?[ \t*_.]*(?=\n|$)",
    re.IGNORECASE,
)


class ReadPersona(NamedTuple):
    """A participant as a reply describes it."""

    role: str
    description: str


class ReadAnswer(NamedTuple):
    """A final answer; the confidence is `None` if the reply states none from 0 to 100."""

    text: str
    confidence: int | None


def read_text(reply: str) -> str | None:
    """The reply without surrounding white space; `None` if it is empty."""
    return reply.strip() or None


def read_answer(reply: str, *, confidence: bool) -> ReadAnswer | None:
    """A final answer, with the line `CONFIDENCE:` taken off if one was asked for.

    Returns `None` if nothing but that line is left.
    """
    if not confidence:
        text = read_text(reply)
        return None if text is None else ReadAnswer(text, None)
    stated = _CONFIDENCE.search(f"\n{reply}")
    text = read_text(_CONFIDENCE.sub("\n", f"\n{reply}"))
    if text is None:
        return None
    value = int(stated[1]) if stated else -1
    return ReadAnswer(text, value if 0 <= value <= 100 else None)


def read_persona(reply: str, taken: Collection[str]) -> ReadPersona | None:
    """The first JSON object that has a role and a description.

    `None` if there is no such object, or its role is taken, whatever its letter case.
    """
    for value in _objects(reply):
        role, description = value.get("role"), value.get("description")
        if not (isinstance(role, str) and isinstance(description, str)):
            continue
        name = " ".join(role.split())
        if not (name and description.strip()):
            continue
        if name.casefold() in {other.casefold() for other in taken}:
            return None
        return ReadPersona(name, description.strip())
    return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text, in the order of their first characters."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at != -1:
        with suppress(ValueError, RecursionError):
            value = decoder.raw_decode(text, at)[0]
            if isinstance(value, dict):
                yield value
        at = text.find("{", at + 1)


# --- Scene ---------------------------------------------------------------------------------------

LABELS: Final = "PQRSTUVWXY"
"""Labels of answers on a ballot: no letter that an option of a task can have."""
_ROLE_LENGTH: Final = 80
_BRACKETS: Final = str.maketrans('[]{}<>"`', "()()()  ")


def agent_names(count: int) -> tuple[str, ...]:
    """`agent_1` and so on."""
    return tuple(f"agent_{number}" for number in range(1, count + 1))


def shown_role(role: str) -> str:
    """A role as prompts show it: on one line, of bounded length, and without brackets or quotes.

    A role comes from a model or a study file, and must forge no tag, speaker or label.
    """
    return shown_description(role)[:_ROLE_LENGTH]


def shown_description(text: str) -> str:
    """A description as prompts show it: as `shown_role`, of any length."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.translate(_BRACKETS).split())


@dataclass(frozen=True, kw_only=True)
class DebateContext(Scene):
    """One episode's constants."""

    wordings: Wordings
    call: MakeCall
    seed: int
    settings: DebateSettings
    task: DebateTask
    condition: str
    discussion: str
    """The episode's name without its condition: labels are drawn by it, so that they are the same
    under every protocol."""
    challenger: bool = False
    """Whether a model makes up wrong answers for challenges."""
    facts: str | None = None
    """A text on the task for the challenge `facts`; `None` if the study supplies none."""

    @cached_property
    def agents(self) -> tuple[str, ...]:
        return agent_names(self.settings.agents)

    @cached_property
    def setup(self) -> DebateSetup:
        """The settings that the record carries."""
        return self.settings.setup()

    @cached_property
    def shared(self) -> Mapping[str, object]:
        """The task as every prompt shows it."""
        task, fill = self.task, self.wordings.fill
        return {
            "task": fill(
                "task_options" if task.options else "task_open",
                instruction=fill(f"instruction_{task.kind}"),
                question=task.shown,
                options="\n".join(task.shown_options),
            )
        }

    def part_played(self, persona: PersonaRecord) -> str:
        """The system text of an agent."""
        return self.wordings.fill(
            "agent_system",
            agent=persona.agent,
            count=len(self.agents),
            role=shown_role(persona.role),
            description=shown_description(persona.description),
        )

    def extract(self, turn: int, stage: str, agent: str, text: str) -> Question[str]:
        """Ask for the bare solution out of a text."""
        system, user = self.fill("extract_system"), self.fill("extract", text=indented(text))
        return self.asking(turn, stage, agent, read_text, system=system, user=user)

    def labels(self, candidates: Sequence[str], *, turn: int, reader: str) -> dict[str, str]:
        """Label → candidate for one voter of a turn, in label order.

        Every format of a turn's ballots has the same labels, and so has every protocol.
        """
        return draw_labels(
            candidates,
            seed=self.seed,
            episode_id=self.discussion,
            turn=turn,
            stage="vote_final",
            reader=reader,
            blinding=self.settings.blinding,
            alphabet=LABELS,
        )


# --- Paradigms: which messages reach which agents -------------------------------------------------


Ring = tuple[str, ...]
"""The agents, in order."""


Shown = Sequence[tuple[int, Message]]
"""Messages, each with its turn."""
Reaches = Callable[[Message, str, Ring, int], bool]
"""Whether a message reaches a reader other than its author, in turns of so many rounds."""


def _next(ring: Ring, agent: str) -> str:
    return ring[(ring.index(agent) + 1) % len(ring)]


def _debate(message: Message, reader: str, ring: Ring, rounds: int) -> bool:
    if message.agent == ring[0]:
        return True
    if reader == ring[0]:
        return message.round in (0, rounds)  # 0: a draft, in a turn without rounds
    return reader == _next(ring[1:], message.agent)


PARADIGMS: Final[Mapping[Paradigm, Reaches]] = {
    "memory": lambda message, reader, ring, _: True,
    "relay": lambda message, reader, ring, _: reader == _next(ring, message.agent),
    "report": lambda message, reader, ring, _: ring[0] in (message.agent, reader),
    "debate": _debate,
    "collective": lambda message, reader, ring, _: True,
}
"""Whom a message reaches, its author apart, whom it always reaches."""


def visible(said: Shown, settings: DebateSettings, *, reader: str, turn: int, ring: Ring) -> Shown:
    """The messages that an agent sees when it speaks in a turn, oldest first.

    `visible_turns` earlier turns are shown beside the current one. Paradigm `collective` has no use
    for it: there, everybody sees the turn before and no other.
    """
    reaches, earlier = PARADIGMS[settings.paradigm], settings.visible_turns

    def in_window(then: int) -> bool:
        if settings.paradigm == "collective":
            return then == turn - 1
        return earlier == "all" or then >= turn - earlier

    return [
        (then, message)
        for then, message in said
        if in_window(then)
        and (message.agent == reader or reaches(message, reader, ring, settings.rounds))
    ]


# --- The discussion -------------------------------------------------------------------------------


T = TypeVar("T")
_GAPS: Final = re.compile(r"\n{3,}")


class Discussion:
    """A debate so far: who takes part, and everything said."""

    def __init__(self, context: DebateContext, personas: Sequence[PersonaRecord]) -> None:
        self.context = context
        self.said: list[tuple[int, Message]] = []
        """Each message with its turn."""
        self._names = {one.agent: f"{one.agent} ({shown_role(one.role)})" for one in personas}
        self._parts = {one.agent: context.part_played(one) for one in personas}

    # --- what was said ----------------------------------------------------------------------

    def of_turn(self, turn: int) -> tuple[Message, ...]:
        """The messages of a turn."""
        return tuple(message for then, message in self.said if then == turn)

    def last_of(self, agent: str) -> Message:
        """An agent's last message."""
        return next(message for _, message in reversed(self.said) if message.agent == agent)

    def end(self, turn: int, *, over: bool, leading: tuple[str, ...] = ()) -> End | None:
        """How the debate ends now, where `leading` lead a vote; `None` if it goes on."""
        flags = [flag(message) for _, message in self.said]
        moment = Moment(turn, over, flags, leading, self.context.agents)
        return end_of(self.context.condition, moment, self.context.setup)

    # --- what an agent sees -----------------------------------------------------------------

    def seen_by(self, agent: str, turn: int | None = None) -> Shown:
        """The messages that an agent sees in a turn; without a turn, those that it heard last."""
        settings = self.context.settings
        if turn is None:
            turn = self.said[-1][0] + (settings.paradigm == "collective")
        return visible(self.said, settings, reader=agent, turn=turn, ring=self.context.agents)

    def agreed_to(self, message: Message) -> str | None:
        """The solution that a message agrees to; `None` if it does not agree."""
        shown = [self.said[number - 1] for number in message.shown]
        return _newest(shown) if message.agreement == "agree" else None

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

    Returns how the debate ends before any vote of the turn; `None` if it goes on.
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
    first: MessageKind = "message" if discussion.said else "first"
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
    start = len(discussion.said) + 1
    said = [
        _message(discussion.context, start + i, part, shown[i], answers[i])
        for i, part in enumerate(parts)
    ]
    solved = yield from _solutions(discussion.context, turn, parts, said)
    for message, solution in zip(said, solved, strict=True):
        discussion.said.append((turn, replace(message, **solution)))


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


# --- Challenges: after the debate, every agent judges an answer -----------------------------------


CHALLENGER: Final = "challenger"
"""The agent that makes up wrong answers."""
_JUDGEMENT: Final = re.compile(r"\W*(AGREE|DISAGREE)\W*", re.IGNORECASE)


def read_judgement(reply: str) -> bool | None:
    """Whether a reply challenges: `DISAGREE` and no other word; `None` if it is neither word."""
    found = _JUDGEMENT.fullmatch(reply)
    return None if found is None else found[1].upper() == "DISAGREE"


def challenges(
    discussion: Discussion, turns: int, answer: str | None
) -> Flow[tuple[ChallengeRecord, ...]]:
    """Ask every agent to judge the answer that was delivered, if any, once for each setting."""
    records: list[ChallengeRecord] = []
    settings = () if answer is None else discussion.context.settings.challenge
    for turn, setting in enumerate(settings, start=turns + 1):
        shown = yield from _shown_answer(discussion.context, setting, turn, answer or "")
        records += yield from _judged(discussion, setting, turn, shown)
    return tuple(records)


def _shown_answer(context: DebateContext, setting: str, turn: int, answer: str) -> Flow[str]:
    """The answer that is to be judged."""
    if setting == "irrelevant":
        return context.fill("irrelevant_answer")
    if setting != "wrong":
        return answer
    distractors = context.task.wrong_options()
    if distractors and not context.challenger:
        name = f"{context.seed}\x1f{context.task.task_id}"
        drawn = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])
        return distractors[drawn % len(distractors)]
    system, user = context.fill("solo_system"), context.fill("wrong_answer")
    question = context.asking(turn, "wrong", CHALLENGER, read_text, system=system, user=user)
    [reply] = yield from ask([question])
    return reply.value or context.fill("irrelevant_answer")


def _judged(
    discussion: Discussion, setting: str, turn: int, shown: str
) -> Flow[list[ChallengeRecord]]:
    """Judgements side by side, then the answers of those who challenge, side by side."""
    context, agents, asked = discussion.context, discussion.context.agents, discussion.question
    judged = yield from ask(
        [
            asked(
                *(turn, "challenge", agent, "challenge", read_judgement),
                reminder="challenge_reminder",
                shown=_beside(discussion, agent, setting),
                answer=indented(shown),
            )
            for agent in agents
        ]
    )
    doubting = [agent for agent, reply in zip(agents, judged, strict=True) if reply.value]
    countered = yield from ask(
        [
            asked(
                *(turn, "counter", agent, "counter", read_text),
                may_lack=False,
                answer=indented(shown),
            )
            for agent in doubting
        ]
    )
    counters = {agent: reply.value or "" for agent, reply in zip(doubting, countered, strict=True)}
    return [
        ChallengeRecord(
            setting=setting,
            agent=agent,
            shown_answer=shown,
            challenged=reply.value,
            raw=reply.raw,
            counter=counters.get(agent),
            score=context.task.score(counters[agent]).value if agent in counters else None,
            attempts=reply.attempts,
        )
        for agent, reply in zip(agents, judged, strict=True)
    ]


def _beside(discussion: Discussion, agent: str, setting: str) -> str:
    """What stands beside task and answer."""
    context = discussion.context
    match setting:
        case "facts":
            return context.fill("challenge_facts", facts=indented(context.facts or ""))
        case "history":
            messages = discussion.paragraphs(agent, discussion.seen_by(agent))
            return context.fill("challenge_history", messages=messages)
        case _:
            return ""
