"""PrefLib files as ballots: `.soc`, `.soi`, `.toc`, `.toi` and `.cat`.

A file is one profile and becomes one episode with one turn, named after the file. An order
that stands for several voters becomes that many. The ending of the file says how its orders are
read, and no order's reading depends on another's place in the file:

* files whose orders are all strict: `ranked` ballots, those of `.soi` and `.toi` with candidates
  left out, who stand below those named in an order that is not known;
* `.toc`, `.toi` with ties: weak orders. None of the four protocols asks for one, but points
  carry it: twice the Borda points with ties averaged, which sum to m(m-1) for every weak order.
  They are read as `cumulative` ballots with that budget, so the sets of a recount are those of
  the weak orders, and the winner under `cumulative` is the Borda winner with ties averaged.
  Candidates that an order leaves out are tied behind those that it names, PrefLib's own
  convention. The output says so;
* `.cat` with one or two categories: `approval` ballots. Categories called yes and no, or likewise,
  say which one approves; otherwise the first one does, and the output says so.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.wide_rows_list_cells_raw_replies import Rows
from tutorsim.errors import BallotFileError
from tutorsim.regular_files_and_digests import read_named
from tutorsim.vocabularies import Protocol

PREFLIB_SUFFIXES: Final = (".soc", ".soi", ".toc", ".toi", ".cat")
_COMPLETE: Final = (".soc", ".toc")
_STRICT: Final = (".soc", ".soi")
_LARGEST: Final = 20_000_000
"""Rows, voters times candidates, that one file may expand to."""

Groups = tuple[tuple[int, ...], ...]
"""A weak order: groups of equals, best first."""


@dataclass
class _Head:
    """What the comment lines state."""

    names: dict[int, str] = field(default_factory=dict)
    category_names: dict[int, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Numbers of alternatives, voters, categories and unique orders."""
    provenance: tuple[str, ...] = ()


def read_preflib(file: Path) -> Rows:
    """Read one PrefLib file; its budget is what points sum to that stand for weak orders.

    Raises `BallotFileError` with file, line and reason, where a line is no order of the kind that
    the file's ending promises, or where the counts in its head do not hold.
    """
    head, orders = _parse(file)
    named = {a for order, _, _ in orders for group in order for a in group}
    candidates = sorted(head.names) or [*range(1, head.counts.get("alternatives", 0) + 1)]
    candidates = candidates or sorted(named)
    _check(orders, candidates, head, file)
    assumed: tuple[str, ...] = ()
    protocol: Protocol = "approval"
    if file.suffix.lower() == ".cat":
        second, assumed = _second_approves(head, file)
        if second:
            orders = [((*(o[1:2] or [()]), *o[:1]), times, line) for o, times, line in orders]
    elif all(len(group) == 1 for order, _, _ in orders for group in order):
        protocol = "ranked"
    else:
        protocol, assumed = "cumulative", (_WEAK,)
    names, m = [head.names.get(a, str(a)) for a in candidates], len(candidates)
    if not m:
        raise _bad(file, None, "it names no alternative")
    if len(set(names)) < m:
        raise _bad(file, None, "two alternatives have one name")
    masses = [
        mass
        for order, times, _ in orders
        for mass in [_masses(order, candidates, protocol)] * times
    ]
    stated = {"episode_id": file.stem, "turn": 1, "stage": "vote_final", "ballot_status": "valid"}
    frame = pl.DataFrame(
        {
            "voter": [str(i) for i in range(1, len(masses) + 1) for _ in range(m)],
            "candidate": names * len(masses),
            "mass": [mass for ballot in masses for mass in ballot],
        },
        schema_overrides={"mass": pl.Int64},
    ).with_columns(pl.lit(protocol).alias("protocol"), **{n: pl.lit(v) for n, v in stated.items()})
    return Rows(
        frame.with_row_index("row", 1),
        file,
        assumed,
        shape="PrefLib",
        provenance=head.provenance,
        budget=m * (m - 1) if FORMATS[protocol].budget else None,
    )


_WEAK: Final = (
    "weak orders, as points: twice the Borda points with ties averaged, those left out tied last"
)
_YES: Final = frozenset({"yes", "approved", "approve", "approves", "ja", "oui", "for", "in", "1"})
_NO: Final = frozenset(
    {"no", "not approved", "disapproved", "disapprove", "reject", "rejected", "nein", "non"}
    | {"against", "out", "0"}
)


def _second_approves(head: _Head, file: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether the second category approves, and not the first, and what was assumed of it."""
    names = [head.category_names.get(i, "") for i in (1, 2)]
    said = [" ".join(name.casefold().split()) for name in names]
    if said[0] in _NO and said[1] not in _NO:
        return True, ()
    if said[0] in _YES and said[1] not in _YES:
        return False, ()
    if said[0] in _NO or (said[0] in _YES and said[1] in _YES):
        raise _bad(file, None, f"the categories {names[0]!r} and {names[1]!r} do not tell apart")
    called = f", “{names[0]}”," if names[0] else ""
    return False, (f"the first category{called} approves",)


def preflib_text(
    kind: str,
    file_name: str,
    title: str,
    names: Sequence[str],
    orders: Sequence[Groups],
    *,
    provenance: str = "",
) -> str:
    """A PrefLib file of strict orders (`soc`, or `soi` if some are not whole) or approvals (`cat`).

    `kind`: `soc`, `soi`, or `cat` with the approved in the first group and the others in the
    second. `orders`: one per voter; equal ones are counted together, the most frequent first.
    """
    counted = sorted(Counter(orders).items(), key=lambda item: (-item[1], item[0]))
    head = {
        "FILE NAME": file_name,
        "TITLE": _one_line(title),
        "DESCRIPTION": f"{_ANSWERED}{_one_line(provenance)}" if provenance else "",
        "DATA TYPE": kind,
        "MODIFICATION TYPE": "original",
        "RELATES TO": "",
        "RELATED FILES": "",
        "PUBLICATION DATE": "",
        "MODIFICATION DATE": "",
        "NUMBER ALTERNATIVES": len(names),
        "NUMBER VOTERS": len(orders),
        f"NUMBER UNIQUE {'PREFERENCES' if kind == 'cat' else 'ORDERS'}": len(counted),
    }
    if kind == "cat":
        head |= {
            "NUMBER CATEGORIES": 2,
            "CATEGORY NAME 1": "Approved",
            "CATEGORY NAME 2": "Not approved",
        }
    head |= {f"ALTERNATIVE NAME {i}": _one_line(name) for i, name in enumerate(names, start=1)}
    lines = [f"# {key}: {value}" for key, value in head.items()]
    lines += [f"{times}: {_written(order, kind)}" for order, times in counted]
    return "\n".join(lines) + "\n"


_ANSWERED: Final = "Answered by "
"""Begins the description of files that `tutorsim export` writes."""


def _one_line(text: str) -> str:
    return " ".join(text.split()) or "-"


def _written(order: Groups, kind: str) -> str:
    if kind != "cat":
        return ",".join(str(a) for group in order for a in group)
    return ",".join("{" + ",".join(map(str, group)) + "}" for group in order)


def _parse(file: Path) -> tuple[_Head, list[tuple[Groups, int, int]]]:
    """The head, and each order with its multiplicity and line number."""
    try:
        lines = read_named(file).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(file, None, str(error)) from error
    head = _Head()
    orders: list[tuple[Groups, int, int]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith("#"):
            _read_head(text, head)
        elif text:
            orders.append((*_read_order(text, file, number), number))
    if not orders:
        raise _bad(file, None, "it holds no orders")
    return head, orders


def _read_head(line: str, head: _Head) -> None:
    key, _, value = line.removeprefix("#").strip().partition(":")
    value = value.strip()
    numbered = re.fullmatch(r"(ALTERNATIVE|CATEGORY) NAME (\d+)", key)
    count = re.fullmatch(r"NUMBER (ALTERNATIVES|VOTERS|CATEGORIES|UNIQUE)\b.*", key)
    if numbered:
        of = head.names if numbered[1] == "ALTERNATIVE" else head.category_names
        of[int(numbered[2])] = value or numbered[2]
    elif count and value.isdecimal():
        head.counts[count[1].lower()] = int(value)
    elif key == "DESCRIPTION" and value.startswith(_ANSWERED):
        head.provenance = (value.removeprefix(_ANSWERED),)


def _read_order(text: str, file: Path, line: int) -> tuple[Groups, int]:
    times, colon, order = re.sub(r"\s", "", text).partition(":")
    group = r"\d+|\{(?:\d+(?:,\d+)*)?\}"
    if not colon or not times.isdecimal() or not re.fullmatch(rf"(?:(?:{group})(?:,|$))*", order):
        raise _bad(file, line, f"{text[:60]!r} is no order with its number of voters")
    if int(times) == 0:
        raise _bad(file, line, "an order of nobody")
    groups = re.findall(group, order)
    return tuple(tuple(int(a) for a in re.findall(r"\d+", g)) for g in groups), int(times)


def _check(
    orders: Sequence[tuple[Groups, int, int]], candidates: Sequence[int], head: _Head, file: Path
) -> None:
    """Refuse orders of another kind than the ending promises, or that the head counts otherwise."""
    for order, _, line in orders:
        for fault in _faults(order, candidates, head, file.suffix.lower()):
            raise _bad(file, line, fault)
    voters, m = sum(times for _, times, _ in orders), len(candidates)
    unique = len({tuple(frozenset(group) for group in order) for order, _, _ in orders})
    counts = {
        "voters": (voters, f"voters, the orders {voters}"),
        "alternatives": (m, f"alternatives, and {m} are named"),
        "unique": (unique, f"unique orders, and there are {unique}"),
    }
    for name, (found, rest) in counts.items():
        if head.counts.get(name, found) != found:
            raise _bad(file, None, f"the head counts {head.counts[name]} {rest}")
    if voters * m > _LARGEST:
        raise _bad(file, None, f"{voters} voters are more than can be recounted ballot by ballot")


def _faults(order: Groups, candidates: Sequence[int], head: _Head, suffix: str) -> Iterator[str]:
    """What is wrong with one order."""
    named = [a for group in order for a in group]
    yield from (f"two entries for alternative {a}" for a, n in Counter(named).items() if n > 1)
    unknown = sorted(set(named) - set(candidates))
    yield from (f"alternative {a} is not in the head" for a in unknown)
    if suffix in _COMPLETE and len(named) < len(candidates):
        yield f"the ranking has {len(named)} of {len(candidates)} candidates"
    if suffix in _STRICT and any(len(group) > 1 for group in order):
        yield "a tie in a file of strict orders"
    if suffix == ".cat" and len(order) > 2:
        yield "an approval has two categories, this one more"
    if suffix == ".cat" and (len(order) > 1 or head.counts.get("categories") == 2):
        stray = (head.names.get(a, str(a)) for a in candidates if a not in named)
        yield from (f"alternative {name!r} is in no category" for name in stray)


def _masses(order: Groups, candidates: Sequence[int], protocol: Protocol) -> list[int | None]:
    """Mass of each candidate, in the candidates' order; none if a ranking leaves it out.

    A weak order has those that it leaves out as its last group.
    """
    mass: dict[int, int] = {}
    behind = len(candidates)
    for place, group in enumerate(order):
        behind -= len(group)
        borda = 2 * behind + len(group) - 1  # twice the points, ties averaged
        given = {"approval": int(place == 0), "ranked": borda // 2}.get(protocol, borda)
        mass |= dict.fromkeys(group, given)
    absent = {"approval": 0, "ranked": None}.get(protocol, behind - 1)
    return [mass.get(candidate, absent) for candidate in candidates]


def _bad(file: Path, line: int | None, reason: str) -> BallotFileError:
    place = f", line {line}" if line else ""
    return BallotFileError(
        f"{file}{place}: {reason}.",
        why="The file does not hold what a PrefLib file with its ending holds.",
        hint="Correct the line, or give the file the ending of what it holds.",
    )
