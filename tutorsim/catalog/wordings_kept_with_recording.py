"""The wordings of a recording: all that its models are told, in a file that people can read.

`wordings.toml` stands beside the cassettes. Its parts (prompts, roles, personas, and whatever
else a system has) hold entries by name; an entry is a text or a table of fields. A replay takes
its wordings from there, so a recording does not change with what the package ships.
"""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import tomli_w

from tutorsim.errors import RecordingError

WORDINGS_FILE: Final = "wordings.toml"

Wordings = Mapping[str, Mapping[str, Any]]
"""Part → name → a text, or a table of fields."""

WordingNames = Mapping[str, Collection[str]]
"""Part → names of entries."""

_HEAD: Final = (
    "# All that the models of this recording are told. Every replay uses these texts, and the\n"
    "# recording's digest covers them: an edit is refused.\n\n"
)


def wordings_text(wordings: Wordings) -> str:
    """Write wordings as TOML; the same wordings give the same text.

    Texts of several lines are written as such where that keeps each of their characters.
    """
    ordered = {
        part: {name: entries[name] for name in sorted(entries)}
        for part, entries in wordings.items()
    }
    text = tomli_w.dumps(ordered, multiline_strings=True)
    if tomllib.loads(text) != ordered:  # a carriage return does not survive in a block of lines
        text = tomli_w.dumps(ordered)
    return _HEAD + text


def read_wordings(folder: Path) -> Wordings | None:
    """Read the wordings of a recording.

    Returns:
        The wordings; `None` where the folder has none, as recordings of the first form.

    Raises:
        RecordingError: If the file cannot be read or does not have the form above.
    """
    path = folder / WORDINGS_FILE
    try:
        found = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # bytes that are no text, and text that is no TOML
        raise _damaged(path, str(error)) from error
    for part, entries in found.items():
        if not isinstance(entries, dict):
            raise _damaged(path, f"{part} is {entries!r}, not a table.")
    return found


def _damaged(path: Path, why: str) -> RecordingError:
    return RecordingError(
        f"{path} does not hold the wordings of a recording.",
        why=why,
        hint="Restore the file from version control.",
    )
