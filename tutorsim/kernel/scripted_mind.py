"""What a mind of the scripted model is: from a request to a reply, without chance of its own.

The stand-in server asks the minds of all systems in turn. A mind looks at the texts, takes the
request or leaves it, and draws whatever it needs from `Chance`, so that the same request always
gets the same reply.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Chance:
    """Draws that depend on nothing but `parts` and the name of each draw.

    Args:
        parts: What the draws belong to, such as a seed and a request.
    """

    def __init__(self, *parts: str | int) -> None:
        self._base = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")

    def digest(self, name: str) -> bytes:
        """The 32 bytes behind one draw."""
        return hashlib.sha256(self._base + b"\x1e" + name.encode("utf-8", "surrogatepass")).digest()

    def unit(self, name: str) -> float:
        """A number from 0 up to, and without, 1."""
        return int.from_bytes(self.digest(name)[:6]) / 2**48

    def happens(self, name: str, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.unit(name) < probability

    def pick(self, name: str, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self.unit(name) * len(options))]

    def bell(self, name: str) -> float:
        """A nearly normal number of mean 0 and deviation 1, between -3.5 and 3.5."""
        found = self.digest(name)
        total = sum(int.from_bytes(found[i : i + 8]) for i in (0, 8, 16, 24)) / 2**64
        return (total - 2) * math.sqrt(3)


class Asking(NamedTuple):
    """The texts of a request."""

    system: str
    user: str

    @property
    def again(self) -> bool:
        """Whether the last reply could not be used and is asked for once more."""
        return "Your last reply" in self.user[-400:]


Recogniser = Callable[[Asking, Chance, Chance | None], str | None]
"""From texts, the request's draws and, for steady voters, the seed's draws to the reply's text;
`None` for a request that is not of the system."""
