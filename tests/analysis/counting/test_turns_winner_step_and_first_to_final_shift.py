"""Turns at once say what turns one by one say: the plain definitions are the oracles."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import isnan
from random import Random
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.cases import Case, decided
from tests.reference.drawn import drawn_ballot
from tests.reference.turns import DecidedTurn, decided_turns, read_turns, vote_shift
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import turn_table
from tutorsim.analysis.systems.panel.self_support_labels_pivotality_margins import (
    effective_votes,
    pivotality,
)
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    chance_baselines,
)
from tutorsim.ballot_reading_and_decisions import leaders, tally
from tutorsim.vocabularies import DECIDED_BY, PROTOCOLS

NAMES = ("ann", "bob", "cid", "dee", "eve")


def a_round(random, protocol, among, voters):
    cast = {v: drawn_ballot(random, protocol, among, blank=0.15, points=5) for v in voters}
    return {voter: ballot or dict.fromkeys(among) for voter, ballot in cast.items()}


def rows_of(random, episode, turn):
    """One turn: two or three stages, now and then with other candidates or voters before."""
    protocol = PROTOCOLS[episode % 4]
    among = tuple(random.sample(NAMES, random.choice([2, 3, 3])))
    voters = tuple(random.sample(NAMES, random.choice([2, 3, 3])))
    stages = {}
    if random.random() < 0.8:
        earlier = tuple(random.sample(NAMES, 2)) if random.random() < 0.2 else among
        stages["vote_initial"] = a_round(random, protocol, earlier, voters)
    final = stages["vote_final"] = a_round(random, protocol, among, voters)
    led = leaders(tally([{c: n for c, n in b.items() if n} for b in final.values()], among))
    if len(led) > 1 and random.random() < 0.7:
        again = voters if random.random() < 0.7 else (*voters[1:], "fay")
        stages["tie_vote"] = a_round(random, protocol, led, again)
    for stage, ballots in stages.items():
        for voter, masses in ballots.items():
            for candidate, mass in masses.items():
                yield f"e{episode}", turn, stage, voter, candidate, mass, protocol


COLUMNS = ("episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol")


def source_of(seed, *, shuffled, order):
    random = Random(seed)
    rows = [row for e in range(8) for t in range(1, 3) for row in rows_of(random, e, t)]
    if shuffled:
        random.shuffle(rows)
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row").with_columns(
        pl.lit(None, pl.String).alias(name) for name in ("benchmark", "task", "persona")
    )
    ballots = frame.with_columns(condition=pl.lit(None, pl.String))
    return Source("made", ballots, order, 5, None, ())


sources = st.builds(
    source_of,
    st.integers(0, 10_000),
    shuffled=st.booleans(),
    order=st.sampled_from([None, NAMES, NAMES[::-1]]),
)


def stages_of(votes, stage):
    keys = votes.turns.rows()
    return {
        keys[rounds.turn[i]]: (
            tuple(votes.order[c] for c in rounds.candidates[i]),
            {
                votes.voters[voter]: tuple(rounds.masses[i, j]) if rounds.cast[i, j] else None
                for j, voter in enumerate(rounds.voters[i])
            },
        )
        for rounds in getattr(votes, stage)
        for i in range(len(rounds.turn))
    }


@settings(max_examples=15, deadline=None)
@given(sources)
def test_rounds_hold_the_ballots_that_turns_hold(source):
    votes = read_votes(source.ballots, fallback_order=source.fallback_order)
    turns = read_turns(source.ballots, fallback_order=source.fallback_order)
    assert votes.order == turns.order
    assert votes.turns.rows() == [tuple(key) for key in turns.final]
    for stage in ("initial", "final", "tie"):
        assert stages_of(votes, stage) == {
            tuple(key): (cast.candidates, dict(zip(cast.voters, cast.profile.ballots, strict=True)))
            for key, cast in getattr(turns, stage).items()
        }


@settings(max_examples=15, deadline=None)
@given(sources)
def test_every_turn_is_decided_as_it_is_alone(source):
    table, alone = turn_table(source), decided_turns(source)
    assert len(table.winner) == len(alone)
    for i, turn in enumerate(alone):
        leader = table.order[table.leader[i]] if table.voted[i] else None
        assert (
            table.order[table.winner[i]],
            DECIDED_BY[table.decided_by[i]],
            bool(table.tied[i]),
            leader,
        ) == (
            turn.decision.winner,
            turn.decision.decided_by,
            bool(turn.decision.tied_set),
            turn.initial_leader,
        )
        if turn.initial is not None:
            assert table.outside[i] == (turn.decision.winner not in (turn.initial_leaders or ()))
            shift = vote_shift(turn.initial, turn.final)
            if shift is None:
                assert isnan(table.shift[i])
            else:
                assert table.shift[i] == float(shift)


def test_turns_before_a_branch_keep_the_logged_order():
    """From turn 2 on the branch decides by another order; its ties go to the other end."""
    logged, changed = NAMES, NAMES[::-1]
    study = SimpleNamespace(branch=SimpleNamespace(fallback_order=changed), fallback_order=logged)
    episodes = [
        SimpleNamespace(episode_id=f"e{i}", branch=SimpleNamespace(turn=2)) for i in range(8)
    ]
    winners: dict[tuple[str, ...], list[str]] = {}
    for seed in range(12):
        source = source_of(seed, shuffled=False, order=changed)
        run = SimpleNamespace(panel=study, branch=study.branch)
        branch = replace(source, run=run, episodes=tuple(episodes))  # type: ignore[arg-type]
        table, alone = turn_table(branch), decided_turns(branch)
        found = [table.order[place] for place in table.winner]
        assert found == [turn.decision.winner for turn in alone]
        assert [table.order[p] if p >= 0 else None for p in table.leader] == [
            turn.initial_leader for turn in alone
        ]
        for turn in alone:
            winners.setdefault(turn.order, []).append(turn.decision.decided_by)
    values = {order: by.count("fallback") > 3 for order, by in winners.items()}
    assert values == {logged: True, changed: True}


@pytest.mark.costly
@settings(max_examples=10, deadline=None)
@given(sources)
def test_a_voter_is_dropped_as_from_the_plain_ballots(source):
    counts: Counter[tuple[str, str, str]] = Counter()
    for turn in decided_turns(source):
        if not source.ordered and len(turn.decision.undecided) > 1:
            continue  # nobody won
        cast = zip(turn.final.voters, turn.final.profile.ballots, strict=True)
        for voter in (v for v, ballot in cast if ballot is not None):
            outcome = decided(
                Case(turn.final, turn.initial, turn.tie),
                order=turn.order,
                change=lambda ballots, voter=voter: [b for b in ballots if b[0] != voter],  # type: ignore[misc]
            )
            winner, at = turn.decision.winner, (turn.key.protocol, voter)
            counts[*at, "turns"] += 1
            tied = not source.ordered and len(outcome.standing) > 1
            counts[*at, "pivotal"] += tied or outcome.winner != winner
            counts[*at, "pivotal_set"] += winner not in outcome.standing
    for row in pivotality(source).iter_rows(named=True):
        for name in ("turns", "pivotal", "pivotal_set"):
            assert row[name] == counts.pop((row["protocol"], row["voter"], name), 0)
    assert not counts


def shares(turn, stage):
    cast = getattr(turn, stage)
    totals = tally(cast.cast(), cast.candidates)
    mass = sum(totals.values())
    return {c: Fraction(n, mass) for c, n in totals.items()} if mass else {}


@pytest.mark.costly
@settings(max_examples=6, deadline=None)
@given(sources)
def test_chance_is_the_mean_over_all_pairs_of_turns(source):
    for row in chance_baselines(source):
        turns = [t for t in decided_turns(source) if t.key.protocol == row.protocol and t.initial]
        if len(turns) < 2:
            continue
        groups: dict[Any, list[DecidedTurn]] = {}
        for turn in turns:
            assert turn.initial is not None
            groups.setdefault((turn.initial.candidates, turn.final.candidates), []).append(turn)
        flips, gaps, weight = Fraction(0), Fraction(0), 0
        for alike in groups.values():
            pairs = [(a, b) for a in alike for b in alike]
            apart = sum(a.initial_leader != b.decision.winner for a, b in pairs)
            flips += Fraction(apart, len(alike))
            known = [
                (p, q)
                for a, b in pairs
                if (p := shares(a, "initial")) and (q := shares(b, "final"))
            ]
            if known:
                total = sum(
                    sum(abs(p.get(c, 0) - q.get(c, 0)) for c in NAMES) / 2 for p, q in known
                )
                gaps += Fraction(total) / len(known) * len(alike)
                weight += len(alike)
        if source.ordered:  # else no first leader is told where several lead
            assert row.flip_expected == pytest.approx(float(flips / len(turns)))
        if weight:
            assert row.shift_expected == pytest.approx(float(gaps / weight))


def test_a_table_without_rows_has_no_turns():
    source = source_of(1, shuffled=False, order=NAMES)
    empty = Source("empty", source.ballots.clear(), NAMES, 5, None, ())
    table = turn_table(empty)
    assert (len(table.winner), table.panels, table.order) == (0, (), NAMES)
    assert effective_votes(empty) == chance_baselines(empty) == []


def test_the_work_on_a_table_grows_with_its_sizes_and_not_with_its_turns(monkeypatch):
    """Arrays made for twice the turns are as many."""
    from tutorsim.analysis.counting import turns_winner_step_and_first_to_final_shift as module

    made: list[int] = []
    decide_turns = module.decide_turns
    monkeypatch.setattr(module, "decide_turns", lambda *args: made.append(1) or decide_turns(*args))
    parts = [source_of(seed, shuffled=False, order=NAMES).ballots for seed in range(6)]
    renamed = [
        part.with_columns(episode_id=pl.format("{}-{}", pl.lit(i), "episode_id"))
        for i, part in enumerate(parts)
    ]
    counts = []
    for some in (renamed[:3], renamed):
        made.clear()
        source = Source("grown", pl.concat(some), NAMES, 5, None, ())
        turn_table(source)
        pivotality(source)
        chance_baselines(source)
        counts.append(len(made))
    assert counts[0] == counts[1] > 0
