"""The built report of the bundled study is the one that its recording gives."""

from pathlib import Path

import pytest

from tests.analysis.made import report_of
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.claims.claims_file_and_check_of_claims import to_text
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import drawn_as
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.document_as_json_and_as_claims import document_parts
from tutorsim.cli.claims_options_and_write_or_check_claims import Options, claims_of
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay

BUILT = Path(__file__).parents[3] / "reports" / "demo.html"
CLAIMS = BUILT.with_name("demo.claims.json")

STALE = (
    "reports/demo.html or its claims are stale; write them again with\n"
    "  tutorsim replay cassettes/demo --log-dir /tmp/demo\n"
    "  tutorsim report /tmp/demo -o reports/demo.html"
)


@pytest.mark.costly
def test_the_built_report_is_not_stale(tmp_path):
    recording = bundled_recording()
    if recording is None or not BUILT.exists():
        pytest.skip("the checkout's recording and report are not here")
    replay(recording, log_dir=tmp_path)
    document = report_of(open_source(tmp_path))
    same = to_html(document) == BUILT.read_text(encoding="utf-8")
    assert same, STALE
    parts, drawn = document_parts(document, "report"), drawn_as(BUILT, BUILT.read_bytes())
    claims = claims_of(tmp_path, "report", parts, Options(), drawn=drawn)
    same = to_text(claims) == CLAIMS.read_text(encoding="utf-8")
    assert same, STALE


def test_the_built_report_is_small_enough_to_send():
    assert BUILT.stat().st_size < 5_000_000
    assert CLAIMS.stat().st_size < 1_200_000
