"""Question 7: the raw replies of the votes, read again by a stricter and a more lenient reader."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tutorsim.analysis.recount.result_models import ReadingRow
from tutorsim.analysis.recount.turn_groups import Outcome, outcome_tables
from tutorsim.analysis.runs.branch_continuations import without_shared_turns
from tutorsim.records import BallotRecord, EpisodeRecord, Turn
from tutorsim.vocabularies import READINGS, Reading
from tutorsim.voting import (
    Decision,
    cast_as,
    decide,
    leaders,
    masses_of,
    read_ballot,
    repair_ballot,
    resolve,
    tally,
)

Masses = dict[str, int]


@dataclass(frozen=True)
class _Reread:
    """One turn under one reading."""

    protocol: str
    logged: str
    outcome: Outcome
    ballots: int
    changed: int
    abstained: int


def read_again(
    ballot: BallotRecord, *, candidates: Sequence[str], reading: Reading, budget: int
) -> Masses:
    """A ballot's masses under another reading; empty where it cannot be read.

    The first reply that reads counts. Points that sum to another number are rescaled from the
    last reply as in a run, except under the strict reading, which never repairs. In a branch
    a ballot may count under another protocol than its format's; one that does not determine a
    ballot of that protocol has no mass.
    """
    labels = list(ballot.labels)
    replies = [reply for reply in (ballot.raw_first, ballot.raw) if reply is not None]
    choice = None
    for reply in replies:
        choice = read_ballot(reply, labels, form=ballot.protocol, budget=budget, reading=reading)
        if choice is not None:
            break
    if choice is None and reading != "strict":
        choice = repair_ballot(ballot.raw, labels, form=ballot.protocol, budget=budget)
    named = None if choice is None else resolve(choice, ballot.labels)
    if named is not None:
        named = cast_as(named, form=ballot.protocol, protocol=ballot.rule)
    return masses_of(named, candidates, protocol=ballot.rule)


def reading_rows(
    episodes: Sequence[EpisodeRecord],
    *,
    order: Sequence[str],
    budget: int,
    protocols: Sequence[str | None],
) -> tuple[ReadingRow, ...]:
    """Every reading for every protocol; nothing where there are no episodes."""
    if not episodes:
        return ()
    complete = [e for e in without_shared_turns(episodes) if e.status == "complete"]
    panel = [(turn, turn.decision) for e in complete for turn in e.turns if turn.decision]
    readable = [(turn, decision) for turn, decision in panel if _has_raw(turn)]
    rows = []
    for reading in READINGS:
        reread = [
            _reread(turn, decision, reading=reading, order=order, budget=budget)
            for turn, decision in readable
        ]
        for protocol in protocols:
            found = [r for r in reread if protocol in (None, r.protocol)]
            turns = [t for t, _ in panel if protocol in (None, _protocol(t))]
            rows.append(_row(reading, protocol, found, len(turns) - len(found), order))
    return tuple(rows)


def _row(
    reading: Reading,
    protocol: str | None,
    found: Sequence[_Reread],
    not_computable: int,
    order: Sequence[str],
) -> ReadingRow:
    counted = outcome_tables([(r.outcome, r.logged, 1) for r in found], order)
    return ReadingRow(
        reading=reading,
        protocol=protocol,
        turns=counted.turns,
        not_computable=not_computable,
        ballots=sum(r.ballots for r in found),
        ballots_changed=sum(r.changed for r in found),
        abstained=sum(r.abstained for r in found),
        open_ties=counted.open_ties,
        wins=counted.wins,
        changed=counted.changed,
    )


def _reread(
    turn: Turn, decision: Decision, *, reading: Reading, order: Sequence[str], budget: int
) -> _Reread:
    def again(ballots: Sequence[BallotRecord], among: Sequence[str]) -> list[Masses]:
        return [
            read_again(ballot, candidates=among, reading=reading, budget=budget)
            for ballot in ballots
        ]

    held = () if turn.tie_round is None else turn.tie_round.ballots
    candidates = tuple(decision.tallies)
    final, tie = again(turn.ballots_final, candidates), again(held, decision.tied_in_vote)
    outcome = _decided(final, candidates, order=order, logged=decision, tie=tie if held else None)
    read, logged = [*final, *tie], [ballot.mass for ballot in _counted(turn)]
    return _Reread(
        protocol=_protocol(turn),
        logged=decision.winner,
        outcome=outcome,
        ballots=len(read),
        changed=sum(now != then for now, then in zip(read, logged, strict=True)),
        abstained=sum(not masses for masses in read),
    )


def _decided(
    final: Sequence[Masses],
    candidates: Sequence[str],
    *,
    order: Sequence[str],
    logged: Decision,
    tie: Sequence[Masses] | None,
) -> Outcome:
    """Decide from ballots read again.

    A tied set that the log put to a tie round is decided by that round, read likewise; one that
    the log itself left to the order goes to the order. Any other tie stays open.
    """
    led = leaders(tally(final, candidates))
    as_logged = set(led) == set(leaders(logged.tallies))
    decided = decide(final, candidates, order=order, tie_round=tie if as_logged else None)
    return Outcome((decided.winner,) if as_logged else led, decided.winner)


def _counted(turn: Turn) -> Iterator[BallotRecord]:
    """The ballots that decide: final and tie round."""
    yield from turn.ballots_final
    if turn.tie_round is not None:
        yield from turn.tie_round.ballots


def _protocol(turn: Turn) -> str:
    """The protocol of the deciding ballots as tables name it."""
    ballot = turn.ballots_final[0]
    return "rich" if ballot.protocol == "rich" else ballot.rule


def _has_raw(turn: Turn) -> bool:
    """Whether replies were kept: a ballot that counted has text behind it."""
    ballots = list(_counted(turn))
    return any(b.raw for b in ballots) and all(b.raw or not b.mass for b in ballots)
