"""Vote shift, winner flips, ties and fallback per protocol, beside chance and the noise floor."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Rounds, count
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import (
    TurnTable,
    turn_table,
)
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import largest
from tutorsim.analysis.pages.cells_and_tables import (
    Table,
    Written,
    estimate,
    part_of,
    plain,
    sum_of,
)
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.statistics.array_types import Bools, Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_of,
    mean_of_numbered,
    share_of_numbered,
)
from tutorsim.analysis.statistics.noise_floor_of_retests import NoiseFloor, asked_again
from tutorsim.records import RetestHead
from tutorsim.vocabularies import BALLOT_STATUSES, DECIDED_BY, BallotFormat

# --- Shift flip tie fallback rates ---------------------------------------------------------------

WINNING_ROLES_SCHEMA: Final = pl.Schema(
    {
        "protocol": pl.String(),
        "role": pl.String(),
        "wins": pl.Int64(),  # sum of the next three; over roles the sum is the turns
        "by_vote": pl.Int64(),
        "by_tie_round": pl.Int64(),
        "by_fallback": pl.Int64(),
    }
)
"""One row per protocol and candidate, in the fallback order."""


LEFT_TIED: Final = "(left tied)"
"""Stands for the winner of turns that counting leaves tied."""

NO_LEADER: Final = NotEstimable("no order is logged that would pick one of several leaders")
_NO_MASS: Final = "no turn has mass in both votes"
_LAST: Final = DECIDED_BY.index("fallback")
_NO_ORDER: Final = NotEstimable("no order is logged")


@dataclass(frozen=True)
class Diagnostics:
    """One protocol's row of the coordination table."""

    protocol: BallotFormat
    turns: int
    episodes: int
    shift: Estimate | NotEstimable
    flip: Estimate | NotEstimable
    """A tied first vote is led by the fallback order's pick."""
    flip_set: Estimate | NotEstimable
    """A flip only when the winner is outside the set of first leaders."""
    tie_rate: Estimate | NotEstimable
    fallback_rate: Estimate | NotEstimable
    left_tied: Estimate | NotEstimable
    """Turns that counting left tied, the tie round too; an order decided them if one is logged."""
    decided_by: dict[str, int]
    """`vote`, `tie_round`, `fallback` → turns."""
    abstentions: int
    """Ballots of the final votes without mass."""
    ballots: int
    """Ballots of the final votes."""


def diagnostics(source: Source) -> list[Diagnostics]:
    """The coordination diagnostics of each protocol that has voting turns.

    Intervals are over tasks (over episodes where ballots from elsewhere do not name tasks). Without
    a logged order a turn that counting leaves tied is `open` in `decided_by`, and a flip is counted
    over turns that counting decided, where the winner is outside the set of first leaders.
    """
    table = turn_table(source)
    return [
        _of(protocol, table, own, ordered=source.ordered) for protocol, own in table.protocols()
    ]


def turn_diagnostics(source: Source) -> pl.DataFrame:
    """How each voting turn was decided, by `episode_id` and `turn`.

    Columns: `winner`; `decided_by`; whether the final vote was `tied` and the `fallback` order
    decided; `flip` and `flip_set`, null without a first vote; and how many `abstained` at last.
    """
    table = turn_table(source)
    voted = pl.Series(table.voted)
    abstained = np.zeros(len(table.winner), dtype=np.int64)
    for panel in table.panels:
        abstained[panel.final.turn] = count(~panel.final.cast, 1)
    return table.winners().with_columns(
        decided_by=pl.Series(list(DECIDED_BY)).gather(table.decided_by),
        tied=pl.Series(table.tied),
        fallback=pl.Series(table.fallback),
        flip=pl.when(voted).then(pl.Series(table.flip)),
        flip_set=pl.when(voted).then(pl.Series(table.outside)),
        abstained=pl.Series(abstained),
    )


def winning_roles(source: Source) -> pl.DataFrame:
    """Wins per protocol and role, and by the step that decided: see `WINNING_ROLES_SCHEMA`.

    Without a logged order, turns that counting leaves tied are won by `LEFT_TIED`.
    """
    table = turn_table(source)
    rows, left_tied = list[tuple[str | int, ...]](), list[tuple[str | int, ...]]()
    for protocol, own in table.protocols():
        cell = table.winner[own] * len(DECIDED_BY) + table.decided_by[own]
        counts = np.bincount(cell, minlength=len(table.order) * len(DECIDED_BY))
        stood = np.zeros(len(table.order), dtype=np.bool_)
        for panel in table.panels:
            stood[panel.final.candidates[own[panel.final.turn]]] = True
        by_place = counts.reshape(-1, len(DECIDED_BY))
        if not source.ordered and (left := int(by_place[:, _LAST].sum())):
            left_tied.append((protocol, LEFT_TIED, left, 0, 0, 0))
            by_place[:, _LAST] = 0
        for place in np.flatnonzero(stood).tolist():
            won = by_place[place].tolist()
            rows.append((protocol, table.order[place], sum(won), *won))
    return pl.DataFrame([*rows, *left_tied], schema=WINNING_ROLES_SCHEMA, orient="row")


def _of(protocol: BallotFormat, table: TurnTable, own: Bools, *, ordered: bool) -> Diagnostics:
    voted = own & table.voted
    by = np.bincount(table.decided_by[own], minlength=len(DECIDED_BY)).tolist()
    casts = [panel.final.cast[own[panel.final.turn]] for panel in table.panels]
    moved = own & ~np.isnan(table.shift)
    left_tied = _share(table.fallback, own, table)
    return Diagnostics(
        protocol=protocol,
        turns=int(own.sum()),
        episodes=table.votes.turns.get_column("episode_id").filter(own).n_unique(),
        shift=mean_of_numbered(table.task[moved], table.shift[moved], ends=(0, 1)),
        flip=_share(table.flip, voted, table) if ordered else NO_LEADER,
        flip_set=_share(table.outside, voted if ordered else voted & ~table.fallback, table),
        tie_rate=_share(table.tied, own, table),
        fallback_rate=left_tied if ordered else _NO_ORDER,
        left_tied=left_tied,
        decided_by=dict(zip(DECIDED_BY if ordered else _OPEN, by, strict=True)),
        abstentions=sum(int((~cast).sum()) for cast in casts),
        ballots=sum(cast.size for cast in casts),
    )


_OPEN: Final = tuple("open" if step == "fallback" else step for step in DECIDED_BY)
"""The steps where no order is logged."""


def _share(hits: Bools, among: Bools, table: TurnTable) -> Estimate | NotEstimable:
    """Share of some turns."""
    if not among.any():
        return NotEstimable("no observations")
    return share_of_numbered(table.task[among], hits[among])


# --- Chance baseline -----------------------------------------------------------------------------


class _Counts(NamedTuple):
    """R counted votes over m candidates each."""

    turn: Ints
    candidates: Ints
    """Shape (R, m)."""
    totals: Ints
    """Shape (R, m)."""

    def of(self, rows: Ints) -> "_Counts":
        return _Counts(*(part[rows] for part in self))


_Alike = tuple[_Counts, _Counts]
"""First and final votes, turn by turn, of turns with the same candidates in both."""


@dataclass(frozen=True)
class ChanceBaseline:
    """One protocol: what was observed, and what independent votes would give."""

    protocol: BallotFormat
    turns: int
    """Turns with a first vote."""
    flip: float | NotEstimable
    """Observed share; a tied first vote is led by the fallback order's pick."""
    flip_expected: float | NotEstimable
    flip_set: float | NotEstimable
    """Observed share of winners outside the set of first leaders."""
    flip_set_expected: float | NotEstimable
    shift: float | NotEstimable
    """Observed mean, over turns where it is defined."""
    shift_expected: float | NotEstimable
    kappa: float | NotEstimable
    """Cohen's κ between first leader and winner: 1 - flip / expected flip."""


def chance_baselines(source: Source) -> list[ChanceBaseline]:
    """The chance baseline of each protocol that has voting turns.

    Without a logged order that of the shift alone: a flip needs a leader of every first vote.
    """
    table = turn_table(source)
    found = [_chance_of(protocol, table, own & table.voted) for protocol, own in table.protocols()]
    return found if source.ordered else [replace(row, **_NO_FLIP) for row in found]


_NO_FLIP: Final[Mapping[str, Any]] = dict.fromkeys(
    ("flip", "flip_expected", "flip_set", "flip_set_expected", "kappa"), NO_LEADER
)


def _chance_of(protocol: BallotFormat, table: TurnTable, own: Bools) -> ChanceBaseline:
    turns = int(own.sum())
    if turns < 2:
        few = NotEstimable(f"{turns} turns with a first vote; permuting takes two")
        return ChanceBaseline(protocol, turns, few, few, few, few, few, few, few)
    groups, shifts = _groups(table, own), table.shift[own]
    flip = Fraction(int(table.flip[own].sum()), turns)
    led = [(table.leader[after.turn], after.turn) for _, after in groups]
    expected = _apart(table, led)
    kappa: float | NotEstimable = NotEstimable("every first leader and every winner is the same")
    if expected:
        kappa = float(1 - flip / expected)
    first = [(b.candidates[largest(b.totals)], after.turn) for b, after in groups]
    return ChanceBaseline(
        protocol=protocol,
        turns=turns,
        flip=float(flip),
        flip_expected=float(expected),
        flip_set=int(table.outside[own].sum()) / turns,
        flip_set_expected=float(_apart(table, first)),
        shift=mean_of(shifts[~np.isnan(shifts)].tolist(), _NO_MASS),
        shift_expected=_expected_shift(groups),
        kappa=kappa,
    )


def _groups(table: TurnTable, own: Bools) -> list[_Alike]:
    """Turns by the candidates of their two votes."""
    found = []
    for first in _counted(table.votes.initial, own):
        for last in _counted(table.votes.final, own):
            _, one, two = np.intersect1d(
                first.turn, last.turn, assume_unique=True, return_indices=True
            )
            before, after = first.of(one), last.of(two)
            stood = np.concatenate([before.candidates, after.candidates], axis=1)
            found += [(before.of(rows), after.of(rows)) for rows in _same_rows(stood)]
    return found


def _counted(rounds: Sequence[Rounds], own: Bools) -> list[_Counts]:
    """Totals of the turns asked for, those over as many candidates together, by candidate."""
    kept = [part.of(np.flatnonzero(own[part.turn])) for part in rounds]
    found = []
    for m in sorted({part.candidates.shape[1] for part in kept}):
        parts = [(p.turn, p.candidates, p.totals) for p in kept if p.candidates.shape[1] == m]
        turn, candidates, totals = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(candidates, axis=1)  # turns of one order stand beside those of another
        by_place = (np.take_along_axis(part, order, axis=1) for part in (candidates, totals))
        found.append(_Counts(turn, *by_place))
    return found


def _same_rows(array: Ints) -> list[Ints]:
    """Positions of equal rows, one array for each different row."""
    if (array == array[:1]).all():
        return [np.arange(len(array))] if len(array) else []
    _, number = np.unique(array, axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    return list(np.split(order, np.cumsum(np.bincount(number.reshape(-1)))[:-1]))


def _apart(table: TurnTable, led: Sequence[tuple[Ints, Ints]]) -> Fraction:
    """Share of pairs of turns in which the winner of one is no leader of the other.

    `led`: leaders and turns of each group of which pairs are taken.
    """
    size, apart, every = len(table.order), Fraction(0), 0
    for leaders, turn in led:
        leads = np.bincount(leaders, minlength=size).tolist()
        wins = np.bincount(table.winner[turn], minlength=size).tolist()
        same = sum(a * b for a, b in zip(leads, wins, strict=True))
        apart += len(turn) - Fraction(same, len(turn))
        every += len(turn)
    return apart / every


def _expected_shift(groups: Sequence[_Alike]) -> float | NotEstimable:
    means = [
        (_mean_distance(before, after), len(last.turn))
        for first, last in groups
        if (before := _shares(first)) and (after := _shares(last))
    ]
    if not means:
        return NotEstimable(_NO_MASS)
    return sum(mean * n for mean, n in means) / sum(n for _, n in means)


def _shares(counts: _Counts) -> dict[int, Floats]:
    """Candidate → its share of the mass in each vote that has mass; empty where none has."""
    mass = counts.totals.sum(axis=1)
    shares = counts.totals[mass > 0] / mass[mass > 0, None]
    if not len(shares):
        return {}
    return dict(zip(counts.candidates[0].tolist(), shares.T, strict=True))


def _mean_distance(before: dict[int, Floats], after: dict[int, Floats]) -> float:
    """Mean of half the absolute differences over all pairs: a sum over single candidates."""
    some = next(iter(before.values())), next(iter(after.values()))
    none = [np.zeros(len(one)) for one in some]
    stood = sorted({*before, *after})
    apart = [_mean_gap(before.get(c, none[0]), after.get(c, none[1])) for c in stood]
    return fsum(apart) / 2


def _mean_gap(first: Floats, second: Floats) -> float:
    """Mean of |x - y| over all pairs of one number and another, without listing the pairs.

    Of n sorted numbers y with k below x, the sum of |x - y| is x (2k - n) + all - 2 × those below.
    """
    x, times = np.unique(first, return_counts=True)
    y = np.sort(second)
    below = np.searchsorted(y, x)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    gaps = x * (2 * below - len(y)) + sums[-1] - 2 * sums[below]
    return fsum(gaps * times) / (len(first) * len(second))  # the same sum on every processor


# --- Decision tables -----------------------------------------------------------------------------


def _rates(of: Any) -> dict[str, str]:
    """Column → the share of turns in it."""
    always = {"flip outside the leaders": "flip_set", "final vote tied": "tie_rate"}
    if of.unordered:
        return {**always, "left tied": "left_tied"}
    return {"flip": "flip", **always, "fallback": "fallback_rate"}


@table(
    "diagnostics",
    "How the {decided}",
    secondary=("episodes", "abstentions"),
    decided=lambda of: "votes went" if of.unordered else "panels decided",
    flips=lambda of: (
        "Flip: the winner was not among those who led the first vote, where counting decided. Left "
        "tied: no order is logged, so that nobody won."
        if of.unordered
        else "Flip: the first vote's leader did not win; a tied lead goes to the fallback order, "
        "or, in the next column, to all who lead. Fallback: decided by the fallback order."
    ),
)
def _decided_table(of: Any) -> Iterator[Row]:
    """Vote shift: half the distance between the vote shares of the first and the final vote
    (0 to 1). {flips} 95 % intervals in brackets: over tasks. {diagnostics_notes}"""
    for d in of.diagnostics:
        yield {
            "protocol": d.protocol,
            "turns": d.turns,
            "episodes": d.episodes,
            "vote shift": estimate(d.shift),
            **{name: estimate(getattr(d, rate)) for name, rate in _rates(of).items()},
            "abstentions": part_of(d.abstentions, d.ballots),
        }


@table("diagnostics", "How the votes went")
def _single_table(of: Any) -> Iterator[Row]:
    """Tied: counting left several first. 95 % intervals in brackets: over tasks."""
    for d in of.diagnostics:
        yield {
            "protocol": d.protocol,
            "votes": d.turns,
            "tied": estimate(d.tie_rate),
            "abstentions": part_of(d.abstentions, d.ballots),
        }


def diagnostics_table(of: Any) -> Table | None:
    """Shift, flip, ties and fallback per protocol; without a logged order, what counting leaves
    tied has no winner. Ties alone, where nothing was voted on twice."""
    return (_single_table if of.once else _decided_table)(of)


@table("chance", "Flip and shift beside chance")
def chance_table(of: Any) -> Iterator[Row]:
    """By chance: first and final votes drawn independently from those of the protocol's turns. κ is
    1 where the first leader always wins, 0 where it wins as often as by chance.{absent}"""
    for one in () if of.unordered else of.chance:
        if one.turns:
            yield {
                "protocol": one.protocol,
                "turns": one.turns,
                "flip": plain(one.flip),
                "flip by chance": plain(one.flip_expected),
                "κ": plain(one.kappa),
                "vote shift": plain(one.shift),
                "shift by chance": plain(one.shift_expected),
            }


@table(
    "winners",
    "Who won, and the step that made them win",
    steps=lambda of: f"; in brackets by {' + '.join(_steps(of).values())}" if _steps(of) else "",
)
def winners_table(of: Any) -> Iterator[Row]:
    """Wins. {as_logged}{steps}."""
    cells = {(row["role"], row["protocol"]): row for row in of.winners.iter_rows(named=True)}
    protocols = [row.protocol for row in of.diagnostics]
    for role in (*of.candidates, LEFT_TIED):
        own = {protocol: cells.get((role, protocol)) for protocol in protocols}
        if any(own.values()):
            yield {
                "winner": role,
                "all": sum(cell["wins"] for cell in own.values() if cell),
                **{protocol: _wins(cell, of) for protocol, cell in own.items()},
            }


def _steps(of: Any) -> dict[str, str]:
    """Column → name of each step that may make a winner; none where there is one alone."""
    steps = {"by_vote": "final vote"}
    if of.tie_rounds:
        steps["by_tie_round"] = "tie round"
    if not of.unordered and not of.once:
        steps["by_fallback"] = "fallback order"
    return steps if len(steps) > 1 else {}


def _wins(cell: Mapping[str, int] | None, of: Any) -> str | Written:
    if cell is None:
        return "no candidate"
    steps = {step: cell[step] for step in _steps(of)}
    if not any(steps.values()):
        return Written(str(cell["wins"]), {"wins": cell["wins"]})
    text = f"{cell['wins']} ({'+'.join(map(str, steps.values()))})"
    return Written(text, {"wins": cell["wins"], **steps})


@table("ballots", "Ballots")
def ballots_table(of: Any) -> Iterator[Row]:
    """Of all rounds. Repaired: read although the reply was not to the letter."""
    for protocol in dict.fromkeys(row["protocol"] for row in of.ballots):
        own = [row for row in of.ballots if row["protocol"] == protocol]
        each: dict[str, int] = {s: sum(row[s] for row in own) for s in BALLOT_STATUSES}
        yield {"protocol": protocol, "ballots": sum(each.values()), **each}


# --- Noise floor ---------------------------------------------------------------------------------

_QUANTITIES: Final = {
    "flip": "flip",
    "flip_set": "flip outside the leaders",
    "leader": "leader changed, no tie round",
    "shift": "vote shift",
}
_VOTES: Final = {"vote_initial": "first", "vote_final": "final"}


def noise_told(found: NoiseFloor | NotEstimable) -> str:
    """What is known of the floor, for the caption of what it stands beside."""
    if isinstance(found, NotEstimable):
        return (
            "How much of it re-asking alone would give, the noise floor, is unknown: each vote "
            "was asked for once."
        )
    return "How much of it re-asking alone gives stands in a table of its own."


@table("noise", "Beside the noise floor", how=lambda of: _how(of.noise, of.source.retest.head))
def beside_floor_table(of: Any) -> Iterator[Row]:
    """Re-asked: two panels that answer one and the same prompt, each voter with two different
    askings of its own, ties to the fallback order. Left: logged less re-asked, turn by turn. A flip
    as logged may come from a tie round, which nobody was asked again; “no tie round” compares the
    leaders of both votes. 95 % intervals in brackets: over tasks. {how}"""
    for row in () if isinstance(of.noise, NotEstimable) else of.noise.beside:
        yield {
            "protocol": row["form"],
            "what": _QUANTITIES[row["quantity"]],
            "turns asked again": row["turns"],
            "logged": estimate(row["logged"]),
            "re-asked": estimate(row["floor"]),
            "left": estimate(row["left"], signed=True),
        }


def _how(found: NoiseFloor, head: RetestHead) -> str:
    said = asked_again(head)
    finals = dict.fromkeys(row["form"] for row in found.beside if row["stage"] == "vote_final")
    if finals:
        said += (
            f" Of {', '.join(finals)} the first vote was not asked again: the floor is that of the "
            "final vote."
        )
    if found.failed:
        said += f" {found.failed} calls failed; panels that lack an answer are left out."
    drawn = max(row["sampled"] for row in found.beside)
    if drawn:
        said += f" Panels of {drawn} turns were drawn by a seed, all others enumerated."
    return said


@table(
    "askings",
    "One prompt, asked several times",
    secondary=("same by chance", "pairs with abstentions"),
)
def askings_table(of: Any) -> Iterator[Row]:
    """Pairs: two askings of one voter's prompt, logged or re-asked; same: share of them with one
    ballot, or with the same candidates first; by chance: two ballots of one voter in different
    turns. Pairs with one abstention + with two are in no share. Panels: one answer of each voter,
    logged or re-asked; how often their leader is that of the logged ballots, and how often two of
    them agree. A tie goes to the fallback order."""
    if isinstance(of.noise, NotEstimable):
        return
    for own, panels in zip(of.noise.ballots, of.noise.winners, strict=True):
        yield {
            "protocol": own["form"],
            "vote": _VOTES[own["stage"]],
            "pairs": own["pairs"],
            "same ballot": estimate(own["same"]),
            "same first": estimate(own["same_top"]),
            "same by chance": plain(own["chance"]),
            "pairs with abstentions": sum_of(one=own["one_abstained"], both=own["both_abstained"]),
            "panels with the logged leader": estimate(panels["elects_logged"]),
            "two panels agree": estimate(panels["agree"]),
        }
