"""A branch beside its parent, worked out by hand.

The parent, condition simple, success from 0.75 on:

    task   turns              scores     success   under the alternative
    a      scaffolding        0.1 → 0.8  yes       covered
    b      scaffolding        0.1 → 0.4  no        turn 1 may differ
    c      scaffolding        0.1 → 1.0  yes       turn 1 may differ
    d      none               0.9        yes       covered: no turn to differ
"""

from dataclasses import replace

import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
    mean_over_tasks,
    to_json,
)
from tutorsim.analysis.systems.panel.branch_compared_with_parent_run import (
    Move,
    compare_branch,
    compared,
    paid_calls,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.records import Branch, BranchedEpisode, BranchPoint, CallRecord, EpisodeRecord

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
S, MI, MO, ME = ROLES


class Small:
    """The parent above, and branches of it."""

    def __init__(self, turn, episode, source):
        self.turn, self.episode, self.source = turn, episode, source
        won = turn("simple", dict.fromkeys(ROLES, S))
        self.parent = source(
            episode(won, task="a", scores=(0.1, 0.8)),
            episode(won, task="b", scores=(0.1, 0.4)),
            episode(won, task="c", scores=(0.1, 1.0)),
            episode(task="d", condition="simple", scores=(0.9,)),
        )

    def name(self, task):
        return f"sciq.{task}.novice.simple"

    def draw(self, task, number, end, *, winner=MI, **more):
        """A continuation whose first turn a role wins; `left` follows from the winner."""
        first = self.turn("ranked", dict.fromkeys(ROLES, (winner, *(set(ROLES) - {winner}))))
        episode: EpisodeRecord = self.episode(
            first, task=task, condition="simple", scores=(0.1, end), **more
        )
        point = BranchPoint(
            parent_episode=self.name(task),
            turn=1,
            continuation=number,
            left=None if winner == S else 1,
        )
        name = f"{self.name(task)}.c{number:02d}"
        return episode.model_copy(update={"episode_id": name, "branch": point})

    def child(self, *draws, continuations=2, **changes):
        at_first = BranchedEpisode(turn=1, winners=(S,))
        tasks = dict.fromkeys(d.task_id for d in draws)
        branch = Branch(
            parent="made-up",
            parent_study="a" * 64,
            parent_recording="b" * 64,
            continuations=continuations,
            covered=(self.name("a"), self.name("d")),
            episodes={self.name(task): at_first for task in tasks},
        )
        branch = branch.model_copy(update={"rule": "ranked", **changes})
        kept = [e for e in self.parent.episodes if e.task_id in "ad"]
        made = self.source(*kept, *draws, branch=branch)
        return replace(made, name="branch")


@pytest.fixture
def small():
    return Small(panel_turn, panel_episode, panel_source)


def cell_of(small, child):
    [cell] = compare_branch(small.parent, child).cells
    return cell


def row_of(small, child, outcome):
    return next(r for r in cell_of(small, child).outcomes if r.outcome == outcome)


def share_of(*values):
    """The interval of a mean of shares, one a task."""
    found = mean_over_tasks(values, range(len(values)), ends=(0, 1))
    assert isinstance(found, Estimate)
    assert isinstance(found.interval, Interval)
    return found.interval


def whole(small):
    """Two draws of b, one of which succeeds, and two of c, which both do."""
    return small.child(
        small.draw("b", 1, 1.0),
        small.draw("b", 2, 0.5, winner=MO),
        small.draw("c", 1, 0.8),
        small.draw("c", 2, 1.0, winner=S),
    )


def test_logged_bounded_and_resimulated_figures_stand_apart(small):
    row = row_of(small, whole(small), "success")
    # Logged: a, c, d of four. Bounds: a and d for certain, b and c anything.
    assert (row.logged, row.before) == (0.75, Bounds(0.5, 1.0, 4))
    # Re-simulated: a 1, b (1 + 0)/2, c 1, d 1.
    assert row.after == Bounds(0.875, 0.875, 4)
    assert (row.estimate.value, row.estimate.n) == (0.875, 4)
    assert row.estimate.interval == row.interval == share_of(1, 0.5, 1, 1)
    score = row_of(small, whole(small), "final_score")
    # 0.8, 0.4, 1.0, 0.9; certain are 0.8 and 0.9; draws average to 0.75 and 0.9.
    assert score.logged == pytest.approx(0.775)
    assert isinstance(score.before, Bounds)
    assert (score.before.low, score.before.high) == pytest.approx((0.425, 0.925))
    assert isinstance(score.after, Bounds)
    assert (score.after.low, score.after.high) == pytest.approx((0.8375, 0.8375))


def test_differences_are_paired_by_episode_over_the_continued_ones(small):
    row = row_of(small, whole(small), "success")
    # b: 1/2 − 0, c: 1 − 1.
    assert (row.contrast.first_mean, row.contrast.second_mean) == (0.5, 0.75)
    assert (row.contrast.difference.value, row.contrast.pairs) == (0.25, 2)
    # Signs of 0.5 and 0: half of the four patterns give +0.25.
    test = row.contrast.test
    assert (test.difference, test.p_value, test.tasks) == (0.25, 1.0, 2)
    assert row.contrast.p_holm == 1.0


def test_an_episode_that_was_left_out_keeps_its_bounds(small):
    child = small.child(small.draw("b", 1, 1.0), small.draw("b", 2, 0.5))
    cell = cell_of(small, child)
    assert (cell.covered, cell.continued, cell.left_out) == (2, 1, 1)
    row = row_of(small, child, "success")
    # a 1, b 1/2, d 1, and c from 0 to 1.
    assert row.after == Bounds(2.5 / 4, 3.5 / 4, 4)
    assert row.estimate == NotEstimable("1 of 4 episodes are still open")
    assert isinstance(row.interval, Interval)
    worst, best = share_of(1, 0.5, 0, 1), share_of(1, 0.5, 1, 1)
    assert (row.interval.low, row.interval.high) == (worst.low, best.high)


def test_a_failed_draw_is_open_beside_the_others_of_its_episode(small):
    child = small.child(
        small.draw("b", 1, 1.0),
        small.draw("b", 2, 0.5, status="failed"),
        small.draw("c", 1, 0.8),
        small.draw("c", 2, 0.8),
    )
    cell = cell_of(small, child)
    assert (cell.draws, cell.failed, cell.continued, cell.left_out) == (3, 1, 2, 0)
    # b: one success and one that is open, (1 + 0)/2 to (1 + 1)/2.
    assert row_of(small, child, "success").after == Bounds(3.5 / 4, 1.0, 4)


def test_an_unscored_draw_is_never_a_zero(small):
    child = small.child(small.draw("b", 1, None), small.draw("c", 1, 0.8), continuations=1)
    row = row_of(small, child, "final_score")
    assert isinstance(row.after, Bounds)
    # 0.8 + 0.9 + 0.8, and b from 0 to 1.
    assert (row.after.low, row.after.high) == pytest.approx((2.5 / 4, 3.5 / 4))
    assert row.contrast.pairs == 1


def test_a_single_draw_is_no_episodes_estimate(small):
    child = small.child(small.draw("b", 1, 1.0), small.draw("c", 1, 0.8), continuations=1)
    found = compare_branch(small.parent, child)
    for path in found.paths:
        assert path["resimulated"]["success"] == NotEstimable(
            "a single draw is not what would have happened"
        )
    [cell] = found.cells
    assert cell.outcomes[0].interval == share_of(1, 1, 1, 1)


def test_several_draws_average_to_an_episodes_estimate(small):
    first, second = compare_branch(small.parent, whole(small)).paths
    assert (first["episode_id"], first["turn"]) == (small.name("b"), 1)
    assert first["logged"]["success"] == 0.0
    assert first["draws"]["success"] == (1.0, 0.0)
    assert first["resimulated"]["success"] == 0.5
    assert first["continuations"] == (f"{small.name('b')}.c01", f"{small.name('b')}.c02")
    assert (first["left"], second["left"]) == ((1, 1), (1, None))


def test_where_and_for_whom_the_path_was_left(small):
    cell = cell_of(small, whole(small))
    # b left it in both draws, c in one of two: (1 + 1/2)/2.
    assert cell.left == 0.75
    assert cell.moves == (Move(1, S, MI, 2), Move(1, S, MO, 1))


def test_an_alternative_that_covers_every_episode_changes_nothing(small):
    parent = small.parent
    branch = Branch(
        parent="made-up",
        parent_study="a" * 64,
        parent_recording="b" * 64,
        tie_policy="no_tie_round",
        covered=tuple(e.episode_id for e in parent.episodes),
    )
    child = small.source(*parent.episodes, branch=branch)
    found = compare_branch(parent, child)
    [cell] = found.cells
    row = cell.outcomes[0]
    assert row.before == row.after == Bounds(0.75, 0.75, 4)
    assert row.estimate.value == row.logged
    assert isinstance(row.contrast.difference, NotEstimable)
    assert isinstance(cell.left, NotEstimable)
    assert found.paths == ()


def test_code_verdicts_are_compared_for_programming_tasks_only(small):
    assert [r.outcome for r in cell_of(small, whole(small)).outcomes] == ["success", "final_score"]
    won = panel_turn("simple", dict.fromkeys(ROLES, S))
    code = panel_episode(won, benchmark="humaneval", scores=(0.1, 0.9), codes=(False, True))
    parent = small.source(code)
    branch = Branch(
        parent="made-up",
        parent_study="a" * 64,
        parent_recording="b" * 64,
        covered=(code.episode_id,),
    )
    [cell] = compare_branch(parent, small.source(code, branch=branch)).cells
    assert [r.outcome for r in cell.outcomes] == ["success", "final_score", "final_code"]
    assert cell.outcomes[2].after == Bounds(1.0, 1.0, 1)


def test_the_single_tutor_is_not_part_of_it(small):
    parent = panel_source(*small.parent.episodes, panel_episode(task="a"))
    assert [c.condition for c in compare_branch(parent, whole(small)).cells] == ["simple"]


def test_a_run_is_a_branch_of_the_recording_that_it_continues(small):
    strange = small.child(small.draw("b", 1, 1.0), parent_recording="c" * 64)
    runs = [SystemRun(x.name, x.run, x.episodes) for x in (small.parent, whole(small), strange)]
    first = [compared(runs[0], second).sections[0].id for second in runs]
    assert first == ["differences", "branch", "differences"]


def test_the_result_says_what_was_changed_and_what_answered(small):
    found = compare_branch(small.parent, whole(small))
    assert (found.parent, found.child, found.changes) == ("made-up", "branch", "rule ranked")
    assert found.caption.count("stand-in") == 2
    value = to_json(found)
    assert value["continuations"] == 2
    cell = value["cells"][0]  # type: ignore[index]
    assert cell["outcomes"][0]["before"] == {"low": 0.5, "high": 1.0, "n": 4}
    assert cell["moves"][0] == {"turn": 1, "before": S, "after": MI, "draws": 2}


# --- Extra calls ----------------------------------------------------------------------------------


S, MI = ROLES[:2]


def call_of(key):
    call = {"key": key, "stage": key.split("/")[1], "model": "m", "stop_reason": "end_turn"}
    return CallRecord(**call, input_tokens=100, output_tokens=7)


def with_calls(episode, *keys, left=None, branched=True):
    point = BranchPoint(parent_episode="p", turn=1, continuation=1, left=left)
    calls = tuple(map(call_of, keys))
    return episode.model_copy(update={"calls": calls, "branch": point if branched else None})


START = ("0/student/student/1", "0/judge/judge/1", "1/vote_final/motivation/1")
END = ("1/student/student/1", "1/judge/judge/1", "2/propose/motivation/1")


def test_after_the_path_was_left_every_call_is_paid_for():
    episode = panel_episode(panel_turn("simple", dict.fromkeys(ROLES, S)))
    parent = with_calls(episode, *START, *END, branched=False)
    asked = "1/vote_as_ranked/motivation/1"
    found = paid_calls([(parent, with_calls(episode, *START, asked, *END, left=1))])
    # Reused: the start. Paid for: the new vote, and student, judge and turn 2 after turn 1.
    assert (found.reused, len(found.new)) == (3, 4)


def test_on_the_logged_path_only_calls_that_the_parent_lacks_are():
    episode = panel_episode(panel_turn("simple", dict.fromkeys(ROLES, S)))
    parent = with_calls(episode, *START, *END, branched=False)
    asked = "1/vote_as_ranked/motivation/1"
    found = paid_calls([(parent, with_calls(episode, *START, asked, *END))])
    assert (found.reused, [call.stage for call in found.new]) == (6, ["vote_as_ranked"])


def test_calls_of_a_tie_round_are_the_parents_only_where_it_held_the_same_round():
    final = dict(zip(ROLES, (S, S, MI, MI), strict=True))
    one = panel_episode(panel_turn("simple", final, tie=dict.fromkeys(ROLES, S)))
    other = panel_episode(panel_turn("simple", final, tie=dict.fromkeys(ROLES, MI)))
    keys = (*START, "1/tie_critique/motivation/1", "1/tie_vote/motivation/1")
    parent = with_calls(one, *keys, branched=False)
    assert paid_calls([(parent, with_calls(one, *keys))]).new == ()
    assert len(paid_calls([(parent, with_calls(other, *keys))]).new) == 2


def test_costs_add_up():
    episode = panel_episode(panel_turn("simple", dict.fromkeys(ROLES, S)))
    parent = with_calls(episode, *START, branched=False)
    one, other = (with_calls(episode, *START, *END[:number]) for number in (1, 2))
    calls = (*other.calls[:-1], replace(other.calls[-1], model="n"))
    other = other.model_copy(update={"calls": calls})
    assert paid_calls([(parent, one), (parent, other)]).to_json() == {
        "reused": 6,
        "paid": 3,
        "input_tokens": 300,
        "output_tokens": 21,
        "models": {"m": {"input": 200, "output": 14}, "n": {"input": 100, "output": 7}},
    }
