"""A column of raw replies as ballots, read as the study's own ballots are."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Final, NamedTuple, cast

import polars as pl

from tutorsim.analysis.ballots.reading_options import Hints
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import CUMULATIVE_BUDGET, BallotFormat, Protocol
from tutorsim.voting import Choice, masses_of, read_ballot, repair_ballot, resolve

__all__ = ["RepliesRead", "read_replies"]

_APART: Final = re.compile(r"[,;|>]")
_LABELLED: Final = re.compile(r"([A-Za-z])\s*[=:]\s*(.+)")


class RepliesRead(NamedTuple):
    """One row for each reply and candidate."""

    frame: pl.DataFrame
    note: str


def read_replies(frame: pl.DataFrame, file: Path, *, protocol: str, hints: Hints) -> RepliesRead:
    """Read every reply; one that is no ballot is an abstention, and the note counts them.

    The lenient reader is used, since nobody can be asked again. A reply may name candidates by
    label or by name.

    Args:
        frame: One row a reply, in the column `reply`; candidates in the order of their labels in
            the column `candidates`, or in the hints.
        file: Named in errors.
        protocol: Of all replies.
        hints: Candidates and budget.

    Raises:
        BallotFileError: If nothing says what the labels stand for.
    """
    form = cast(BallotFormat, protocol)
    budget = hints.budget or CUMULATIVE_BUDGET
    rows: list[dict[str, object]] = []
    silent = 0
    for row in frame.iter_rows(named=True):
        labels = _labels(row.get("candidates"), file, hints)
        choice = _read(str(row["reply"] or ""), labels, form, budget)
        silent += choice is None
        named = None if choice is None else resolve(choice, labels)
        masses = masses_of(named, tuple(labels.values()), protocol=cast(Protocol, form))
        status = "valid" if choice is not None else "abstained"
        kept = {name: cell for name, cell in row.items() if name not in ("reply", "candidates")}
        for label, candidate in labels.items():
            cell = masses.get(candidate, 0) if masses else None
            cells = {"candidate": candidate, "label": label, "mass": cell}
            rows.append({**kept, **cells, "ballot_status": status, "protocol": protocol})
    points = f" of {budget} points" if protocol == "cumulative" else ""
    return RepliesRead(
        pl.DataFrame(rows, infer_schema_length=None),
        f"{frame.height} raw replies read leniently as {protocol} ballots{points}, "
        f"{silent} of them unreadable and so abstentions",
    )


def _labels(cell: object, file: Path, hints: Hints) -> dict[str, str]:
    """Label → candidate, as one reply's voter saw them."""
    names = [part.strip() for part in _APART.split(str(cell))] if cell else list(hints.candidates)
    if not names:
        raise BallotFileError(
            f"{file} has raw replies, and nothing says what their labels stand for.",
            why="There is no column candidates.",
            hint="Add --candidates ann,ben,cid for the labels A, B, C.",
        )
    found: dict[str, str] = {}
    for letter, name in zip(ascii_uppercase, names, strict=False):
        labelled = _LABELLED.fullmatch(name)
        if labelled:
            found[labelled[1].upper()] = labelled[2].strip()
        else:
            found[letter] = name
    return found


def _read(reply: str, labels: Mapping[str, str], form: BallotFormat, budget: int) -> Choice | None:
    """The ballot over labels; names of candidates count as their labels.

    A reply under simple voting that names a single candidate in a sentence is a vote for it.
    """
    by_name = {name.casefold(): label for label, name in labels.items()}
    longest = sorted(by_name, key=len, reverse=True)
    pattern = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest)
    said = re.sub(pattern, lambda m: by_name[m[0].casefold()], reply, flags=re.IGNORECASE)
    shown: Sequence[str] = tuple(labels)
    for text in dict.fromkeys((reply, said)):
        choice = read_ballot(text, shown, form=form, budget=budget, reading="lenient")
        if choice is not None:
            return choice
    named = {by_name[found.casefold()] for found in re.findall(pattern, reply, re.IGNORECASE)}
    if form == "simple" and len(named) == 1:
        return named.pop()
    return repair_ballot(said, shown, form=form, budget=budget)
