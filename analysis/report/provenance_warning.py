"""What it means for figures that this or that answered the calls."""

from typing import Final

from tutorsim.records import Provenance
from tutorsim.vocabularies import ProvenanceKind

__all__ = ["WARNINGS", "warning_of"]

WARNINGS: Final[dict[ProvenanceKind, str]] = {
    "api": "The real endpoint, with the models named.",
    "stand-in": (
        "A scripted model gave the replies. The figures show what the methods do; they say "
        "nothing about any language model, and must not be set beside published ones without "
        "this label."
    ),
    "relay": (
        "Something else than the real endpoint answered, under the name that the user gave it. "
        "What it was rests on the user's word."
    ),
    "imported": (
        "Another program made these logs; its own settings and faults are in them, and what it did "
        "not log is absent."
    ),
}


def warning_of(stated: Provenance) -> str:
    """What to know of a recording's figures: what answered, and what it cannot tell."""
    return f"{WARNINGS[stated.kind]} {stated.limits}".strip()
