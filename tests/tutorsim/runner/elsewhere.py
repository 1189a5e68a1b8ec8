"""Replays a recording as on a machine without Linux: started by a test, with what to run behind.

What only Linux, or only POSIX, has is hidden before anything of the package is imported.
"""

import os
import random  # noqa: F401 — hooks into forks where there are some, and so comes before they go
import sys

HIDDEN = ("fcntl", "resource", "pwd", "grp", "termios")
for name in HIDDEN:
    sys.modules[name] = None  # type: ignore[assignment]
for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "register_at_fork", "sched_getaffinity"):
    delattr(os, name)

if __name__ == "__main__":
    from tutorsim.cli import main

    main()
