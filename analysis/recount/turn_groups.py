"""Turns of one format and size, decided together; what they have in common, counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.ballots.vote_arrays import (
    DistinctPanels,
    Rounds,
    Votes,
    count,
    distinct_rows,
    held_by_rich,
    in_order,
    rich_mass,
    rich_rules,
)
from tutorsim.analysis.counting.turn_winners_in_arrays import DecidedTurns, decide_turns
from tutorsim.analysis.identify import Possible, TieReading
from tutorsim.analysis.recount.result_models import Agreed, Interval
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS, BallotFormat, Protocol

# --- Turns by size -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AllVotes:
    """Votes as they count, and for rich ballots also as each protocol's ballots."""

    votes: Votes
    under: Mapping[Protocol, Votes] = field(repr=False)
    """Empty without rich ballots; else the same rounds with other masses."""
    rules: Mapping[tuple[str, int, str], Protocol | None] = field(repr=False)
    """Episode, turn and stage of a vote in rich ballots → the protocol that it counts under."""


def all_votes(votes: Votes, rich: pl.DataFrame | None, order: tuple[str, ...]) -> AllVotes:
    """The votes of a checked ballots table, candidates in an order over all of them.

    `rich`: the table, if there are rich ballots in it.
    """
    if rich is None:
        return AllVotes(in_order(votes, order), {}, {})
    cast = (pl.col("protocol") == "rich") & pl.col("mass").is_not_null()
    under: dict[Protocol, Votes] = {}
    for protocol in PROTOCOLS:
        mass = pl.when(cast).then(rich_mass(protocol)).otherwise(pl.col("mass"))
        read = read_votes(rich.with_columns(mass=mass), fallback_order=votes.order)
        under[protocol] = in_order(read, order)
    keys = rich.select("episode_id", "turn", "stage", "protocol").unique(maintain_order=True)
    return AllVotes(in_order(votes, order), under, rich_rules(rich, keys))


@dataclass(frozen=True, eq=False)
class FirstVotes:
    """First votes of one size of some turns of a group."""

    rows: Ints
    """Which turns of the group."""
    rounds: Rounds
    order: tuple[str, ...]
    """Candidates by place."""
    _place: "_Place"

    @cached_property
    def candidates(self) -> tuple[list[tuple[str, ...]], Ints]:
        """The different lists of candidates, and which one each vote has."""
        return _lists(self.rounds, self.order)

    def panels(self, form: Protocol) -> DistinctPanels:
        """The different panels, with ballots of a format if the voters cast such."""
        return self._place.panels(form)


@dataclass(frozen=True, eq=False)
class TurnGroup:
    """Turns of one ballot format, one rule and one size."""

    protocol: BallotFormat
    """The format of the ballots."""
    rule: Protocol
    """The protocol that they count under."""
    incomplete: bool
    """Whether ballots leave candidates out, so that their own rule may have several winners too."""
    decided: DecidedTurns
    firsts: tuple[FirstVotes, ...]
    logged: Ints
    """Shape (turns,): position of the winner under the source's own order; -1 where there is none,
    since no order is logged and counting left several."""
    order: tuple[str, ...]
    """Candidates by place."""
    voters: tuple[str, ...]
    """Voters by number."""
    turns: pl.DataFrame = field(repr=False)
    """Episode, turn and protocol by row, of all turns."""
    own: Mapping[str, Mapping[str, str]] | None = field(repr=False)
    """See `Votes.own`."""
    _place: "_Place"

    def logged_name(self, row: int) -> str | None:
        """The winner of a turn under the source's own order, if it has one."""
        lists, of_lists = self.candidates
        winner = int(self.logged[row])
        return None if winner < 0 else lists[of_lists[row]][winner]

    def panels(self, form: Protocol) -> DistinctPanels:
        """The different panels of the final vote; of rich ballots, as those of a format."""
        return self._place.panels(form)

    @cached_property
    def candidates(self) -> tuple[list[tuple[str, ...]], Ints]:
        """The different lists of candidates, and which one each turn has."""
        return _lists(self.decided.final, self.order)


def _lists(rounds: Rounds, order: tuple[str, ...]) -> tuple[list[tuple[str, ...]], Ints]:
    first, number = distinct_rows(rounds.candidates.T)
    rows = rounds.candidates[first].tolist()
    return [tuple(order[c] for c in row) for row in rows], number


@dataclass(frozen=True, eq=False)
class _Place:
    """Where rounds are in the arrays: for each way to read the ballots, the same rows."""

    protocol: BallotFormat
    rule: Protocol
    parts: Mapping[Protocol | None, Rounds]
    """As cast, and for rich ballots also under each protocol."""
    _found: dict[Any, DistinctPanels] = field(default_factory=dict)

    def panels(self, form: Protocol) -> DistinctPanels:
        rich = self.protocol == "rich"
        form = held_by_rich(form) if rich else form
        key = form if rich else None
        if key not in self._found:
            rounds = self.parts[key]
            self._found[key] = DistinctPanels.find(
                rounds.as_cast, rounds.cast, form if rich else self.rule
            )
        return self._found[key]


def turn_groups(every: AllVotes, own_order: tuple[str, ...] | None) -> Iterator[TurnGroup]:
    """All turns, those of one format, rule and size together.

    `own_order`: the order that decided the logged winners, if one did.
    """
    votes = every.votes
    formats = votes.turns.get_column("protocol").cast(pl.String)
    final_rules = _rules(every, "vote_final")
    first_rules = _rules(every, "vote_initial")
    for i, final in enumerate(votes.final):
        incomplete = final.incomplete
        for form in BALLOT_FORMATS:
            for rule in PROTOCOLS if form == "rich" else (form,):
                own = (formats == form).to_numpy()[final.turn]
                if form == "rich":
                    own &= final_rules[final.turn] == PROTOCOLS.index(rule)
                for part in (own & ~incomplete, own & incomplete):
                    if part.any():
                        rows = np.flatnonzero(part)
                        firsts = _firsts(every, final.turn[rows], form, rule, first_rules)
                        yield _group(every, i, rows, form, rule, firsts, own_order)


def _group(
    every: AllVotes,
    part: int,
    rows: Ints,
    form: BallotFormat,
    rule: Protocol,
    firsts: tuple[FirstVotes, ...],
    own_order: tuple[str, ...] | None,
) -> TurnGroup:
    votes = every.votes
    final = _some(votes.final[part], rows)
    decided = decide_turns(final, votes.tie)
    return TurnGroup(
        protocol=form,
        rule=rule,
        incomplete=bool(final.incomplete.any()),
        decided=decided,
        firsts=firsts,
        logged=_logged(decided, votes.order, own_order),
        order=votes.order,
        voters=votes.voters,
        turns=votes.turns,
        own=votes.own,
        _place=_placed(every, "final", part, rows, form, rule, final),
    )


def _logged(
    decided: DecidedTurns, names: tuple[str, ...], own_order: tuple[str, ...] | None
) -> Ints:
    """Position of the winner under an order; without one, -1 where counting left several."""
    if own_order is None:
        return np.where(count(decided.undecided, 1) > 1, -1, decided.winner)
    rank = np.array([own_order.index(name) for name in names], dtype=np.int64)
    ranks = np.where(decided.undecided, rank[decided.final.candidates], len(rank))
    return np.asarray(ranks.argmin(axis=1))


def _placed(
    every: AllVotes,
    stage: str,
    part: int,
    rows: Ints,
    form: BallotFormat,
    rule: Protocol,
    cast: Rounds,
) -> _Place:
    parts: dict[Protocol | None, Rounds] = {None: cast}
    for way, votes in every.under.items() if form == "rich" else ():
        parts[way] = _some(getattr(votes, stage)[part], rows)
    return _Place(form, rule, parts)


def _some(part: Rounds, rows: Ints) -> Rounds:
    return part if len(rows) == len(part.turn) else part.of(rows)


def _firsts(
    every: AllVotes, turns: Ints, form: BallotFormat, rule: Protocol, rules: Ints
) -> tuple[FirstVotes, ...]:
    """The first votes of some turns, but for those that counted under another protocol."""
    row_of = np.full(every.votes.turns.height, -1, dtype=np.int64)
    row_of[turns] = np.arange(len(turns))
    found = []
    for i, part in enumerate(every.votes.initial):
        own: Bools = row_of[part.turn] >= 0
        if form == "rich":
            own = own & (rules[part.turn] == PROTOCOLS.index(rule))
        if own.any():
            rows = np.flatnonzero(own)
            cast = _some(part, rows)
            place = _placed(every, "initial", i, rows, form, rule, cast)
            found.append(FirstVotes(row_of[part.turn[rows]], cast, every.votes.order, place))
    return tuple(found)


def _rules(every: AllVotes, stage: str) -> Ints:
    """Shape (turns,): the protocol of rich ballots in one stage, as a place in `PROTOCOLS`."""
    turns = every.votes.turns
    if not every.rules:
        return np.full(turns.height, -1, dtype=np.int64)
    keys = turns.select("episode_id", "turn").iter_rows()
    found = [every.rules.get((*key, stage)) or "cumulative" for key in keys]
    return np.array([PROTOCOLS.index(rule) for rule in found], dtype=np.int64)


# --- Mergeable counts ----------------------------------------------------------------------------

LISTED_VOTERS: Final = 12
"""Voters that get a row each in `leave_one_out`; with more there is only the row of any one."""

K = TypeVar("K")


class TiedSet(NamedTuple):
    """What turns have in common that a fallback order can tell apart.

    The winner under any order is the first of what counting left, so the counts of such sets are
    all that a sweep over orders needs.
    """

    protocol: str
    decided_by: str
    undecided: tuple[str, ...]
    """Sorted by name; one candidate unless the order decided."""


@dataclass(frozen=True)
class TiedSets:
    """How often each tied set occurred; the sum of two is that of their turns together."""

    counts: Mapping[TiedSet, int]

    def __add__(self, other: "TiedSets") -> "TiedSets":
        total = Counter(self.counts)
        total.update(other.counts)
        return TiedSets(dict(sorted(total.items())))

    @property
    def turns(self) -> int:
        """Turns counted."""
        return sum(self.counts.values())

    @property
    def candidates(self) -> tuple[str, ...]:
        """Everybody who is in some undecided set, by name."""
        return tuple(sorted({c for tied in self.counts for c in tied.undecided}))

    def of(self, protocol: str) -> "TiedSets":
        """The turns of one protocol."""
        return TiedSets({t: n for t, n in self.counts.items() if t.protocol == protocol})

    def __iter__(self) -> Iterator[tuple[TiedSet, int]]:
        return iter(self.counts.items())


class Outcome(NamedTuple):
    """How a recount of one turn ends."""

    standing: tuple[str, ...]
    """Who may have won: several only where a tie was never put to a tie round."""
    winner: str
    """The first of those in the order."""
    led: tuple[str, ...] = ()
    """Who led the final vote; several where it was tied."""
    undecided: tuple[str, ...] = ()
    """What counting left, after a tie round where it applies."""


class Policy(NamedTuple):
    """How a turn ended, and who won it as logged: nobody, without an order that decides ties."""

    protocol: BallotFormat
    outcome: Outcome
    logged: str | None


class Electorate(NamedTuple):
    """How a turn ends under another electorate."""

    protocol: BallotFormat
    scenario: str
    voter: str | None
    outcome: Outcome
    """Only who may have won, and who does under the order."""
    logged: str | None


class AnyVoter(NamedTuple):
    """What the absence of some one voter does to a turn."""

    protocol: BallotFormat
    compared: bool
    """It has a logged winner, so the next but one are of it."""
    open: bool
    lower: bool
    point: bool
    upper: bool


class RuleKey(NamedTuple):
    """One row of the rules' table."""

    protocol: BallotFormat
    target: str
    """Name of a target, or of an own rule."""
    reading: TieReading
    exempt: int


class Projection(NamedTuple):
    """What the named projection says; candidates by position."""

    tied: tuple[int, ...]
    """The tied set under it; empty when one leads alone, or nobody."""
    outcome: tuple[int, ...]
    """The point winner, or the tie that stays one."""
    impossible: bool
    """No sincere ballots that agree with those cast give this outcome, so there is no point."""

    @property
    def winner(self) -> int | None:
        """The point winner; `None` for a tie that stays one, and where it is impossible."""
        return self.outcome[0] if len(self.outcome) == 1 and not self.impossible else None


class Answer(NamedTuple):
    """What is said of a turn under one target, reading and number of exempt voters."""

    possible: Possible
    projected: Projection
    breakdown: int
    """`NEVER`, `NOT_SETTLED` and `NO_BOUNDS` stand for what is no number."""


class AnswerCount(NamedTuple):
    """What the final vote of a turn adds to a row of the rules' table."""

    candidates: tuple[str, ...]
    logged: str | None
    answer: Answer


class FlipCount(NamedTuple):
    """Whether the leader of a turn's first vote is not its winner."""

    lower: bool
    """For certain."""
    point: bool
    """By the points of both votes; for certain where one of them has none."""
    upper: bool
    """Possibly."""


@dataclass(frozen=True)
class RecountCounts:
    """Counts of what turns add; the sum of two is that of their turns together."""

    tied: TiedSets
    policies: Mapping[Policy, int] = field(repr=False)
    electorates: Mapping[Electorate, int] = field(repr=False)
    any_voter: Mapping[AnyVoter, int] = field(repr=False)
    voters: Mapping[BallotFormat, frozenset[str]] = field(repr=False)
    """Who voted, up to one more than get a row each."""
    rules: Mapping[RuleKey, Mapping[AnswerCount, int]] = field(repr=False)
    flips: Mapping[RuleKey, Mapping[FlipCount, int]] = field(repr=False)
    """Turns with a first vote."""
    agreed: Mapping[Agreed, int] = field(repr=False)
    """Turns with a logged winner."""
    approved: Mapping[int, int] = field(repr=False)
    """Candidates approved → logged approval ballots of final votes."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: "RecountCounts") -> "RecountCounts":
        return RecountCounts(
            self.tied + other.tied,
            _sum(self.policies, other.policies),
            _sum(self.electorates, other.electorates),
            _sum(self.any_voter, other.any_voter),
            {
                protocol: few(
                    self.voters.get(protocol, frozenset()) | other.voters.get(protocol, frozenset())
                )
                for protocol in {**self.voters, **other.voters}
            },
            _sums(self.rules, other.rules),
            _sums(self.flips, other.flips),
            _sum(self.agreed, other.agreed),
            _sum(self.approved, other.approved),
            (*self.notes, *other.notes),
        )

    @staticmethod
    def empty(notes: tuple[str, ...] = ()) -> "RecountCounts":
        """Of no turns, with what reading them took."""
        return RecountCounts(TiedSets({}), {}, {}, {}, {}, {}, {}, {}, {}, notes)

    @property
    def turns(self) -> int:
        """Turns counted."""
        return self.tied.turns


def few(names: Iterable[str]) -> frozenset[str]:
    """As many names as tell whether they are too many to list."""
    return frozenset(sorted(names)[: LISTED_VOTERS + 1])


def _sum(one: Mapping[K, int], other: Mapping[K, int]) -> Mapping[K, int]:
    total = Counter(one)
    total.update(other)
    return total


def _sums(
    one: Mapping[RuleKey, Mapping[K, int]], other: Mapping[RuleKey, Mapping[K, int]]
) -> Mapping[RuleKey, Mapping[K, int]]:
    return {key: _sum(one.get(key, {}), other.get(key, {})) for key in {**one, **other}}


class OutcomeTables(NamedTuple):
    """Counts of outcomes against the logged winners."""

    turns: int
    compared: int
    """Turns that have a logged winner."""
    open_ties: int
    wins: dict[str, Interval]
    changed: Interval


def outcome_tables(
    outcomes: Iterable[tuple[Outcome, str | None, int]], candidates: Iterable[str]
) -> OutcomeTables:
    """Aggregate outcomes. `outcomes`: outcome, logged winner if there is one, number of turns."""
    rows = list(outcomes)

    def total(counts: Callable[[Outcome], bool]) -> int:
        return sum(n for outcome, _, n in rows if counts(outcome))

    def differ(counts: Callable[[Outcome, str], bool]) -> int:
        return sum(n for o, logged, n in rows if logged is not None and counts(o, logged))

    wins = {
        c: Interval(
            lower=total(lambda o, c=c: o.standing == (c,)),  # type: ignore[misc]
            point=total(lambda o, c=c: o.winner == c),  # type: ignore[misc]
            upper=total(lambda o, c=c: c in o.standing),  # type: ignore[misc]
        )
        for c in candidates
    }
    changed = Interval(
        lower=differ(lambda o, logged: logged not in o.standing),
        point=differ(lambda o, logged: o.winner != logged),
        upper=differ(lambda o, logged: o.standing != (logged,)),
    )
    open_ties = total(lambda o: len(o.standing) > 1)
    compared = differ(lambda *_: True)
    return OutcomeTables(total(lambda _: True), compared, open_ties, wins, changed)
