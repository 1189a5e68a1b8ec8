"""Tables of scores: by condition, by the official settings, beside printed figures, confusion."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from tutorsim.analysis.report.document import Table
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, PermutationTest
from tutorsim.analysis.systems.oversight.label_scores import HEADLINE, headline
from tutorsim.analysis.systems.oversight.published_figures import printed
from tutorsim.analysis.systems.oversight.reply_readings import reread_label
from tutorsim.analysis.systems.oversight.run_inputs import Evidence, interval_text
from tutorsim.analysis.systems.oversight.scored_items import (
    Pair,
    by_condition,
    changed_labels,
    complete,
    judged,
    pair_of,
    relabelled,
)
from tutorsim.analysis.systems.oversight.scores_by_group import (
    BASELINES,
    Evaluation,
    baselines,
    evaluate,
)
from tutorsim.records.oversight import LABELS, OversightRecord
from tutorsim.vocabularies import READINGS, Reading

__all__ = [
    "ablation_table",
    "confusion_table",
    "counts_table",
    "differences_table",
    "frame",
    "official_table",
    "printed_table",
    "readings_table",
    "scores_table",
]

_SHOWN: Final = (
    "mistake_accuracy",
    "mistake_macro_f1",
    "guidance_accuracy",
    "guidance_macro_f1",
    "headline",
)
_TRIVIAL_NOTE: Final = "Trivial baselines give every item one class, and stand below."


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a table, with the columns of the first; long enough to see every type."""
    return pl.DataFrame(rows, infer_schema_length=None)


def counts_table(evidence: Evidence) -> Table | None:
    """Items by condition: complete, failed, unjudged, with gold."""
    rows = [
        {
            "condition": name,
            "items": len(records),
            "dialogues": len({record.conversation for record in records}),
            "failed": sum(record.status == "failed" for record in records),
            "unjudged": sum(record.unjudged for record in records),
            "skipped_debates": sum(record.skipped for record in records),
            "with_gold": sum(record.gold is not None for record in records),
            "calls": sum(len(record.calls) for record in records),
        }
        for name, records in by_condition(evidence.records).items()
    ]
    if not any(row["skipped_debates"] for row in rows):
        rows = [{k: v for k, v in row.items() if k != "skipped_debates"} for row in rows]
    caption = "Every item of the log. A repeated conversation is one dialogue."
    return Table("items", "Items", caption, frame(rows)) if rows else None


def scores_table(evidence: Evidence) -> Table | None:
    """Scores by condition beside the trivial baselines; `None` without gold."""
    if not evidence.has_gold:
        return None
    rows = [_condition_row(name, found) for name, found in evidence.evaluations.items()]
    rows += _trivial_rows(evidence)
    maps = {"mistake_map": "lenient", "guidance_map": "plain", **evidence.settings}
    return Table(
        "scores",
        "Scores by condition",
        f"Headline: {HEADLINE}. Maps: mistake {maps['mistake_map']}, guidance "
        f"{maps['guidance_map']}. In brackets, {_method(evidence)}. An unjudged item is wrong for "
        f"every score. {_TRIVIAL_NOTE}",
        frame(rows),
    )


def _method(evidence: Evidence) -> str:
    estimates = (
        estimate
        for found in evidence.evaluations.values()
        for estimate in found.metrics.values()
        if isinstance(estimate, Estimate)
    )
    methods = (e.interval.method for e in estimates if not isinstance(e.interval, NotEstimable))
    return next(methods, "no interval, as the dialogues are too few")


def _condition_row(name: str, found: Evaluation) -> dict[str, Any]:
    return {
        "condition": name,
        "items": found.items,
        "dialogues": found.dialogues,
        "unjudged": found.labels["guidance"].unjudged,
        **{metric: interval_text(found.metrics[metric]) for metric in _SHOWN},
    }


def _trivial_rows(evidence: Evidence) -> Iterator[dict[str, Any]]:
    items = max(evidence.judged.values(), key=len)
    found = baselines(items)
    for name, (label, value) in BASELINES.items():
        scores = {
            f"{label}_accuracy": found[name].accuracy,
            f"{label}_macro_f1": found[name].macro_f1,
        }
        yield {
            "condition": f"{name} ({label} = {value})",
            "items": found[name].n,
            "dialogues": len({item.conversation for item in items}),
            "unjudged": 0,
            **{metric: f"{scores[metric]:.4f}" if metric in scores else "–" for metric in _SHOWN},
        }


_OFFICIAL: Final = {
    ("guidance", "exact"): ("guidance_accuracy", "guidance_macro_f1"),
    ("guidance", "lenient"): ("guidance_lenient_accuracy", "guidance_lenient_macro_f1"),
    ("mistake", "lenient"): ("mistake_accuracy", "mistake_macro_f1"),
}
_BEST: Final = "BEA 2025 shared task, best of all teams"


def official_table(evidence: Evidence) -> Table | None:
    """The shared task's settings, beside its best results."""
    if not evidence.official:
        return None
    rows = [
        {
            "label": label,
            "setting": setting,
            "condition": condition,
            **{
                name: interval_text(found.metrics[metric])
                for name, metric in zip(("accuracy", "macro_f1"), metrics, strict=True)
            },
            **{
                f"best_{name}": printed(
                    name, _BEST, label=label, setting=setting, system="bea_best"
                )
                for name in ("accuracy", "macro_f1")
            },
        }
        for (label, setting), metrics in _OFFICIAL.items()
        for condition, found in evidence.official.items()
    ]
    return Table(
        "official",
        "Official settings of the shared task",
        "Maps: mistake lenient, guidance plain, whatever the study's. Lenient guidance takes "
        "partial and effective together. Exact scores of the mistake are not printed: its labels "
        "are binary, and a binary prediction cannot be one of three classes. The best results are "
        "of other test data.",
        frame(rows),
    )


def confusion_table(evidence: Evidence) -> Table | None:
    """Confusion matrices, rows actual."""
    rows = [
        {
            "condition": condition,
            "label": label,
            "actual": actual,
            **{f"predicted_{p}": _count(matrix, p, actual) for p in range(3)},
            "unjudged": int(matrix[actual, -1]),
        }
        for condition, found in evidence.evaluations.items()
        for label, matrix in found.confusion.items()
        for actual in range(len(matrix))
    ]
    if not rows:
        return None
    caption = "Rows actual, columns predicted; a dash stands for a class that the label lacks."
    return Table("confusion", "Confusion matrices", caption, frame(rows))


def _count(matrix: Any, predicted: int, actual: int) -> int | None:
    return int(matrix[actual, predicted]) if predicted < matrix.shape[1] - 1 else None


def differences_table(evidence: Evidence) -> Table | None:
    """Paired differences of the headline."""
    rows = [
        {
            "first": row.first,
            "second": row.second,
            "items": row.items,
            "difference": row.test.difference,
            "p_value": row.test.p_value,
            "p_holm": row.p_holm,
        }
        for row in evidence.differences
        if isinstance(row.test, PermutationTest)
    ]
    if not rows:
        return None
    return Table(
        "differences",
        "Paired differences of the headline",
        "First minus second, on the items that both have. Permutation test that swaps the two "
        "conditions within whole dialogues; p-values corrected by Holm over all pairs.",
        frame(rows),
    )


def readings_table(records: Sequence[OversightRecord]) -> Table | None:
    """Labels and headline under every reading of the logged replies, by condition."""
    rows = [
        row
        for condition, logged in by_condition(complete(records)).items()
        for row in _reading_rows(condition, logged)
    ]
    if not rows:
        return None
    return Table(
        "readings",
        "Other readings of the replies",
        "The run reads as `standard`. `strict` takes exactly the form asked for; `lenient` the "
        "last line of labels in any order, and types that the run forgives on a second asking. "
        "`changed` counts labels, two an item. A reply that only the strict reader cannot read "
        "would have been asked for again, which nobody recorded: the item has no label.",
        frame(rows),
    )


def _reading_rows(condition: str, logged: Sequence[OversightRecord]) -> Iterator[dict[str, Any]]:
    rows = [[_pair_under(name, record) for name in READINGS] for record in logged]
    pairs = dict(zip(READINGS, zip(*rows, strict=True), strict=True))
    places, gold = [i for i, r in enumerate(logged) if r.gold is not None], judged(logged)
    groups = {
        name: relabelled(gold, [labels[place] for place in places])
        for name, labels in pairs.items()
    }
    found = evaluate(groups, seed=0, metrics=())
    for name, labels in pairs.items():
        yield {
            "condition": condition,
            "reading": name,
            "items": len(labels),
            "changed": changed_labels(pairs["standard"], labels),
            "unjudged": sum(None in pair for pair in labels),
            "headline": float(headline(*found[name].confusion.values())) if found else None,
        }


def _pair_under(reading: Reading, record: OversightRecord) -> Pair:
    return pair_of(record.label if reading == "standard" else reread_label(record, reading))


_ABLATION: Final = {
    "no_briefing": "no_briefing",
    "no_advocate": "no_advocate",
    "no_debate": "no_debate",
    "hpo": "no_tuning",
}
"""Condition → its name in the printed table of parts taken away."""


def ablation_table(evidence: Evidence) -> Table | None:
    """What each part of the debate adds, beside the printed figures; only if it was run."""
    found = evidence.evaluations
    if "hpo" not in found or not {"no_briefing", "no_advocate", "no_debate"} & found.keys():
        return None
    rows = [
        {
            "condition": condition,
            "headline": interval_text(found[condition].metrics["headline"]),
            "printed": printed("macro_f1", "Table 2", label="both", system=name),
        }
        for condition, name in _ABLATION.items()
        if condition in found
    ]
    caption = (
        "The whole debate without one part. Printed: Table 2 of the oversight study, whose data "
        "and models are others; its row of multi-turn debate stands beside `no_debate`."
    )
    return Table("ablation", "Parts of the debate taken away", caption, frame(rows))


def printed_table(evidence: Evidence) -> Table | None:
    """Scores by condition beside the printed ones of the same name."""
    rows = [
        {
            "condition": condition,
            "score": f"{label} {quantity}",
            "here": getattr(found.labels[label], ours) if label in LABELS else _headline(found),
            "printed": value,
        }
        for condition, found in evidence.evaluations.items()
        for label, quantity, ours in _PRINTED
        if (value := _printed(condition, label, quantity)) is not None
    ]
    if not rows:
        return None
    return Table(
        "printed",
        "Beside the oversight study's figures",
        "Printed: Tables 1 and 4, other data and other models. That study's confusion matrix of "
        "guidance gives accuracy .8451 and macro-F1 .8437 where its text has .89 and .83; which "
        "items its gold labels are of, it does not say.",
        frame(rows),
    )


_PRINTED: Final = (
    ("mistake", "accuracy", "accuracy"),
    ("mistake", "f1", "macro_f1"),
    ("guidance", "accuracy", "accuracy"),
    ("guidance", "f1", "macro_f1"),
    ("both", "macro_f1", ""),
)


def _printed(condition: str, label: str, quantity: str) -> float | None:
    for where in ("Table 1", "Table 4"):
        value = printed(quantity, where, label=label, system=condition)
        if value is not None:
            return value
    return None


def _headline(found: Evaluation) -> float | None:
    estimate = found.metrics["headline"]
    return estimate.value if isinstance(estimate, Estimate) else None
