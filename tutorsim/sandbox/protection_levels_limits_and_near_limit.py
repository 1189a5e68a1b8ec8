"""Levels of protection, the layers that each needs, and the limits on a program."""

from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, get_args

from tutorsim.errors import UsageError
from tutorsim.sandbox.inner.frames_layers_and_longest_program import LAYERS, Layer

Level = Literal["strong", "no-namespaces", "filter-only", "unsafe"]
"""How much holds a program in, the strongest first."""

Setting = Literal["auto", "strong", "no-namespaces", "filter-only", "unsafe"]
"""What is asked for: a level, or the best that this machine offers."""

SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)

LEVELS: Final[dict[Level, frozenset[Layer]]] = {
    "strong": frozenset({"seccomp", "namespaces", "landlock", "rlimits"}),
    "no-namespaces": frozenset({"seccomp", "landlock", "rlimits"}),
    "filter-only": frozenset({"seccomp", "rlimits"}),
    "unsafe": frozenset(),
}
"""Level → layers without which it is not that level, from the strongest down."""

LONGEST_MESSAGE: Final = 16 << 20
"""Most that `Limits.message` can be: what a frame to the sandbox has room for, with its task."""
NEAR: Final = 0.5
"""Share of a limit above which a program came near it."""


@dataclass(frozen=True)
class Limits:
    """What a program may use.

    A limit that is not above zero, or allows messages that cannot be sent, is a `UsageError`.
    """

    cpu: float = 2.0
    """Seconds of CPU time."""
    wall: float = 10.0
    """Seconds from the program's start to the end of its tests, however busy the machine is."""
    tests_cpu: float = 5.0
    """Seconds of CPU time for the tests' side."""
    memory: int = 512 << 20
    """Bytes of address space beyond what the interpreter has when it starts."""
    output: int = 1 << 20
    """Bytes written to standard output and error together; few enough to end a program that
    only prints well before its CPU time does."""
    message: int = 1 << 20
    """Bytes of a student's message, as JSON of ASCII characters."""

    def __post_init__(self) -> None:
        for name, value in self.as_dict().items():
            if not value > 0:
                raise UsageError(
                    f"The limit {name} is {value}.",
                    why="A program needs some of it.",
                    hint="Give a number above 0, or leave it out for the usual limit.",
                )
        if self.message > LONGEST_MESSAGE:
            raise UsageError(
                f"The limit message is {self.message} bytes.",
                why="A message goes to the sandbox in one piece, which has no room for so much.",
                hint=f"Give at most {LONGEST_MESSAGE}.",
            )

    def as_dict(self) -> dict[str, float]:
        """The limits by name, for the record and for the process that keeps them."""
        return asdict(self)

    def nearly_used(self, **used: float) -> bool:
        """Whether more than half of a limit was used; `used`: how much, by the limit's name."""
        return any(amount > NEAR * getattr(self, name) for name, amount in used.items())

    def within(self, ceiling: int | None) -> "Limits":
        """The limits for a machine or container with so many bytes of memory, `None` for plenty.

        A program may take half of it at most, so that its own limit ends it before the kernel
        ends something for want of memory.
        """
        if ceiling is None or self.memory <= ceiling // 2:
            return self
        return replace(self, memory=max(1, ceiling // 2))


def wanted_layers(setting: Setting) -> frozenset[Layer]:
    """The layers to try: all of them, or those of the named level and the change of user."""
    if setting == "auto" or setting == "unsafe":
        return frozenset(LAYERS)
    return LEVELS[setting] | {"uid"}


def level_of(layers: frozenset[Layer]) -> Level:
    """The strongest level whose layers are all on."""
    return next(level for level, needed in LEVELS.items() if needed <= layers)
