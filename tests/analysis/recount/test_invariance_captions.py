from tutorsim.analysis.recount.same_voter_in_two_formats import (
    UNTESTED,
    FormatInvariance,
    invariance_words,
)
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable

NONE = NotEstimable("no observations")


def share(hits, n):
    return Estimate(hits / n, n, NONE)


def found(again):
    given = {"ranked": share(9, 12), "approval": NONE}
    pairs = [{"given": "simple", "other": o, "consistent": c} for o, c in given.items()]
    return FormatInvariance(pairs, share(9, 12), [], again, again)


def test_pairs_are_counted_beside_two_askings_of_one_format():
    assert invariance_words(found(share(5, 6))) == (
        "Voters' ballots in two formats were consistent in 9 of 12 pairs from the format voted in "
        "to another (over all ballots: simple to ranked 9 of 12, simple to approval 0 of 0); two "
        "askings of one format were the same ballot in 5 of 6, and consistent in 5 of 6."
    )


def test_without_a_retest_the_comparison_is_unknown():
    assert "is unknown, as none was asked again." in invariance_words(found(NONE))


def test_without_two_formats_the_assumption_is_untested():
    assert invariance_words(UNTESTED).endswith("the assumption is untested.")
