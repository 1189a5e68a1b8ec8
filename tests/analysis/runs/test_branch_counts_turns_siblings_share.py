"""A branch read alone, worked out by hand.

Task a is covered. Turn 2 of task b is the first that the alternative decides, and misconception
wins it instead of scaffolding: its two continuations share turns 1 and 2.
"""

from dataclasses import replace
from functools import partial

import polars as pl
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, run_record
from tests.reference.turns import decided_turns
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.success_under_other_score_thresholds import at_threshold
from tutorsim.analysis.runs import branch_counts_turns_siblings_share as branches
from tutorsim.analysis.runs.exported_tables import TABLES
from tutorsim.analysis.statistics.intervals_and_tests import Estimate
from tutorsim.analysis.systems.panel.first_divergent_turns_and_success_bounds import (
    diverge,
    under_order,
)
from tutorsim.analysis.systems.panel.student_outcomes import (
    gains,
    outcome_of,
    repeats_of,
    rounds,
    scores_by_turn,
    success_rates,
    successes,
)
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    diagnostics,
    winning_roles,
)
from tutorsim.records import Branch, BranchPoint, Turn

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
S, MI, MO, ME = ROLES
ALL = dict.fromkeys


def continued(episode, number, *, turn, left, **more):
    point = BranchPoint(
        parent_episode=episode.episode_id, turn=turn, continuation=number, left=left
    )
    name = f"{episode.episode_id}.c{number:02d}"
    return episode.model_copy(update={"episode_id": name, "branch": point, **more})


def branch_of(*covered, continuations=2, **changes):
    return Branch(
        parent="first", parent_study="a" * 64, parent_recording="b" * 64,
        continuations=continuations, covered=covered, **changes or {"rule": "ranked"},
    )  # fmt: skip


@pytest.fixture
def child():
    """a succeeds at once; of b's draws, one succeeds after three turns and one never does."""

    def end(episode, scores):
        return episode.model_copy(update={"success": scores[-1] >= 0.75})

    one = panel_turn("simple", ALL(ROLES, S))
    two = panel_turn("ranked", ALL(ROLES, (MI, S, MO, ME)), turn=2)
    two = two.model_copy(update={"ballots_initial": one.ballots_initial})
    new = [panel_turn("ranked", ALL(ROLES, order), turn=3) for order in (ROLES, ROLES[::-1])]
    kept = panel_episode(one, task="a", scores=(0.1, 0.8))
    draws = []
    for number, (third, last) in enumerate(zip(new, (0.9, 0.5), strict=True), start=1):
        scores = (0.1, 0.2, 0.3, last)
        b = panel_episode(one, two, third, task="b", condition="simple", scores=scores)
        draws.append(continued(end(b, scores), number, turn=2, left=2))
    return panel_source(kept, *draws, branch=branch_of(kept.episode_id))


def test_continuations_of_an_episode_belong_together(child):
    a, one, two = child.episodes
    assert branches.origin_of(a) == a.episode_id
    assert branches.origin_of(one) == branches.origin_of(two) == "sciq.b.novice.simple"
    assert branches.by_origin(child.episodes) == [[a], [one, two]]


def test_turns_are_shared_up_to_the_one_where_the_path_was_left(child):
    _, one, two = child.episodes
    values = branches.shared_turns(child.episodes)
    assert values == {(two.episode_id, 1): one.episode_id, (two.episode_id, 2): one.episode_id}
    kept = branches.without_shared_turns(child.episodes)
    assert [[t.turn for t in e.turns] for e in kept] == [[1], [1, 2, 3], [3]]


def test_a_turn_that_came_out_the_same_after_the_path_was_left_is_a_draw_of_its_own():
    turns = [panel_turn("simple", ALL(ROLES, S), turn=n) for n in (1, 2)]
    episode = panel_episode(*turns, scores=(0.1, 0.1, 0.1))
    draws = [continued(episode, n, turn=1, left=1) for n in (1, 2)]
    assert set(branches.shared_turns(draws)) == {(draws[1].episode_id, 1)}
    stayed = [continued(episode, n, turn=1, left=None) for n in (1, 2)]
    assert len(branches.shared_turns(stayed)) == 2


def test_a_failed_continuation_shares_nothing():
    episode = panel_episode(panel_turn("simple", ALL(ROLES, S)))
    failed = continued(episode, 1, turn=1, left=None, status="failed")
    draws = [failed, *(continued(episode, n, turn=1, left=None) for n in (2, 3))]
    assert branches.shared_turns(draws) == {(draws[2].episode_id, 1): draws[1].episode_id}


def test_a_run_of_its_own_is_left_as_it_is():
    turn = panel_turn("simple", ALL(ROLES, S))
    episodes = (panel_episode(turn, task="a"), panel_episode(turn, task="b"))
    assert branches.shared_turns(episodes) == {}
    assert branches.without_shared_turns(episodes) == episodes


def test_a_shared_vote_is_counted_once(child):
    # simple: turn 1 of a and of b. ranked: turn 2 of b, and turn 3 of each draw.
    wins = {(row["protocol"], row["role"]): row["wins"] for row in _rows(winning_roles(child))}
    values = {key: n for key, n in wins.items() if n}
    assert values == {("simple", S): 2, ("ranked", S): 1, ("ranked", MI): 1, ("ranked", ME): 1}
    found = recount(child, targets=("simple",), exempt=(0,))
    assert found.turns == 5
    values = {row.protocol: row.turns for row in found.readings if row.reading == "standard"}
    assert values == {None: 5, "simple": 2, "ranked": 3}


def test_a_vote_under_another_rule_has_no_shift_and_no_flip(child):
    first = {(t.key.episode_id[-3:], t.key.turn): t.initial for t in decided_turns(child)}
    # Turn 2 of b: first vote simple, decided as ranked.
    assert first["c01", 2] is None
    assert first["c01", 1] is not None
    assert first["c02", 3] is not None
    ranked = next(row for row in diagnostics(child) if row.protocol == "ranked")
    assert ranked.turns == 3
    assert ranked.flip.n == 2
    assert (ranked.shift.value, ranked.shift.n) == (0.0, 2)


def test_outcomes_count_an_episode_once_by_the_mean_of_its_draws(child):
    # a succeeds, b in one of two draws: (1 + 1/2)/2.
    [rate] = success_rates(child)
    assert (rate.episodes, rate.rate.value, rate.rate.n) == (2, 0.75, 2)
    [persona] = successes(child)
    assert (persona.successes, persona.rate.value, persona.rate.n) == (1.5, 0.75, 2)
    # Gains: a 0.7; b (0.8 + 0.4)/2. Turns: a 1, b 3.
    [gain] = gains(child)
    assert isinstance(gain.gain, Estimate)
    assert gain.n == 2
    assert gain.gain.value == pytest.approx(0.65)
    [turns] = rounds(child)
    assert (turns.episodes, turns.fired, turns.mean.value) == (2, 2, 2.0)
    success = partial(outcome_of, outcome="success")
    pairs = repeats_of(child.episodes, success)
    assert pairs == {("sciq", "a", "novice"): [1.0], ("sciq", "b", "novice"): [0.5]}


def test_thresholds_and_score_curves_count_it_once_too(child):
    [row] = at_threshold(child, 0.4)
    # 0.8, 0.9 and 0.5 all reach 0.4: two episodes, both exact.
    assert (row["episodes"], row["exact"], row["success"].low) == (2, 2, 1.0)
    [row] = at_threshold(child, 0.75)
    assert row["success"].low == 0.75
    curve = scores_by_turn(child)
    # After turn 3: a stays at 0.8, b (0.9 + 0.5)/2.
    last = curve.filter(turn=3).to_dicts()[0]
    assert (last["mean"], last["n"], last["running"]) == (pytest.approx(0.75), 2, 1)


def test_a_run_of_its_own_counts_every_episode():
    turn = panel_turn("simple", ALL(ROLES, S))
    repeats = [panel_episode(turn, repeat=n, scores=(0.0, n / 2)) for n in (1, 2)]
    [rate] = success_rates(panel_source(*repeats))
    assert (rate.episodes, rate.rate.n) == (2, 2)  # type: ignore[union-attr]
    assert successes(panel_source(*repeats))[0].successes == 1


def test_an_episode_diverges_by_every_turn_on_its_path(child):
    holder = child.episodes[1].episode_id
    held = (pl.col("episode_id") == holder) & (pl.col("turn") == 1)
    winners = pl.when(held).then([MO]).otherwise("winners").alias("winners")
    alternatives = under_order(child, ROLES).with_columns(winners)
    found = diverge(child, alternatives, question="?")
    rows = {row["episode_id"][-3:]: row for row in found.episodes.to_dicts()}
    # Turn 1 is held by the first draw and lies on the path of both.
    assert [(rows[c]["turns"], rows[c]["first_certain"]) for c in ("c01", "c02")] == [(3, 1)] * 2


def test_a_branch_under_another_order_is_decided_by_it_from_the_cursor_on():
    tied = ALL(ROLES[:2], MI) | ALL(ROLES[2:], MO)
    logged = panel_turn("simple", tied, tie=tied)
    changed = panel_turn("simple", tied, tie=tied, order=ROLES[::-1])
    assert (logged.decision.winner, changed.decision.winner) == (MI, MO)
    draw = continued(panel_episode(changed, task="b"), 1, turn=1, left=1)
    source = panel_source(draw, branch=branch_of(fallback_order=ROLES[::-1], continuations=1))
    assert source.fallback_order == ROLES[::-1]
    [turn] = decided_turns(source)
    assert (turn.decision.winner, turn.initial_leader) == (MO, MO)
    assert recount(source, targets=("simple",), exempt=(0,)).per_turn["logged_winner"][0] == MO


def test_before_the_cursor_a_tied_first_vote_is_led_by_the_logged_order():
    tied = ALL(ROLES[:2], MI) | ALL(ROLES[2:], MO)
    first = panel_turn("simple", ALL(ROLES, S), initial=tied)
    second = panel_turn("simple", tied, tie=tied, order=ROLES[::-1], turn=2)
    episode = panel_episode(first, second, scores=(0.1, 0.1, 0.1))
    draw = continued(episode, 1, turn=2, left=2)
    source = panel_source(draw, branch=branch_of(fallback_order=ROLES[::-1]))
    assert [t.initial_leader for t in decided_turns(source)] == [MI, MO]


def test_rich_ballots_that_a_branch_counts_otherwise_have_no_first_vote():
    from tutorsim.ballot_reading_and_decisions import RichBallot, decide
    from tutorsim.kernel.scene_asks_votes_and_blind_labels import counted_as

    rich = RichBallot(points={S: 10, MI: 9, MO: 6, ME: 0}, order=(S, MI, MO, ME), approved=(S, MI))
    cast = panel_turn("cumulative", ALL(ROLES, dict(rich.points)))
    plain = [replace(b, protocol="rich", parsed=rich) for b in cast.ballots_final]
    as_points = [replace(b, counted_as="cumulative") for b in plain]
    as_ranks = [counted_as(b, "ranked") for b in as_points]

    def turn(number, first, last):
        decision = decide([b.mass for b in last], ROLES, order=ROLES)
        changed = {"turn": number, "ballots_initial": first, "ballots_final": last}
        made: Turn = cast.model_copy(update={**changed, "decision": decision})
        return made

    path = (
        turn(1, as_points, as_points),
        turn(2, as_points, as_ranks),
        turn(3, as_ranks, as_ranks),
    )
    episode = panel_episode(*path, condition="rich", scores=(0.1,) * 4)
    source = panel_source(continued(episode, 1, turn=2, left=2), branch=branch_of())
    turns = decided_turns(source)
    assert [t.final.profile.protocol for t in turns] == ["cumulative", "ranked", "ranked"]
    assert [t.initial is not None for t in turns] == [True, False, True]


def test_what_a_branch_is_stands_in_every_caption(child):
    words = branches.branch_words(child.run.study.branch)
    assert words.startswith("branch of first under rule ranked: covered episodes as logged")
    assert "re-simulated from their first divergent turn, 2 draws each" in words
    assert words in child.provenance
    assert words in recount(child, targets=("simple",), exempt=(0,)).provenance
    caption = diverge(child, under_order(child, ROLES), question="?").caption
    assert words in caption
    assert caption.endswith("Each draw of a branch counts as an episode.")


def test_every_change_is_named():
    branch = branch_of(
        rule="simple",
        fallback_order=(MO, S),
        tie_policy="no_tie_round",
        roles=(S, MI, MO),
        model="m",
        continuations=1,
    )
    assert branches.branch_changes(branch) == (
        f"rule simple; fallback order {MO} > {S}; tie policy no_tie_round; "
        f"panel {S}, {MI}, {MO}; tutors' model m"
    )
    assert branches.branch_words(branch).endswith("1 draw each")


def test_an_order_that_leaves_roles_out_is_completed():
    assert run_record().study.deciding_order == ROLES
    study = run_record(branch=branch_of(fallback_order=(MO, S))).study
    assert study.deciding_order == (MO, S, MI, ME)


def test_a_branch_is_counted(child):
    failed = child.episodes[2].model_copy(update={"status": "failed"})
    found = branches.branch_counts(child.run.study.branch, [*child.episodes[:2], failed])
    assert found == branches.BranchCounts(covered=1, continued=1, draws=2, failed=1, cursors={2: 1})


def test_the_episodes_table_says_what_is_logged_and_what_a_draw(child):
    table = TABLES["episodes"].frame(child.episodes, child.run)
    rows = table.select("branch_turn", "continuation", "left").rows()
    assert rows == [(None, None, None), (2, 1, 2), (2, 2, 2)]


def _rows(frame):
    return list(frame.to_dicts())
