"""Rows of small whole numbers: which of them are equal."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["count_rows", "distinct_rows", "encode_rows", "set_columns"]

Ints = npt.NDArray[np.int64]

_FEW: Final = 1 << 20
"""Codes up to which each has a place in a table of counts."""
_LARGEST: Final = 1 << 62
"""Codes stay below."""
_TOGETHER: Final = 30
"""Members of a set that one number holds."""


def encode_rows(columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> tuple[Ints, int]:
    """A code for each row, equal for equal rows, and how many codes there may be.

    Args:
        columns: One or more, shape (rows,) each, of whole numbers or truths from -1 on.
    """
    code, codes = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        base = int(column.max(initial=0)) + 2
        if codes * base > _LARGEST:
            values, code = np.unique(code, return_inverse=True)
            codes = len(values)
        code = code * base
        code += column
        code += 1
        codes *= base
    return code, codes


def distinct_rows(columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """The first place of each different row, and the number of each row among the different ones.

    Different rows are numbered as their first columns rise.
    """
    code, codes = encode_rows(columns)
    if codes > max(_FEW, 4 * len(code)):
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return first, number
    first = np.full(codes, -1, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    present = first >= 0
    number = np.cumsum(present) - 1
    return first[present], number[code]


def count_rows(columns: Sequence[npt.NDArray[Any]]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each different row with how often it occurs, in rising order."""
    first, number = distinct_rows(columns)
    counts = np.bincount(number, minlength=len(first))
    cells = [column[first].tolist() for column in columns]
    yield from zip(zip(*cells, strict=True), counts.tolist(), strict=True)


def set_columns(members: npt.NDArray[np.bool_]) -> list[Ints]:
    """Sets as whole numbers: columns that are equal for equal sets.

    Args:
        members: Shape (rows, members).
    """
    parts = [members[:, i : i + _TOGETHER] for i in range(0, members.shape[1], _TOGETHER)]
    return [part @ (1 << np.arange(part.shape[1])) for part in parts]
