"""Ballots that leave candidates out: bounds over every completion, and points by convention."""

from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import polars as pl
import pytest

from tests.reference.completions import agreeing, possible_by_enumeration, tied_winners
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, ballot_format
from tutorsim.analysis.recount import recount
from tutorsim.analysis.runs.write_export_and_preflib_files import export

MOST = 800
"""Completions of a vote that are counted one by one."""


def shortened(random, m):
    """A ranking of some candidates, at least one."""
    order, named = random.sample(range(m), m), random.randint(1, m)
    return tuple(m - 1 - order.index(c) if c in order[:named] else LEFT_OUT for c in range(m))


TOP = 4
"""The end of the scale of scores, and points of a cumulative ballot."""


def scored(random, m):
    """Scores of some candidates, at least one."""
    left_out = random.choice((0.0, 0.0, 0.3))
    scores = [LEFT_OUT if random.random() < left_out else random.randint(0, TOP) for _ in range(m)]
    return tuple(scores) if max(scores) > LEFT_OUT else scored(random, m)


def drawn_votes(seed, votes, protocol="ranked"):
    """Votes of up to five voters over up to five candidates; somebody names each of them."""
    random, draw = Random(seed), {"ranked": shortened, "score": scored}[protocol]
    while votes:
        m, n = random.randint(2, 5), random.randint(1, 5)
        ballots = [draw(random, m) for _ in range(n)]
        if all(any(ballot[c] >= 0 for ballot in ballots) for c in range(m)):
            votes -= 1
            yield ballots


def as_scores(votes, file):
    lines = [
        ",".join([f"e{i:06}", str(voter), *("" if x < 0 else str(x) for x in ballot)])
        + "," * (5 - len(ballot))
        for i, ballots in enumerate(votes)
        for voter, ballot in enumerate(ballots)
    ]
    file.write_text("\n".join(["question,voter,a,b,c,d,e", *lines]))
    return file


def as_file(votes, file):
    names = "abcde"
    lines = []
    for i, ballots in enumerate(votes):
        for voter, ballot in enumerate(ballots):
            named = sorted(
                (c for c, mass in enumerate(ballot) if mass >= 0), key=lambda c: -ballot[c]
            )
            lines.append(f"e{i:06},{voter},{' > '.join(names[c] for c in named)}")
    file.write_text("\n".join(["question,voter,ranking", *lines]))
    return file


def enumerated(ballots, target, protocol, budget):
    """Every set of tied winners; `None` where completions are too many to count."""
    m = len(ballots[0])
    options = [agreeing(b, protocol, ballot_format(target), budget) for b in ballots]
    if prod(map(len, options)) > MOST:
        return None
    every = {tuple(sorted(cast)) for cast in product(*options)}
    return {tied_winners(target, cast, m) for cast in every}


def test_rankings_come_back_from_every_export_as_they_were(tmp_path):
    source = open_source(as_file(list(drawn_votes(1, 20)), tmp_path / "r.csv"))
    exported = export(source, tmp_path / "out")
    keys = ("episode_id", "voter", "candidate")
    again = open_source(tmp_path / "out" / "ballots.parquet")
    assert again.ballots.select(*keys, "mass").equals(source.ballots.select(*keys, "mass"))
    short = {file.stem.split(".")[0]: file for file in exported if file.suffix == ".soi"}
    assert len(short) > 5
    for episode, file in short.items():
        held = source.ballots.filter(pl.col("episode_id") == episode)
        masses = [g["mass"].to_list() for _, g in held.group_by("voter", maintain_order=True)]
        read = open_source(file).ballots.group_by("voter", maintain_order=True)
        assert sorted((g["mass"].to_list() for _, g in read), key=str) == sorted(masses, key=str)


@pytest.mark.parametrize("protocol", ["ranked", pytest.param("score", marks=pytest.mark.costly)])
@pytest.mark.parametrize(
    ("seed", "votes"),
    [(1, 30), *(pytest.param(s, 2_000, marks=pytest.mark.slow) for s in range(2, 12))],
)
def test_bounds_are_those_over_every_completion(tmp_path, seed, votes, protocol):
    drawn = list(drawn_votes(seed, votes, protocol))
    write = as_file if protocol == "ranked" else as_scores
    hints = Hints(budget=TOP, protocol=protocol, scale=(0, TOP))
    source = open_source(write(drawn, tmp_path / "r.csv"), hints=hints)
    source = replace(source, top=TOP)  # a ranking says nothing of the scale of scores
    order = tuple("abcde")[: max(len(ballots[0]) for ballots in drawn)]
    found = recount(source, targets=TARGETS, exempt=(0,), order=order).per_turn
    answers = {
        (episode, target, reading): tuple("abcde".find(name) for name in winners)
        for episode, target, reading, winners in found.filter("settled")
        .select("episode_id", "target", "reading", "possible_winners")
        .iter_rows()
    }
    counted = 0
    for i, ballots in enumerate(drawn):
        most = 1 if protocol == "ranked" else 0
        incomplete = any(ballot.count(LEFT_OUT) > most for ballot in ballots)
        for target in TARGETS:
            sets = enumerated(ballots, target, protocol, TOP)
            for reading in ("set", "fallback") if sets is not None else ():
                logged = target == protocol and not incomplete
                read = "fallback" if logged else reading  # the order decided what was logged
                expected = possible_by_enumeration(sets, read, len(ballots[0]))
                got = answers[f"e{i:06}", target, reading]
                assert got == expected, (ballots, target, reading)
                counted += 1
    assert counted > 2 * votes
