"""How the next speaker comes about: thoughts, scores and selection, or a prediction; then words.

Rulings, thoughts, scores, messages, names, verdicts and codes are read from replies here.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from tutorsim.kernel.flow_drivers_and_call_log import Flow
from tutorsim.kernel.retest_flow_and_drawn_turns import AskedTogether, reply_again
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask, indented
from tutorsim.model import Answer, CallKey, Question
from tutorsim.records.group import GroupRecord, PredictionRecord, ThoughtRecord, UtteranceRecord
from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    LEARNER,
    OWN_THOUGHTS,
    SIGNALS,
    Conversation,
    Group,
    GroupScene,
    Ruling,
)
from tutorsim.systems.group.speaker_selection_and_its_reasons import (
    CRITERIA,
    Bid,
    Selection,
    rounded,
    select_speaker,
)
from tutorsim.vocabularies import ReadStatus

TWO_SUMS: Final = ("internal", "external")
"""What an evaluator gives when it is asked for the sums alone."""
RATINGS: Final = ("correctness", "relevance", "role_consistency", "reasoning")
"""Criteria of a rater."""


class ReadThought(NamedTuple):
    """A thought as read."""

    stimuli: tuple[str, ...]
    thought: str
    action: Literal["speak", "listen"]
    corrects: bool


class Said(NamedTuple):
    """A peer's message as read."""

    text: str
    to: tuple[str, ...]
    """Whom the message is addressed to, as written."""
    continues: bool


class Contribution(NamedTuple):
    """What a simulated learner does."""

    action: Literal["write", "wait"]
    text: str


class Verdict(NamedTuple):
    """A judge's reply."""

    better: Literal["first", "second", "same"]
    reason: str


def read_ruling(reply: str) -> Ruling | None:
    """Read a stage manager's JSON; `None` unless signal and completed ids are there."""
    fields = _object(reply)
    signal = fields.get("signal")
    completed = _texts(fields.get("completed"))
    if completed is None or signal not in SIGNALS:
        return None
    return Ruling(_text(fields.get("reason")) or "", signal, completed)


def read_thought(reply: str) -> ReadThought | None:
    """Read a thought's JSON; `None` unless it has a thought and one of the two actions."""
    fields = _object(reply)
    thought, action = _text(fields.get("thought")), fields.get("action")
    if not thought or (action != "speak" and action != "listen"):
        return None
    stimuli = _texts(fields.get("stimuli")) or ()
    return ReadThought(stimuli, thought, action, fields.get("corrects") is True)


def read_scores(
    names: Sequence[str], criteria: Sequence[str] = CRITERIA
) -> Callable[[str], dict[str, dict[str, int]] | None]:
    """A reader of scores in tenths by agent; its result is `None` unless everybody has them."""

    def read(reply: str) -> dict[str, dict[str, int]] | None:
        scores = _scores(reply, names, criteria)
        return scores if len(scores) == len(names) else None

    return read


def salvage_scores(
    names: Sequence[str], criteria: Sequence[str] = CRITERIA
) -> Callable[[str], dict[str, dict[str, int]] | None]:
    """Reader of the scores of some of the agents at least; `None` where there is none."""
    return lambda reply: _scores(reply, names, criteria) or None


def _scores(reply: str, names: Sequence[str], criteria: Sequence[str]) -> dict[str, dict[str, int]]:
    entries = _json(reply, "[")
    by_name = {name.casefold(): name for name in names}
    scores: dict[str, dict[str, int]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        name = by_name.get((_text(entry.get("agent")) or "").casefold())
        tenths = [_tenths(entry.get(criterion), 10, 50) for criterion in criteria]
        known = [value for value in tenths if value is not None]
        if name is not None and name not in scores and len(known) == len(tenths):
            scores[name] = dict(zip(criteria, known, strict=True))
    return scores


def read_said(reply: str) -> Said | None:
    """Read a peer's message; `None` without a text."""
    fields = _object(reply)
    text = _text(fields.get("message"))
    if not text:
        return None
    to = fields.get("to")
    names = (to,) if isinstance(to, str) else _texts(to) or ()
    return Said(text, names, fields.get("continues") is True)


def read_contribution(reply: str) -> Contribution | None:
    """Read what a simulated learner does; `None` unless it waits or writes a text."""
    fields = _object(reply)
    action, text = fields.get("action"), _text(fields.get("message")) or ""
    if action == "wait":
        return Contribution("wait", "")
    return Contribution("write", text) if action == "write" and text else None


def read_name(names: Mapping[str, str]) -> Callable[[str], str | None]:
    """A reader of exactly one name, its letter case and a full stop ignored.

    `names`: name as shown → participant.
    """
    by_name = {name.casefold(): who for name, who in names.items()}
    return lambda reply: by_name.get(reply.strip().strip("\"'*_.").casefold())


_BETTER: Final = re.compile(
    r"^[ \t*_]*BETTER[ \t*_]*:[ \t*_]*(1|2|same)\b[^\n]*", re.IGNORECASE | re.MULTILINE
)
_SIDES: Final[Mapping[str, Literal["first", "second", "same"]]] = {
    "1": "first",
    "2": "second",
    "same": "same",
}


def read_verdict(reply: str) -> Verdict | None:
    """Read `BETTER: 1|2|same` and the line after it; `None` without exactly one such line."""
    lines = list(_BETTER.finditer(reply))
    if len(lines) != 1:
        return None
    rest = reply[lines[0].end() :].strip().splitlines()
    return Verdict(_SIDES[lines[0][1].lower()], rest[0].strip() if rest else "")


def read_ratings(criteria: Sequence[str]) -> Callable[[str], dict[str, int] | None]:
    """A reader of ratings in tenths from 10 to 100; `None` unless every criterion has one."""

    def read(reply: str) -> dict[str, int] | None:
        fields = _object(reply)
        tenths = {name: _tenths(fields.get(name), 10, 100) for name in criteria}
        known = {name: value for name, value in tenths.items() if value is not None}
        return known if len(known) == len(tenths) else None

    return read


_CATEGORY: Final = re.compile(r"^[ \t*_]*CATEGORY[ \t*_]*:[ \t*_]*([0-9]{1,2})\b", re.I | re.M)


def read_category(reply: str) -> int | None:
    """Read `CATEGORY: n`; `None` unless there is one such line and n lies in 1 to 12."""
    numbers = [int(number) for number in _CATEGORY.findall(reply)]
    return numbers[0] if len(numbers) == 1 and 1 <= numbers[0] <= 12 else None


_DECODER: Final = json.JSONDecoder()
_BACKSLASH: Final = re.compile(
    r"""\\(?P<escape>["\\/]|u[0-9a-fA-F]{4}|[bfr](?![A-Za-z])"""
    r"""|n(?!abla|eq|leq|geq|ot(?:in)?\b|earrow)"""
    r"""|t(?!imes|heta|ext|an|au|o\b|op\b|frac|riangle|herefore|ilde|hin))?"""
)
"""A backslash, with what makes it an escape of JSON. `\\f` and `\\b` before a letter never do;
`\\n` and `\\t` do, unless a command of LaTeX begins there."""


def _object(reply: str) -> Mapping[str, object]:
    value = _json(reply, "{")
    return value if isinstance(value, dict) else {}


def _json(reply: str, opening: str) -> object:
    """The JSON value that begins at the first such bracket; `None` where there is none.

    Models write formulas into JSON as they write them elsewhere, with one backslash. Where it
    begins a command of LaTeX it is read as a backslash, also where JSON would make a tab of it.
    """
    start = reply.find(opening)
    if start < 0:
        return None
    text = reply[start:]
    if "\\" in text:
        text = _BACKSLASH.sub(lambda found: found[0] if found["escape"] else "\\\\", text)
    try:
        value: object = _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return value


def _text(value: object) -> str | None:
    """The text without surrounding white space; half surrogates go, which no file can hold."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    texts = [_text(part) for part in value]
    known = tuple(text for text in texts if text)
    return known if len(known) == len(texts) else None


def _tenths(value: object, least: int, most: int) -> int | None:
    """A number with at most one decimal, in tenths; `None` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not least / 10 <= value <= most / 10:
        return None
    tenths = round(10 * value)
    return tenths if tenths / 10 == value else None


# --- Speaking cycle ------------------------------------------------------------------------------

EVALUATE: Final = "evaluate"
"""Stage of the call that scores the thoughts which want to speak."""


Scores = dict[str, dict[str, int]]
"""Name → criterion → score in tenths."""


def thoughts_after(talk: Conversation, turn: int) -> Flow[list[ThoughtRecord]]:
    """Let every agent that did not write the last message think; also one that keeps the floor."""
    moment = talk.timeline.moment()
    agents = [
        agent for agent in talk.scene.group.agents if agent != moment.speaker or moment.continues
    ]
    answers = yield from ask([_think(talk, turn, agent) for agent in agents])
    thoughts = [
        _thought(agent, answer, talk.timeline.silent(agent))
        for agent, answer in zip(agents, answers, strict=True)
    ]
    for thought in thoughts:
        if thought.status != "missing":
            held = talk.held.setdefault(thought.agent, [])
            held.append(f"T{turn}: {indented(thought.thought)}")
    return thoughts


def _think(talk: Conversation, turn: int, agent: str) -> Question[ReadThought]:
    """Ask an agent for a thought; it sees its own earlier ones, and nobody else's."""
    held = "\n".join(talk.held.get(agent, ())[-OWN_THOUGHTS:])
    return talk.question(
        *(turn, "think", agent, read_thought),
        system=talk.scene.peers[agent],
        thoughts=held or talk.scene.text("thoughts_none"),
    )


def _thought(agent: str, answer: Answer[ReadThought], silent: int) -> ThoughtRecord:
    read = answer.value or ReadThought((), "", "listen", False)
    return ThoughtRecord(
        agent=agent,
        status=answer.status,
        stimuli=read.stimuli,
        thought=read.thought,
        action=read.action,
        corrects=read.corrects,
        attempts=answer.attempts,
        silent=silent,
    )


def self_selected_speaker(
    talk: Conversation, turn: int, thoughts: Sequence[ThoughtRecord]
) -> Flow[tuple[list[ThoughtRecord], Selection]]:
    """Have the thoughts that want to speak scored, and select.

    Returns the thoughts with their scores, and the selection.
    """
    wanting = {thought.agent: thought.thought for thought in thoughts if _wants(thought)}
    values: Scores = {}
    status: ReadStatus = "valid"
    if wanting:
        [answer] = yield from ask([_evaluate(talk, turn, wanting)])
        values = _by_agent(talk.scene.group, tuple(wanting), answer)
        status = answer.status
    bids = [
        Bid(one.agent, _wants(one), one.corrects, one.silent, values.get(one.agent))
        for one in thoughts
    ]
    selection = select_speaker(bids, talk.timeline.moment(), talk.scene.rule)
    return [_scored(one, values, status, selection) for one in thoughts], selection


def _evaluate(talk: Conversation, turn: int, thoughts: Mapping[str, str]) -> Question[Scores]:
    """Ask the evaluator about the thoughts that want to speak: agent → thought."""
    scene, form = talk.scene, talk.scene.settings.scores
    shown = [f"{scene.group.shown(who)}: {indented(text)}" for who, text in thoughts.items()]
    asked = _asked_scores(scene, thoughts)
    return talk.question(
        *(turn, EVALUATE, "evaluator", read_scores(*asked)),
        salvage=salvage_scores(*asked),
        system=scene.text("evaluate_system"),
        members=scene.members,
        thoughts="\n".join(shown),
        criteria=scene.text(f"evaluate_{form}"),
        form=scene.text(f"evaluate_{form}_form"),
    )


def _asked_scores(scene: GroupScene, agents: Iterable[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Whose scores the evaluator gives, by their shown names, and on which criteria."""
    names = [scene.group.shown(who) for who in agents]
    return names, CRITERIA if scene.settings.scores == "six" else TWO_SUMS


def _by_agent(group: Group, agents: Sequence[str], answer: Answer[Scores]) -> Scores:
    """Agent → its scores in tenths; agents without any are left out."""
    shown = {group.shown(agent): agent for agent in agents}
    return {shown[name]: scores for name, scores in (answer.value or {}).items()}


def evaluations_again(scene: GroupScene, record: GroupRecord) -> Iterator[AskedTogether[Scores]]:
    """The evaluations of an episode's thoughts; an answer is agent → criterion → score."""
    wanting = {
        event.number: tuple(one.agent for one in event.cycle.thoughts if _wants(one))
        for event in record.events
        if event.cycle is not None
    }
    for call in record.calls:
        key = CallKey.parse(call.key)
        if key.stage == EVALUATE and key.attempt == 1:
            yield _evaluation_again(scene, key, wanting[key.turn])


def _evaluation_again(
    scene: GroupScene, key: CallKey, agents: tuple[str, ...]
) -> AskedTogether[Scores]:
    def scores(answer: Answer[Scores]) -> dict[str, dict[str, float]]:
        tenths = _by_agent(scene.group, agents, answer)
        return {who: {name: x / 10 for name, x in own.items()} for who, own in tenths.items()}

    asked, reminder = _asked_scores(scene, agents), scene.fill("evaluate_reminder")
    read, salvage = read_scores(*asked), salvage_scores(*asked)
    return reply_again(key, lambda call: Question(call, read, reminder, salvage), scores)


def _wants(thought: ThoughtRecord) -> bool:
    return thought.action == "speak"


def _scored(
    thought: ThoughtRecord, values: Scores, status: ReadStatus, selection: Selection
) -> ThoughtRecord:
    """A thought with its scores, and with what the selection made of them."""
    if not _wants(thought):
        return thought
    tenths = values.get(thought.agent)
    if tenths is None:
        return thought.model_copy(update={"scores": None, "score_status": "missing"})
    total, shift = selection.totals[thought.agent], 10**4
    known = {
        "scores": {name: value / 10 for name, value in tenths.items()},
        "score_status": status,
        "total": rounded(shift * total.numerator, total.denominator) / shift,
        "adjusted": selection.adjusted[thought.agent] / 100,
    }
    return thought.model_copy(update=known)


def predicted_speaker(talk: Conversation, turn: int) -> Flow[PredictionRecord]:
    """Ask the baseline who speaks next."""
    scene = talk.scene
    shown = {scene.group.shown(who): who for who in (*scene.group.agents, LEARNER)}
    question = talk.question(
        *(turn, "predict", "predictor", read_name(shown)),
        system=scene.fill("predict_system"),
        members=scene.members,
        learner=scene.group.learner_name,
        names=", ".join(shown),
    )
    [answer] = yield from ask([question])
    return PredictionRecord(status=answer.status, named=answer.value, attempts=answer.attempts)


def utterance_of(
    talk: Conversation, turn: int, agent: str, thought: str | None
) -> Flow[UtteranceRecord]:
    """Have the chosen agent say its thought; `thought` is `None` for a predicted agent."""
    shown: dict[str, Any] = {} if thought is None else {"thought": indented(thought)}
    question = talk.question(
        *(turn, "speak_predicted" if thought is None else "speak", agent, read_said),
        system=talk.scene.peers[agent],
        reminder="speak_reminder",
        **shown,
    )
    [answer] = yield from ask([question])
    said = answer.value or Said("", (), False)
    return UtteranceRecord(
        agent=agent,
        status=answer.status,
        text=said.text,
        to=_participants(talk, agent, said.to),
        continues=said.continues,
        attempts=answer.attempts,
    )


def _participants(talk: Conversation, agent: str, names: Sequence[str]) -> tuple[str, ...]:
    """Whom a message is for; empty for everybody, and for names of strangers."""
    known = [talk.scene.group.participant(name) for name in names]
    return tuple(dict.fromkeys(who for who in known if who is not None and who != agent))
