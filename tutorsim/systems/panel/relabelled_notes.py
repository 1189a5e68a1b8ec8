"""Notes of reviews, in the labels of whoever reads them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tutorsim.catalog import Catalog
from tutorsim.mechanisms.author_labels import indented
from tutorsim.records import Note, ReviewRecord

__all__ = ["Notes", "relabel"]


class Notes:
    """The notes of a round of reviews, for several readers.

    Args:
        reviews: In the order in which their notes are shown.
        catalog: Has the words around them.
    """

    def __init__(self, reviews: Iterable[ReviewRecord], catalog: Catalog) -> None:
        self._part = catalog.part
        self._heads: dict[str, str] = {}
        said: dict[str, list[str | _Mentioning]] = {}
        for review in reviews:
            for role, note in review.notes.items():
                said.setdefault(role, []).extend(self._lines(note, review.labels))
        self._on = {role: _joined(lines) for role, lines in said.items() if lines}

    def shown(self, labels: Mapping[str, str]) -> str:
        """All notes, grouped by the proposal they are about, in the reader's own labels.

        Label mentions inside the notes are translated from the reviewer's labels to the reader's.
        """
        label_of = {role: label for label, role in labels.items()}
        groups = []
        for label, role in labels.items():
            parts = self._on.get(role) or (self._part("no_review"),)
            lines = [
                part if isinstance(part, str) else self._translated(part, label_of)
                for part in parts
            ]
            head = self._heads.get(label) or self._headed(label)
            groups.append("\n".join([head, *lines]))
        return "\n\n".join(groups)

    def _headed(self, label: str) -> str:
        """What stands above the notes on a label, for every reader."""
        head = self._heads[label] = self._part("notes_on", label=label)
        return head

    def _translated(self, note: "_Mentioning", label_of: Mapping[str, str]) -> str:
        text = indented(relabel(note.text, note.written, label_of))
        return self._part(note.template, text=text)

    def _lines(self, note: Note, written: Mapping[str, str]) -> "Iterator[str | _Mentioning]":
        said = (("note_strength", note.strength), ("note_weakness", note.weakness))
        for template, text in said:
            if text is None:
                continue
            if len(_mentions(text)) > 1:
                yield _Mentioning(template, text, written)
            else:
                yield self._part(template, text=indented(text))


class _Mentioning(NamedTuple):
    """A note that mentions labels, so that every reader sees another one."""

    template: str
    """What shows it."""
    text: str
    written: Mapping[str, str]
    """Label → role of the reviewer."""


def _joined(lines: Sequence["str | _Mentioning"]) -> tuple["str | _Mentioning", ...]:
    """The lines that every reader sees alike as one, where all are."""
    alike = [line for line in lines if isinstance(line, str)]
    return ("\n".join(alike),) if len(alike) == len(lines) else tuple(lines)


_CUE = (
    r"(?i:\b(?:proposal|draft|reply|label|option|candidate|response|version|tutor)s?|\breplies"
    r"|\b(?:than|unlike|versus|vs\.?|like|as in|compared (?:to|with)|while|whereas|both|neither))"
)
_VERB = (
    r"(?:is|has|does|was|gives|asks|names|uses|offers|explains|shows|helps|goes|says|tells|makes"
    r"|lets|leaves|invites|encourages|points|starts|states|ignores|misses|needs|seems|sounds"
    r"|praises|breaks|lacks|keeps|puts|could|can|should|would|may|might|also)"
)
_MORE = r"(?:, | and | or |, and |, or )[A-H]\b"
_MENTION = re.compile(
    rf"{_CUE}\s[A-H]\b(?:{_MORE})*"
    r"|\([A-H](?=\))"
    r"|\b[A-H](?=['’]s\b)"
    rf"|(?:^|(?<=[.;:,!?]\s))[A-H](?:{_MORE}|(?=\s{_VERB}\b))"
)
_LABEL = re.compile(r"[A-H](?!\w)(?<!\w.)")
_REACH = 16
"""Characters that the longest cue and its space do not exceed: no mention begins sooner."""


def relabel(text: str, written: Mapping[str, str], label_of: Mapping[str, str]) -> str:
    """Translate label mentions in a note.

    A capital letter counts as a mention after a word such as `draft` or `than`, in brackets,
    with `'s`, or before a verb where a clause begins; other capitals (the article A, vitamin C)
    are left alone.

    Args:
        text: The note.
        written: Label → role of whoever wrote the note.
        label_of: Role → label of whoever reads it.
    """
    parts = _mentions(text)
    if len(parts) == 1:
        return text
    said = list(parts)
    said[1::2] = [label_of.get(written.get(label, ""), label) for label in parts[1::2]]
    return "".join(said)


@lru_cache(maxsize=256)
def _mentions(text: str) -> tuple[str, ...]:
    """A note in parts, every second of which is a label that it mentions.

    A note is read once and written for every reader.
    """
    parts, end = [], 0
    if first := _LABEL.search(text):
        for mention in _MENTION.finditer(text, max(0, first.start() - _REACH)):
            for label in _LABEL.finditer(mention[0]):
                at = mention.start() + label.start()
                parts += [text[end:at], label[0]]
                end = at + 1
    return (*parts, text[end:])
