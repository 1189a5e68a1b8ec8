"""From logged items to what scores are counted from."""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter

from tutorsim.analysis.systems.oversight.scores_by_group import Judged
from tutorsim.records.oversight import Labels, OversightRecord

__all__ = [
    "Pair",
    "by_condition",
    "changed_labels",
    "complete",
    "item_name",
    "judged",
    "labelled",
    "logged_pair",
    "pair_of",
    "relabelled",
]

Pair = tuple[int | None, int | None]
"""Mistake and guidance; `None`: unjudged."""


def complete(records: Sequence[OversightRecord]) -> list[OversightRecord]:
    """Items that came to their end."""
    return [record for record in records if record.status == "complete"]


def labelled(records: Sequence[OversightRecord]) -> list[OversightRecord]:
    """Complete items with gold labels."""
    return [record for record in complete(records) if record.gold is not None]


def by_condition(records: Sequence[OversightRecord]) -> dict[str, list[OversightRecord]]:
    """Condition → its items, in the order of the log."""
    groups: dict[str, list[OversightRecord]] = {}
    for record in records:
        groups.setdefault(record.condition, []).append(record)
    return groups


def item_name(record: OversightRecord) -> str:
    """What an item is paired by between conditions."""
    return f"{record.benchmark}.{record.task_id}.{record.repeat}"


def logged_pair(record: OversightRecord) -> Pair:
    """The logged outcome."""
    return pair_of(record.label)


def pair_of(labels: Labels | None) -> Pair:
    """Labels as a pair."""
    return (None, None) if labels is None else (labels.mistake, labels.guidance)


def changed_labels(before: Sequence[Pair], after: Sequence[Pair]) -> int:
    """How many labels differ, two an item."""
    return sum(
        times * sum(old != new for old, new in zip(*pair, strict=True))
        for pair, times in Counter(zip(before, after, strict=True)).items()
    )


def judged(
    records: Sequence[OversightRecord],
    gold: Callable[[OversightRecord], Labels | None] = lambda record: record.gold,
) -> list[Judged]:
    """Items with gold labels, and the labels that were logged for them.

    Args:
        records: Complete items.
        gold: An item's gold labels, by default those under the study's maps.
    """
    found = []
    for record in records:
        actual = gold(record)
        if actual is not None:
            pair = (actual.mistake, actual.guidance)
            found.append(Judged(item_name(record), record.conversation, pair, logged_pair(record)))
    return found


def relabelled(items: Sequence[Judged], pairs: Sequence[Pair]) -> list[Judged]:
    """Items with other labels: a pair for each."""
    names, conversations, gold = (map(itemgetter(place), items) for place in range(3))
    return list(map(Judged, names, conversations, gold, pairs))
