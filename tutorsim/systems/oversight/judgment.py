"""Judgment: judge, stress tester and lead; and labels without a debate."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tutorsim.kernel.flow import Flow, ask
from tutorsim.kernel.retest_flow import AskedTogether, Prompt
from tutorsim.kernel.scene import indented
from tutorsim.model import Answer, CallKey, Question
from tutorsim.records import BallotRecord, Failure, RetestVote, VotedTurn
from tutorsim.records.oversight import (
    CANDIDATES,
    LABELS,
    Judgment,
    LabelName,
    Labels,
    LeadLabels,
    Message,
    OversightRecord,
    Spoken,
    StressTest,
)
from tutorsim.records.oversight import Prompt as Asked
from tutorsim.systems.oversight.reply_reading import (
    ReadJudgment,
    ReadLead,
    read_judgment,
    read_lead,
    read_stress,
)
from tutorsim.systems.oversight.scene import ItemScene, Progress, spoken
from tutorsim.systems.oversight.settings import ANALYSTS, CRITICS, REVIEWERS
from tutorsim.vocabularies import TURN_VOTES, BallotStatus, ReadStatus
from tutorsim.voting import decide, masses_of

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

    Args:
        record: The item; where no vote decided it, nothing comes.
        reminder: What a second asking adds.
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
