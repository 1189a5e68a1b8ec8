"""Numbers of ballots as people write them, and the protocol that they fit."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

__all__ = ["Guess", "as_numbers", "guess_protocol", "whole_points"]

_WORDS: Final = {
    **dict.fromkeys(("x", "yes", "y", "true", "ja", "oui", "si", "✓", "✔"), 1.0),
    **dict.fromkeys(("no", "n", "false", "nein", "non", "-", "–"), 0.0),
}
_NOTHING: Final = [
    word
    for said in ("n/a", "na", "nan", "null", "none", "abstain")
    for word in (said, said.upper())
] + ["None", "NaN", "Abstain", "N/a"]
"""Cells in place of a number that say that there is none."""
_DIGITS: Final = 4
"""Digits behind the point that points may have."""


class Guess(NamedTuple):
    """What the numbers of all ballots fit."""

    protocol: str
    because: str
    ranks: bool = False
    """Whether the numbers go from 1 to the number of candidates: ranks, or points from 1."""


def as_numbers(column: pl.Series) -> pl.Series | None:
    """A column's numbers, with decimal commas, percent signs, yes and no; `None` if a cell is none.

    A comma before three digits may part thousands, and is no decimal comma.
    """
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64).fill_nan(None)
    text = column.cast(pl.String).str.strip_chars().replace("", None)
    text = text.replace(_NOTHING, [None] * len(_NOTHING))
    if text.null_count() == len(text):
        return None
    digits = text.str.replace(r"\s*%$", "").str.replace(r"^(-?\d+),(\d{1,2}|\d{4,})$", "$1.$2")
    number = digits.cast(pl.Float64, strict=False)
    words = text.str.to_lowercase().replace_strict(_WORDS, default=None, return_dtype=pl.Float64)
    found = number.fill_null(words)
    return found if found.null_count() == text.null_count() and not found.is_nan().any() else None


def guess_protocol(frame: pl.DataFrame, ballot: Sequence[str]) -> Guess | None:
    """The protocol of ballots that name none; `None` where none fits all of them.

    Args:
        frame: One row per ballot and candidate, with a number as `mass`.
        ballot: Columns that name a ballot.
    """
    mass = pl.col("mass")
    each = (
        frame.group_by(*ballot)
        .agg(
            sum=mass.sum(),
            least=mass.min(),
            most=mass.max(),
            different=mass.drop_nulls().n_unique(),
            m=pl.len(),
            whole=(mass == mass.floor()).all(),
            given=mass.is_not_null().sum(),
        )
        .filter((pl.col("given") > 0) & (pl.col("most") != 0))
    )
    if not each.height or bool((each["least"] < 0).any()):
        return None
    binary = (each["most"] <= 1) & each["whole"]
    if binary.all():
        single = bool((each["sum"] == 1).all())
        return Guess(*_BINARY[single])
    order = (each["different"] == each["given"]) & each["whole"]
    if (order & (each["least"] == 1) & (each["most"] == each["given"])).all():
        return Guess("ranked", "every ballot has each of 1, 2, … once", True)
    if (
        order
        & (each["given"] == each["m"])
        & (each["least"] == 0)
        & (each["most"] == each["m"] - 1)
    ).all():
        return Guess("ranked", "every ballot has each of 0, 1, … once (the highest the best)")
    if each["sum"].round(_DIGITS).n_unique() == 1:
        total = round(float(each["sum"][0]), _DIGITS)
        return Guess("cumulative", f"every ballot sums to {total:g}")
    return None


_BINARY: Final = {
    True: ("simple", "every ballot has a single 1"),
    False: ("approval", "every cell is 0 or 1"),
}


def whole_points(numbers: pl.Series) -> int | None:
    """The power of ten that makes all points whole numbers; `None` where none up to 10^4 does."""
    for digits in range(_DIGITS + 1):
        scaled = numbers * 10**digits
        if bool(((scaled - scaled.round()).abs() < 1e-9).all()):
            return int(10**digits)
    return None
