"""How the next speaker comes about: thoughts, scores and selection, or a prediction; then words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tutorsim.kernel.flow import Flow, ask
from tutorsim.kernel.retest_flow import AskedTogether, reply_again
from tutorsim.kernel.scene import indented
from tutorsim.model import Answer, CallKey, Question
from tutorsim.records.group import GroupRecord, PredictionRecord, ThoughtRecord, UtteranceRecord
from tutorsim.systems.group.reply_reading import (
    TWO_SUMS,
    ReadThought,
    Said,
    read_name,
    read_said,
    read_scores,
    read_thought,
    salvage_scores,
)
from tutorsim.systems.group.scene import LEARNER, Conversation, Group, GroupScene, HeldThought
from tutorsim.systems.group.speaker_selection import (
    CRITERIA,
    Bid,
    Selection,
    rounded,
    select_speaker,
)
from tutorsim.vocabularies import ReadStatus

EVALUATE: Final = "evaluate"
"""Stage of the call that scores the thoughts which want to speak."""


_OWN_THOUGHTS: Final = 5
"""How many of its own thoughts an agent sees."""
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
            held.append(HeldThought(turn, thought.thought))
    return thoughts


def _think(talk: Conversation, turn: int, agent: str) -> Question[ReadThought]:
    """Ask an agent for a thought; it sees its own earlier ones, and nobody else's."""
    own = talk.held.get(agent, ())[-_OWN_THOUGHTS:]
    held = "\n".join([f"T{thought.event}: {indented(thought.text)}" for thought in own])
    return talk.question(
        *(turn, "think", agent, read_thought),
        system=talk.scene.peers[agent],
        thoughts=held or talk.scene.fill("thoughts_none"),
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

    Returns:
        The thoughts with their scores, and the selection.
    """
    wanting = {thought.agent: thought.thought for thought in thoughts if _wants(thought)}
    values: Scores = {}
    status: ReadStatus = "valid"
    if wanting:
        [answer] = yield from ask([_evaluate(talk, turn, wanting)])
        values = _by_agent(talk.scene.group, tuple(wanting), answer)
        status = answer.status
    bids = [bid_of(one)._replace(scores=values.get(one.agent)) for one in thoughts]
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
        system=scene.fill("evaluate_system"),
        members=scene.members,
        thoughts="\n".join(shown),
        criteria=scene.fill(f"evaluate_{form}"),
        form=scene.fill(f"evaluate_{form}_form"),
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


def bid_of(thought: ThoughtRecord) -> Bid:
    """A logged thought as the selection sees it."""
    scores = thought.scores
    tenths = None if scores is None else {name: round(10 * x) for name, x in scores.items()}
    return Bid(thought.agent, _wants(thought), thought.corrects, thought.silent, tenths)


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
    return PredictionRecord(
        status=answer.status,
        named=answer.value,
        attempts=answer.attempts,
    )


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
