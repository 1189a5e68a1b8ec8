"""Audits of recorded runs: which replies guide, what other rules delivered, what to rate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Block, Passage, Place
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.analysis.systems.oversight.label_accuracy import complete
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.records.oversight import AuditedReply, Labels, OversightRecord

# --- Delivered guidance --------------------------------------------------------------------------

OUTCOMES: Final[Mapping[str, Callable[[Labels], bool]]] = {
    "guides": lambda labels: labels.guidance == 2,
    "hints": lambda labels: labels.guidance == 1,
    "no_guidance": lambda labels: labels.guidance == 0,
    "identifies_mistake": lambda labels: labels.mistake == 1,
}
"""What a reply does, by its labels; `no_guidance` is none at all, or the answer itself."""

GROUPINGS: Final[Mapping[str, Callable[[AuditedReply], str]]] = {
    "all": lambda audited: "all",
    "condition": lambda audited: audited.condition,
    "winning role": lambda audited: audited.role,
    "persona": lambda audited: audited.persona,
    "deciding step": lambda audited: audited.decided_by,
}


@dataclass(frozen=True, eq=False)
class AuditedTurn:
    """One turn of the audited run: what each role proposed, and who could have won."""

    episode: str
    turn: int
    condition: str
    winner: str
    labels: Mapping[str, Labels | None]
    """Role → labels of its proposal; `None`: unjudged."""
    possible: Mapping[str, tuple[str, ...]]
    """Rule → possible winners; a rule that is not in it is not settled."""


DELIVERED: Final = "(delivered)"
"""In place of a rule: what was delivered."""


class Predicted(NamedTuple):
    """What a rule would have delivered, over turns that voted in one format."""

    logged: str
    """The condition that was run."""
    rule: str
    """`DELIVERED` for what was delivered."""
    turns: int
    identified: int | None
    """Turns with one possible winner; `None` for what was delivered."""
    shares: Mapping[str, tuple[float, float]]
    """Outcome → least and greatest share of the turns; two ends also if some are unjudged."""


def _of_audit(records: Sequence[OversightRecord]) -> list[tuple[OversightRecord, AuditedReply]]:
    return [(record, record.audited) for record in complete(records) if record.audited is not None]


def delivered_shares(records: Sequence[OversightRecord]) -> Iterator[dict[str, Any]]:
    """Delivered replies `by` what they are grouped, and `group`; the share of the judged ones that
    has each outcome, with an interval over tasks; how many `replies` there are, and `unjudged`.

    `records`: items of an audit under one condition of the oversight study.
    """
    pairs = [(record, audited) for record, audited in _of_audit(records) if audited.delivered]
    for grouping, key in GROUPINGS.items():
        groups = by_key((key(audited), record) for record, audited in pairs)
        for group, items in sorted(groups.items()):
            said = [(one.label, one.conversation) for one in items if one.label is not None]
            tasks = [task for _, task in said]
            shares = {
                name: share_over_tasks([float(holds(labels)) for labels, _ in said], tasks)
                for name, holds in OUTCOMES.items()
            }
            counts = {"replies": len(items), "unjudged": len(items) - len(said)}
            yield {"by": grouping, "group": group, **shares, **counts}


def score_changes(records: Sequence[OversightRecord]) -> dict[int, Estimate | NotEstimable]:
    """Guidance of a delivered reply → mean change of the student's next score, over tasks."""
    changes = by_key(
        (record.label.guidance, (audited.score_after - audited.score_before, record.conversation))
        for record, audited in _of_audit(records)
        if audited.delivered and record.label
        if audited.score_before is not None and audited.score_after is not None
    )
    return {
        guidance: mean_over_tasks([c for c, _ in found], [t for _, t in found], ends=(-1, 1))
        for guidance, found in sorted(changes.items())
    }


def audited_turns(records: Sequence[OversightRecord]) -> list[AuditedTurn]:
    """Turns of the audited run whose every proposal was labelled, by the order of the log.

    `records`: items of an audit of all proposals under one condition of the oversight study.
    """
    turns = by_key(
        ((audited.episode, audited.turn), (record, audited))
        for record, audited in _of_audit(records)
        if audited.possible
    )
    found = []
    for key, pairs in turns.items():
        winner = next((a.role for _, a in pairs if a.delivered), None)
        labels = {a.role: record.label for record, a in pairs}
        possible = pairs[0][1].possible
        whole = all(set(roles) <= set(labels) for roles in possible.values())
        if winner is not None and whole:
            found.append(AuditedTurn(*key, pairs[0][1].condition, winner, labels, possible))
    return found


def predicted(turns: Sequence[AuditedTurn], rules: Sequence[str]) -> list[Predicted]:
    """What was delivered, and what each rule would have, by the format that was voted in."""
    found = []
    for logged, group in by_key((turn.condition, turn) for turn in turns).items():
        shares = _shares(group, [(turn.winner,) for turn in group])
        found.append(Predicted(logged, DELIVERED, len(group), None, shares))
        for rule in rules:
            held = [turn.possible.get(rule, tuple(turn.labels)) for turn in group]
            one = sum(len(turn.possible.get(rule, ())) == 1 for turn in group)
            found.append(Predicted(logged, rule, len(group), one, _shares(group, held)))
    return found


def _shares(
    turns: Sequence[AuditedTurn], winners: Sequence[tuple[str, ...]]
) -> dict[str, tuple[float, float]]:
    """Outcome → least and greatest share of turns, each with its possible winners."""
    replies = [
        [turn.labels.get(role) for role in own] for turn, own in zip(turns, winners, strict=True)
    ]
    shares = {}
    for name, holds in OUTCOMES.items():
        said = [[labels and holds(labels) for labels in reply] for reply in replies]
        must = sum(all(one is True for one in own) for own in said)
        may = sum(any(one is not False for one in own) for own in said)
        shares[name] = must / len(turns), may / len(turns)
    return shares


# --- Rateable replies ----------------------------------------------------------------------------


def proposal_passages(run: SystemRun) -> Iterator[Passage]:
    """Every labelled reply once; of an audit of all proposals, those not delivered too."""
    labelled = by_key(((one.benchmark, one.task_id), one) for one in complete(run.episodes))
    for records in labelled.values():
        first = records[0]
        said = [record.label.guidance for record in records if record.label]
        blocks = [Block(speaker, text) for speaker, text in first.dialogue]
        reply = Block("The tutor's reply to rate", first.reply)
        # judged by its labels of guidance, the mean over conditions
        place = replace(_place(first), judged=sum(said) / len(said) if said else None)
        yield Passage((*blocks, reply), place)


def _place(record: OversightRecord) -> Place:
    audited = record.audited
    if audited is None:
        return Place(record.task_id, 1, record.tutor, record.tutor, record.conversation)
    return Place(
        episode=audited.episode,
        turn=audited.turn,
        role=audited.role,
        condition=audited.condition,
        task=f"{audited.benchmark}.{audited.task}",
        delivered=audited.delivered,
    )
