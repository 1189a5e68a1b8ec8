"""Where the bundled recordings are."""

from importlib import resources
from pathlib import Path

BUNDLED = "demo"
"""Folder of the panel's bundled study."""


def bundled_recordings() -> dict[str, Path]:
    """Every bundled recording: name → folder."""
    folders = (root for root in _roots() if root.is_dir())
    found = (path.parent for root in folders for path in sorted(root.glob("*/manifest.json")))
    return {path.name: path for path in reversed(list(found))}


def _roots() -> tuple[Path, Path]:
    package = Path(str(resources.files("tutorsim")))
    return (package.parent / "cassettes", package / "cassettes")


def bundled_recording(name: str = BUNDLED) -> Path | None:
    """A bundled recording's folder: in the checkout, or in the installed package.

    Args:
        name: The folder's name.

    Returns:
        The folder; `None` where neither has it.
    """
    for root in _roots():
        if (root / name / "manifest.json").is_file():
            return root / name
    return None
