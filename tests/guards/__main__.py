"""`python -m tests.guards [SOURCE …]` keeps what is said now, and tells what it blesses anew."""

import sys
import tempfile
from pathlib import Path

from tests.guards.items import GUARDED, changes, held, items_of, kept_as, place_of


def bless(name):
    """Write the file of a source, and tell each item that is new, gone or changed."""
    with tempfile.TemporaryDirectory() as folder:
        found = items_of(name, Path(folder).resolve())
    known, place = held(name), place_of(name)
    place.parent.mkdir(exist_ok=True)
    place.write_text(kept_as(found), encoding="utf-8")
    yield from (f"{name}: {line}\n" for line in changes(known, found))


for asked in sys.argv[1:] or GUARDED:
    sys.stdout.writelines(bless(asked))
