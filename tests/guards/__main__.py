"""`python -m tests.guards [SOURCE …]` writes the hashes again; the diff names what changed."""

import json
import sys
import tempfile
from pathlib import Path

from tests.guards.items import GUARDED, HASHES, hashes_of


def write(names: list[str]) -> None:
    """Hash all items of some sources, or of all, and keep those of the others."""
    every = [*GUARDED, "refused files"]
    for name in names or every:
        with tempfile.TemporaryDirectory() as folder:
            found = hashes_of(name, Path(folder).resolve())
        known = json.loads(HASHES.read_text(encoding="utf-8")) if HASHES.exists() else {}
        known[name] = found
        ordered = {name: known[name] for name in every if name in known}
        text = json.dumps(ordered, indent=1, ensure_ascii=False)
        HASHES.write_text(f"{text}\n", encoding="utf-8")


write(sys.argv[1:])
