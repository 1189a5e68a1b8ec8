"""`tutorsim audit`: what it labels, what it refuses, and whether its ranges hold the truth."""

import json

import pytest

from tests.tutorsim.conftest import killed_after
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    OUTCOMES,
    AuditedTurn,
    audited_turns,
    predicted,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run
from tutorsim.cli.audit_labels_delivered_replies import possible_in
from tutorsim.errors import UsageError
from tutorsim.records import RunRecord, SystemSettings, read_episodes, read_run, to_line
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.systems.oversight.audit_study_of_replies_of_a_run import audit_study
from tutorsim.vocabularies import PROTOCOLS


def studied(run, *, all_proposals=False, **changed):
    return audit_study(run, possible=possible_in if all_proposals else None, **changed)


def test_every_delivered_reply_is_an_item(built):
    loaded = studied(built.folder)
    turns = sum(len(episode.turns) for episode in built.episodes)
    assert len(loaded.tasks["audit"]) == turns
    assert all(item.audited.delivered for item in loaded.tasks["audit"])


def test_all_proposals_come_with_who_could_have_won_under_each_rule(built):
    items = studied(built.folder, all_proposals=True).tasks["audit"]
    voted = [item.audited for item in items if item.audited.condition != "baseline"]
    panels = [e for e in built.episodes if e.condition != "baseline"]
    assert len(voted) == 4 * sum(len(episode.turns) for episode in panels)
    for audited in voted:
        assert set(PROTOCOLS) <= set(audited.possible)
        logged = audited.possible[audited.condition]
        if audited.decided_by == "vote":
            winner = next(
                a.role
                for a in voted
                if a.delivered and (a.episode, a.turn) == (audited.episode, audited.turn)
            )
            assert logged == (winner,)


def test_what_gave_the_replies_and_its_digest_are_kept(built):
    audited = read_run(built.folder)
    loaded = studied(built.folder)
    given = RunRecord(study=loaded.settings()).inputs
    assert given.provenance == audited.provenance
    assert given.recording_digest == audited.recording_digest
    assert loaded.study_table()["inputs"]["recording_digest"] == audited.recording_digest


def test_a_sample_is_of_whole_turns(built):
    items = studied(built.folder, all_proposals=True, sample=3).tasks["audit"]
    assert len({(item.audited.episode, item.audited.turn) for item in items}) == 3


def test_a_dry_run_says_the_calls_and_sends_nothing(built, shell):
    args = ("--dry-run", "--json", "--condition", "hpo", "--condition", "single")
    said = shell("audit", built.folder, *args)
    turns = sum(len(episode.turns) for episode in built.episodes)
    assert json.loads(said.out)["calls"]["least"] == 15 * turns


def test_a_recording_is_audited_as_the_run_that_it_replays_to(shell):
    recording = bundled_recording("claude")
    said = shell("audit", recording, "--dry-run", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["calls"]["least"] == 62  # one a delivered reply
    assert "which was replayed first: 30 episodes." in said.err


def test_ballots_are_refused_with_what_is_missing(tmp_path):
    (tmp_path / "ballots.csv").write_text("x")
    for path, named in (
        (tmp_path / "ballots.csv", "what was said to whom"),
        (tmp_path / "none", "no such folder"),
    ):
        with pytest.raises(UsageError) as error:
            studied(path)
        assert named in error.value.why
        assert error.value.hint


def run_of(system, folder):
    folder.mkdir()
    head = RunRecord(study=SystemSettings(system=system, conditions=("x",)))
    (folder / "run.json").write_text(to_line(head), encoding="utf-8")
    (folder / "episodes.jsonl").write_text("")
    return folder


def test_runs_without_replies_of_a_tutor_are_refused_by_their_system(tmp_path):
    with pytest.raises(UsageError, match="system 'debate'") as error:
        studied(run_of("debate", tmp_path / "debate"))
    assert error.value.hint
    lessons = run_of("group", tmp_path / "group")
    with pytest.raises(UsageError, match="no proposals besides") as error:
        studied(lessons, all_proposals=True)
    assert "nobody votes" in error.value.why
    with pytest.raises(UsageError, match="no delivered reply"):
        studied(lessons)


# --- Whether the ranges hold what a branch then really delivers --------------------------------


@pytest.fixture
def steady(stand_ins):
    """Voters who prefer the same under every ballot format."""
    return stand_ins(seed=3, steady=True)


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_rule_s_range_holds_what_a_branch_delivers(steady, record, write_grid, shell, tmp_path):
    panels = ["simple", "ranked", "cumulative", "approval", "rich"]
    assert record(write_grid(conditions=panels, max_turns=2)).code == 0
    log, audit = tmp_path / "one" / "log", tmp_path / "audit"
    assert shell("audit", log, "--all-proposals", "-o", audit).code == 0
    assert shell("verify", audit).code == 0
    turns = {(t.episode, t.turn): t for t in audited_turns(open_run(audit).episodes)}
    differs = pairs = narrow = 0
    for rule in PROTOCOLS:
        new = tmp_path / rule
        assert shell("branch", log, "--rule", rule, "-o", new).code == 0
        decided: dict[AuditedTurn, str] = {}
        for episode in read_episodes(new):
            if episode.branch is None:
                continue
            turn = turns[episode.branch.parent_episode, episode.branch.turn]
            decision = episode.turns[turn.turn - 1].decision
            assert decision.winner in turn.possible[rule]
            decided[turn] = decision.winner
            differs += decision.winner != turn.winner
        for found in (one for one in predicted(list(decided), [rule]) if one.rule == rule):
            pairs += 1
            winners = [(t, role) for t, role in decided.items() if t.condition == found.logged]
            assert len(winners) == found.turns
            for name, holds in OUTCOMES.items():
                labels = [turn.labels[role] for turn, role in winners]
                low, high = found.shares[name]
                narrow += high - low < 0.5
                sure = sum(one is not None and holds(one) for one in labels)
                open_ = sum(one is None for one in labels)
                assert low * found.turns <= sure + open_ + 1e-9
                assert sure <= high * found.turns + 1e-9
    # Not vacuous: there are pairs of logged format and rule, other winners, and narrow ranges.
    assert pairs >= 8
    assert differs >= 5
    assert narrow >= 5


# --- An audit is recorded like any study -------------------------------------------------------


def audited(folder):
    """The log of an audit."""
    return (folder / "episodes.jsonl").read_bytes()


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_killed_audit_given_again_has_the_same_bytes(steady, built, shell, launch, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = ("audit", built.folder, "--condition", "hpo", "--sample", 3)
    assert shell(*command, "-o", whole).code == 0
    calls = steady.requests
    running = launch(*command, "-o", killed, "--max-connections", 1)
    killed_after(running, steady, calls + 20)
    assert not (killed / "episodes.jsonl").exists()
    before = steady.requests
    assert before < 2 * calls
    said = shell(*command, "-o", killed)
    assert said.code == 0, said.err
    assert steady.requests - before < calls  # what was paid for is not asked again
    assert audited(killed) == audited(whole)
    assert shell("verify", killed).code == 0


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_audit_in_batches_gives_the_log_of_direct_calls(steady, built, shell, tmp_path):
    direct, batch = tmp_path / "direct", tmp_path / "batch"
    command = ("audit", built.folder, "--all-proposals", "--sample", 2)
    assert shell(*command, "-o", direct).code == 0
    said = shell(*command, "-o", batch, "--batch")
    assert said.code == 0, said.err
    assert audited(batch) == audited(direct)
    assert shell("verify", batch).code == 0
