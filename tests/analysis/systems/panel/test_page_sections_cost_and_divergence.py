"""The page of a panel's run, and the first screen of its summary."""

from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_source


def test_a_summary_says_what_was_run_and_what_the_order_decided(decided_and_tied):
    made = report_of(decided_and_tied, brief=True)
    assert made.summary.startswith("2 episodes of 2 tasks under simple. Models: ")
    decided, not_identified = made.answers[-2:]
    assert decided.question == "What did the fallback order decide?"
    assert decided.headline == "1 of 2 turns"
    assert not_identified.headline == "Who would have won under another ballot format"
    assert "What a student would have said" in not_identified.detail
    assert report_of(panel_source(), brief=True).summary == "The run has no episode."
