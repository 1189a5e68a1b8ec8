"""What makes a ballot: checks on the ballots table's columns of a file from elsewhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from analysis.ballotfiles import refuse
from analysis.ballotrich import check_rich
from analysis.plainballots import plain_budget
from tutorsim.types import BALLOT_FORMATS, BALLOT_STATUSES, CUMULATIVE_BUDGET, PROTOCOLS

__all__ = ["Checked", "check_ballots"]

_TURN: Final = ("episode_id", "turn")
_ROUND: Final = (*_TURN, "stage")
_BALLOT: Final = (*_ROUND, "voter")

_STAGES: Final = {"initial": "vote_initial", "final": "vote_final", "tie": "tie_vote"}
_STAGE_NAMES: Final = (*_STAGES.values(), *_STAGES)


class Checked(NamedTuple):
    """Rows that all belong to a ballot."""

    ballots: pl.DataFrame
    """The columns of the ballots table and `row`."""
    budget: int
    """What the cumulative ballots sum to; the study's default where there are none."""
    notes: tuple[str, ...]


def check_ballots(columns: pl.DataFrame, file: Path, *, budget: int | None = None) -> Checked:
    """Check that the rows make ballots, and bring them into the table's shape.

    Args:
        columns: From `analysis.ballotfiles.read_columns`.
        file: Named in errors.
        budget: What a cumulative ballot must sum to. By default what most of them sum to,
            the sum seen first where several are equally frequent.

    Raises:
        BallotFileError: With file, row and reason.
    """
    plain = plain_budget(columns, budget)
    if plain is not None:
        valid = pl.lit("valid").alias("ballot_status")
        return Checked(columns.with_columns(pl.col("stage").replace(_STAGES), valid), plain, ())
    _check_words(columns, file)
    frame = columns.with_columns(pl.col("stage").replace(_STAGES))
    _check_rounds(frame, file)
    frame, namesakes = _number_namesakes(frame, file)
    frame, filled = _fill_left_out(frame, file)
    frame = _with_sums(frame)
    budget = budget or _most_frequent_sum(frame)
    _check_masses(frame, file, budget)
    check_rich(frame.filter(~_abstains()), file, budget)
    frame = frame.with_columns(_status(), pl.when(~_abstains()).then("mass"))
    _check_tie_rounds(frame, file)
    return Checked(frame, budget, (*namesakes, *filled, *_without_final_vote(frame)))


def _check_words(frame: pl.DataFrame, file: Path) -> None:
    words = {"protocol": BALLOT_FORMATS, "stage": _STAGE_NAMES, "ballot_status": BALLOT_STATUSES}
    for name, known in words.items():
        found = frame.filter(~pl.col(name).is_in(known)).head(1)
        for word in found[name]:
            says = f"unknown {name} {word!r} (known: {', '.join(known)})"
            refuse(found, pl.lit(True), file, says)
    refuse(frame, pl.col("turn") < 0, file, lambda row: f"turn {row['turn']} is negative")
    refuse(frame, pl.col("mass") < 0, file, lambda row: f"the mass {row['mass']} is negative")


def _check_rounds(frame: pl.DataFrame, file: Path) -> None:
    """One protocol a turn, and only candidates of the final vote in its tie round."""
    first = pl.col("protocol").first().over(_TURN)
    refuse(
        frame,
        pl.col("protocol") != first,
        file,
        lambda row: f"a {row['protocol']} ballot in a turn of another protocol",
    )
    of_turn = frame.filter(pl.col("stage") == "vote_final").select(*_TURN, "candidate").unique()
    stray = frame.filter(pl.col("stage") == "tie_vote").join(
        of_turn, on=[*_TURN, "candidate"], how="anti"
    )
    refuse(
        stray,
        pl.lit(True),
        file,
        lambda row: f"the tie round has {row['candidate']!r}, which the final vote has not",
    )


def _without_final_vote(frame: pl.DataFrame) -> tuple[str, ...]:
    decided = (pl.col("stage") == "vote_final").any().over(_TURN)
    turns = frame.filter(~decided).select(*_TURN).unique().height
    if not turns:
        return ()
    return (f"{turns} turn(s) without a final vote are not recounted.",)


def _check_tie_rounds(frame: pl.DataFrame, file: Path) -> None:
    """A tie round is among exactly the candidates that the final vote left tied."""
    final = frame.filter(pl.col("stage") == "vote_final")
    totals = final.group_by(*_TURN, "candidate").agg(pl.col("mass").sum())
    leading = totals.filter(pl.col("mass") == pl.col("mass").max().over(_TURN))
    tied = leading.filter(pl.len().over(_TURN) > 1)
    again = frame.filter(pl.col("stage") == "tie_vote")
    refuse(
        again.join(tied, on=[*_TURN, "candidate"], how="anti"),
        pl.lit(True),
        file,
        lambda row: f"the tie round has {row['candidate']!r}, which was not tied before it",
    )
    left_out = tied.join(again, on=[*_TURN, "candidate"], how="anti").select(
        *_TURN, pl.col("candidate").alias("left_out")
    )
    refuse(
        again.join(left_out, on=_TURN, how="inner"),
        pl.lit(True),
        file,
        lambda row: f"the tie round leaves out {row['left_out']!r}, which was tied before it",
    )


def _number_namesakes(frame: pl.DataFrame, file: Path) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Tell voters of one name in one round apart, where each has a whole ballot."""
    frame = frame.with_columns(
        pl.int_range(pl.len()).over(*_BALLOT, "candidate").alias("block"),
        pl.col("candidate").n_unique().over(_ROUND).alias("m"),
    )
    if not frame.select((pl.col("block") > 0).any()).item():
        return frame.drop("block", "m"), ()
    whole = pl.len().over(*_BALLOT, "block") == pl.col("m")
    in_turn = (pl.col("block").diff().fill_null(0) >= 0).all().over(_BALLOT)
    several = pl.col("block").max().over(_BALLOT) > 0
    a_contest = (pl.col("m") > 1) | (pl.col("mass").n_unique().over(_BALLOT) == 1)
    refuse(
        frame,
        (pl.col("block") > 0) & ~(whole & in_turn & a_contest).all().over(_BALLOT),
        file,
        lambda row: f"voter {row['voter']!r} has two entries for {row['candidate']!r}",
    )
    count = frame.filter(several).select(*_BALLOT, "block").n_unique()
    number = pl.format("{} #{}", "voter", pl.col("block") + 1)
    renamed = frame.with_columns(pl.when(several).then(number).otherwise("voter").alias("voter"))
    refuse(
        renamed,
        pl.struct(*_BALLOT, "candidate").is_duplicated(),
        file,
        lambda row: f"the name {row['voter']!r} is needed to tell namesakes apart",
    )
    note = f"{file.name}: {count} ballots of voters who share a name in their round were numbered."
    return renamed.drop("block", "m"), (note,)


def _fill_left_out(frame: pl.DataFrame, file: Path) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A row without mass for each candidate that a ballot leaves out, and rounds in order."""
    rounds = frame.select(*_ROUND, "candidate").unique(maintain_order=True)
    short = frame.with_columns(
        pl.col("candidate").n_unique().over(_ROUND).alias("m"), pl.len().over(_BALLOT).alias("has")
    ).filter(pl.col("has") < pl.col("m"))
    if short.height == 0:
        return frame, ()
    refuse(
        short,
        pl.col("protocol").is_in(["ranked", "rich"]),
        file,
        lambda row: f"{_whose(row)} has {row['has']} of {row['m']} candidates",
    )
    ballots = short.unique(_BALLOT, keep="first", maintain_order=True)
    empty = ballots.with_columns(
        pl.when(pl.col("mass").is_not_null()).then(pl.lit(0, pl.Int64)).alias("mass"),
        pl.lit(None, pl.String).alias("label"),
        pl.lit(None, pl.Int64).alias("position"),
    )
    added = empty.drop("candidate", "m", "has").join(
        rounds, on=_ROUND, how="inner", maintain_order="left_right"
    )
    added = added.join(short, on=[*_BALLOT, "candidate"], how="anti", maintain_order="left")
    place = pl.col("row").min()
    filled = pl.concat([frame, added.select(frame.columns)]).sort(
        place.over(_TURN), place.over(_ROUND), place.over(_BALLOT), maintain_order=True
    )
    note = f"{file.name}: {ballots.height} ballots left candidates out; they have no mass there."
    return filled, (note,)


def _whose(row: Mapping[str, Any]) -> str:
    what = "ranking" if row["protocol"] == "ranked" else "rich ballot"
    return f"the {what} of {row['voter']!r}"


def _with_sums(frame: pl.DataFrame) -> pl.DataFrame:
    """Per ballot: `sum`, `missing` (rows without a mass), `has` (rows), `values` (different)."""
    return frame.with_columns(
        pl.col("mass").sum().over(_BALLOT).alias("sum"),
        pl.col("mass").is_null().sum().over(_BALLOT).alias("missing"),
        pl.len().over(_BALLOT).alias("has"),
        pl.col("mass").n_unique().over(_BALLOT).alias("values"),
        pl.col("ballot_status").n_unique().over(_BALLOT).alias("statuses"),
    )


def _most_frequent_sum(frame: pl.DataFrame) -> int:
    sums = (
        frame.with_columns(_points().sum().over(_BALLOT).alias("sum"))
        .filter(pl.col("sum") > 0)
        .group_by(_BALLOT, maintain_order=True)
        .agg(pl.col("sum").first())
        .group_by("sum", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    return int(sums["sum"][0]) if sums.height else CUMULATIVE_BUDGET


def _points() -> pl.Expr:
    """The points of cumulative and rich ballots; null elsewhere."""
    form = pl.col("protocol")
    return pl.when(form == "cumulative").then("mass").when(form == "rich").then("points")


def _abstains() -> pl.Expr:
    """Nothing stated, or nothing given where the protocol has to give something."""
    gives = pl.col("protocol").is_in(["simple", "cumulative"])
    nothing = (pl.col("missing") == pl.col("has")) | (gives & (pl.col("sum") == 0))
    return nothing | (pl.col("ballot_status") == "abstained").fill_null(False)


def _status() -> pl.Expr:
    stated = pl.col("ballot_status").fill_null("valid")
    return pl.when(_abstains()).then(pl.lit("abstained")).otherwise(stated).alias("ballot_status")


def _check_masses(frame: pl.DataFrame, file: Path, budget: int) -> None:
    mass, total = pl.col("mass"), pl.col("sum")
    refuse(
        frame,
        mass.is_null() & (pl.col("missing") < pl.col("has")),
        file,
        lambda row: f"voter {row['voter']!r} has a mass for some candidates and none for others",
    )
    refuse(
        frame,
        (pl.col("statuses") > 1) | ((pl.col("ballot_status") == "abstained") & (total > 0)),
        file,
        lambda row: f"the ballot_status of voter {row['voter']!r} contradicts its rows",
    )
    cast = frame.filter(~_abstains())
    is_a = {p: pl.col("protocol") == p for p in PROTOCOLS}
    refuse(
        cast,
        is_a["simple"] & ((total != 1) | (mass > 1)),
        file,
        lambda row: f"the simple ballot of {row['voter']!r} sums to {row['sum']}, not to one 1",
    )
    refuse(
        cast,
        is_a["approval"] & (mass > 1),
        file,
        lambda row: f"the approval of {row['voter']!r} has the mass {row['mass']}, not 0 or 1",
    )
    m = pl.col("has").cast(pl.Int64)
    hole = (pl.col("values") != m) | (mass.max().over(_BALLOT) != m - 1)
    refuse(
        cast,
        is_a["ranked"] & hole,
        file,
        lambda row: (
            f"the ranking of {row['voter']!r} has a hole: its masses are not "
            f"{row['has'] - 1} to 0, each once"
        ),
    )
    refuse(
        cast,
        is_a["cumulative"] & (total != budget),
        file,
        lambda row: f"the points of {row['voter']!r} sum to {row['sum']}, not to {budget}",
    )
