"""What did the work: kept beside the log, never in it."""

import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tutorsim.replay import package_versions

if TYPE_CHECKING:  # a replay judges nothing
    from tutorsim.sandbox import Sandbox

__all__ = ["RECORDING", "fingerprint_text", "machine_facts"]

RECORDING: Final = "recording"
"""Names the folder of the recording, which only this machine can find under that path."""


def machine_facts(
    command: str, recording: Path, sandbox: "Sandbox | None", *, used: bool
) -> dict[str, Any]:
    """The first line of `timings.jsonl`, the one place beside a log that may hold a path.

    Args:
        command: What ran.
        recording: The folder of the recording.
        sandbox: What judged programs; `None` when recorded verdicts were taken.
        used: Whether a program was judged at all; a sandbox that was not needed is not started.
    """
    return {
        "command": command,
        RECORDING: str(recording.resolve()),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": package_versions(),
        "sandbox": sandbox.report() if sandbox is not None and used else None,
    }


def fingerprint_text(sandbox: "Sandbox") -> str:
    """A sandbox's fingerprint as one line, as recorded verdicts carry it."""
    return json.dumps(sandbox.fingerprint, sort_keys=True, separators=(",", ":"))
