"""`tutorsim show BRANCH EPISODE --beside PARENT`: two futures of one episode."""

import io
import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from tutorsim.cli.show_episodes_also_beside_continuations import _named, beside_shown
from tutorsim.records import EpisodeRecord


def pair_of(branched, *, left):
    """A parent's episode with a draw that left the path at a turn, and all its draws."""
    draws = [e for e in branched.child.episodes if e.branch]
    name = next(e.branch.parent_episode for e in draws if e.branch.left == left)
    logged = next(e for e in branched.parent.episodes if e.episode_id == name)
    return logged, [e for e in draws if e.branch.parent_episode == name]


@pytest.fixture
def beside(shell, branched):
    """`show` of an episode of the branch, beside the parent."""

    def show(*named):
        return shell("show", branched.child.folder, *named, "--beside", branched.parent.folder)

    return show


def on_terminal(branched, width, logged, draws):
    text = io.StringIO()
    console = Console(
        file=text, force_terminal=True, width=width, color_system=None, highlight=False
    )
    for part in beside_shown(branched.child.run, logged, draws):
        console.print(part)
    return text.getvalue()


def test_the_parents_id_shows_every_draw_beside_the_log(beside, branched):
    logged, draws = pair_of(branched, left=1)
    done = beside(logged.episode_id)
    assert done.code == 0, done.err
    for episode in (logged, *draws):
        for turn in episode.turns:
            assert turn.decision
            assert f"{turn.decision.winner} wins" in done.out
            assert turn.delivered in done.out
        for attempt in episode.attempts:
            assert attempt.text in done.out
    assert "draw 1 of 2" in done.out
    assert "draw 2 of 2" in done.out
    assert "not what would have happened" in done.out


def test_what_the_futures_share_is_told_once_and_before_the_mark(beside, branched):
    logged, _ = pair_of(branched, left=1)
    shown = beside(logged.episode_id).out
    assert shown.count(logged.attempts[0].text) == 1
    at = [
        shown.index(logged.attempts[0].text),
        shown.index("From here: re-simulated under rule ranked"),
        shown.index("Turn 1"),
    ]
    assert at == sorted(at)


def test_a_parents_id_that_begins_another_means_its_own_draws():
    draws = [SimpleNamespace(episode_id=name) for name in ("t.1.c01", "t.10.c01", "t.1.c02")]
    found = _named(draws, "t.1", lambda one: one.episode_id.rpartition(".c")[0])
    assert [one.episode_id for one in found] == ["t.1.c01", "t.1.c02"]


def test_a_draws_id_shows_that_draw_alone(beside, branched):
    logged, draws = pair_of(branched, left=1)
    done = beside(draws[1].episode_id, "--json")
    value = json.loads(done.out)
    assert EpisodeRecord.model_validate(value["logged"]) == logged
    assert [EpisodeRecord.model_validate(draw) for draw in value["draws"]] == [draws[1]]


def test_parts_that_only_draws_of_one_episode_have_name_them_all(beside, branched):
    logged, draws = pair_of(branched, left=1)
    parts = logged.episode_id.split(".")
    done = beside(*parts, "--json")
    assert len(json.loads(done.out)["draws"]) == len(draws) == 2
    beside(parts[0]).fails(2, "episodes match")
    none = beside("absent")
    assert none.code == 2


def test_a_draw_that_left_the_path_says_where(beside, branched):
    logged, draws = pair_of(branched, left=1)
    shown = beside(logged.episode_id).out
    left = [draw for draw in draws if draw.branch and draw.branch.left]
    assert left
    assert shown.count("the logged path was left at turn 1") == len(left)
    assert shown.count("the decision is the branch's: another winner") == len(left)


def test_futures_stand_side_by_side_where_there_is_room(branched):
    wide = on_terminal(branched, 130, *pair_of(branched, left=1))
    [head] = [line for line in wide.splitlines() if "draw 1 of 2" in line and "logged" in line]
    assert head.index("logged") < head.index("draw 1 of 2") < head.index("draw 2 of 2")
    assert "Turn 1  " in wide
    assert "(ended)" not in wide


def test_futures_stand_one_after_the_other_where_there_is_none(branched):
    narrow = on_terminal(branched, 80, *pair_of(branched, left=1))
    assert all(len(line.rstrip()) <= 80 for line in narrow.splitlines())
    assert not [line for line in narrow.splitlines() if "draw 1 of 2" in line and "logged" in line]
    assert narrow.count("Turn 1  ") == 3


def test_two_futures_fit_80_columns_side_by_side(branched):
    logged, draws = pair_of(branched, left=1)
    lines = on_terminal(branched, 80, logged, draws[:1]).splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert [line for line in lines if "draw 1 of 2" in line and "logged" in line]


def test_a_covered_episode_has_one_future(beside, branched):
    covered = next(e for e in branched.child.episodes if not e.branch and e.turns)
    beside(covered.episode_id).tells(
        "Covered: the branch cannot change it",
        covered.turns[-1].delivered,
        covered.attempts[-1].text,
    )


def test_a_failed_draw_says_so(branched):
    from tutorsim.records import Failure

    logged, draws = pair_of(branched, left=1)
    broken = {"status": "failed", "failure": Failure(key="2/judge/judge/1", error="HTTP 500")}
    failed = draws[0].model_copy(update={**broken, "success": None})
    text = on_terminal(branched, 120, logged, [failed])
    assert "Failed: call 2/judge/judge/1: HTTP 500" in text
    assert "draw 1 of 2  failed to finish" in text
    assert "(ended)" in on_terminal(
        branched, 120, logged, [failed.model_copy(update={"turns": ()})]
    )


def test_a_run_that_is_no_branch_of_the_other_is_refused(shell, branched):
    name = branched.parent.episodes[0].episode_id
    said = shell("show", branched.parent.folder, name, "--beside", branched.child.folder)
    said.fails(2, "is no branch.")
    child = branched.child.folder
    shell("show", child, name, "--beside", child).fails(2, "recording 000000000000")
    both = shell("show", child, name, "--beside", branched.parent.folder, "--turn", 1)
    assert both.code == 2


@pytest.mark.parametrize("width", [80, 140])
def test_hostile_text_reaches_the_terminal_only_escaped(hostile_branch, width):
    shown = on_terminal(hostile_branch, width, *pair_of(hostile_branch, left=1))
    assert not set("\x1b\x07\x9b\u202e\u2028") & set(shown)
    assert "\\x1b[31mred" in shown


def test_hostile_text_reaches_a_file_only_escaped(shell, hostile_branch, tmp_path):
    logged, _ = pair_of(hostile_branch, left=1)
    beside = ("--beside", hostile_branch.parent.folder)
    for name in ("a.txt", "a.json"):
        done = shell(
            *("show", hostile_branch.child.folder, logged.episode_id, *beside),
            *("-o", tmp_path / name),
        )
        assert done.code == 0
        text = (tmp_path / name).read_text()
        assert not set("\x1b\x07\x9b\u202e\u2028") & set(text)
        assert "[bold]markup[/bold]" in text
