"""Python values as plain data.

A value is written as *nodes*: one JSON list for each object that is no scalar, of a tag and the
items in it. An item is a scalar (`None`, a truth value, a number, a text) or `[index]`, which
names a node. So no depth of nesting costs a call stack, an object that is held twice arrives as
one object, and a list may hold itself.

A value travels by its builtin type: subclasses are flattened by the base class's own methods,
and whatever has no plain form becomes an `Opaque`, equal to nothing. The reader builds every
object itself, so no method of the sender's is ever called on the reader's side.

Both sides of a call number its arguments alike: the nodes of an answer are numbered on from
those of the arguments. So an answer can name an argument, and say what became of one.
"""

from collections.abc import Callable
from typing import Any

NAME_CAP = 60
"""Characters of a class's name that travel with an opaque value."""

Item = object
Node = list[Any]
ItemOf = Callable[[object], Item]
"""What writes the parts of a value."""


class Opaque:
    """A value that cannot travel. Its truth travels; it equals nothing, not even itself."""

    __hash__ = object.__hash__

    def __init__(self, kind: str, truth: bool) -> None:
        self.kind = kind
        self.truth = truth

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return self.truth

    def __repr__(self) -> str:
        return f"<{self.kind}>"
