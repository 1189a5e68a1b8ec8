"""Closed vocabularies; they are part of the log format."""

from tutorsim import vocabularies


def test_the_vocabularies_are_those_of_the_log_format():
    assert vocabularies.PROTOCOLS == ("simple", "ranked", "cumulative", "approval")
    assert (*vocabularies.PROTOCOLS, "rich", "score") == vocabularies.BALLOT_FORMATS
    assert ("baseline", *vocabularies.PROTOCOLS) == vocabularies.PUBLISHED_CONDITIONS
    assert ("baseline", *vocabularies.BALLOT_FORMATS) == vocabularies.CONDITIONS
    assert vocabularies.BENCHMARKS == ("sciq", "humaneval")
    further = tuple(f"vote_as_{form}" for form in vocabularies.BALLOT_FORMATS)
    undecided = ("vote_held", "vote_opinion")
    values = (*("vote_initial", "vote_final"), *further, "tie_vote", *undecided)
    assert values == vocabularies.VOTING_STAGES
    assert vocabularies.BALLOT_STATUSES == ("valid", "repaired", "abstained")
    assert vocabularies.DECIDED_BY == ("vote", "tie_round", "fallback")
    assert vocabularies.BLINDINGS == ("per_reader", "shared")
    assert vocabularies.READINGS == ("strict", "standard", "lenient")


def test_the_published_study_s_constants():
    values = vocabularies.DEFAULT_ROLES
    assert values == ("scaffolding", "misconception", "motivation", "metacognitive")
    assert vocabularies.CUMULATIVE_BUDGET == 25


def test_there_is_a_label_for_every_role_of_the_largest_panel():
    assert len(vocabularies.LABELS) == vocabularies.MAX_ROLES
    assert len(set(vocabularies.LABELS)) == len(vocabularies.LABELS)
