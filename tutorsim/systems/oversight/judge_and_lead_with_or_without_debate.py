"""An item's scene and its judgment: judge, stress tester and lead; and labels without a debate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, TypeVar

from tutorsim.ballot_reading_and_decisions import decide, masses_of
from tutorsim.kernel.flow_drivers_and_call_log import Flow
from tutorsim.kernel.retest_flow_and_drawn_turns import AskedTogether, Prompt
from tutorsim.kernel.scene_asks_votes_and_blind_labels import Scene, ask, indented
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Answer, CallKey, Question
from tutorsim.records import BallotRecord, Failure, RetestVote, VotedTurn
from tutorsim.records.oversight import (
    CANDIDATES,
    LABELS,
    BriefingNote,
    Challenges,
    Judgment,
    LabelName,
    Labels,
    LeadLabels,
    Message,
    OversightRecord,
    Press,
    Spoken,
    StressTest,
)
from tutorsim.records.oversight import Prompt as Asked
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import (
    ANALYSTS,
    CRITICS,
    REVIEWERS,
    SCRIPTS,
    Act,
    Script,
    Study,
)
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import (
    Item,
    SpeakerTurn,
    has_reference,
)
from tutorsim.systems.oversight.reply_reading import (
    ReadJudgment,
    ReadLead,
    read_judgment,
    read_lead,
    read_stress,
)
from tutorsim.vocabularies import TURN_VOTES, BallotStatus, ReadStatus

# --- Prompt context ------------------------------------------------------------------------------

T = TypeVar("T")


class ItemScene(Scene):
    """One item under one condition: what every prompt of it shares."""

    def __init__(self, loaded: LoadedStudy, spec: EpisodeSpec) -> None:
        assert isinstance(loaded.study, Study)
        self.loaded, self.spec = loaded, spec
        super().__init__(loaded.catalog, loaded.call)
        self.settings = loaded.study.oversight

    @cached_property
    def item(self) -> Item:
        """What is labelled."""
        assert isinstance(self.spec.task, Item)
        return self.spec.task

    @property
    def script(self) -> Script:
        """The condition's acts."""
        return SCRIPTS[self.spec.condition]

    def block(self, head: str, text: str, **values: object) -> str:
        """A heading, and text of any origin indented under it, so that no line of it is a field."""
        return f"{self.wordings.part(head, **values)}:\n  {indented(text) or self.blank}"

    @cached_property
    def shown_item(self) -> str:
        """Dialogue, last message and reply; with the reference only if the study shows it."""
        item = self.item
        shown = self.fill(
            "item",
            dialogue=dialogue_text(item.dialogue),
            message=indented(item.message),
            reply=indented(item.reply) or self.blank,
        )
        if self.settings.show_reference and has_reference(item, self.wordings.part("no_reference")):
            return self.fill("item_reference", item=shown, reference=indented(item.reference))
        return shown

    @cached_property
    def trajectory_values(self) -> Mapping[str, str]:
        """What the trajectory analyst sees: the last turns before the student's last message."""
        item = self.item
        before = dialogue_text(item.before(self.settings.trajectory_turns))
        return {
            "before": before or self.wordings.part("none"),
            "message": indented(item.message),
            "reply": indented(item.reply) or self.blank,
        }

    def question(
        self,
        turn: int,
        stage: str,
        agent: str,
        user: str,
        *,
        read: Callable[[str], T | None],
        salvage: Callable[[str], T | None] = lambda _: None,
        reminder: str,
        system: str = "",
    ) -> Question[T]:
        """A first asking.

        `agent`: of the call key; its model answers. `salvage`: reads what can be read of a second
        reply. `reminder`: template of what the second asking adds. `system`: whose system text it
        is; the agent's when left out.
        """
        text = self.fill(f"system_{system or agent}", scale=self.fill("scale"))
        asked = (turn, stage, agent, read)
        return self.asking(*asked, system=text, user=user, reminder=reminder, salvage=salvage)

    def drawn_first(self, sides: Sequence[str], stage: str) -> str:
        """The side that a reader is shown first: each of the two about half the time."""
        seed, name = self.loaded.study.seed, self.spec.parent_id
        drawn = sha256(f"{seed}\x1f{name}\x1f{stage}".encode()).digest()
        return sides[drawn[0] % 2]


def dialogue_text(turns: Sequence[SpeakerTurn]) -> str:
    """Speaker turns, a paragraph each."""
    return "\n\n".join(f"{turn.speaker}: {indented(turn.text)}" for turn in turns)


# --- Item progress -------------------------------------------------------------------------------

_HEADS: Mapping[Act, str] = {
    Act.OPENING: "head_opening",
    Act.REBUTTAL: "head_rebuttal",
    Act.CLOSING: "head_closing",
    Act.ARGUMENT: "head_argument",
    Act.ASSESSMENT: "head_assessment",
    Act.MERGE: "head_merge",
}
"""Act → the heading of each message in it."""

_WITH_FORM = frozenset({"open", "rebut", "rebut_unchallenged", "close", "argue", "assess", "merge"})
"""Templates that ask for a thesis, and show its form."""


@dataclass
class Progress:
    """Grows as an item's flow runs; its fields are fields of the record."""

    briefing: list[BriefingNote] = field(default_factory=list)
    quick: LeadLabels | None = None
    skipped: bool = False
    messages: list[Message] = field(default_factory=list)
    challenges: Challenges | None = None
    press: Press | None = None
    judge: Judgment | None = None
    judge_swapped: Judgment | None = None
    stress: StressTest | None = None
    lead: LeadLabels | None = None
    lead_prompt: Asked | None = None
    alone: list[LeadLabels] = field(default_factory=list)
    turns: list[VotedTurn] = field(default_factory=list)
    label: Labels | None = None

    def filled(self, scene: ItemScene, template: str, **values: str) -> str:
        """A template with what is assessed, the briefing if there is one, and the reply's form."""
        assessed = scene.shown_item
        if self.briefing:
            notes = (
                scene.block("head_briefing", note.raw, agent=note.agent) for note in self.briefing
            )
            assessed = scene.fill("with_briefing", item=assessed, briefing="\n\n".join(notes))
        form = {"form": scene.fill("thesis_form")} if template in _WITH_FORM else {}
        return scene.fill(template, assessed=assessed, **form, **values)

    def said(self, scene: ItemScene, act: Act, agent: str) -> str:
        """What one agent said in an act, to stand under a heading."""
        texts = [m.raw for m in self.messages if (m.act, m.agent) == (act.value, agent)]
        return indented(texts[-1]) or scene.blank

    def challenges_to(self, scene: ItemScene, critic: str) -> str:
        """The challenges to one critic, to stand under a heading."""
        lines = self.challenges.challenges.get(critic, ()) if self.challenges else ()
        numbered = "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))
        return indented(numbered) or scene.wordings.part("none")

    def press_on(self, scene: ItemScene, critic: str) -> str:
        """What the advocate still wants of a critic."""
        if self.press is None:
            return scene.fill("closed_unasked")
        if critic in self.press.presses:
            return scene.fill("closed_unmet", press=indented(self.press.presses[critic]))
        met = self.press.verdicts[critic] == "met"
        return scene.fill("closed_met" if met else "closed_unasked")

    def transcript(self, scene: ItemScene, first: str, *, acts: Sequence[Act] = tuple(Act)) -> str:
        """What was said in some acts, oldest first; within an act one agent's text first."""
        paragraphs: list[str] = []
        for act in acts:
            if act is Act.CROSS and self.challenges is not None:
                paragraphs.append(scene.block("head_challenges", self.challenges.raw))
            elif act is Act.PRESS and self.press is not None:
                paragraphs.append(scene.block("head_press", self.press.raw))
            else:
                paragraphs += [
                    scene.block(_HEADS[act], said.raw, agent=said.agent, turn=said.turn)
                    for said in self._in_act(act, first)
                ]
        return "\n\n".join(paragraphs)

    def _in_act(self, act: Act, first: str) -> list[Message]:
        found = [message for message in self.messages if message.act == act.value]
        return sorted(found, key=lambda message: (message.turn, message.agent != first))


def spoken(agent: str, answer: Answer[Any]) -> dict[str, Any]:
    """The fields that every reply has in the log."""
    return {
        "agent": agent,
        "raw": answer.raw,
        "status": answer.status,
        "attempts": answer.attempts,
        "raw_first": answer.raw_first,
    }


def other_critic(critic: str) -> str:
    """The critic on the other side."""
    return CRITICS[1 - CRITICS.index(critic)]


# --- Judgment ------------------------------------------------------------------------------------

VOTING_STAGES: Final = ("sample", "member")
"""Stages of calls whose replies carry a ballot on each label."""


def judgment(scene: ItemScene, progress: Progress) -> Flow[None]:
    """The judge (in both orders if asked for), then the stress tester, then the lead."""
    sides = REVIEWERS if any(m.agent in REVIEWERS for m in progress.messages) else CRITICS
    first = scene.drawn_first(sides, "judge")
    orders = {"judge": first}
    if scene.settings.judge_orders == 2:
        orders["judge_swapped"] = sides[1 - sides.index(first)]
    answers = yield from ask(
        [_judge_question(scene, progress, stage, sides, orders[stage]) for stage in orders]
    )
    verdicts = [
        _judged(shown, answer) for shown, answer in zip(orders.values(), answers, strict=True)
    ]
    progress.judge = verdicts[0]
    progress.judge_swapped = verdicts[1] if len(verdicts) > 1 else None
    debate, verdict = progress.transcript(scene, first), _raw(scene, progress.judge)
    yield from _stress(scene, progress, debate, verdict)
    user = progress.filled(
        scene,
        "lead",
        debate=debate,
        verdict=verdict,
        weakness=_raw(scene, progress.stress),
        answer=scene.fill("answer_form"),
    )
    yield from _lead(scene, progress, user)
    progress.turns = opinion_turns(progress)


def _raw(scene: ItemScene, said: Judgment | StressTest | None) -> str:
    return indented(said.raw if said else "") or scene.blank


def _judge_question(
    scene: ItemScene, progress: Progress, stage: str, sides: tuple[str, str], first: str
) -> Question[ReadJudgment]:
    second = sides[1 - sides.index(first)]
    user = progress.filled(
        scene, "judge", debate=progress.transcript(scene, first), first=first, second=second
    )
    return scene.question(
        6,
        stage,
        "judge",
        user,
        read=lambda reply: read_judgment(reply, sides=sides),
        reminder="judge_reminder",
    )


def _judged(first: str, answer: Answer[ReadJudgment]) -> Judgment:
    read = answer.value
    return Judgment(
        first_shown=first,
        winner=read.winner if read else None,
        why=read.why if read else "",
        labels=read.labels if read else None,
        confidence=read.confidence if read else None,
        **spoken("judge", answer),
    )


def _stress(scene: ItemScene, progress: Progress, debate: str, verdict: str) -> Flow[None]:
    user = progress.filled(scene, "stress", debate=debate, verdict=verdict)
    [answer] = yield from ask(
        [scene.question(6, "stress", "stress", user, read=read_stress, reminder="stress_reminder")]
    )
    read = answer.value
    progress.stress = StressTest(
        weakness=read.weakness if read else "",
        severity=read.severity if read else None,
        labels=read.labels if read else None,
        **spoken("stress", answer),
    )


# --- Labels of the lead, and of whoever labels alone -----------------------------------------


def _lead_question(
    scene: ItemScene, turn: int, stage: str, agent: str, user: str, *, system: str = "lead"
) -> Question[ReadLead]:
    return scene.question(
        turn,
        stage,
        agent,
        user,
        read=read_lead,
        salvage=_salvaged,
        reminder="answer_reminder",
        system=system,
    )


def _salvaged(reply: str) -> ReadLead | None:
    return read_lead(reply, attempt=2)


def _labelled(agent: str, answer: Answer[ReadLead]) -> LeadLabels:
    read = answer.value
    return LeadLabels(
        labels=read.labels if read else None,
        confidence=read.confidence if read else None,
        reasoning=read.reasoning if read else "",
        **spoken(agent, answer),
    )


def _lead(scene: ItemScene, progress: Progress, user: str) -> Flow[None]:
    """Ask the lead, whose labels are the item's."""
    question = _lead_question(scene, 6, "lead", "lead", user)
    request = question.call.request
    progress.lead_prompt = Asked(system=request.system, user=request.user)
    [answer] = yield from ask([question])
    progress.lead = _labelled("lead", answer)
    progress.label = progress.lead.labels


def _alone_text(scene: ItemScene, progress: Progress) -> str:
    return progress.filled(scene, "alone", answer=scene.fill("answer_form"))


def quick(scene: ItemScene, progress: Progress) -> Flow[None]:
    """The lead's labels before the debate; with `skip`, sure ones end the item."""
    user = _alone_text(scene, progress)
    [answer] = yield from ask([_lead_question(scene, 0, "quick", "lead", user)])
    progress.quick = _labelled("lead", answer)
    sure = progress.quick.confidence is not None and (
        progress.quick.confidence > scene.settings.skip_above
    )
    if scene.settings.adaptive == "skip" and sure:
        progress.skipped, progress.label = True, progress.quick.labels


def alone(scene: ItemScene, progress: Progress) -> Flow[None]:
    """The lead alone, with the dialogue only."""
    user = _alone_text(scene, progress)
    yield from _lead(scene, progress, user)


def samples(scene: ItemScene, progress: Progress) -> Flow[None]:
    """The lead alone, several times, and the majority per label."""
    user = _alone_text(scene, progress)
    names = [f"sample_{number}" for number in range(1, scene.settings.samples + 1)]
    answers = yield from ask([_lead_question(scene, 6, "sample", name, user) for name in names])
    _vote(progress, names, answers)


def members(scene: ItemScene, progress: Progress) -> Flow[None]:
    """The three analysts, each alone, and the majority per label."""
    user = f"{scene.fill('scale')}\n\n{_alone_text(scene, progress)}"
    questions = [
        _lead_question(scene, 6, "member", analyst, user, system=analyst) for analyst in ANALYSTS
    ]
    answers = yield from ask(questions)
    _vote(progress, ANALYSTS, answers)


def _vote(progress: Progress, voters: Sequence[str], answers: Sequence[Answer[ReadLead]]) -> None:
    """Count a vote per label; where no reply could be read nobody votes, and no label is drawn."""
    progress.alone = [_labelled(*pair) for pair in zip(voters, answers, strict=True)]
    if all(said.labels is None for said in progress.alone):
        return
    turns = [_decided(number, label, progress.alone) for number, label in enumerate(LABELS, 1)]
    winners = [turn.decision.winner for turn in turns if turn.decision is not None]
    progress.turns = turns
    progress.label = Labels.model_validate(
        {label: int(name.rpartition("_")[2]) for label, name in zip(LABELS, winners, strict=True)}
    )


def labels_again(record: OversightRecord, reminder: str) -> Iterator[AskedTogether[ReadLead]]:
    """The prompts of an item's votes; each reply carries a ballot on each label.

    `record`: the item; where no vote decided it, nothing comes.
    """
    if not any(turn.decision is not None for turn in record.turns):
        return
    keys = [CallKey.parse(call.key) for call in record.calls if call.stage in VOTING_STAGES]
    prompts = tuple(
        Prompt(key, lambda call: Question(call, read_lead, reminder, _salvaged))
        for key in keys
        if key.attempt == 1
    )

    def records(
        repeats: Sequence[Sequence[Answer[ReadLead]]], failures: tuple[Failure, ...]
    ) -> tuple[RetestVote, ...]:
        voters = [prompt.key.agent for prompt in prompts]
        said = [[_labelled(*pair) for pair in zip(voters, one, strict=True)] for one in repeats]
        return tuple(
            RetestVote(
                turn=number,
                stage=TURN_VOTES[-1],
                repeats=tuple(tuple(_ballot_on(label, o, o.labels) for o in one) for one in said),
                failures=failures if number == 1 else (),  # one call, whose failure is told once
            )
            for number, label in enumerate(LABELS, 1)
        )

    yield AskedTogether(TURN_VOTES[-1], prompts, records)


def _decided(number: int, label: LabelName, said: Sequence[LeadLabels]) -> VotedTurn:
    ballots = tuple(_ballot_on(label, one, one.labels) for one in said)
    masses = [ballot.mass for ballot in ballots]
    decision = decide(masses, CANDIDATES[label], order=CANDIDATES[label])
    sure = {one.agent: one.confidence for one in said}
    return VotedTurn(
        turn=number,
        ballots_final=ballots,
        decision=decision,
        confidences={name: round(100 * c) for name, c in sure.items() if c is not None},
    )


def _ballot_on(label: LabelName, said: Spoken, labels: Labels | None) -> BallotRecord:
    """A simple ballot on one label; an abstention if the labels could not be read."""
    choice = None if labels is None else f"{label}_{getattr(labels, label)}"
    return BallotRecord(
        voter=said.agent,
        protocol="simple",
        labels={name: name for name in CANDIDATES[label]},
        raw=said.raw,
        parsed=choice,
        mass=masses_of(choice, CANDIDATES[label], protocol="simple"),
        ballot_status="abstained" if choice is None else _BALLOT[said.status],
        attempts=said.attempts,
        raw_first=said.raw_first,
    )


_BALLOT: Final[Mapping[ReadStatus, BallotStatus]] = {
    "valid": "valid",
    "repaired": "repaired",
    "missing": "abstained",
}


def opinion_turns(progress: Progress) -> list[VotedTurn]:
    """The labels that the agents of a debate hold at its end, as votes that decided nothing."""
    if progress.judge is None or progress.stress is None or progress.lead is None:
        return []
    held = {message.agent: message for message in progress.messages}
    said: list[Message | Judgment | StressTest | LeadLabels] = [*held.values()]
    said += [progress.judge, progress.stress, progress.lead]
    return [
        VotedTurn(
            turn=number,
            other_votes={"vote_opinion": tuple(_ballot_on(label, one, one.labels) for one in said)},
        )
        for number, label in enumerate(LABELS, 1)
    ]
