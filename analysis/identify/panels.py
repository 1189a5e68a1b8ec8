"""Possible winners of many panels at once, by table instead of by search.

Where the target counts simple votes, approvals or rankings, a panel is looked up in
`analysis.identify.halves`.

Points are too many for a table. There the few options of `analysis.identify.domains` are
added up in every combination, and the least number of exempt voters that lets a candidate win
is kept.

`analysis.identify.possible` searches instead, takes any panel, and is what tests hold this to.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify.chunks import in_chunks
from analysis.identify.domains import Domain, cumulative_options, single_minded
from analysis.identify.halves import PanelTable
from analysis.identify.numbering import Entries, Numbers
from analysis.identify.outcomes import MOST_CANDIDATES, tabled
from analysis.rules import Target

__all__ = ["Winners", "by_points", "covered", "looked_up"]

Ints = NDArray[np.int64]

_WIDE: Final = 4_096
"""Combinations of options of one panel that are added up."""
_LARGEST: Final = 1 << 62
"""Codes of rows are below."""
_ROWS: Final = 1 << 14
"""Panels whose points are added up at a time."""


class Winners(NamedTuple):
    """Possible outcomes of panels, as bits: bit 0 is nobody, bit c + 1 is candidate c."""

    fallback: NDArray[np.uint8]
    """Shape (panels, exempt + 1): with at most so many exempt voters, ties to the order."""
    tied: NDArray[np.uint8]
    """The same where a tie stays a tie."""


def covered(target: Target, m: int, n: int, *, budget: int, domains: Sequence[Domain]) -> bool:
    """Whether panels of n voters over m candidates are small enough."""
    if target != "cumulative":
        return n > 0 and tabled(target, m, n)
    if not (1 < m <= MOST_CANDIDATES and n > 0 and 2**n <= _WIDE):
        return False
    most = max((len(_options(d, c, m, budget)) for d in domains for c in range(m)), default=1)
    return bool((most + 1) ** n <= _WIDE)


def looked_up(
    table: PanelTable, panels: int, entries: Callable[[slice], Entries], *, exempt: int
) -> Winners:
    """The possible outcomes of each panel.

    Args:
        table: Of the target.
        panels: How many there are.
        entries: Those of some of the panels.
        exempt: Most exempt voters to answer for.
    """
    exempt = min(exempt, table.voters)
    ends = np.empty((exempt + 1, panels), dtype="<u2")

    def look_up(part: slice) -> None:
        ends[:, part] = table.ends(entries(part), exempt)

    in_chunks(panels, look_up)
    fallback, tied = np.moveaxis(ends.view(np.uint8).reshape(exempt + 1, panels, 2), 2, 0)
    return Winners(fallback.T, tied.T)


def _options(domain: Domain, c: int, m: int, budget: int) -> NDArray[np.int32]:
    return cumulative_options(domain, c, m, budget).rows


def by_points(
    numbers: Numbers, domains: Sequence[Domain], *, m: int, budget: int, exempt: int
) -> Winners:
    """The possible outcomes of each panel under `cumulative`.

    Args:
        numbers: Of ballots.
        domains: Those of the ballots; equal ones play the same part.
        m: Number of candidates.
        budget: Points of a ballot.
        exempt: Most exempt voters to answer for.
    """
    exempt = min(exempt, numbers.shape[1])
    different = list(dict.fromkeys(domains))
    place = {domain: i for i, domain in enumerate(different)}
    of_ballot = np.array([place[domain] for domain in domains] + [-1])
    rows, index = _distinct(np.sort(of_ballot[numbers], axis=1))
    fallback, tied = np.zeros((2, len(rows), exempt + 1), dtype=np.uint8)
    for c in range(m):
        options = [_options(d, c, m, budget) for d in different]
        all_in = _options(single_minded(c, m, budget), c, m, budget)[0]
        behind = np.array([int(d < c) for d in range(m) if d != c])
        for bits, need in ((fallback, behind), (tied, 0 * behind)):
            least = _least_exempt(rows, options, all_in, need, exempt)
            reached = least[:, None] <= np.arange(exempt + 1)
            bits[reached] |= np.uint8(2 << c)
    return Winners(fallback[index], tied[index])


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    """The different rows, and where each row is among them."""
    base = int(rows.max(initial=0)) + 2
    code, codes = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if codes * base > _LARGEST:
            found, code = np.unique(code, return_inverse=True)
            codes = len(found)
        code = code * base + column + 1
        codes *= base
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    return rows[first], index


def _least_exempt(
    rows: Ints,
    options: Sequence[NDArray[np.int32]],
    all_in: NDArray[np.int32],
    need: NDArray[np.int64],
    exempt: int,
) -> NDArray[np.int64]:
    """With how many exempt voters some choice of options reaches the need; more than n: never."""
    least = np.full(len(rows), rows.shape[1] + 1)
    sizes = np.array([*(len(one) for one in options), 1])
    tables = [
        np.array([*(one[choice % len(one)] for one in options), 0 * all_in], dtype=np.int32).T
        for choice in range(int(sizes.max()))
    ]  # options repeat; -1, the last, adds nothing
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        freed = np.repeat(all_in[:, None], len(rows[part]), axis=1)
        cells = [
            [freed, *(table[:, column] for table in tables[: int(sizes[column].max())])]
            for column in rows[part].T
        ]
        _walk(cells, 0 * freed, need.astype(np.int32)[:, None], 0, exempt, least[part])
    return least


def _walk(
    cells: Sequence[Sequence[NDArray[np.int32]]],
    sums: NDArray[np.int32],
    need: NDArray[np.int32],
    freed: int,
    exempt: int,
    least: NDArray[np.int64],
) -> None:
    """Add up every combination of choices; lower `least` in the rows that reach the need."""
    if not cells:
        reached = (sums >= need).all(axis=0)
        least[reached & (least > freed)] = freed
        return
    if freed < exempt:
        _walk(cells[1:], sums + cells[0][0], need, freed + 1, exempt, least)
    for choice in cells[0][1:]:
        _walk(cells[1:], sums + choice, need, freed, exempt, least)
