"""The per-turn table: every turn under every target, reading and number of exempt voters."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from analysis.identify import NOBODY, READINGS_OF_TIES, TieReading
from analysis.identify.projection import projection_name
from analysis.profiles import TurnKey
from analysis.recount.answers import Named, Recounter
from analysis.rules import Target

__all__ = ["NOBODY_NAME", "PER_TURN_SCHEMA", "per_turn_frame", "turns_table"]

NOBODY_NAME: Final = "none"
"""The outcome "no Condorcet winner" in lists of winners."""

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
        "point_winner": pl.String(),  # null: a tie that stays a tie
        "projection": pl.String(),
        "exempt": pl.Int64(),
        "breakdown": pl.Int64(),  # null: never lost, or not settled
        "settled": pl.Boolean(),
        "reading": pl.String(),  # what a tie means: set or fallback
        "point_moved": pl.Boolean(),  # the projected winner itself is not possible
    }
)
"""One row per turn, target, number of exempt voters and reading of ties."""

_LISTS: Final = [name for name, dtype in PER_TURN_SCHEMA.items() if dtype == pl.List(pl.String())]


def per_turn_frame(
    turns: Mapping[Named, Sequence[TurnKey]],
    recounter: Recounter,
    *,
    keys: Sequence[TurnKey],
    targets: Sequence[Target],
    exempt: Sequence[int],
) -> pl.DataFrame:
    """Every turn under every target; see `PER_TURN_SCHEMA`.

    Args:
        turns: Turns by what decides their answers; each is answered once.
        recounter: Gives the answers.
        keys: The turns in the order of the table.
        targets: Rules to recount under.
        exempt: Numbers of exempt voters.
    """
    place = {key: i for i, found in enumerate(turns.values()) for key in found}
    index = pl.DataFrame(
        [(key.episode_id, key.turn, place[key]) for key in keys],
        schema={"episode_id": pl.String, "turn": pl.Int64, "group": pl.Int64},
        orient="row",
    )
    rows = [
        (group, *cells)
        for group, named in enumerate(turns)
        for cells in _group_rows(named, recounter, targets, exempt)
    ]
    answers = _with_lists(rows)
    return index.join(answers, on="group", maintain_order="left_right").select(
        *PER_TURN_SCHEMA.names()
    )


def _with_lists(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows as a frame; each distinct list of names is made once and referred to by number."""
    names = ["group", *PER_TURN_SCHEMA.names()[2:]]
    numbers: dict[tuple[str, ...] | None, int] = {}
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    for name in _LISTS:
        columns[name] = [numbers.setdefault(x, len(numbers)) for x in columns[name]]
    made = [None if x is None else list(x) for x in numbers]
    lists = pl.Series(made, dtype=pl.List(pl.String))
    schema = {"group": pl.Int64(), **dict(PER_TURN_SCHEMA)}
    return pl.DataFrame(
        [
            pl.Series(name, lists.gather(columns[name]))
            if name in _LISTS
            else pl.Series(name, columns[name], dtype=schema[name])
            for name in names
        ]
    )


def _group_rows(
    named: Named, recounter: Recounter, targets: Sequence[Target], exempt: Sequence[int]
) -> Iterator[tuple[Any, ...]]:
    for target in targets:
        for k in exempt:
            for reading in READINGS_OF_TIES:
                yield tuple(_cells(named, recounter, target, k, reading))


def _cells(
    named: Named, recounter: Recounter, target: Target, exempt: int, reading: TieReading
) -> Iterator[Any]:
    def name(c: int | None) -> str | None:
        return None if c is None else NOBODY_NAME if c == NOBODY else named.candidates[c]

    answer = recounter.answer(named.shape, target, exempt=exempt, reading=reading)
    possible, projected, protocol = answer.possible, answer.projected, named.shape.final.protocol
    yield protocol
    yield named.logged
    yield target
    yield named.candidates
    yield tuple(name(c) for c in projected.tied)
    yield tuple(name(c) for c in possible.winners) if possible.settled else None
    yield name(possible.necessary)
    yield name(projected.winner)
    yield projection_name(protocol, target)
    yield exempt
    yield answer.breakdown
    yield possible.settled
    yield reading
    yield projected.moved


def turns_table(per_turn: pl.DataFrame) -> pl.DataFrame:
    """The rows as other programs read them.

    `fallback_order` is null where a tie stays a tie, and given where ties go to its first.
    """
    goes = pl.col("reading") == "fallback"
    ordered = pl.when(goes).then(pl.col("fallback_order")).alias("fallback_order")
    return per_turn.with_columns(ordered).drop("reading", "point_moved")
