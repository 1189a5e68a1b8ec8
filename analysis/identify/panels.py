"""Possible winners of many panels at once, by table instead of by search.

Where the target counts simple votes, approvals or rankings, a panel is looked up in
`analysis.identify.halves`.
Points are too many for a table; `analysis.identify.points` adds them up.

`analysis.identify.possible` searches instead, takes any panel, and is what tests hold this to.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify.chunks import in_chunks
from analysis.identify.domains import Domain
from analysis.identify.halves import Ends, PanelTable
from analysis.identify.numbering import Entries, Numbers, distinct_rows
from analysis.identify.outcomes import MOST_CANDIDATES, tabled
from analysis.identify.points import ends_of_domains, ends_of_points, most_options
from analysis.rules import Target

__all__ = ["Winners", "added_up", "covered", "looked_up"]

Ints = NDArray[np.int64]

_WIDE: Final = 4_096
"""Combinations of options of one panel that are added up."""


class Winners(NamedTuple):
    """Possible outcomes of panels, as bits: bit 0 is nobody, bit c + 1 is candidate c."""

    fallback: NDArray[np.uint8]
    """Shape (panels, exempt + 1): with at most so many exempt voters, ties to the order."""
    tied: NDArray[np.uint8]
    """The same where a tie stays a tie."""

    @staticmethod
    def of(ends: Ends) -> "Winners":
        """Both bytes of ends, shape (exempt + 1, panels)."""
        fallback, tied = np.moveaxis(ends.view(np.uint8).reshape(*ends.shape, 2), 2, 0)
        return Winners(fallback.T, tied.T)


def covered(target: Target, m: int, n: int, *, budget: int, domains: Sequence[Domain]) -> bool:
    """Whether panels of n voters over m candidates are small enough."""
    if target != "cumulative":
        return n > 0 and tabled(target, m, n)
    if not (1 < m <= MOST_CANDIDATES and n > 0 and 2**n <= _WIDE):
        return False
    return bool((most_options(domains, m, budget) + 1) ** n <= _WIDE)


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
    return Winners.of(ends)


def added_up(
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
    ends = np.empty((exempt + 1, len(numbers)), dtype="<u2")
    if all(domain.kind == "exact" for domain in domains):
        points = np.array([*(domain.data for domain in domains), (0,) * m], dtype=np.int32)

        def add_up(part: slice) -> None:
            ends[:, part] = ends_of_points(points.T[:, numbers[part].T], budget, exempt)

        in_chunks(len(numbers), add_up)
    else:
        different = sorted(set(domains))
        place = {domain: i for i, domain in enumerate(different)}
        of_ballot = np.array([place[domain] for domain in domains] + [-1])
        rows, index = distinct_rows(np.sort(of_ballot[numbers], axis=1))
        ends[...] = ends_of_domains(rows, different, m=m, budget=budget, exempt=exempt)[:, index]
    return Winners.of(ends)
