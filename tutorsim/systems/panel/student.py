"""The simulated student: a persona that answers, and answers again after help."""

from collections.abc import Sequence

from tutorsim.mechanisms.author_labels import indented
from tutorsim.model import Question
from tutorsim.systems.panel.prompt_context import Exchange, Scene
from tutorsim.tasks import CodeTask

__all__ = ["student_question"]


def student_question(scene: Scene, exchanges: Sequence[Exchange]) -> Question[str]:
    """Ask for the student's next message.

    Args:
        scene: The episode.
        exchanges: What was said before; empty for the first attempt, otherwise the last one
            has the reply that the student now reads.
    """
    catalog, persona = scene.catalog, scene.persona
    turn = len(exchanges)
    if turn == 0:
        situation = catalog.fill("situation_first", task=scene.task_text())
    else:
        last = exchanges[-1]
        before = [*exchanges[:-1], Exchange(last.attempt, None)]
        situation = catalog.fill(
            "situation_next",
            task=scene.task_text(),
            history=scene.history(before),
            delivered=indented(last.delivered or ""),
        )
    task = scene.spec.task
    if isinstance(task, CodeTask):
        user = catalog.fill("student_code", situation=situation, entry_point=task.entry_point)
    else:
        user = catalog.fill("student_science", situation=situation)
    system = scene.filled("student_system", **vars(persona))
    call = scene.call(turn, "student", "student", system=system, user=user)
    return Question(call, _non_empty, catalog.fill("student_reminder"))


def _non_empty(reply: str) -> str | None:
    return reply.strip() or None
