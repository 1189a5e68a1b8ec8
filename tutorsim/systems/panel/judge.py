"""The judge: scores an attempt against the reference answer, which only it sees."""

from tutorsim.mechanisms.author_labels import indented
from tutorsim.model import Question
from tutorsim.systems.panel.prompt_context import Scene
from tutorsim.systems.panel.reply_reading import Score, read_score

__all__ = ["judge_question"]


def judge_question(scene: Scene, turn: int, attempt: str) -> Question[Score]:
    """Ask for a score of one attempt.

    For programming tasks the words about the algorithm are scored; tests judge the code.
    """
    catalog = scene.catalog
    user = catalog.fill(
        "judge_code" if scene.is_code else "judge_science",
        question=scene.question,
        reference=scene.reference,
        attempt=indented(attempt),
    )
    call = scene.call(turn, "judge", "judge", system=catalog.fill("judge_system"), user=user)
    return Question(call, read_score, catalog.fill("judge_reminder"))
