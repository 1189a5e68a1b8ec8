"""What did the work: kept beside the log, never in it."""

import json
import os
import platform
from typing import Any

from tutorsim.replay import package_versions
from tutorsim.sandbox import Sandbox

__all__ = ["fingerprint_text", "machine_facts"]


def machine_facts(command: str, sandbox: Sandbox | None, *, used: bool) -> dict[str, Any]:
    """The first line of `timings.jsonl`.

    Args:
        command: What ran.
        sandbox: What judged programs; `None` when recorded verdicts were taken.
        used: Whether a program was judged at all; a sandbox that was not needed is not started.
    """
    return {
        "command": command,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": package_versions(),
        "sandbox": sandbox.report() if sandbox is not None and used else None,
    }


def fingerprint_text(sandbox: Sandbox) -> str:
    """A sandbox's fingerprint as one line, as recorded verdicts carry it."""
    return json.dumps(sandbox.fingerprint, sort_keys=True, separators=(",", ":"))
