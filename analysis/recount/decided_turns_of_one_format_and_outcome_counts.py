"""Turns of one format and size, decided together; what they have in common, counted."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
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
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import (
    DecidedTurns,
    decide_turns,
)
from tutorsim.analysis.identify.possible_winners import (
    NEVER,
    NO_BOUNDS,
    NOT_SETTLED,
    Possible,
    TieReading,
)
from tutorsim.analysis.identify.win_conditions import NOBODY
from tutorsim.analysis.recount.result_models import Agreed, Holds, Interval
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS, BallotFormat, Protocol

# --- Turns by size -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StageVotes:
    """Votes of one stage of some turns of a group."""

    protocol: BallotFormat
    """The format of the ballots."""
    rule: Protocol
    """The protocol that they count under."""
    rounds: Rounds
    under: Mapping[Protocol, Rounds] = field(repr=False)
    """Rich ballots as each protocol's: the same rounds with other masses. Else empty."""
    rows: Ints
    """Shape (votes,): which turn of the group each vote is of."""
    order: tuple[str, ...]
    """Candidates by place."""
    _panels: dict[Protocol, DistinctPanels] = field(default_factory=dict, repr=False)

    @cached_property
    def candidates(self) -> tuple[list[tuple[str, ...]], Ints]:
        """The different lists of candidates, and which one each vote has."""
        first, number = distinct_rows(self.rounds.candidates.T)
        rows = self.rounds.candidates[first].tolist()
        return [tuple(self.order[c] for c in row) for row in rows], number

    def names(self, members: Bools, row: int) -> tuple[str, ...]:
        """The names of some candidates of one vote. `members`: shape (votes, candidates)."""
        lists, of_lists = self.candidates
        return tuple(lists[of_lists[row]][c] for c in np.flatnonzero(members[row]).tolist())

    def panels(self, form: Protocol) -> DistinctPanels:
        """The different panels; of rich ballots, as those of a format."""
        held = held_by_rich(form) if self.under else self.rule
        if held not in self._panels:
            rounds = self.under.get(held, self.rounds)
            self._panels[held] = DistinctPanels.find(rounds.as_cast, rounds.cast, held)
        return self._panels[held]


@dataclass(frozen=True, eq=False)
class TurnGroup:
    """Turns of one ballot format, one rule and one size."""

    final: StageVotes
    firsts: tuple[StageVotes, ...]
    """The first votes of each size, but for those that counted under another protocol."""
    decided: DecidedTurns
    logged: Ints
    """Shape (turns,): position of the winner under the source's own order; -1 where there is none,
    since no order is logged and counting left several."""
    votes: Votes = field(repr=False)
    """Votes of every turn, with names of voters and turns, and whose candidate is whose."""

    @cached_property
    def incomplete(self) -> bool:
        """Whether ballots leave candidates out, so that their own rule may have several winners
        too."""
        return bool(self.final.rounds.incomplete.any())

    def logged_name(self, row: int) -> str | None:
        """The winner of a turn under the source's own order, if it has one."""
        lists, of_lists = self.final.candidates
        winner = int(self.logged[row])
        return None if winner < 0 else lists[of_lists[row]][winner]


def turn_groups(
    votes: Votes,
    rich: pl.DataFrame | None,
    *,
    order: Sequence[str],
    own_order: Sequence[str] | None,
) -> Iterator[TurnGroup]:
    """All turns of a checked ballots table, those of one format, rule and size together.

    `rich`: the table, if there are rich ballots in it. `order`: the order of candidates, over all
    of them. `own_order`: the order that decided the logged winners, if one did.
    """
    under = {} if rich is None else _as_each_protocol(rich, votes.order, order)
    votes = in_order(votes, order)
    rules = {} if rich is None else rich_rules(rich)
    kind_of_final = _kinds(votes, rules, "vote_final")
    kind_of_first = _kinds(votes, rules, "vote_initial")

    def some(stage: str, i: int, kept: Ints, kind: int, rows: Ints) -> StageVotes:
        """Votes of one size in a stage. `rows`: which turn of the group each is of."""
        form, rule = _KINDS[kind]

        def of(every: Votes) -> Rounds:
            part: Rounds = getattr(every, stage)[i]
            return part if len(kept) == len(part.turn) else part.of(kept)

        held = {protocol: of(every) for protocol, every in under.items()} if form == "rich" else {}
        return StageVotes(form, rule, of(votes), held, rows, votes.order)

    def group(i: int, kind: int, kept: Ints) -> TurnGroup:
        final = some("final", i, kept, kind, np.arange(len(kept)))
        row_of = np.full(votes.turns.height, -1, dtype=np.int64)
        row_of[final.rounds.turn] = final.rows
        firsts = []
        for j, part in enumerate(votes.initial):
            own = np.flatnonzero((row_of[part.turn] >= 0) & (kind_of_first[part.turn] == kind))
            if len(own):
                firsts.append(some("initial", j, own, kind, row_of[part.turn[own]]))
        decided = decide_turns(final.rounds, votes.tie)
        logged = _logged(decided, votes.order, own_order)
        return TurnGroup(final, tuple(firsts), decided, logged, votes)

    for i, final in enumerate(votes.final):
        kinds, incomplete = kind_of_final[final.turn], final.incomplete
        for kind in np.unique(kinds).tolist():
            own = kinds == kind
            for part in (own & ~incomplete, own & incomplete):
                if part.any():
                    yield group(i, kind, np.flatnonzero(part))


_KINDS: Final = [
    (form, rule) for form in BALLOT_FORMATS for rule in (PROTOCOLS if form == "rich" else (form,))
]
"""Formats of ballots, each with the protocols that it may count under."""


def _kinds(votes: Votes, rules: Mapping[tuple[str, int, str], Protocol | None], stage: str) -> Ints:
    """Shape (turns,): the format and the rule of each turn in one stage, as a place in `_KINDS`.

    `rules`: episode, turn and stage of a vote in rich ballots → the protocol that it counts under.
    """
    formats = votes.turns.get_column("protocol").cast(pl.String)
    places = {form: place for place, (form, _) in enumerate(_KINDS)}
    kinds = formats.replace_strict(places, return_dtype=pl.Int64).to_numpy(writable=True)
    keys = votes.turns.select("episode_id", "turn").rows() if rules else []
    for row in np.flatnonzero(kinds == places["rich"]).tolist() if rules else ():
        kinds[row] = _KINDS.index(("rich", rules.get((*keys[row], stage)) or "cumulative"))
    return kinds


def _as_each_protocol(
    rich: pl.DataFrame, named: Sequence[str], order: Sequence[str]
) -> dict[Protocol, Votes]:
    """The votes of a ballots table with the masses that its rich ballots have under each protocol.

    `named`: the fallback order of the votes.
    """
    cast = (pl.col("protocol") == "rich") & pl.col("mass").is_not_null()
    under: dict[Protocol, Votes] = {}
    for protocol in PROTOCOLS:
        mass = pl.when(cast).then(rich_mass(protocol)).otherwise(pl.col("mass"))
        under[protocol] = in_order(
            read_votes(rich.with_columns(mass=mass), fallback_order=named), order
        )
    return under


def _logged(decided: DecidedTurns, names: Sequence[str], own_order: Sequence[str] | None) -> Ints:
    """Position of the winner under an order; without one, -1 where counting left several."""
    if own_order is None:
        return np.where(count(decided.undecided, 1) > 1, -1, decided.winner)
    rank = np.array([own_order.index(name) for name in names], dtype=np.int64)
    ranks = np.where(decided.undecided, rank[decided.final.candidates], len(rank))
    return np.asarray(ranks.argmin(axis=1))


# --- Mergeable counts ----------------------------------------------------------------------------


class Ended(NamedTuple):
    """How a turn ended; candidates stand in the order recounted under, so that the first wins."""

    protocol: BallotFormat
    led: tuple[str, ...]
    """Who led the final vote; several if it was tied."""
    undecided: tuple[str, ...]
    """What counting left, after a tie round where it applies."""
    logged: str | None
    """Who won as logged: nobody, without an order that decides ties."""


class Electorate(NamedTuple):
    """How a turn ends under another electorate."""

    protocol: BallotFormat
    scenario: str
    voter: str | None
    standing: tuple[str, ...]
    """Who may have won: several only where a tie was never put to a tie round; the first does under
    the order."""
    logged: str | None


class AnyVoter(NamedTuple):
    """What the absence of some one voter does to a turn."""

    protocol: BallotFormat
    compared: bool
    """Whether the turn has a logged winner, which `changed` is about."""
    open: bool
    changed: Holds


class RuleKey(NamedTuple):
    """One row of the rules' table."""

    protocol: BallotFormat
    target: str
    """Name of a target, or of an own rule."""
    reading: TieReading
    exempt: int


BREAKDOWN_STATES: Final = {NEVER: "never", NOT_SETTLED: "not_settled", NO_BOUNDS: "point_only"}
"""Breakdown points that are no number, by name."""


class Answer(NamedTuple):
    """What is said of a turn under one target, reading and number of exempt voters.

    Candidates by position.
    """

    possible: Possible
    tied: tuple[int, ...]
    """The tied set under the named projection; empty when one leads alone, or nobody."""
    outcome: tuple[int, ...]
    """The projection's winner, or the tie that stays one."""
    impossible: bool
    """No sincere ballots that agree with those cast give this outcome, so there is no point."""
    breakdown: int
    """Or a key of `BREAKDOWN_STATES`."""

    @property
    def point(self) -> int | None:
        """The point winner; `None` for a tie that stays one, and where it is impossible."""
        return self.outcome[0] if len(self.outcome) == 1 and not self.impossible else None


class AnswerCount(NamedTuple):
    """What the final vote of a turn adds to a row of the rules' table."""

    key: RuleKey
    candidates: tuple[str, ...]
    logged: str | None
    answer: Answer
    """Answer without the tie before it was broken, which no row counts."""

    @property
    def keeps(self) -> bool:
        """Whether the turn certainly has the logged winner."""
        winner = self.answer.possible.necessary
        return winner not in (None, NOBODY) and self.candidates[winner] == self.logged

    @property
    def changes(self) -> bool:
        """Whether the turn certainly has another winner than logged; no winner is no other one."""
        winners, settled = self.answer.possible
        if self.logged is None or not settled or NOBODY in winners:
            return False
        return self.candidates.index(self.logged) not in winners


@dataclass(frozen=True)
class RecountCounts:
    """Counts of what turns add; the sum of two is that of their turns together."""

    ended: Counter[Ended] = field(default_factory=Counter, repr=False)
    electorates: Counter[Electorate] = field(default_factory=Counter, repr=False)
    any_voter: Counter[AnyVoter] = field(default_factory=Counter, repr=False)
    answers: Counter[AnswerCount] = field(default_factory=Counter, repr=False)
    flips: Counter[tuple[RuleKey, Holds]] = field(default_factory=Counter, repr=False)
    """Turns with a first vote by whether its leader is not the winner: by the points of both votes,
    or for certain where one of them has none."""
    agreed: Counter[Agreed] = field(default_factory=Counter, repr=False)
    """Turns with a logged winner."""
    approved: Counter[int] = field(default_factory=Counter, repr=False)
    """Candidates approved → logged approval ballots of final votes."""
    voters: Mapping[BallotFormat, frozenset[str]] = field(default_factory=dict, repr=False)
    """Who voted. Of a group with too many for a row each, only enough to tell that are named."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: "RecountCounts") -> "RecountCounts":
        counters = {name: Counter(getattr(self, name)) for name in _COUNTERS}
        for name, total in counters.items():
            total.update(getattr(other, name))
        voters = {
            protocol: frozenset({*self.voters.get(protocol, ()), *other.voters.get(protocol, ())})
            for protocol in {**self.voters, **other.voters}
        }
        return RecountCounts(**counters, voters=voters, notes=(*self.notes, *other.notes))

    @property
    def turns(self) -> int:
        """Turns counted."""
        return self.ended.total()

    @property
    def by_protocol(self) -> dict[str | None, "RecountCounts"]:
        """How turns end, of all protocols together under `None`, then of each."""
        found: dict[str | None, RecountCounts] = {None: self}
        for protocol in sorted({turn.protocol for turn in self.ended}):
            own = {
                name: Counter({one: n for one, n in counts.items() if one.protocol == protocol})
                for name, counts in vars(self).items()
                if name in ("ended", "electorates", "any_voter")
            }
            voters = {protocol: self.voters.get(protocol, frozenset())}
            found[protocol] = RecountCounts(**own, voters=voters, notes=())
        return found


_COUNTERS: Final = ("ended", "electorates", "any_voter", "answers", "flips", "agreed", "approved")


class OutcomeTables(NamedTuple):
    """Counts of outcomes against the logged winners."""

    turns: int
    compared: int
    """Turns that have a logged winner."""
    open_ties: int
    wins: dict[str, Interval]
    changed: Interval


def outcome_tables(
    turns: Sequence[tuple[tuple[str, ...], str | None, int]], candidates: Iterable[str]
) -> OutcomeTables:
    """Aggregate outcomes.

    `turns`: who may have won, the first under the order; the logged winner if there is one; turns.
    """
    compared = [(standing, logged, n) for standing, logged, n in turns if logged is not None]
    lower, point, upper = Counter[str](), Counter[str](), Counter[str]()
    for standing, _, n in turns:
        point[standing[0]] += n
        for c in standing:
            upper[c] += n
            lower[c] += n * (len(standing) == 1)
    return OutcomeTables(
        turns=sum(n for *_, n in turns),
        compared=sum(n for *_, n in compared),
        open_ties=sum(n for standing, _, n in turns if len(standing) > 1),
        wins={c: Interval(lower=lower[c], point=point[c], upper=upper[c]) for c in candidates},
        changed=Interval.of(
            ((logged not in standing, standing[0] != logged, standing != (logged,)), n)
            for standing, logged, n in compared
        ),
    )
