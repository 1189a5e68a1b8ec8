import pytest

from tests.analysis.panel_runs import panel_episode, panel_turn, run_record
from tutorsim.analysis.runs import exported_tables as tables
from tutorsim.ballot_reading_and_decisions import RichBallot

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


@pytest.fixture
def log():
    """A tied ranked turn with a tie round and an abstention, a single tutor, a failed episode."""
    turn = panel_turn(
        "ranked",
        {S: (S, MI, MO, ME), MI: (MI, S, MO, ME), MO: None},
        tie={S: (MI, S), MI: (MI, S)},
        shown={S: (ME, MO, MI, S)},
        confidence={MI: 80},
    )
    return [
        panel_episode(turn, scores=(0.1, None)),
        panel_episode(task="t2", scores=(0.9,)),
        panel_episode(turn, task="t3", status="failed"),
    ]


def test_ballots_are_long_with_labels_as_shown_and_no_mass_for_abstentions(log):
    frame = tables.ballots_table(log, run=run_record())
    assert frame.schema == tables.BALLOTS_SCHEMA
    # First and final vote: 3 ballots of 4 candidates; tie round: 2 of 2.
    assert frame.height == 12 + 12 + 4
    final = frame.filter(stage="vote_final")
    rows = final.filter(voter=S).select("candidate", "mass", "label", "position").rows()
    assert rows == [(S, 3, "D", 4), (MI, 2, "C", 3), (MO, 1, "B", 2), (ME, 0, "A", 1)]
    rows = final.filter(voter=MO).select("mass", "ballot_status", "attempts").rows()
    assert rows == [(None, "abstained", 2)] * 4
    tie = frame.filter(stage="tie_vote").select("voter", "candidate", "mass").rows()
    assert tie == [(S, S, 0), (S, MI, 1), (MI, S, 0), (MI, MI, 1)]


def test_a_path_goes_from_a_named_part_or_the_last_and_ends_where_something_is_missing(log):
    def parts(episode):
        yield episode, "here", episode.turns[0].decision if episode.turns else None

    made = tables.table_of(
        parts,
        ("episode", "place", "decision"),
        place=tables.text("place"),
        error=tables.text("episode.failure.error"),
        winner=tables.text(),
        by=tables.text("decided_by"),
        repeat=tables.whole("episode.repeat"),
    )
    assert made.frame(log, run_record()).select(list(made.schema)[6:]).rows() == [
        ("here", None, MI, "tie_round", 1),
        ("here", None, None, None, 1),
        ("here", "no reply", MI, "tie_round", 1),
    ]


def test_candidates_stand_in_the_fallback_order(log):
    frame = tables.ballots_table(log, run=run_record(fallback_order=ROLES[::-1]))
    assert frame["candidate"].unique(maintain_order=True).to_list() == list(ROLES[::-1])


def test_a_failed_episode_is_listed_and_adds_no_turns(log):
    run = run_record()
    episodes = tables.TABLES["episodes"].frame(log, run)
    assert episodes.select("task", "status", "success", "failure", "scores").rows() == [
        ("t1", "complete", False, None, [0.1, None]),
        ("t2", "complete", True, None, [0.9]),
        ("t3", "failed", None, "no reply", [0.1, 0.4]),
    ]
    for name in ("ballots", "turns", "proposals"):
        assert set(tables.TABLES[name].frame(log, run)["task"]) == {"t1"}
    assert tables.TABLES["calls"].frame(log, run).select("task", "key", "position").rows() == [
        (task, "0/student/student/1", 1) for task in ("t1", "t2", "t3")
    ]


def test_a_turn_says_how_it_was_decided_and_what_followed(log):
    [row] = tables.TABLES["turns"].frame(log, run_record()).rows(named=True)
    assert row["run_id"] == "made-up-bbbbbbbbbbbb" == tables.run_id(run_record())
    # S 5, MI 5 in the final vote; MI in the tie round. The attempt after it is unscored.
    values = (row["protocol"], row["winner"], row["decided_by"], row["tie_round"])
    assert values == ("ranked", MI, "tie_round", True)
    assert (row["tied_set"], row["undecided"], row["score"]) == ([S, MI], [MI], None)
    assert row["delivered"] == f"Think about {MI}."


def test_only_the_winners_revision_is_marked(log):
    frame = tables.TABLES["proposals"].frame(log, run_record())
    assert frame.height == 8
    assert frame.filter("winner").select("version", "role", "confidence").rows() == [
        ("final", MI, 80)
    ]


def test_diagnostic_ballots_have_a_table_of_their_own():
    rich = RichBallot(points={S: 15, MI: 6, MO: 4, ME: 0}, order=(S, MI, MO, ME), approved=(S,))
    turn = panel_turn(
        "simple", dict.fromkeys(ROLES, S), others={"approval": {S: (S, MI)}, "rich": {MI: rich}}
    )
    log = [panel_episode(turn)]
    frame = tables.TABLES["diagnostic_ballots"].frame(log, run_record())
    assert frame.select("stage", "voter", "candidate", "mass", "protocol", "rank").rows() == [
        ("vote_as_approval", S, S, 1, "approval", None),
        ("vote_as_approval", S, MI, 1, "approval", None),
        ("vote_as_approval", S, MO, 0, "approval", None),
        ("vote_as_approval", S, ME, 0, "approval", None),
        ("vote_as_rich", MI, S, 15, "rich", 1),
        ("vote_as_rich", MI, MI, 6, "rich", 2),
        ("vote_as_rich", MI, MO, 4, "rich", 3),
        ("vote_as_rich", MI, ME, 0, "rich", 4),
    ]
    decided = tables.ballots_table(log, run=run_record())
    assert set(decided["stage"]) == {"vote_initial", "vote_final"}


def test_an_empty_log_keeps_every_column():
    for table in tables.TABLES.values():
        frame = table.frame([], run_record())
        assert frame.schema == table.schema
        assert frame.height == 0
