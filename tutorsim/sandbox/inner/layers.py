"""The names of the layers, for both sides of the sandbox."""

from typing import Final, Literal, get_args

Layer = Literal["seccomp", "namespaces", "landlock", "rlimits", "uid"]
"""One mechanism of the kernel; `uid` gives up root for a user that nobody else is."""

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
