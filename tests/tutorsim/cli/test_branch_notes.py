"""Every view of a branch says what is logged in it and what re-simulated."""

import json

from tutorsim.records import EpisodeRecord

HEAD = "A branch of built under rule ranked. Episodes: 18 as logged, 5 re-simulated from turn 1"


QUICK = ("recount", "--targets", "simple", "--exempt", "0")


def left_at(branched, turn):
    """A draw that left the path at a turn."""
    draws: list[EpisodeRecord] = [e for e in branched.child.episodes if e.branch]
    return next(e for e in draws if e.branch and e.branch.left == turn)


def test_a_recount_of_a_branch_begins_with_what_it_is(shell, branched):
    name, *options = QUICK
    shell(name, branched.child.folder, *options).tells(HEAD, "in 10 draws")
    own = shell(name, branched.parent.folder, *options).out
    assert "re-simulated" not in own


def test_the_summary_says_it_beside_the_figures_and_the_cost(shell, branched):
    brief = shell("summary", branched.child.folder).out
    assert "Logged and re-simulated together: 18 as logged, 5 re-simulated. These have 10" in brief
    assert "Branch of" not in shell("summary", branched.parent.folder).out
    shown = shell("summary", branched.child.folder, "--full").out
    assert shown.count("Logged and re-simulated together") == 4
    assert "Calls taken over from the parent are among them" in shown
    value = shell("summary", branched.child.folder, "--json").json()["values"]
    values = value["branch"]
    assert values == {"covered": 18, "continued": 5, "draws": 10, "failed": 0, "cursors": {"1": 5}}
    assert value["study"]["branch"]["parent"] == "built"
    own = shell("summary", branched.parent.folder, "--json").json()["values"]
    assert own["branch"] is None


def test_captions_of_a_recount_and_of_a_divergence_say_it(shell, branched):
    for command in (QUICK, ("diverge", "--tie-policy", "random")):
        name, *options = command
        done = shell(name, branched.child.folder, *options, "--json")
        assert "branch of built under rule ranked" in json.loads(done.out)["provenance"]
    shown = shell(name, branched.child.folder, *options).out
    assert "Logged and re-simulated together: 18 as logged" in shown


def test_a_recount_of_a_branch_counts_every_vote_once(shell, branched):
    from tutorsim.analysis.runs.branch_counts_turns_siblings_share import shared_turns

    turns = sum(bool(t.decision) for e in branched.child.episodes for t in e.turns)
    shared = len(shared_turns(branched.child.episodes))
    assert shared > 0
    value = shell(*QUICK, branched.child.folder, "--json").json()
    assert value["turns"] == turns - shared


def test_an_export_keeps_every_turn_and_tells_draws_from_logged_episodes(shell, branched, tmp_path):
    done = shell("export", branched.child.folder, "--format", "jsonl", "-o", tmp_path)
    assert done.code == 0, done.err
    assert "A branch of built under rule ranked: covered episodes as logged" in done.err
    rows = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text().splitlines()]
    of = {row["episode_id"]: (row["branch_turn"], row["continuation"], row["left"]) for row in rows}
    for e in branched.child.episodes:
        point = e.branch
        expected = (point.turn, point.continuation, point.left) if point else (None, None, None)
        assert of[e.episode_id] == expected
    votes = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    assert len(votes) == sum(len(e.turns) for e in branched.child.episodes)


def test_an_episode_says_where_it_is_no_log_any_more(shell, branched):
    record = left_at(branched, 2)
    shown = shell("show", branched.child.folder, record.episode_id).out
    assert record.branch
    assert "Re-simulated: from turn 1 on under rule ranked: draw 1 of 2" in shown
    assert "the logged path was left at turn 2" in shown
    at = [
        shown.index("before any tutoring"),
        shown.index("━━ Turn 1"),
        shown.index("decision is the branch's: the same winner"),
        shown.index("━━ Turn 2"),
        shown.index("decision is the branch's: another winner"),
    ]
    assert at == sorted(at)


def test_the_votes_of_a_branched_turn_are_told_apart(shell, branched):
    record = left_at(branched, 1)
    shown = shell("show", branched.child.folder, record.episode_id, "--turn", 1).out
    assert "━━ Turn 1  ranked vote" in shown
    assert "Ballots of the logged vote as simple (diagnostic)" in shown
    first = shown[shown.index("First vote, on the drafts (diagnostic)") :]
    assert first.index("simple count: ") < first.index("ranked count: ")


def test_a_covered_episode_and_a_parents_are_shown_as_logged(shell, branched):
    covered = next(e for e in branched.child.episodes if not e.branch)
    for folder in (branched.child.folder, branched.parent.folder):
        assert "re-simulated" not in shell("show", folder, covered.episode_id).out.lower()


def test_after_the_path_was_left_a_turn_is_all_the_draws(shell, branched):
    draws = [e for e in branched.child.episodes if e.branch and e.branch.left]
    record = next(e for e in draws if e.branch and len(e.turns) > (e.branch.left or 9))
    assert record.branch
    shown = shell("show", branched.child.folder, record.episode_id, "--turn", len(record.turns))
    assert "Re-simulated\n  The logged path was left before.\n" in shown.out
    assert f"draw {record.branch.continuation} of 2 of what might have followed" in shown.out
