"""The per-turn table: every turn under every target, reading and number of exempt voters."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.vote_arrays import TURN, distinct_rows
from tutorsim.analysis.identify.win_conditions import NOBODY
from tutorsim.analysis.recount.possible_winners_of_every_protocol_by_rule import answer_rules
from tutorsim.analysis.recount.recount_plan_and_own_rules import NOBODY_NAME, Plan, check_sizes
from tutorsim.analysis.recount.turns_of_one_format_and_counts_of_outcomes import (
    BREAKDOWN_STATES,
    Answer,
    RuleKey,
    TurnGroup,
)

PER_TURN_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "logged_protocol": pl.String(),
        "logged_winner": pl.String(),
        "target": pl.String(),
        "fallback_order": pl.List(pl.String()),  # the turn's candidates in the order used
        "tied_set": pl.List(pl.String()),  # under the projection; empty: one led alone
        "possible_winners": pl.List(pl.String()),  # null: not settled
        "necessary_winner": pl.String(),  # null: several are possible, or not settled
        "point_winner": pl.String(),  # null: no point, see the next column
        "point_state": pl.String(),  # winner, tie (stays one) or impossible (not a possible winner)
        "projection": pl.String(),
        "exempt": pl.Int64(),
        "breakdown": pl.Int64(),  # null: no number, see the next column
        "breakdown_state": pl.String(),  # number, never, not_settled or point_only
        "settled": pl.Boolean(),
        "reading": pl.String(),  # what a tie means: set or fallback
    }
)
"""One row per turn, target, number of exempt voters and reading of ties."""

_LISTS: Final = [name for name, dtype in PER_TURN_SCHEMA.items() if dtype == pl.List(pl.String())]
_KEYS: Final = 2
"""Columns that name the turn."""
_TOGETHER: Final = 500_000
"""Rows of a frame, as long as one turn has no more."""


def per_turn_frames(
    groups: Sequence[TurnGroup], turns: pl.DataFrame, plan: Plan
) -> Iterator[pl.DataFrame]:
    """Every turn under every target, in frames that memory holds; see `PER_TURN_SCHEMA`.

    Answers that are alike are written once, and turns refer to them by number.

    `turns`: episode, turn and protocol of each, in the order of the table.
    """
    plan = replace(plan, dial={})
    every = product(plan.rules, plan.exempt, plan.readings)
    columns = {asked: column for column, asked in enumerate(every)}
    asked = len(columns)
    which = np.zeros((turns.height, asked), dtype=np.int64)
    rows: list[tuple[Any, ...]] = []
    check_sizes(groups, plan.rules)
    for group in groups:
        names, of_names = group.final.candidates
        _, fixed = distinct_rows([of_names, group.logged])
        for key, (final, *_) in answer_rules(group, plan):
            kinds, of = distinct_rows([fixed, final.number])
            column = columns[key.target, key.exempt, key.reading]
            which[group.decided.final.turn, column] = len(rows) + of
            for kind in kinds.tolist():
                candidates = names[of_names[kind]]
                answer = final.answers[final.number[kind]]
                logged = group.logged_name(kind)
                projection = plan.projection(key.protocol, key.target)
                rows.append(tuple(_cells(key, candidates, logged, answer, projection)))
    named, answers_by_number = turns.select(TURN[:_KEYS]), _with_lists(rows)
    together = max(1, _TOGETHER // max(1, asked))
    for start in range(0, max(1, turns.height), together):
        some = which[start : start + together]
        repeated = np.repeat(np.arange(start, start + len(some)), asked)
        frame = named[repeated].hstack(answers_by_number[some.ravel()])
        yield frame.cast(dict(PER_TURN_SCHEMA))  # type: ignore[arg-type]


def _with_lists(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows as a frame; each distinct list of names is made once and referred to by number."""
    names = PER_TURN_SCHEMA.names()[_KEYS:]
    numbers: dict[tuple[str, ...] | None, int] = {}
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    for name in _LISTS:
        columns[name] = [numbers.setdefault(x, len(numbers)) for x in columns[name]]
    made = [None if x is None else list(x) for x in numbers]
    lists = pl.Series(made, dtype=pl.List(pl.String))
    return pl.DataFrame(
        [
            pl.Series(name, lists.gather(columns[name]))
            if name in _LISTS
            else pl.Series(name, columns[name], dtype=PER_TURN_SCHEMA[name])
            for name in names
        ]
    )


def _cells(
    key: RuleKey, candidates: tuple[str, ...], logged: str | None, answer: Answer, projection: str
) -> Iterator[Any]:
    def name(c: int | None) -> str | None:
        return None if c is None else NOBODY_NAME if c == NOBODY else candidates[c]

    possible, breakdown = answer.possible, answer.breakdown
    yield key.protocol
    yield logged
    yield key.target
    yield candidates
    yield tuple(name(c) for c in answer.tied)
    yield tuple(name(c) for c in possible.winners) if possible.settled else None
    yield name(possible.necessary)
    yield name(answer.point)
    yield "impossible" if answer.impossible else "tie" if len(answer.outcome) > 1 else "winner"
    yield projection
    yield key.exempt
    yield None if breakdown < 0 else breakdown
    yield BREAKDOWN_STATES.get(breakdown, "number")
    yield possible.settled
    yield key.reading


def turns_table(per_turn: pl.DataFrame) -> pl.DataFrame:
    """The rows as other programs read them.

    `fallback_order` is null where a tie stays a tie, and given where ties go to its first.
    """
    goes = pl.col("reading") == "fallback"
    ordered = pl.when(goes).then(pl.col("fallback_order")).alias("fallback_order")
    return per_turn.with_columns(ordered).drop("reading")
