"""`python -m tests.guards [SOURCE …]` keeps what is said now, and tells what it blesses anew."""

import difflib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.guards.items import GUARDED, held, items_of, kept_as, place_of

SHOWN = 12
"""Changed lines that are printed of an item."""


def bless(name: str) -> Iterator[str]:
    """Write the file of a source; each item that is new, gone or changed is told."""
    with tempfile.TemporaryDirectory() as folder:
        found = items_of(name, Path(folder).resolve())
    known, place = held(name), place_of(name)
    place.parent.mkdir(exist_ok=True)
    place.write_text(kept_as(found), encoding="utf-8")
    for item in known | found:
        if item not in known or item not in found:
            yield f"{name}: {item}: {'new' if item in found else 'gone'}"
        elif known[item] != found[item]:
            yield f"{name}: {item}: changed"
            yield from _difference(known[item], found[item])


def _difference(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [f"  {line[:160]}" for line in lines if not line.startswith(("---", "+++", "@@"))]
    more = [f"  … {len(changed) - SHOWN} lines more"] if len(changed) > SHOWN else []
    return changed[:SHOWN] + more


for asked in sys.argv[1:] or GUARDED:
    sys.stdout.writelines(f"{line}\n" for line in bless(asked))
