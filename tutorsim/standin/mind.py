"""From a request to the text of a reply."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tutorsim.standin.chance import Chance
from tutorsim.standin.judge import judge_reply
from tutorsim.standin.reading import Asked, Kind, read_request
from tutorsim.standin.student import student_reply
from tutorsim.standin.tutor import draft_reply, review_reply, revision_reply
from tutorsim.standin.voter import vote_reply

__all__ = ["Thought", "think", "tokens"]


class Thought(NamedTuple):
    """A reply before it is put into a response."""

    text: str
    input_tokens: int
    output_tokens: int
    stop_reason: str


def think(body: Mapping[str, Any], chance: Chance, *, steady: Chance | None = None) -> Thought:
    """Answer a checked request body; the same body and chances give the same reply.

    Args:
        body: The request.
        chance: Draws of this call.
        steady: What steady voters draw from; `None` for voters with moods and slips.
    """
    asked = read_request(body)
    if asked.kind == "vote":
        text = vote_reply(asked, chance, steady=steady)
    else:
        text = _REPLIES[asked.kind](asked, chance)
    limit = 4 * int(body["max_tokens"])
    stop = "end_turn" if len(text) <= limit else "max_tokens"
    text = text[:limit]
    return Thought(text, tokens(asked.system + asked.user), tokens(text), stop)


def tokens(text: str) -> int:
    """A stable estimate: four characters a token."""
    return -(-len(text) // 4)


def _other(asked: Asked, chance: Chance) -> str:
    return "I play tutors, students and judges, and this asks for none of them."


_REPLIES: Mapping[Kind, Callable[[Asked, Chance], str]] = {
    "student": student_reply,
    "judge": judge_reply,
    "propose": draft_reply,
    "revise": revision_reply,
    "review": review_reply,
    "other": _other,
}
