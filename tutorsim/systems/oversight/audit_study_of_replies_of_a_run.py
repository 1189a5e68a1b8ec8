"""An audit: the oversight study of the replies that a recorded run delivered.

Each reply is one item: the dialogue is the task, as the tutor's first turn, and what was said
before; the student's message is the last one before the reply. Ids are hashes of episode, turn
and role, because an episode's id does not fit into another one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from tutorsim.errors import UsageError
from tutorsim.kernel.system_and_loaded_study import Auditing
from tutorsim.records import (
    RUN_FILE,
    EpisodeRecord,
    RunRecord,
    Turn,
    read_episodes,
    read_lines,
    read_run,
)
from tutorsim.records.group import GroupRecord, LessonRecord
from tutorsim.records.oversight import AuditedReply
from tutorsim.systems.oversight import OVERSIGHT
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import CONDITIONS, Study
from tutorsim.systems.oversight.item_flow_and_oversight_study import OversightStudy
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import (
    Item,
    SpeakerTurn,
    audited_of,
)

Possible = Mapping[tuple[str, int], Mapping[str, tuple[str, ...]]]
"""Episode and turn → rule → roles that could have won."""


_NEXT: Final = "Record a study with `tutorsim run`, or write its log with `tutorsim replay REC`."


def audit_study(
    source: Path,
    *,
    possible: Callable[[Path], Possible] | None = None,
    sample: int | None = None,
    seed: int = 0,
    conditions: Sequence[str] = ("single",),
    show_reference: bool = False,
    models: Mapping[str, str] | None = None,
) -> OversightStudy:
    """The oversight study of a run's replies.

    `possible`: from the run folder to who could have won each turn under each rule. If it is given,
    every role's final proposal is an item. `sample`: so many turns, drawn by hash; all when `None`.
    `conditions`: who labels. Raises `UsageError` if there is no run, or it has no replies of a
    tutor.
    """
    head = _head(source)
    items = _items(source, head, possible)
    if not items:
        raise UsageError(
            f"{source} holds no delivered reply.",
            why="No episode came to a tutoring turn.",
            hint="Audit a run in which tutors replied.",
        )
    study = Study.model_validate(
        {
            "name": f"audit-{head.study.name}"[:80],
            "seed": seed,
            "conditions": conditions,
            "benchmarks": {"audit": {"tasks": "tasks.audit.jsonl"}},
            "models": models or {},
            "oversight": {"show_reference": show_reference},
            "inputs": {
                "run": head.study.name,
                "provenance": head.provenance,
                "recording_digest": head.recording_digest,
            },
        }
    )
    tasks = {"audit": drawn_turns(items, sample, seed=seed)}
    return OversightStudy(study, OVERSIGHT.catalog(), tasks, OVERSIGHT)


def _head(source: Path) -> RunRecord:
    """The head of a run whose replies can be audited."""
    if not (source / RUN_FILE).is_file():
        if source.is_dir():
            missing = f"It has no {RUN_FILE}."
        elif source.exists():
            missing = "It is a file: ballots, for example, do not say what was said to whom."
        else:
            missing = "There is no such folder."
        raise UsageError(f"{source} is no run folder.", why=missing, hint=_NEXT)
    head = read_run(source)
    if head.system not in ("panel", "group"):
        raise UsageError(
            f"`tutorsim audit` does not apply to {source}, a run of the system {head.system!r}.",
            why="Its log holds no replies of a tutor to a student, one a turn.",
            hint="Audit a run of panels or of single tutors, a branch of one, or group lessons.",
        )
    return head


def _items(
    source: Path, head: RunRecord, possible: Callable[[Path], Possible] | None
) -> tuple[Item, ...]:
    """The replies of a run's tutors; `UsageError` if there are no proposals besides the replies."""
    name = head.study.name
    if head.system == "panel":
        won = None if possible is None else possible(source)
        return audited_items(name, read_episodes(source), possible=won)
    if possible is not None:
        raise UsageError(
            f"{source} has no proposals besides the messages that were posted.",
            why="In a group lesson nobody votes on what is said.",
            hint="Leave --all-proposals out.",
        )
    records = read_lines(source, GroupRecord)
    return lesson_items(name, (one for one in records if isinstance(one, LessonRecord)))


# --- Items ---------------------------------------------------------------------------------------


def audited_items(
    run: str, records: Iterable[EpisodeRecord], *, possible: Possible | None = None
) -> tuple[Item, ...]:
    """The delivered replies of a run, oldest first within each episode.

    `records`: its episodes; those that failed are left out. `possible`: who could have won each
    turn, by rule. If given, the final proposal of every other role of the panel is an item too.
    """
    return tuple(
        item
        for record in records
        if record.status == "complete"
        for turn in record.turns
        for item in _turn_items(run, record, turn, possible)
    )


def lesson_items(run: str, records: Iterable[LessonRecord]) -> tuple[Item, ...]:
    """The agents' messages of group lessons, from the learner's first message on.

    The learner's messages are the student's, those of every agent the tutor's.

    `records`: its lessons; those that failed are left out.
    """
    return tuple(
        item for record in records if record.status == "complete" for item in _lesson(run, record)
    )


def _lesson(run: str, record: LessonRecord) -> Iterator[Item]:
    said = [SpeakerTurn("Tutor", record.problem)]
    for event in record.events:
        if event.kind != "message" or event.who is None:
            continue
        if event.who == "learner":
            said.append(SpeakerTurn("Student", event.text))
            continue
        if any(turn.speaker == "Student" for turn in said):
            yield _message(run, record, event.number, event.who, event.text, tuple(said))
        said.append(SpeakerTurn("Tutor", event.text))


def _message(
    run: str,
    record: LessonRecord,
    number: int,
    agent: str,
    text: str,
    said: tuple[SpeakerTurn, ...],
) -> Item:
    return Item(
        task_id=_item_id(record.episode_id, number, agent),
        dialogue=said,
        reply=text,
        conversation=f"{record.benchmark}.{record.task_id}",
        tutor=agent,
        benchmark="audit",
        audited=AuditedReply(
            run=run,
            episode=record.episode_id,
            turn=number,
            role=agent,
            delivered=True,
            condition=record.condition,
            persona=record.variant,
            benchmark=record.benchmark,
            task=record.task_id,
            decided_by="none",
            score_before=None,
            score_after=None,
        ),
    )


def _item_id(episode: str, turn: int, role: str) -> str:
    return sha256(f"{episode}\x1f{turn}\x1f{role}".encode()).hexdigest()[:16]


def drawn_turns(items: Sequence[Item], count: int | None, *, seed: int) -> tuple[Item, ...]:
    """The items of so many turns, drawn by hash; each turn keeps all of its items.

    A larger draw by the same seed holds a smaller one.
    """
    turns = {(a.episode, a.turn) for a in audited_of(items)}

    def place(turn: tuple[str, int]) -> bytes:
        return sha256(f"{seed}\x1faudit\x1f{turn[0]}\x1f{turn[1]}".encode()).digest()

    kept = set(sorted(turns, key=place)[:count])
    pairs = zip(items, audited_of(items), strict=True)
    return tuple(item for item, a in pairs if (a.episode, a.turn) in kept)


def _turn_items(
    run: str, record: EpisodeRecord, turn: Turn, possible: Possible | None
) -> Iterator[Item]:
    winner = "baseline" if turn.decision is None else turn.decision.winner
    texts = {winner: turn.delivered}
    if possible is not None and turn.decision is not None:
        texts = {role: proposal.text for role, proposal in turn.proposals_final.items()}
        texts[winner] = turn.delivered
    could = (possible or {}).get((record.episode_id, turn.turn), {})
    for role, text in texts.items():
        yield _item(run, record, turn, role, text, delivered=role == winner, possible=could)


def _item(
    run: str,
    record: EpisodeRecord,
    turn: Turn,
    role: str,
    text: str,
    *,
    delivered: bool,
    possible: Mapping[str, tuple[str, ...]],
) -> Item:
    scores = {attempt.turn: attempt.score for attempt in record.attempts}
    return Item(
        task_id=_item_id(record.episode_id, turn.turn, role),
        dialogue=tuple(_dialogue(record, turn.turn)),
        reply=text,
        conversation=f"{record.benchmark}.{record.task_id}",
        tutor=role,
        benchmark="audit",
        reference=record.reference,
        audited=AuditedReply(
            run=run,
            episode=record.episode_id,
            turn=turn.turn,
            role=role,
            delivered=delivered,
            condition=record.condition,
            persona=record.persona,
            benchmark=record.benchmark,
            task=record.task_id,
            decided_by="none" if turn.decision is None else turn.decision.decided_by,
            score_before=scores.get(turn.turn - 1),
            score_after=scores.get(turn.turn) if delivered else None,
            possible=dict(possible),
        ),
    )


def _dialogue(record: EpisodeRecord, turn: int) -> Iterator[SpeakerTurn]:
    """The task and all that was said before a turn's reply."""
    yield SpeakerTurn("Tutor", record.question)
    delivered = {one.turn: one.delivered for one in record.turns}
    for attempt in sorted(record.attempts, key=lambda one: one.turn):
        if attempt.turn >= turn:
            return
        if attempt.turn > 0:
            yield SpeakerTurn("Tutor", delivered[attempt.turn])
        yield SpeakerTurn("Student", attempt.text)


AUDITING: Final = Auditing(CONDITIONS, audit_study)
