"""Turns of one ballot format and one size, decided together, with their panels.

Arrays in, distinct panels out: what is asked about a turn is asked once about each of the few
different panels, and turns look the answer up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.distinct_panels import DistinctPanels
from tutorsim.analysis.ballots.distinct_rows import distinct_rows
from tutorsim.analysis.ballots.short_axis_sums import count
from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.ballots.turn_profiles import rich_mass, rich_rules
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints, Rounds, Votes, in_order
from tutorsim.analysis.counting.turn_winners import DecidedTurns, decide_turns
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS, BallotFormat, Protocol

__all__ = ["AllVotes", "FirstVotes", "TurnGroup", "all_votes", "turn_groups"]


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

    Args:
        votes: The table as arrays.
        rich: The table, if there are rich ballots in it.
        order: The fallback order.
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
        form = "ranked" if rich and form == "score" else form
        key = form if rich else None
        if key not in self._found:
            rounds = self.parts[key]
            self._found[key] = DistinctPanels.find(
                rounds.as_cast, rounds.cast, form if rich else self.rule
            )
        return self._found[key]


def turn_groups(every: AllVotes, own_order: tuple[str, ...] | None) -> Iterator[TurnGroup]:
    """All turns, those of one format, rule and size together.

    Args:
        every: The votes, in the order recounted under.
        own_order: The order that decided the logged winners, if one did.
    """
    votes = every.votes
    formats = votes.turns.get_column("protocol").cast(pl.String).to_numpy()
    final_rules = _rules(every, "vote_final")
    first_rules = _rules(every, "vote_initial")
    for i, final in enumerate(votes.final):
        incomplete = final.incomplete
        for form in BALLOT_FORMATS:
            for rule in PROTOCOLS if form == "rich" else (form,):
                own = formats[final.turn] == form
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
