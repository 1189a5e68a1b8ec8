"""How much memory this process and its children may take together."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

__all__ = ["memory_ceiling"]

_ROUND = 1 << 20


def memory_ceiling(root: Path = Path("/")) -> int | None:
    """Bytes of memory of this machine or container, whichever is less, in whole MiB.

    Read from the control groups of both versions, each with all groups above it, as the kernel
    holds a process to all of them. `None` where nothing is known.

    Args:
        root: Where `proc` and `sys` are mounted.
    """
    known = [*_group_limits(root), *_machine()]
    return min(known) // _ROUND * _ROUND if known else None


def _machine() -> Iterator[int]:
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_limits(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    mounted = root / "sys/fs/cgroup"
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if number == "0" and not controllers:
            yield from _upwards(mounted, group, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _upwards(mounted / "memory", group, "memory.limit_in_bytes")


def _upwards(mounted: Path, group: str, name: str) -> Iterator[int]:
    """Limits of a group and of those above it; in a container the group may not be in sight."""
    path = PurePosixPath(group.lstrip("/"))
    for place in (path, *path.parents):
        with suppress(OSError, ValueError):
            # `max` is no number: no limit.
            yield int((mounted / place / name).read_text(encoding="ascii"))
