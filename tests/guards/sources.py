"""What the guards look at: runs built from canned replies, and files of drawn ballots."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import polars as pl

from tests.benchmarks.ballots import ballots_frame
from tests.reference.drawn import drawn_ballot
from tests.tutorsim.cli.conftest import (
    SEVERAL_FORMATS,
    ask_again,
    draw,
    usual_reply,
    write_branch,
    write_run,
)
from tutorsim.ballot_reading_and_decisions import decide
from tutorsim.vocabularies import PROTOCOLS

__all__ = [
    "REFUSED", "branched", "drawn", "generated", "parent_and_branch", "preflib", "retested", "rich",
    "several_formats", "three_lines", "two_panels",
]  # fmt: skip

NAMES: Final = ("ann", "bob", "cyd", "dan", "eve", "fay", "gil", "hal")
COLUMNS: Final = ("episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass")
Row = tuple[Any, ...]


def several_formats(folder):
    """A study with rich ballots: panel episodes asked for three more formats."""

    def reply(spec, call):
        if call.key.stage == "vote_as_rich":
            return "A=12,B=7|C=4,D=2" if draw(spec.episode_id, call.key) % 2 else "B=9,A=8|C=4,D=4"
        if not call.key.stage.startswith("vote_as_"):
            return usual_reply(spec, call)
        first = "AB"[draw(spec.episode_id, call.key) % 2]
        return first if call.key.stage == "vote_as_simple" else f"{first},C"

    return write_run(folder / "formats", study=SEVERAL_FORMATS, replies=reply).folder


def retested(folder):
    """A run of which every first vote was asked again."""
    return ask_again(write_run(folder / "retested"))


def branched(folder):
    """A branch that decides the simple votes of a run by ranked ballots."""
    return write_branch(folder, usual_reply).child.folder


def parent_and_branch(folder):
    """A run, and such a branch of it."""
    both = write_branch(folder, usual_reply)
    return both.parent.folder, both.child.folder


def two_panels(folder):
    """Two runs of one study: votes for A are votes for B in the other, and no score is full."""

    def others(spec, call):
        swapped = usual_reply(spec, call).translate(str.maketrans("AB", "BA"))
        return swapped.replace("SCORE: 1.0", "SCORE: 0.9")

    first, second = (
        write_run(folder / name, replies=replies).folder
        for name, replies in (("first", usual_reply), ("second", others))
    )
    return first, second


def generated(folder, turns):
    """Ballots of four voters over four candidates, a quarter of the turns per protocol."""
    file = folder / "generated.csv"
    ballots_frame(turns, seed=20).write_csv(file)
    return file


def drawn(folder, m, n, turns, protocols=PROTOCOLS):
    """Ballots of n voters over m candidates, with abstentions, first votes and tie rounds."""
    random = Random(f"{m} {n}")
    rows = [
        row
        for turn in range(turns)
        for row in _turn(random, f"e{turn:03}", protocols[turn % len(protocols)], m, n)
    ]
    file = folder / f"drawn-{m}x{n}.csv"
    pl.DataFrame(rows, schema=COLUMNS, orient="row").write_csv(file)
    return file


def _turn(random, episode, protocol, m, n):
    voters, candidates = NAMES[:n], NAMES[:m]
    if random.random() < 0.8:
        yield from _round(random, episode, "vote_initial", protocol, voters, candidates)[1]
    final, rows = _round(random, episode, "vote_final", protocol, voters, candidates)
    yield from rows
    tied = decide(final, candidates, order=candidates).tied_in_vote
    if tied and random.random() < 0.8:
        yield from _round(random, episode, "tie_vote", protocol, voters, tied)[1]


def _round(random, episode, stage, protocol, voters, among):
    ballots = [drawn_ballot(random, protocol, among, blank=0.08, points=25) for _ in voters]
    rows = [
        (episode, 1, stage, protocol, voter, c, ballot.get(c))
        for voter, ballot in zip(voters, ballots, strict=True)
        for c in among
    ]
    return ballots, rows


def rich(folder):
    """Rich ballots of three voters over four candidates, counted as points."""
    random = Random("rich")
    rows: list[Row] = []
    for turn in range(12):
        for voter in NAMES[:3]:
            order = random.sample(NAMES[:4], 4)
            points = sorted((random.randint(0, 12) for _ in range(3)), reverse=True)
            points = [25 - sum(points[1:]), *points[1:], 0]
            points.sort(reverse=True)
            line = max((k for k in (1, 2, 3) if points[k - 1] > points[k]), default=4)
            rows += [
                (
                    f"e{turn:02}",
                    1,
                    "vote_final",
                    "rich",
                    voter,
                    c,
                    *points[i : i + 1] * 2,
                    i + 1,
                    i < line,
                )
                for i, c in enumerate(order)
            ]
    file = folder / "rich.csv"
    columns = (*COLUMNS, "points", "rank", "approved")
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(file)
    return file


def preflib(folder):
    """A file of strict orders as PrefLib writes it."""
    votes = ("3: 1,2,3", "2: 2,3,1", "2: 3,1,2")
    head = {
        "FILE NAME": "made.soc", "TITLE": "Made up", "DATA TYPE": "soc", "NUMBER ALTERNATIVES": 3,
        "NUMBER VOTERS": 7, "NUMBER UNIQUE ORDERS": 3, "ALTERNATIVE NAME 1": "first",
        "ALTERNATIVE NAME 2": "second", "ALTERNATIVE NAME 3": "third",
    }  # fmt: skip
    file = folder / "made.soc"
    lines = [*(f"# {name}: {value}" for name, value in head.items()), *votes]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def three_lines(folder):
    """The smallest file that can be read, one column a candidate."""
    file = folder / "mine.csv"
    file.write_text("voter,ann,ben,cid\nv1,1,0,0\nv2,0,1,0\nv3,1,0,0\n", encoding="utf-8")
    return file


def _csv(*rows, head: str = ",".join(COLUMNS)):
    return ("\n".join((head, *rows)) + "\n").encode()


def _cast(protocol, *masses, stage="vote_final", voter="v"):
    return [f"e,1,{stage},{protocol},{voter},{c},{x}" for c, x in zip("abcd", masses, strict=False)]


REFUSED: Final[Mapping[str, tuple[str, Callable[[], bytes]]]] = {
    "nothing in the file": ("mine.csv", lambda: b""),
    "a heading alone": ("mine.csv", _csv),
    "a column missing": ("mine.csv", lambda: _csv("e,1", head="episode_id,turn")),
    "a negative mass": ("mine.csv", lambda: _csv(*_cast("simple", 1, -1))),
    "a simple ballot of two": ("mine.csv", lambda: _csv(*_cast("simple", 1, 1))),
    "a simple ballot of mass two": ("mine.csv", lambda: _csv(*_cast("simple", 2, 0))),
    "an approval of two": ("mine.csv", lambda: _csv(*_cast("approval", 2, 0))),
    "a ranking with a tie": ("mine.csv", lambda: _csv(*_cast("ranked", 2, 2, 0))),
    "a ranking with a hole": ("mine.csv", lambda: _csv(*_cast("ranked", 3, 1, 0))),
    "points of another sum": (
        "mine.csv",
        lambda: _csv(
            *_cast("cumulative", 20, 5),
            *_cast("cumulative", 20, 4, voter="w"),
            *_cast("cumulative", 20, 5, voter="x"),
        ),
    ),
    "an unknown protocol": ("mine.csv", lambda: _csv(*_cast("plurality", 1, 0))),
    "an unknown stage": ("mine.csv", lambda: _csv(*_cast("simple", 1, 0, stage="runoff"))),
    "a mass of letters": ("mine.csv", lambda: _csv(*_cast("simple", "one", 0))),
    "half a mass": ("mine.csv", lambda: _csv(*_cast("simple", 0.5, 0.5))),
    "a blank voter": ("mine.csv", lambda: _csv(*_cast("simple", 1, 0, voter=" "))),
    "a voter twice": ("mine.csv", lambda: _csv(*_cast("simple", 1, 0), *_cast("simple", 0, 1))),
    "two protocols in a turn": (
        "mine.csv",
        lambda: _csv(*_cast("simple", 1, 0), *_cast("approval", 1, 1, voter="w")),
    ),
    "no final vote": ("mine.csv", lambda: _csv(*_cast("simple", 1, 0, stage="vote_initial"))),
    "a tie round without a tie": (
        "mine.csv",
        lambda: _csv(*_cast("simple", 1, 0), *_cast("simple", 1, 0, stage="tie_vote")),
    ),
    "candidates that differ": (
        "mine.csv",
        lambda: _csv(*_cast("simple", 1, 0), *_cast("simple", 1, 0, 0, voter="w")),
    ),
    "broken Parquet": ("mine.parquet", lambda: b"PAR1 and no more"),
    "broken JSON": ("mine.jsonl", lambda: b'{"episode_id": \n'),
    "bytes that are no text": ("mine.csv", lambda: b"\xff\xfe\x00\x01"),
    "PrefLib without alternatives": ("mine.soc", lambda: b"# DATA TYPE: soc\n1: 1,2\n"),
    "PrefLib with a stranger": (
        "mine.soc",
        lambda: (
            b"# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n1: 1,3\n"
        ),
    ),
    "a file of another kind": ("mine.txt", lambda: b"hello\n"),
}
"""What is wrong -> a file's name and bytes."""
