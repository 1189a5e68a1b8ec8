"""An audit: the oversight study of the replies that a recorded run delivered."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tutorsim.errors import UsageError
from tutorsim.kernel.system import Auditing
from tutorsim.records import RUN_FILE, RunRecord, read_episodes, read_lines, read_run
from tutorsim.records.group import GroupRecord, LessonRecord
from tutorsim.systems.oversight import OVERSIGHT
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import CONDITIONS, Study
from tutorsim.systems.oversight.item_flow_and_oversight_study import OversightStudy
from tutorsim.systems.oversight.items_from_replies_of_a_run import (
    Possible,
    audited_items,
    drawn_turns,
    lesson_items,
)
from tutorsim.systems.oversight.replies_to_label import Item

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


AUDITING: Final = Auditing(CONDITIONS, audit_study)
