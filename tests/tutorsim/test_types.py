"""Closed vocabularies; they are part of the log format."""

from tutorsim import types


def test_the_vocabularies_are_those_of_the_log_format():
    assert types.PROTOCOLS == ("simple", "ranked", "cumulative", "approval")
    assert (*types.PROTOCOLS, "rich") == types.BALLOT_FORMATS
    assert ("baseline", *types.PROTOCOLS) == types.PUBLISHED_CONDITIONS
    assert ("baseline", *types.BALLOT_FORMATS) == types.CONDITIONS
    assert types.BENCHMARKS == ("sciq", "humaneval")
    around, tie = ("student", "judge"), ("tie_critique", "tie_vote")
    turn = ("propose", "critique", "vote_initial", "revise", "vote_final")
    further = tuple(f"vote_as_{form}" for form in types.BALLOT_FORMATS)
    assert around + turn + further + tie == types.STAGES
    assert types.BALLOT_STATUSES == ("valid", "repaired", "abstained")
    assert types.DECIDED_BY == ("vote", "tie_round", "fallback")
    assert types.BLINDINGS == ("per_reader", "shared")
    assert types.READINGS == ("strict", "standard", "lenient")


def test_the_published_study_s_constants():
    assert types.DEFAULT_ROLES == ("scaffolding", "misconception", "motivation", "metacognitive")
    assert types.CUMULATIVE_BUDGET == 25


def test_there_is_a_label_for_every_role_of_the_largest_panel():
    assert len(types.LABELS) == types.MAX_ROLES
    assert len(set(types.LABELS)) == len(types.LABELS)
