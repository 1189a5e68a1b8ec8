"""How far to trust the votes, as tables: support for one's own draft, and what a panel is worth."""

from collections.abc import Iterable, Mapping

from tutorsim.analysis.metrics.self_support_and_label_tests import SelfSupport
from tutorsim.analysis.metrics.voting_power import EffectiveVotes
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.views.cells import Table, estimate, p_value, plain, table

__all__ = ["panel_table", "self_support_table"]


def self_support_table(found: Iterable[SelfSupport | NotEstimable]) -> Table | None:
    """Mass that voters gave their own drafts."""
    rows = [
        (s.protocol, s.ballots, f"{s.share:.3f}", f"{s.expected:.3f}", p_value(s.p_value))
        for s in found
        if not isinstance(s, NotEstimable)
    ]
    return table(
        "self-support",
        "Votes for one's own draft",
        "Share of final ballot mass that voters gave their own draft, beside an even share; "
        "p from the exact distribution over redrawn labels, two-sided, not corrected for the "
        "number of protocols. Voters are not told which draft is theirs.",
        ["protocol", "ballots", "own share", "even share", "p"],
        rows,
    )


def panel_table(
    found: Iterable[EffectiveVotes],
    similarity: Mapping[str, Mapping[str, Estimate | NotEstimable]],
) -> Table | None:
    """How many votes a panel is worth, and how alike its drafts are.

    Args:
        found: By protocol.
        similarity: Condition → similarity of the drafts: `initial` and `final`.
    """
    missing = NotEstimable("no drafts")
    rows = []
    for votes in found:
        alike = similarity.get(votes.protocol, {})
        rows.append(
            (
                *(votes.protocol, f"{votes.voters:.1f}", plain(votes.correlation)),
                plain(votes.votes),
                *(estimate(alike.get(v, missing)) for v in ("initial", "final")),
            )
        )
    return table(
        "panel",
        "How many votes the panel is worth",
        "Effective votes: n / (1 + (n − 1) ρ) with ρ the mean correlation of two voters' final "
        "ballots; four voters who think alike are not four votes. Similarity of drafts: mean "
        "TF–IDF cosine of two drafts of a turn, 1 for the same words, with a 95 % interval from "
        "a bootstrap over tasks.",
        [
            *("protocol", "voters", "correlation ρ", "effective votes"),
            *("first drafts alike", "revised drafts alike"),
        ],
        rows,
    )
