"""One episode: the student tries, the judge scores, and a mechanism helps until it succeeds.

A generator over the effects of `tutorsim.kernel.flow`. The first attempt is judged before
any tutoring.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tutorsim.kernel.flow import CallLog, CodeResult, CodeRun, Flow, ask, run_to_failure
from tutorsim.kernel.scene import indented
from tutorsim.model import Question
from tutorsim.records import (
    Attempt,
    BranchedEpisode,
    BranchPoint,
    EpisodeRecord,
    Failure,
    Turn,
)
from tutorsim.systems.panel.reply_reading import Score, read_score
from tutorsim.systems.panel.scene import Exchange, Scene
from tutorsim.systems.panel.turn import (
    panel_format,
    panel_turn,
    panel_turn_decided_by,
    single_turn,
)
from tutorsim.tasks import CodeTask


@dataclass
class _Progress:
    """What an episode has reached; grows as the generator runs."""

    left: int | None = None
    """In a branch, the turn whose winner was another than the parent's."""

    attempts: list[Attempt] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def episode(scene: Scene) -> Flow[EpisodeRecord]:
    """Run one episode.

    Returns:
        The record, with `status` `failed` when a call failed for good.
    """
    progress, calls = _Progress(), CallLog()
    fresh = None if scene.study.branch is None else lambda: progress.left is not None
    failure = yield from run_to_failure(_interaction(scene, progress), calls, fresh=fresh)
    return _record(scene, progress, failure, calls)


def _interaction(scene: Scene, progress: _Progress) -> Flow[None]:
    exchanges: list[Exchange] = []
    while True:
        attempt = yield from _attempt(scene, exchanges)
        progress.attempts.append(attempt)
        if _succeeded(scene, attempt) or len(exchanges) >= scene.study.max_turns:
            return
        exchanges.append(Exchange(attempt.text, None))
        turn = yield from _turn(scene, exchanges, progress)
        progress.turns.append(turn)
        exchanges[-1] = Exchange(attempt.text, turn.delivered)


def _turn(scene: Scene, exchanges: list[Exchange], progress: _Progress) -> Flow[Turn]:
    if scene.spec.condition == "baseline":
        return (yield from single_turn(scene, exchanges))
    branch, parent = scene.study.branch, _parent(scene)
    if branch is None or parent is None or len(exchanges) < parent.turn:
        return (yield from panel_turn(scene, exchanges, panel_format(scene)))
    if progress.left is not None:
        alternative = scene.alternative(branch)
        return (yield from panel_turn(alternative, exchanges, panel_format(alternative)))
    turn = yield from panel_turn_decided_by(
        scene, exchanges, panel_format(scene), deciding=scene.deciding(branch)
    )
    delivered = [turn.decision.winner] if turn.decision else []
    if delivered != [*parent.winners[turn.turn - 1 : turn.turn]]:
        progress.left = turn.turn
    return turn


def _parent(scene: Scene) -> BranchedEpisode | None:
    """Where a branch takes the episode up; `None` for an episode of its own."""
    branch = scene.study.branch
    return None if branch is None else branch.episodes.get(scene.spec.parent_id)


def _attempt(scene: Scene, exchanges: list[Exchange]) -> Flow[Attempt]:
    """The student's next message, the verdict on its code, and the judge's score."""
    turn = len(exchanges)
    [said] = yield from ask([_student_question(scene, exchanges)])
    text = said.value or ""
    tested = yield from _run_code(scene, turn, text)
    [judged] = yield from ask([_judge_question(scene, turn, text)])
    score = judged.value
    return Attempt(
        turn=turn,
        text=text,
        score=score.value if score else None,
        score_rationale=score.rationale if score else None,
        code=tested.code if tested else None,
        code_passed=tested.verdict.outcome == "pass" if tested else None,
        verdict=tested.verdict if tested else None,
    )


def _student_question(scene: Scene, exchanges: Sequence[Exchange]) -> Question[str]:
    """Ask for the student's next message, after the reply that it now reads, if any."""
    situation = {"task": scene.task_text}
    if exchanges:
        last = exchanges[-1]
        before = [*exchanges[:-1], last._replace(delivered=None)]
        situation["history"] = scene.history(before)
        situation["delivered"] = indented(last.delivered or "")
    told = scene.fill("situation_next" if exchanges else "situation_first", **situation)
    task, user = scene.spec.task, {"situation": told}
    if isinstance(task, CodeTask):
        user["entry_point"] = task.entry_point
    return scene.asking(
        *(len(exchanges), "student", "student", lambda reply: reply.strip() or None),
        system=scene.fill("student_system", **vars(scene.persona)),
        user=scene.fill("student_code" if scene.is_code else "student_science", **user),
        reminder="student_reminder",
    )


def _judge_question(scene: Scene, turn: int, attempt: str) -> Question[Score]:
    """Ask for a score of one attempt, against the reference that only the judge sees.

    For programming tasks the words about the algorithm are scored; tests judge the code.
    """
    user = scene.fill(
        "judge_code" if scene.is_code else "judge_science",
        question=scene.question,
        reference=scene.reference,
        attempt=indented(attempt),
    )
    return scene.asking(
        *(turn, "judge", "judge", read_score),
        system=scene.fill("judge_system"),
        user=user,
        reminder="judge_reminder",
    )


def _run_code(scene: Scene, turn: int, text: str) -> Flow[CodeResult | None]:
    task = scene.spec.task
    if not isinstance(task, CodeTask):
        return None
    sent = yield CodeRun(
        turn=turn,
        message=text,
        prompt=task.prompt,
        entry_point=task.entry_point,
        test=task.test,
    )
    assert isinstance(sent, CodeResult)
    return sent


def _succeeded(scene: Scene, attempt: Attempt) -> bool:
    """Score at the threshold or above, and for programming tasks a passing verdict."""
    scored = attempt.score is not None and attempt.score >= scene.study.success_threshold
    return scored and (attempt.code_passed is True or not scene.is_code)


def _record(
    scene: Scene, progress: _Progress, failure: Failure | None, calls: CallLog
) -> EpisodeRecord:
    spec, attempts = scene.spec, progress.attempts
    first, last = (attempts[0], attempts[-1]) if attempts else (None, None)
    return EpisodeRecord(
        episode_id=spec.episode_id,
        benchmark=spec.benchmark,
        task_id=spec.task.task_id,
        persona=spec.variant,
        condition=spec.condition,
        panel=spec.factor,
        repeat=spec.repeat,
        question=scene.question,
        reference=scene.reference,
        status="complete" if failure is None else "failed",
        failure=failure,
        branch=_branch_point(scene, progress),
        attempts=tuple(attempts),
        turns=tuple(progress.turns),
        turns_taken=max(len(attempts) - 1, 0),
        initial_correctness=first.score if first else None,
        final_correctness=last.score if last else None,
        initial_code_passed=first.code_passed if first else None,
        code_passed=last.code_passed if last else None,
        success=_succeeded(scene, last) if last and failure is None else None,
        **calls.fields(),
    )


def _branch_point(scene: Scene, progress: _Progress) -> BranchPoint | None:
    parent = _parent(scene)
    if parent is None:
        return None
    return BranchPoint(
        parent_episode=scene.spec.parent_id,
        turn=parent.turn,
        continuation=scene.spec.continuation,
        left=progress.left,
    )
