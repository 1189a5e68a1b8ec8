"""Ballots of one voter in two formats, in the report: what the sets of a recount rest on."""

from analysis.invariance import FormatInvariance
from analysis.report.cells import estimate, table
from analysis.report.document import Table
from analysis.report.evidence import Evidence

__all__ = ["askings_by_format_table", "invariance_table"]


def invariance_table(evidence: Evidence) -> Table | None:
    """Pairs of formats; `None` where nobody was asked for two."""
    found = evidence.invariance
    if not isinstance(found, FormatInvariance):
        return None
    rows = [
        (
            pair.given,
            pair.other,
            pair.pairs,
            pair.abstained,
            estimate(pair.consistent),
            estimate(pair.same_top),
            "" if pair.same_winner is None else estimate(pair.same_winner),
        )
        for pair in found.pairs
    ]
    return table(
        "invariance",
        "One voter, the same drafts, two formats",
        "Ballots as cast, none recounted: what the assumption behind the sets comes to where it "
        "can be tested. Consistent: the first ballot leaves the second possible; a rich ballot "
        "determines it. Pairs with an abstention are in no share. Same first: some draft is first "
        "in both. Same winner: share of turns, rich ballots counted as the other format's, ties "
        "to the order. 95 % intervals in brackets: bootstrap over tasks.",
        [
            "ballot",
            "and ballot",
            "pairs",
            "with an abstention",
            "consistent",
            "same first",
            "same winner",
        ],
        rows,
    )


def askings_by_format_table(evidence: Evidence) -> Table | None:
    """Two askings of one format; `None` without a retest or where nobody was asked for two."""
    found = evidence.invariance
    if not isinstance(found, FormatInvariance):
        return None
    rows = [
        (own.form, own.pairs, own.abstained, estimate(own.same), estimate(own.consistent))
        for own in found.askings
    ]
    return table(
        "one-format",
        "Beside it: one voter, one prompt, one format twice",
        "Logged and re-asked answers, in pairs; those with an abstention are in no share. "
        "Consistent: some ranking agrees with both. How far one format agrees with itself is what "
        "to read the agreement of two by.",
        ["format", "pairs", "with an abstention", "same ballot", "consistent"],
        rows,
    )
