"""What it means for figures that this or that answered the calls."""

from typing import Final

from tutorsim.records import Provenance, RunRecord
from tutorsim.vocabularies import ProvenanceKind

__all__ = ["WARNINGS", "answered_words", "warning_of", "warning_of_run"]

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


def answered_words(run: RunRecord) -> str:
    """What answered a run's calls; if it labels another run's texts, what gave those too."""
    labels, given = _words(run.provenance), run.inputs
    return f"texts by {_words(given.provenance)}, labels by {labels}" if given else labels


def warning_of_run(run: RunRecord) -> str:
    """What to know of a run's figures; if it labels another run's texts, of both."""
    own, given = warning_of(run.provenance), run.inputs
    if given is None:
        return own
    theirs = warning_of(given.provenance)
    return (
        f"The texts that are labelled, by {_words(given.provenance)}: {theirs} "
        f"Their labels, by {_words(run.provenance)}: {own}"
    )


def _words(stated: Provenance) -> str:
    return f"{stated.kind} ({stated.name})"
