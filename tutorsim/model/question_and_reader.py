"""A call together with how its reply is read."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from tutorsim.model.call import Call

__all__ = ["Answer", "Question"]

T = TypeVar("T")


class Question(NamedTuple, Generic[T]):
    """A call to make and how its reply is read."""

    call: Call
    read: Callable[[str], T | None]
    """Reads a reply; `None` means that it has to be asked for once more."""
    reminder: str
    """What the second asking adds to the message: the form that was expected."""
    salvage: Callable[[str], T | None] = lambda _: None
    """Reads what can be read of the second reply when `read` cannot."""


class Answer(NamedTuple, Generic[T]):
    """What a question got."""

    value: T | None
    """`None` when neither reply could be read or salvaged."""
    raw: str
    """The last reply."""
    raw_first: str | None
    """The first reply, when it had to be asked for again."""
    salvaged: bool
    attempts: int
