"""Drawn turns of three voters who are the candidates, with tie rounds, as a ballots table."""

import polars as pl

from tutorsim.ballot_reading_and_decisions import decide
from tutorsim.vocabularies import PROTOCOLS

__all__ = ["drawn_ballot", "drawn_turns"]

NAMES = ("ann", "bob", "cyd")
Row = tuple[object, ...]


def drawn_turns(random, turns):
    """So many turns of the four protocols, a tie round in most of those that are tied."""
    rows: list[Row] = []
    for turn in range(turns):
        place = (f"e{turn:03}", 1)
        protocol = PROTOCOLS[turn % 4]
        if random.random() < 0.7:
            rows += _rows(place, "vote_initial", protocol, _ballots(random, protocol, NAMES))
        final = _ballots(random, protocol, NAMES)
        rows += _rows(place, "vote_final", protocol, final)
        tied = decide(final, NAMES, order=NAMES).tied_in_vote
        if tied and random.random() < 0.7:
            rows += _rows(place, "tie_vote", protocol, _ballots(random, protocol, tied), tied)
    names = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _rows(place, stage, protocol, ballots, among=NAMES):
    return [
        (*place, stage, protocol, voter, c, ballot.get(c))
        for voter, ballot in zip(NAMES, ballots, strict=True)
        for c in among
    ]


def _ballots(random, protocol, among):
    return [drawn_ballot(random, protocol, among) for _ in NAMES]


def drawn_ballot(random, protocol, among, *, blank=0.1, points=6):
    """A ballot: a candidate for simple voting, points for cumulative; `blank` of them are empty."""
    if random.random() < blank:
        return {}
    if protocol == "ranked":
        return dict(zip(random.sample(among, len(among)), range(len(among)), strict=True))
    if protocol == "approval":
        return {c: random.randint(0, 1) for c in among}
    cast = random.choices(among, k=1 if protocol == "simple" else points)
    return {c: cast.count(c) for c in among}
