"""The built report of the bundled study is the one that its recording gives."""

from pathlib import Path

import pytest

from analysis.report import build_report, to_html
from analysis.sources import open_source
from tutorsim.bundled import bundled_recording
from tutorsim.runner.replaying import replay

BUILT = Path(__file__).parents[3] / "reports" / "demo.html"

STALE = (
    "reports/demo.html is stale; write it again with\n"
    "  tutorsim replay cassettes/demo --log-dir /tmp/demo\n"
    "  tutorsim report /tmp/demo -o reports/demo.html"
)


@pytest.mark.costly
def test_the_built_report_is_not_stale(tmp_path: Path) -> None:
    recording = bundled_recording()
    if recording is None or not BUILT.exists():
        pytest.skip("the checkout's recording and report are not here")
    replay(recording, log_dir=tmp_path)
    page = to_html(build_report(open_source(tmp_path)))
    same = page == BUILT.read_text(encoding="utf-8")
    assert same, STALE


def test_the_built_report_is_small_enough_to_send() -> None:
    assert BUILT.stat().st_size < 5_000_000
