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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from tutorsim.analysis.ballots.properties_of_ballot_formats import FORMATS
from tutorsim.analysis.runs.run_tables import BALLOTS_SCHEMA
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


class PrefLibRead(NamedTuple):
    """The ballots of one file."""

    ballots: pl.DataFrame
    """`analysis.runs.run_tables.BALLOTS_SCHEMA`."""
    budget: int | None
    """What its points sum to; `None` without points."""
    assumed: tuple[str, ...]
    """How weak orders and categories were read, a few words each."""
    provenance: tuple[str, ...] = ()
    """What its head says answered the calls, where `tutorsim export` wrote it."""


@dataclass
class _Head:
    """What the comment lines state."""

    names: dict[int, str] = field(default_factory=dict)
    alternatives: int | None = None
    voters: int | None = None
    categories: int | None = None
    unique_orders: int | None = None
    category_names: dict[int, str] = field(default_factory=dict)
    provenance: str | None = None


def read_preflib(file: Path) -> PrefLibRead:
    """Read one PrefLib file.

    Raises `BallotFileError` with file, line and reason, where a line is no order of the kind that
    the file's ending promises, or where the counts in its head do not hold.
    """
    head, orders = _parse(file)
    candidates = _candidates(head, orders)
    suffix = file.suffix.lower()
    checked = _checked(orders, candidates, head, file)
    approving, assumed = _approving(head, file) if suffix == ".cat" else (0, ())
    turned = [(order, times) for order, times, _ in (_turned(one, approving) for one in checked)]
    protocol = _protocol([order for order, _ in turned], suffix)
    weak = FORMATS[protocol].budget
    if weak:
        turned = [(_completed(order, candidates), times) for order, times in turned]
    names = [head.names.get(a, str(a)) for a in candidates]
    if len(set(names)) < len(names):
        raise _bad(file, None, "two alternatives have one name")
    m = len(candidates)
    voters = [
        mass for order, times in turned for mass in [_masses(order, candidates, protocol)] * times
    ]
    return PrefLibRead(
        _frame(voters, names, protocol, file.stem),
        m * (m - 1) if weak else None,
        (*assumed, *[_WEAK] * weak),
        () if head.provenance is None else (head.provenance,),
    )


_WEAK: Final = (
    "weak orders, as points: twice the Borda points with ties averaged, those left out tied last"
)
_YES: Final = frozenset({"yes", "approved", "approve", "approves", "ja", "oui", "for", "in", "1"})
_NO: Final = frozenset(
    {"no", "not approved", "disapproved", "disapprove", "reject", "rejected", "nein", "non"}
    | {"against", "out", "0"}
)


def _approving(head: _Head, file: Path) -> tuple[int, tuple[str, ...]]:
    """Which category approves, counted from 0, and what was assumed of it."""
    names = [head.category_names.get(i, "") for i in (1, 2)]
    said = [" ".join(name.casefold().split()) for name in names]
    if said[0] in _NO and said[1] not in _NO:
        return 1, ()
    if said[0] in _YES and said[1] not in _YES:
        return 0, ()
    if said[0] in _NO or (said[0] in _YES and said[1] in _YES):
        raise _bad(file, None, f"the categories {names[0]!r} and {names[1]!r} do not tell apart")
    called = f", “{names[0]}”," if names[0] else ""
    return 0, (f"the first category{called} approves",)


def _turned(order: tuple[Groups, int, int], approving: int) -> tuple[Groups, int, int]:
    """A line's categories with the approving one first."""
    groups, times, line = order
    if not approving:
        return order
    groups = (groups[1] if len(groups) > 1 else (), *groups[:1])
    return groups, times, line


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
    lines = [
        f"# {key}: {value}".rstrip() if value != "" else f"# {key}: " for key, value in head.items()
    ]
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
        name = "unique_orders" if count[1] == "UNIQUE" else count[1].lower()
        setattr(head, name, int(value))
    elif key == "DESCRIPTION" and value.startswith(_ANSWERED):
        head.provenance = value.removeprefix(_ANSWERED)


def _read_order(text: str, file: Path, line: int) -> tuple[Groups, int]:
    times, colon, order = re.sub(r"\s", "", text).partition(":")
    group = r"\d+|\{(?:\d+(?:,\d+)*)?\}"
    if not colon or not times.isdecimal() or not re.fullmatch(rf"(?:(?:{group})(?:,|$))*", order):
        raise _bad(file, line, f"{text[:60]!r} is no order with its number of voters")
    if int(times) == 0:
        raise _bad(file, line, "an order of nobody")
    groups = re.findall(group, order)
    return tuple(tuple(int(a) for a in re.findall(r"\d+", g)) for g in groups), int(times)


def _candidates(head: _Head, orders: Sequence[tuple[Groups, int, int]]) -> list[int]:
    """Those named in the head, or as many as it counts, or those that the orders name."""
    if head.names:
        return sorted(head.names)
    if head.alternatives:
        return list(range(1, head.alternatives + 1))
    return sorted({a for order, _, _ in orders for group in order for a in group})


def _checked(
    orders: list[tuple[Groups, int, int]], candidates: Sequence[int], head: _Head, file: Path
) -> list[tuple[Groups, int, int]]:
    """The orders, each of the kind that the ending promises and the head counts."""
    suffix = file.suffix.lower()
    for order, _, line in orders:
        named = [a for group in order for a in group]
        twice = [a for a, times in Counter(named).items() if times > 1]
        unknown = sorted(set(named) - set(candidates))
        if twice:
            raise _bad(file, line, f"two entries for alternative {twice[0]}")
        if unknown:
            raise _bad(file, line, f"alternative {unknown[0]} is not in the head")
        if suffix in _COMPLETE and len(named) < len(candidates):
            raise _bad(file, line, f"the ranking has {len(named)} of {len(candidates)} candidates")
        if suffix in _STRICT and any(len(group) > 1 for group in order):
            raise _bad(file, line, "a tie in a file of strict orders")
        if suffix == ".cat" and len(order) > 2:
            raise _bad(file, line, "an approval has two categories, this one more")
        stray = [a for a in candidates if a not in named]
        if suffix == ".cat" and (len(order) > 1 or head.categories == 2) and stray:
            name = head.names.get(stray[0], str(stray[0]))
            raise _bad(file, line, f"alternative {name!r} is in no category")
    voters = sum(times for _, times, _ in orders)
    if head.voters not in (None, voters):
        raise _bad(file, None, f"the head counts {head.voters} voters, the orders {voters}")
    if head.alternatives not in (None, len(candidates)):
        raise _bad(
            file,
            None,
            f"the head counts {head.alternatives} alternatives, and {len(candidates)} are named",
        )
    unique = len({tuple(frozenset(group) for group in order) for order, _, _ in orders})
    if head.unique_orders not in (None, unique):
        raise _bad(
            file,
            None,
            f"the head counts {head.unique_orders} unique orders, and there are {unique}",
        )
    if voters * len(candidates) > _LARGEST:
        raise _bad(file, None, f"{voters} voters are more than can be recounted ballot by ballot")
    return orders


def _completed(order: Groups, candidates: Sequence[int]) -> Groups:
    """The order with those that it leaves out as one last group; categories keep their place."""
    named = {a for group in order for a in group}
    rest = tuple(a for a in candidates if a not in named)
    return (*order, rest) if rest else order


def _protocol(orders: Sequence[Groups], suffix: str) -> Protocol:
    if suffix == ".cat":
        return "approval"
    strict = all(len(group) == 1 for order in orders for group in order)
    return "ranked" if strict else "cumulative"


def _masses(order: Groups, candidates: Sequence[int], protocol: Protocol) -> list[int | None]:
    """Mass of each candidate, in the candidates' order; none if a ranking leaves it out."""
    mass: dict[int, int] = {}
    behind = len(candidates)
    for place, group in enumerate(order):
        behind -= len(group)
        borda = 2 * behind + len(group) - 1
        for candidate in group:
            mass[candidate] = _mass_of(protocol, place, borda)
    absent = None if FORMATS[protocol].left_out else 0
    return [mass.get(candidate, absent) for candidate in candidates]


def _mass_of(protocol: Protocol, place: int, twice_borda: int) -> int:
    by_protocol: Mapping[Protocol, int] = {
        "simple": int(place == 0),
        "approval": int(place == 0),
        "ranked": twice_borda // 2,
        "cumulative": twice_borda,
    }
    return by_protocol[protocol]


def _frame(
    voters: Sequence[Sequence[int | None]], names: Sequence[str], protocol: Protocol, stem: str
) -> pl.DataFrame:
    n, m = len(voters), len(names)
    stated = {
        "run_id": pl.lit(stem),
        "episode_id": pl.lit(stem),
        "turn": pl.lit(1, pl.Int64),
        "stage": pl.lit("vote_final"),
        "ballot_status": pl.lit("valid"),
        "protocol": pl.lit(protocol),
    }
    frame = pl.DataFrame(
        {
            "voter": [str(i) for i in range(1, n + 1) for _ in range(m)],
            "candidate": list(names) * n,
            "mass": [mass for voter in voters for mass in voter],
        },
        schema_overrides={"mass": pl.Int64},
    )
    return frame.select(
        pl.col(name) if name in frame.columns else stated.get(name, pl.lit(None, dtype)).alias(name)
        for name, dtype in BALLOTS_SCHEMA.items()
    )


def _bad(file: Path, line: int | None, reason: str) -> BallotFileError:
    place = f", line {line}" if line else ""
    return BallotFileError(
        f"{file}{place}: {reason}.",
        why="The file does not hold what a PrefLib file with its ending holds.",
        hint="Correct the line, or give the file the ending of what it holds.",
    )
