"""From a request to the text of a reply."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from tutorsim.kernel.scripted_mind import Asking, Chance, Recogniser
from tutorsim.system_registry import DEFAULT_SYSTEM, load, system_names


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
    replies = (recognise(asked, chance, steady) for recognise in _recognisers())
    text = next((text for text in replies if text is not None), NOBODY)
    limit = 4 * int(body["max_tokens"])
    stop = "end_turn" if len(text) <= limit else "max_tokens"
    text = text[:limit]
    return Thought(text, tokens(asked.system + asked.user), tokens(text), stop)


NOBODY = "I play tutors, students and judges, and this asks for none of them."
"""The reply to a request that no mind takes."""


def forget_minds() -> None:
    """Look for systems again, as a test that installs one has to."""
    _recognisers.cache_clear()


@cache
def _recognisers() -> tuple[Recogniser, ...]:
    """The minds of all systems; the default system's comes last, as it asks least of a prompt."""
    names = sorted(system_names(), key=lambda name: name == DEFAULT_SYSTEM)
    return tuple(recognise for name in names for recognise in load(name, "system").standin)


def read_request(body: Mapping[str, Any]) -> Asking:
    """The texts of a Messages API request body that has been checked."""
    turns = [_text(message["content"]) for message in body["messages"]]
    return Asking(_text(body.get("system", "")), "\n\n".join(turns))


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


def tokens(text: str) -> int:
    """A stable estimate: four characters a token."""
    return -(-len(text) // 4)
