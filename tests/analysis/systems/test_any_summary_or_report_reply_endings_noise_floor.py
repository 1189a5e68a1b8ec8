"""Replies that were refused or cut off are told in the summary and report of every system."""

from pathlib import Path

import pytest

from tests.tutorsim.systems.greeting import GreetingRecord
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import (
    document_of as document_made,
)
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import (
    with_reply_endings,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    SystemRun,
    framed,
    open_run,
    view_of,
)
from tutorsim.records import (
    RETEST_FILE,
    RETEST_HEAD_FILE,
    CallRecord,
    Provenance,
    RetestHead,
    RunRecord,
    SystemSettings,
)
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.import_logs_of_other_programs import import_logs, log_files
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay
from tutorsim.systems.debate import DEBATE


def run_of(*stop_reasons, without_text=None):
    """A run of one episode, a call for each stop reason."""
    calls = tuple(
        CallRecord(
            key=f"{turn}/greet/host/1", stage="greet", model="m", stop_reason=reason,
            input_tokens=1, output_tokens=1,
        )
        for turn, reason in enumerate(stop_reasons, start=1)
    )  # fmt: skip
    record = GreetingRecord(
        episode_id="guests.Otto.none.simple", benchmark="guests", task_id="Otto", variant="none",
        condition="simple", calls=calls, without_text=without_text,
    )  # fmt: skip
    head = RunRecord(
        study=SystemSettings(name="made", system="greeting", conditions=("simple",)),
        provenance=Provenance(kind="relay", name="script"),
        episodes=1,
    )
    return SystemRun(name="made", head=head, episodes=(record,))


@pytest.fixture
def document_of():
    def build(*stop_reasons, **more):
        run = run_of(*stop_reasons, **more)
        plain = framed(run, summary="", answers=(), sections=())
        return plain, with_reply_endings(plain, run)

    return build


def test_the_first_screen_counts_them_and_a_table_names_their_stage(document_of):
    _, told = document_of("end_turn", "max_tokens", "refusal", "max_tokens")
    [answer], [section] = told.answers, told.sections
    assert (answer.headline, answer.section) == ("not 3 of 4 replies", section.id)
    assert "3 were taken as they are" in answer.detail
    [table] = section.tables
    rows = table.data.rows()
    assert rows == [("greet", "cut off at max_tokens", 2, 2), ("greet", "refused", 1, 1)]


def test_a_reply_without_text_is_told_though_it_ended_as_usual(document_of):
    _, told = document_of("end_turn", "end_turn", without_text=("2/greet/host/1",))
    assert told.answers[0].headline == "not 1 of 2 replies"
    assert told.sections[0].tables[0].data.rows() == [("greet", "without text", 1, 1)]


def test_where_every_reply_has_an_end_the_document_stays(document_of):
    plain, told = document_of("end_turn", "stop_sequence", None)
    assert told == plain


@pytest.mark.parametrize("system", ["debate", "group", "oversight"])
def test_a_recount_says_the_same_without_what_it_does_not_read(system, tmp_path):
    replay(bundled_recording(system), log_dir=tmp_path / "run")
    whole, read = (open_run(tmp_path / "run", use=use) for use in (None, "recount"))
    recount = view_of(system).recount
    assert to_markdown(recount(whole, {})) == to_markdown(recount(read, {}))


def test_a_report_says_the_same_without_what_it_does_not_read(tmp_path):
    replay(bundled_recording("debate"), log_dir=tmp_path / "run")
    whole, read = (open_run(tmp_path / "run", use=use) for use in (None, "document"))
    assert hasattr(_first_ballot(whole), "labels")
    assert not hasattr(_first_ballot(read), "labels")
    for brief in (True, False):
        assert to_markdown(document_made(whole, brief=brief)) == to_markdown(
            document_made(read, brief=brief)
        )


def _first_ballot(run):
    votes = (turn.ballots_as.values() for record in run.episodes for turn in record.turns)
    return next(ballots[0] for forms in votes for ballots in forms)


def test_a_report_reads_whole_ballots_beside_a_retest_and_of_councils(tmp_path):
    """Choices are compared with those of a retest; the labels of a council are looked at."""
    replay(bundled_recording("debate"), log_dir=tmp_path / "run")
    head = RetestHead(
        recording_digest="", repeats=1, stages=(), provenance=Provenance(kind="relay", name="r")
    )
    (tmp_path / "run" / RETEST_HEAD_FILE).write_text(head.model_dump_json())
    (tmp_path / "run" / RETEST_FILE).write_text("")
    assert _first_ballot(open_run(tmp_path / "run", use="document")).parsed
    rankings = Path(__file__).parents[3] / "cassettes" / "council" / "rankings.json"
    import_logs(DEBATE, DEBATE.logs["council"], log_files([rankings]), tmp_path / "council")
    [first, *_] = open_run(tmp_path / "council", use="document").episodes
    assert first.turns[0].ballots_final[0].labels
