"""The noise floor of votes of a system beside the panel."""

import pytest

from tests.tutorsim.systems.greeting import GREETERS, GreetingRecord
from tutorsim import records
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import noise_section
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.ballot_reading_and_decisions import decide, masses_of
from tutorsim.errors import LogError

STATED = records.Provenance(kind="relay", name="script")


def ballots(*said):
    """A simple ballot of each greeter."""
    return tuple(
        records.BallotRecord(
            voter=voter,
            protocol="simple",
            labels={name: name for name in GREETERS},
            parsed=choice,
            mass=masses_of(choice, GREETERS, protocol="simple"),
            ballot_status="abstained" if choice is None else "valid",
        )
        for voter, choice in zip(GREETERS, said, strict=True)
    )


def run_of(logged, *repeats, failures=()):
    """A run of one vote, and its further askings."""
    cast = ballots(*logged)
    decision = decide([ballot.mass for ballot in cast], GREETERS, order=GREETERS)
    record = GreetingRecord(
        episode_id="guests.Otto.none.simple",
        benchmark="guests",
        task_id="Otto",
        variant="none",
        condition="simple",
        turns=(records.VotedTurn(turn=1, ballots_final=cast, decision=decision),),
    )
    head = records.RunRecord(
        study=records.SystemSettings(name="made", system="debate", conditions=("simple",),
                             voting=records.VotingSettings(fallback_order=GREETERS)),
        provenance=STATED, episodes=1,
    )  # fmt: skip
    vote = records.RetestVote(
        turn=1,
        stage="vote_final",
        repeats=tuple(ballots(*said) for said in repeats),
        failures=failures,
    )
    again = records.RetestRecord(episode_id=record.episode_id, votes=(vote,))
    stated = records.RetestHead(
        recording_digest="0" * 64, repeats=2, stages=("vote_final",), provenance=STATED
    )
    return SystemRun("made", head, (record,), records.Retest(stated, (again,)) if repeats else None)


def test_without_a_retest_nothing_is_said():
    assert noise_section(run_of(("anna", "ben", "cleo")), lambda vote: vote.form) == ()


def test_pairs_of_askings_that_say_the_same_are_counted_by_voter():
    # anna: ben, ben, ben (3 of 3 alike); ben: anna, anna, cleo (1 of 3); cleo: ben, none, ben (1 of
    # 1, two pairs with an abstention)
    run = run_of(("ben", "anna", "ben"), ("ben", "anna", None), ("ben", "cleo", "ben"))
    [section] = noise_section(run, lambda vote: vote.form)
    [table] = section.tables
    [row] = table.data.to_dicts()
    assert (row["vote"], row["votes"], row["pairs of askings"]) == ("simple", 1, 9)
    assert row["same ballot"].startswith(f"{5 / 7:.2f}")
    assert row["pairs with abstentions"] == "2 + 0"


def test_failed_calls_are_named_once_and_a_retest_of_another_log_is_refused():
    failed = (records.Failure(key="1/vote_final/ben/1/r02", error="HTTP 500."),)
    run = run_of(("ben", "anna", "ben"), ("ben", "anna", "ben"), failures=failed)
    [section] = noise_section(run, lambda vote: vote.form)
    assert "1 calls failed" in section.lead
    other = run.retest.episodes[0].model_copy(update={"episode_id": "guests.Mira.none.simple"})
    strange = SystemRun(run.name, run.head, run.episodes, run.retest._replace(episodes=(other,)))
    with pytest.raises(LogError, match="do not belong together"):
        noise_section(strange, lambda vote: vote.form)
