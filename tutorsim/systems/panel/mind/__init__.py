"""The panel's mind: it answers as students, judges and tutors, from the prompt alone."""

from collections.abc import Callable, Mapping

from tutorsim.scripted_mind import Asking, Chance
from tutorsim.systems.panel.mind.judge import judge_reply
from tutorsim.systems.panel.mind.prompt_reading import Asked, Kind
from tutorsim.systems.panel.mind.student import student_reply
from tutorsim.systems.panel.mind.tutor import draft_reply, review_reply, revision_reply
from tutorsim.systems.panel.mind.voter import vote_reply

__all__ = ["panel_reply"]


def panel_reply(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    """The reply to a prompt of a panel; `None` for one that asks for none of its parts.

    Args:
        asking: The texts of the request.
        chance: Draws of this call.
        steady: What steady voters draw from; `None` for voters with moods and slips.
    """
    asked = Asked(asking.system, asking.user)
    if asked.kind == "vote":
        return vote_reply(asked, chance, steady=steady)
    reply = _REPLIES.get(asked.kind)
    return None if reply is None else reply(asked, chance)


_REPLIES: Mapping[Kind, Callable[[Asked, Chance], str]] = {
    "student": student_reply,
    "judge": judge_reply,
    "propose": draft_reply,
    "revise": revision_reply,
    "review": review_reply,
}
