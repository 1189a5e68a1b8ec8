"""Tables of a report about duels: wins in both orders, who should have spoken, quality."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import stdev
from typing import Any, Final

import polars as pl

from tutorsim.analysis.pages.cells import Table, p_value
from tutorsim.analysis.pages.document import Answer
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.statistics.intervals_and_tests import (
    ALPHA,
    NotEstimable,
    PermutationTest,
    fewest_tasks,
    flips_by_task,
    share_over_tasks,
)
from tutorsim.analysis.systems.group.published_figures import printed
from tutorsim.records.group import DuelRecord

Duels = Sequence[DuelRecord]
SYSTEMS: Final = ("self_select", "next_speaker")


def _frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), infer_schema_length=None)


def _rate(duels: Duels, holds: Callable[[DuelRecord], bool]) -> dict[str, float | None]:
    """A share of duels with its interval over scenarios; nulls where there is none."""
    found = share_over_tasks([holds(duel) for duel in duels], [duel.task_id for duel in duels])
    if isinstance(found, NotEstimable):
        return {"share": None, "low": None, "high": None}
    return {"share": found.value, "low": found.low, "high": found.high}


def duels_table(duels: Duels) -> Table:
    """Wins, draws and losses of self-selection, and what the first order alone would say."""
    judged = [duel for duel in duels if duel.result is not None]
    rows = []
    for result in ("win", "draw", "loss"):
        came = partial(_came_to, result=result)
        text, files = (printed("duel", public=public, result=result) for public in (False, True))
        rows.append(
            {
                "result": result,
                "duels": sum(map(came, judged)),
                **_rate(judged, came),
                "first_order_only": sum(duel.first_order == result for duel in judged),
                "printed": None if text is None else text / 100,
                "public_files": None if files is None else files / 100,
            }
        )
    dependent = sum(duel.order_dependent for duel in judged)
    caption = (
        f"From the view of self-selection, {counted(len(judged), 'duel')}, each judged in both "
        f"orders; opposite verdicts in the two orders gave {counted(dependent, 'draw')}. Left out: "
        f"{counted(len(duels) - len(judged), 'duel')} without a readable verdict. Intervals: "
        "95 %, over scenarios. Printed: 61 samples, judged once each; public files: all 84, "
        "computed by us."
    )
    return Table("duels", "Self-selection against prediction", caption, _frame(rows))


def duels_answer(duels: Duels, *, seed: int) -> Answer:
    """Whether self-selection is better than prediction, by a test over scenarios.

    A win counts 1, a loss −1 and a draw 0; the duels of a scenario are flipped together.

    Args:
        duels: The duels.
        seed: Of the test's draws.
    """
    judged = [duel for duel in duels if duel.result is not None]
    results = Counter(str(duel.result) for duel in judged)
    worth = [(duel.result == "win") - (duel.result == "loss") for duel in judged]
    test = flips_by_task(worth, [duel.task_id for duel in judged], seed=seed)
    said = ", ".join(
        counted(results[result], result, plural=plural)
        for result, plural in (("win", "wins"), ("loss", "losses"), ("draw", "draws"))
    )
    verdict, tested = "Not shown", "No duel was judged"
    if isinstance(test, PermutationTest):
        if test.p_value < ALPHA:
            verdict = "Yes" if test.difference > 0 else "No, worse"
        scenarios = counted(test.tasks, "scenario")
        tested = f"Tested over {scenarios} by flipping signs, p {p_value(test.p_value)}"
        if test.tasks < fewest_tasks(1):
            tested = f"{scenarios} cannot show it, {fewest_tasks(1)} are the fewest that could"
    dependent = sum(duel.order_dependent for duel in judged)
    return Answer(
        "Is self-selection better than prediction?",
        f"{verdict}: {said}",
        f"{tested}; "
        f"{counted(dependent, 'duel')} {'depends' if dependent == 1 else 'depend'} on the order in "
        f"which the judge reads, {len(duels) - len(judged)} had no readable verdict.",
        "duels",
    )


def hits_table(duels: Duels) -> Table:
    """How often the expected speaker speaks, by system and by kind; no judge is needed."""
    rows = []
    kinds = ("all", *dict.fromkeys(duel.kind for duel in duels))
    for kind in kinds:
        some = [duel for duel in duels if kind in ("all", duel.kind)]
        for system in SYSTEMS:
            hit = partial(_hit, system=system)
            files = printed("speaker_hit", public=True, system=system) if kind == "all" else None
            rows.append(
                {
                    "kind": kind,
                    "system": system,
                    "hits": sum(map(hit, some)),
                    "duels": len(some),
                    **_rate(some, hit),
                    "public_files": None if files is None else files / 100,
                }
            )
    caption = (
        "Share of duels in which the expected speaker speaks, 95 % over scenarios. Public files: "
        "computed by us."
    )
    return Table("speaker_hit", "Who should have spoken", caption, _frame(rows))


def _came_to(duel: DuelRecord, result: str) -> bool:
    return duel.result == result


def _hit(duel: DuelRecord, system: str) -> bool:
    return _spoke(duel, system) == duel.expected_speaker


def _spoke(duel: DuelRecord, system: str) -> str | None:
    if system == "self_select":
        return duel.self_selected
    return duel.prediction.named if duel.prediction else None


def quality_table(duels: Duels) -> Table | None:
    """Mean rating per kind and system, and the spread between raters."""
    rows = []
    for kind in dict.fromkeys(duel.kind for duel in duels):
        for system in SYSTEMS:
            by_duel = [_rater_means(duel, system) for duel in duels if duel.kind == kind]
            rated = [means for means in by_duel if means]
            if rated:
                spreads = [stdev(means) for means in rated if len(means) > 1]
                rows.append(
                    {
                        "kind": kind,
                        "system": system,
                        "replies": len(rated),
                        "mean": sum(sum(means) / len(means) for means in rated) / len(rated),
                        "spread_of_raters": sum(spreads) / len(spreads) if spreads else None,
                        "printed": printed("turn_quality", kind=kind)
                        if system == "self_select"
                        else None,
                    }
                )
    if not rows:
        return None
    caption = (
        "Mean over replies of the mean over raters and criteria, 1 to 10; spread: standard "
        "deviation between raters of one reply. The printed scores rate likeness to a real turn."
    )
    return Table("quality", "Quality of the tenth message", caption, _frame(rows))


def _rater_means(duel: DuelRecord, system: str) -> list[float]:
    """Each rater's mean over criteria for one reply."""
    scores = [rating.scores for rating in duel.ratings if rating.system == system]
    return [sum(one.values()) / len(one) for one in scores if one]
