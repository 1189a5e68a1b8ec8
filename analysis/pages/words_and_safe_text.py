"""Words for numbers, lists and what answered, and how a stranger's text may stand on a page."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tutorsim.ballot_reading_and_decisions import Step
from tutorsim.records import Provenance, RunRecord, StopCount, odd_stops
from tutorsim.vocabularies import ProvenanceKind

# --- Number words --------------------------------------------------------------------------------

SMALL: Final = 20
"""Below this n a sentence gives counts and no percentage."""


def percent(value: float) -> str:
    """A share as a whole percentage; never 0 % or 100 % for a share that is not."""
    rounded = round(100 * value)
    if rounded == 0 and value > 0:
        return "under 1 %"
    if rounded == 100 and value < 1:
        return "over 99 %"
    return f"{rounded} %"


def counted(n: int, noun: str, *, plural: str | None = None) -> str:
    """`1 turn`, `2 turns`, `1,204 turns`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def odd_replies(counts: Iterable[StopCount]) -> Iterator[str]:
    """`3 replies without text`, `1 reply cut off at max_tokens`: each odd end of the replies."""
    ends = Counter[str]()
    for count in odd_stops(counts):
        ends[count.words] += count.calls
    for words, replies in ends.items():
        yield f"{counted(replies, 'reply', plural='replies')} {words}"


def ended(text: str) -> str:
    """A sentence with a full stop, where no sign ends it."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def share(part: int, whole: int, noun: str) -> str:
    """`31 % of 219 turns`, or `3 of 7 turns` where n is small."""
    if whole < SMALL:
        return f"{part} of {counted(whole, noun)}"
    return f"{percent(part / whole)} of {counted(whole, noun)}"


def spoken(name: str) -> str:
    """The name of a rule, a role or a setting as a sentence writes it: `instant runoff`."""
    return name.replace("_", " ")


def listed(names: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; `none` for no name."""
    if not names:
        return "none"
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def top(values: Mapping[str, float]) -> list[str]:
    """Every name with the largest value, in the mapping's order; nothing leads among zeros."""
    best = max(values.values(), default=0)
    return [name for name, value in values.items() if value == best] if best > 0 else []


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Name → its shortest beginning that no other name shares, of at least four letters."""
    longest = max(map(len, names), default=0)
    for length in range(4, longest):
        cut = {name: name[:length] for name in names}
        if len(set(cut.values())) == len(names):
            return cut
    return {name: name for name in names}


def extremes(values: Iterable[float | None]) -> tuple[float, float]:
    """The least and the greatest of the values that are there; at least one is."""
    known = [value for value in values if value is not None]
    return min(known), max(known)


def step_sentence(step: Step, order: Sequence[str] = ()) -> str:
    """What one step of a decision did; the fallback order is named where it decided."""
    left = ", ".join(step.remaining)
    if step.tallies is None:
        named = f" ({' > '.join(order)})" if order else ""
        return f"Fallback order{named}: the first of the tied candidates is {left}."
    count = "Final vote" if step.step == "vote_final" else "Tie round"
    return f"{count}: {count_words(step.tallies, step.remaining)}."


def count_words(tallies: Mapping[str, int], standing: Sequence[str]) -> str:
    """`anna 2, ben 1 — anna leads`: the totals of a vote, and who is left by them."""
    totals = ", ".join(f"{name} {total}" for name, total in tallies.items())
    left = ", ".join(standing)
    return f"{totals} — {left} leads" if len(standing) == 1 else f"{totals} — tied: {left}"


# --- Safe text -----------------------------------------------------------------------------------

_DIRECTIONS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff{_DIRECTIONS}]")


def shown(text: str) -> str:
    """The text with characters that nobody can see made visible.

    Controls, half surrogates and marks that turn the direction of text become `\\xNN` or
    `\\uNNNN`, so that a page reads as it was written; line ends, tabs and the joiners inside
    letters and emoji stay. Markup is the template's business, which escapes everything.
    """
    if text.isprintable():  # nothing hidden is
        return text
    return _HIDDEN.sub(_code, text.replace("\r\n", "\n"))


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# --- Provenance warning --------------------------------------------------------------------------

WARNINGS: Final[dict[ProvenanceKind, str]] = {
    "api": "The real endpoint, with the models named.",
    "stand-in": (
        "A scripted model gave the replies. The figures show what the methods do; they say "
        "nothing about any language model, and must not be set beside published ones without "
        "this label."
    ),
    "relay": (
        "Something other than the real endpoint answered, under a name that the user gave. "
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
