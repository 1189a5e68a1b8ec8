"""Every logged protocol under every target: identity, bounds, readings, tables."""

import os
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.recount import possible_winners, recount
from tutorsim.analysis.recount import possible_winners_of_every_protocol_by_rule as rule_answers
from tutorsim.analysis.recount.result_models import RecountResult
from tutorsim.errors import UsageError
from tutorsim.vocabularies import DEFAULT_ROLES, PROTOCOLS

S, M, V, C = DEFAULT_ROLES


def random_choice(random, protocol, among):
    """A ballot over candidates; one in ten abstains."""
    if random.random() < 0.1:
        return None
    if protocol == "simple":
        return random.choice(among)
    if protocol == "ranked":
        return tuple(random.sample(among, len(among)))
    if protocol == "approval":
        return tuple(c for c in among if random.random() < 0.5)
    cuts = [random.choice(among) for _ in range(25)]
    return {c: cuts.count(c) for c in among}


def random_turn(random, protocol, turn):
    """A turn with first votes, and a tie round wherever the final vote was tied."""

    def cast(among):
        return {role: random_choice(random, protocol, among) for role in DEFAULT_ROLES}

    final, initial = cast(DEFAULT_ROLES), cast(DEFAULT_ROLES)
    plain = panel_turn(protocol, final, initial=initial, turn=turn)
    tied = plain.decision.tied_in_vote
    if not tied:
        return plain
    return panel_turn(protocol, final, initial=initial, tie=cast(tied), turn=turn)


def random_source(seed, each, protocols=PROTOCOLS):
    """`random_source(seed, episodes per protocol)`: two turns in each episode."""
    random = Random(seed)
    episodes = [
        panel_episode(
            *(random_turn(random, protocol, turn) for turn in (1, 2)),
            task=f"t{i}",
            scores=(0.1, 0.2, 0.3),
        )
        for protocol in protocols
        for i in range(each)
    ]
    return panel_source(*episodes)


def rule_row(result, logged, target, **wanted):
    wanted = {"reading": "fallback", "exempt": 0} | wanted
    [row] = [
        r
        for r in result.rules
        if (r.logged_protocol, r.target) == (logged, target)
        and all(getattr(r, k) == v for k, v in wanted.items())
    ]
    return row


def logged_decisions(source):
    return {(e.episode_id, t.turn): t.decision for e in source.episodes for t in e.turns}


@pytest.mark.costly
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_turn_under_its_own_rule_and_order_is_as_logged(protocol):
    source = random_source(1, 40, (protocol,))
    decisions = logged_decisions(source)
    result = recount(source, targets=[protocol], exempt=[0])
    assert result.per_turn.height == 2 * len(decisions)
    for row in result.per_turn.iter_rows(named=True):
        decision = decisions[row["episode_id"], row["turn"]]
        assert row["logged_winner"] == decision.winner
        assert row["possible_winners"] == [decision.winner]
        assert row["necessary_winner"] == row["point_winner"] == decision.winner
        assert tuple(row["tied_set"]) == decision.tied_set
    row = rule_row(result, protocol, protocol)
    assert row.agreement.lower == row.agreement.upper == row.turns == row.identified


def test_the_per_turn_table_has_one_row_per_question_in_the_ballots_order():
    source = random_source(2, 2)
    frame = recount(source, targets=["ranked", "condorcet"], exempt=[1, 0, 1]).per_turn
    assert dict(frame.schema) == dict(rule_answers.PER_TURN_SCHEMA)
    keys = ["episode_id", "turn", "target", "exempt", "reading"]
    assert frame.height == 16 * 2 * 2 * 2 == frame.select(keys).n_unique()
    turns = frame.select("episode_id", "turn").unique(maintain_order=True)
    assert turns.rows() == list(logged_decisions(source))


def test_turns_that_voted_alike_keep_their_own_places():
    alike, other = dict.fromkeys(DEFAULT_ROLES, V), dict.fromkeys(DEFAULT_ROLES, M)
    turns = [panel_turn("simple", votes, turn=i) for i, votes in ((1, alike), (2, other))]
    episodes = [panel_episode(*turns, task=task, scores=(0.1, 0.2, 0.3)) for task in ("t1", "t2")]
    frame = recount(panel_source(*episodes), targets=["simple"], exempt=[0]).per_turn
    kept = frame.filter(reading="set").select("episode_id", "turn", "necessary_winner").rows()
    assert kept == [
        ("sciq.t1.novice.simple", 1, V),
        ("sciq.t1.novice.simple", 2, M),
        ("sciq.t2.novice.simple", 1, V),
        ("sciq.t2.novice.simple", 2, M),
    ]


@pytest.mark.costly
def test_bounds_hold_the_point_and_add_up():
    result = recount(random_source(3, 3), exempt=[0, 1])
    assert len(result.rules) == 4 * len(TARGETS) * 2 * 2
    for row in result.rules:
        intervals = [*row.wins.values(), row.agreement]
        assert all(i.lower <= i.point <= i.upper <= row.turns for i in intervals)  # type: ignore[operator]
        assert sum(i.lower for i in row.wins.values()) == row.identified
        points = sum(i.point or 0 for i in row.wins.values())
        without = row.turns - row.point_ties
        assert without - row.point_impossible <= points <= without
        assert sum(row.widths.values()) == row.turns - row.not_settled
        assert sum(width * n for width, n in row.widths.items()) == sum(
            i.upper for i in row.wins.values()
        )
        assert sum(row.breakdown.values()) == row.turns
        assert row.flips.lower <= row.flips.upper <= row.flip_turns == row.turns
        if row.reading == "fallback":
            assert row.flips.lower <= row.flips.point <= row.flips.upper  # type: ignore[operator]
            assert row.point_ties == 0


@pytest.mark.costly
def test_the_point_winner_is_always_a_possible_one():
    frame = recount(random_source(4, 6), exempt=[0]).per_turn
    outside = frame.filter(
        pl.col("point_winner").is_not_null()
        & ~pl.col("possible_winners").list.contains(pl.col("point_winner"))
    )
    assert outside.height == 0


def test_a_tie_under_the_target_alone_stays_a_set_or_goes_to_the_order():
    # Points: m 26, s 25, v 25, c 24. Largest on each ballot: s, s, m, m: tied under simple.
    turn = panel_turn(
        "cumulative",
        {S: {S: 13, M: 0, V: 12, C: 0}, M: {S: 12, M: 1, V: 6, C: 6}, V: {S: 0, M: 13, V: 6, C: 6},
         C: {S: 0, M: 12, V: 2, C: 11}},
    )  # fmt: skip
    frame = recount(panel_source(panel_episode(turn)), targets=["simple"], exempt=[0]).per_turn
    by_reading = {row["reading"]: row for row in frame.iter_rows(named=True)}
    stays, goes = by_reading["set"], by_reading["fallback"]
    assert stays["logged_winner"] == goes["logged_winner"] == M
    assert stays["tied_set"] == goes["tied_set"] == [S, M]
    values = (stays["possible_winners"], stays["necessary_winner"], stays["point_winner"])
    assert values == ([S, M], None, None)
    assert (goes["possible_winners"], goes["necessary_winner"], goes["point_winner"]) == ([S], S, S)


def test_without_a_condorcet_winner_the_outcome_is_none():
    # s > m > v, m > v > s, v > s > m, c last: a cycle; the fourth voter abstains.
    cycle = {S: (S, M, V, C), M: (M, V, S, C), V: (V, S, M, C), C: None}
    source = panel_source(panel_episode(panel_turn("ranked", cycle)))
    result = recount(source, targets=["condorcet"], exempt=[0])
    row = result.per_turn.row(0, named=True)
    assert row["possible_winners"] == ["none"]
    assert row["necessary_winner"] == row["point_winner"] == "none"
    assert rule_row(result, "ranked", "condorcet").wins["none"].lower == 1


def test_another_order_changes_only_what_the_order_decides():
    tied = panel_turn("simple", {S: S, M: M, V: S, C: M}, tie={S: S, M: M, V: S, C: M})
    clear = panel_turn("simple", dict.fromkeys(DEFAULT_ROLES, V), turn=2)
    source = panel_source(panel_episode(tied, clear, scores=(0.1, 0.2, 0.3)))
    result = recount(source, targets=["simple"], exempt=[0], order=[M, S])
    assert result.fallback_order == (M, S, V, C)
    rows = result.per_turn.filter(pl.col("reading") == "fallback").rows(named=True)
    assert [(r["logged_winner"], r["necessary_winner"]) for r in rows] == [(S, M), (V, V)]
    assert rule_row(result, "simple", "simple").agreement.upper == 1


@pytest.mark.parametrize("target", ["copeland", "condorcet"])
def test_unsettled_turns_are_marked_and_counted_as_open(monkeypatch, target):
    monkeypatch.setattr(rule_answers, "table_ends", lambda *_, **__: {})  # everything is searched
    source = random_source(6, 3)
    result = recount(source, targets=[target], exempt=[0], limit=1)
    row = rule_row(result, "simple", target)
    assert row.not_settled > 0
    unsettled = result.per_turn.filter(~pl.col("settled"))
    assert unsettled["possible_winners"].null_count() == unsettled.height > 0
    assert unsettled["necessary_winner"].null_count() == unsettled.height
    exact = rule_row(recount(source, targets=[target], exempt=[0]), "simple", target)
    for name, interval in row.wins.items():
        assert interval.lower <= exact.wins[name].lower
        assert interval.upper >= exact.wins[name].upper
    monkeypatch.setitem(recount.__kwdefaults__, "limit", 1)
    assert any("copeland" not in rules for rules in possible_winners(source).values())


def test_the_json_form_reads_back_and_says_what_is_held_fixed():
    result = recount(random_source(7, 2), targets=["simple", "schulze"], exempt=[0, 1])
    data = result.model_dump(mode="json")
    assert data["schema_version"] == 2
    assert "per_turn" not in data
    tables = [
        row
        for name in ("orders", "policies", "electorates", "readings", "rules")
        for row in data[name]
    ]
    assert len(tables) > 50
    assert all("before its vote is held fixed" in row["caption"] for row in tables)
    assert "before its vote is held fixed" in data["caption"]
    again = RecountResult.model_validate(data)
    assert again.rules == result.rules


@pytest.mark.costly
def test_the_same_source_gives_the_same_bytes():
    first, second = (recount(random_source(8, 2), targets=TARGETS[:5]) for _ in range(2))
    assert first.model_dump_json() == second.model_dump_json()
    assert first.per_turn.equals(second.per_turn)


def test_no_ballots_give_empty_tables():
    result = recount(panel_source())
    assert result.turns == 0
    assert (result.rules, result.per_turn.height) == ((), 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"targets": ["plurality"]}, "'plurality' is not a rule"),
        ({"exempt": [-1]}, "-1 voters cannot be exempt"),
        ({"order": ["a", "a"]}, "cannot be used"),
        ({"order": [S, S]}, "cannot be used"),
    ],
)
def test_what_cannot_be_recounted_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        recount(random_source(9, 1), **settings)


def test_a_candidate_may_not_be_called_as_nobody_is(tmp_path):
    file = tmp_path / "ballots.csv"
    file.write_text(
        "episode_id,turn,stage,voter,candidate,mass,protocol\n"
        "e,1,final,v,none,1,simple\ne,1,final,v,some,0,simple\n"
    )
    source = open_source(file)
    with pytest.raises(UsageError, match="A candidate is called 'none'"):
        recount(source)
    assert recount(source, targets=["simple", "ranked"]).turns == 1


@pytest.mark.skipif("TUTORSIM_PUBLISHED_DATA" not in os.environ, reason="no published data")
def test_real_ballots_from_elsewhere_are_recounted():
    folder = Path(os.environ["TUTORSIM_PUBLISHED_DATA"])
    hints = Hints(namesakes=True)
    result = recount(open_source(folder / "mallm_ballots.csv", hints=hints), exempt=[0])
    assert result.turns == 2880
    assert all(row.not_settled == 0 for row in result.rules)
    assert rule_row(result, "approval", "simple", reading="set").identified == 0


def test_the_rules_alone_are_those_of_the_whole_recount():
    source = random_source(11, 2)
    asked: dict[str, Any] = {"targets": ("ranked", "copeland"), "exempt": (0, 1)}
    rules, kept = (recount(source, **asked, tables=(table,)).rules for table in ("rules", "kept"))
    assert rules == recount(source, **asked).rules
    assert [row.wins for row in kept] == [row.wins for row in rules]
