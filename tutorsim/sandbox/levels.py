"""Levels of protection, the layers that each needs, and the limits on a program."""

from dataclasses import asdict, dataclass
from typing import Final, Literal, get_args

__all__ = ["LAYERS", "LEVELS", "SETTINGS", "Layer", "Level", "Limits", "Setting", "level_of",
           "wanted_layers"]  # fmt: skip

Layer = Literal["seccomp", "namespaces", "landlock", "rlimits", "uid"]
"""One mechanism of the kernel; `uid` gives up root for a user that nobody else is."""

Level = Literal["strong", "no-namespaces", "filter-only", "namespace-only", "unsafe"]
"""How much holds a program in, the strongest first."""

Setting = Literal["auto", "strong", "no-namespaces", "filter-only", "namespace-only", "unsafe"]
"""What is asked for: a level, or the best that this machine offers."""

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)

LEVELS: Final[dict[Level, frozenset[Layer]]] = {
    "strong": frozenset({"seccomp", "namespaces", "landlock", "rlimits"}),
    "no-namespaces": frozenset({"seccomp", "landlock", "rlimits"}),
    "filter-only": frozenset({"seccomp", "rlimits"}),
    "namespace-only": frozenset({"namespaces", "rlimits"}),
    "unsafe": frozenset(),
}
"""Level → layers without which it is not that level, from the strongest down."""


@dataclass(frozen=True)
class Limits:
    """What a program may use. CPU time decides; wall time only ends what sleeps."""

    cpu: float = 2.0
    """Seconds of CPU time."""
    wall: float = 10.0
    """Seconds of wall time, and as many again for each second of CPU time used by either side."""
    tests_cpu: float = 5.0
    """Seconds of CPU time for the tests' side."""
    memory: int = 512 << 20
    """Bytes of address space beyond what the interpreter has when it starts."""
    output: int = 1 << 20
    """Bytes written to standard output and error together; few enough to end a program that
    only prints well before its CPU time does."""
    message: int = 1 << 20
    """Bytes of a student's message, as JSON of ASCII characters."""

    @property
    def longest(self) -> float:
        """Seconds of wall time after which any program has been ended."""
        return self.wall * (2 + self.cpu + self.tests_cpu)

    def as_dict(self) -> dict[str, float]:
        """The limits by name, for the record and for the process that keeps them."""
        return asdict(self)


def wanted_layers(setting: Setting) -> frozenset[Layer]:
    """The layers to try: all of them, or those of the named level and the change of user."""
    if setting == "auto" or setting == "unsafe":
        return frozenset(LAYERS)
    return LEVELS[setting] | {"uid"}


def level_of(layers: frozenset[Layer]) -> Level:
    """The strongest level whose layers are all on."""
    return next(level for level, needed in LEVELS.items() if needed <= layers)
