"""Where the bundled recording is."""

from importlib import resources
from pathlib import Path

__all__ = ["BUNDLED", "bundled_recording"]

BUNDLED = "demo"
"""Name of the bundled study and of its folder."""


def bundled_recording() -> Path | None:
    """The bundled recording's folder: in the checkout, or in the installed package.

    Returns:
        The folder; `None` where neither has it.
    """
    package = Path(str(resources.files("tutorsim")))
    for root in (package.parent / "cassettes", package / "cassettes"):
        if (root / BUNDLED / "manifest.json").is_file():
            return root / BUNDLED
    return None
