"""Conditions against one another: as a table, and in a sentence on what is beyond chance."""

from collections.abc import Sequence
from typing import Final, Protocol

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.charts.number_words import listed
from tutorsim.analysis.outcomes.condition_contrasts import Contrast, contrasts
from tutorsim.analysis.outcomes.student_scores import Outcome
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, PermutationTest
from tutorsim.analysis.views.cells import Table, estimate, plain, table

__all__ = [
    "ALPHA",
    "HEAD_OUTCOMES",
    "OUTCOME_NAMES",
    "Tested",
    "contrast_table",
    "contrast_words",
    "contrasts_of",
    "p_words",
]

ALPHA: Final = 0.05
"""Holm-corrected p below which a difference is called beyond chance."""

HEAD_OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "final_score")
"""What conditions are compared on first."""

_CODE: Final = ("final_code", "code_gain")
OUTCOME_NAMES: Final[dict[Outcome, str]] = {
    "success": "success",
    "final_score": "last judge score",
    "score_gain": "gain in judge score",
    "final_code": "tests passed at the end",
    "code_gain": "gain in tests passed",
    "turns": "tutoring turns",
}


def contrasts_of(
    source: Source, outcomes: Sequence[Outcome] = HEAD_OUTCOMES, *, seed: int = 0
) -> list[Contrast]:
    """Conditions on some outcomes: against the single tutor where there is one, else all pairs.

    Args:
        source: A run; ballots from elsewhere have no outcomes, and so no contrasts.
        outcomes: What to compare; tests are of programs alone.
        seed: Of draws.
    """
    conditions = {episode.condition for episode in source.episodes}
    reference = "baseline" if "baseline" in conditions else None
    found = []
    for outcome in outcomes:
        rows = contrasts(source, outcome, reference=reference, seed=seed)
        found += [r for r in rows if outcome not in _CODE or r.benchmark == "humaneval"]
    return found


def contrast_table(found: Sequence[Contrast]) -> Table | None:
    """One row a contrast; `None` without any."""
    rows = [
        (
            row.benchmark,
            OUTCOME_NAMES[row.outcome],
            f"{row.second} − {row.first}",
            getattr(row.test, "n", 0),
            estimate(row.difference, signed=True),
            p_words(row),
            plain(row.detectable),
        )
        for row in found
    ]
    return table(
        "contrasts",
        "One condition against another",
        "Mean difference [95 % interval over tasks], paired on task and persona; first attempts "
        "are drawn anew in each condition. p: sign flips of whole pairs, exact unless marked ~ "
        "(then with the error of the draws), with Holm's correction over the contrasts of one "
        "benchmark and outcome. Detectable: the smallest mean difference that so many tasks with "
        "this spread would show (level 0.05, power 0.8).",
        ["benchmark", "outcome", "difference of", "pairs", "difference", "p", "detectable"],
        rows,
    )


class Tested(Protocol):
    """What was tested along with others."""

    @property
    def test(self) -> PermutationTest | NotEstimable: ...

    @property
    def p_holm(self) -> float | None: ...


def p_words(row: Tested) -> str:
    """A corrected p-value, with the error of the draws where signs were drawn."""
    if not isinstance(row.test, PermutationTest) or row.p_holm is None:
        return "not estimable"
    figure = "< 0.001" if row.p_holm < 0.001 else f"{row.p_holm:.3f}"
    return figure if row.test.exact else f"~{figure} ± {row.test.error:.3f}"


def contrast_words(found: Sequence[Contrast]) -> str:
    """Which differences are beyond chance, and what could have been seen at all."""
    tested = [row for row in found if row.p_holm is not None]
    if not tested:
        return "No two conditions share enough pairs to be compared."
    beyond = [row for row in tested if row.p_holm is not None and row.p_holm < ALPHA]
    seen = [_told(row) for row in beyond[:3]]
    more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
    if beyond:
        text = (
            f"Beyond chance (Holm, p < {ALPHA}): {listed(seen)}{more}, of {len(tested)} contrasts."
        )
    else:
        text = (
            f"None of {len(tested)} differences between conditions is beyond chance (Holm, "
            f"p < {ALPHA}), which does not show that there is none."
        )
    least = [row.detectable for row in tested if not isinstance(row.detectable, NotEstimable)]
    if least:
        return f"{text} They would show differences of {min(least):.2f} to {max(least):.2f}."
    return (
        f"{text} Pairs of one task are not independent, and there are too few tasks to say how "
        "large a difference they would show."
    )


def _told(row: Contrast) -> str:
    value = getattr(row.difference, "value", 0.0)
    return (
        f"{row.second} − {row.first} {value:+.2f} in {OUTCOME_NAMES[row.outcome]} ({row.benchmark})"
    ).replace("-", "−")
