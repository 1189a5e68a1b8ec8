"""A run's recount: who would have spoken under other settings."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice, product
from typing import Any, Final

import polars as pl

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.report.document import Answer, Document, Section, Table
from tutorsim.analysis.systems.group.exported_tables import BIDS
from tutorsim.analysis.systems.group.other_settings import (
    Change,
    Recounted,
    changed_rule,
    curve,
    recounted,
)
from tutorsim.analysis.systems.group.other_speakers import Cycles, cycles_of
from tutorsim.analysis.systems.group.published_figures import printed
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.records.group import DuelRecord, LessonRecord
from tutorsim.systems.group.speaker_selection import CRITERIA, Rule

__all__ = [
    "THRESHOLDS",
    "group_settings",
    "logged_rule",
    "parts_of",
    "recount_document",
    "run_cycles",
    "threshold_table",
]

THRESHOLDS: Final = ("2.5", "3.0", "3.5", "4.0", "4.5")
"""Thresholds of the curve, those of the printed figures."""
_PIECE: Final = 200
"""Lessons that are held at a time while their thoughts are gathered."""
_MOST_VALUES: Final = 400
"""Combinations of changed settings that one recount answers."""


def parts_of(run: SystemRun) -> tuple[list[LessonRecord], list[DuelRecord]]:
    """The complete lessons and duels of a run."""
    whole = [record for record in run.episodes if record.status == "complete"]
    lessons = [record for record in whole if isinstance(record, LessonRecord)]
    return lessons, [record for record in whole if isinstance(record, DuelRecord)]


def group_settings(run: SystemRun) -> Mapping[str, Any]:
    """The settings of `[group]` that are not their default."""
    found: Mapping[str, Any] = getattr(run.head.study, "settings", {}).get("group", {})
    return found


def logged_rule(run: SystemRun) -> Rule:
    """The rule that the run was recorded under."""
    settings = group_settings(run)
    default = Rule()
    return Rule(
        weight=_exact(settings.get("lambda"), default.weight),
        threshold=_exact(settings.get("threshold"), default.threshold),
        interrupt_threshold=_exact(
            settings.get("interrupt_threshold"), default.interrupt_threshold
        ),
        silence=settings.get("silence", default.silence),
        selection=settings.get("selection", default.selection),
        criteria=CRITERIA,
    )


def _exact(value: float | None, default: Fraction) -> Fraction:
    return default if value is None else Fraction(str(value))


def run_cycles(run: SystemRun) -> Cycles:
    """The cycles of a run's complete lessons; goes through its records once."""
    lessons = (
        one for one in run.episodes if isinstance(one, LessonRecord) and one.status == "complete"
    )
    pieces = iter(lambda: tuple(islice(lessons, _PIECE)), ())
    frames = [BIDS.frame(piece, run.head) for piece in pieces]
    return cycles_of(pl.concat(frames) if frames else BIDS.frame((), run.head))


def threshold_table(run: SystemRun, cycles: Cycles) -> Table:
    """The share of cycles with a speaker at each threshold, beside the authors' public files."""
    rule = logged_rule(run)
    rules = {value: rule._replace(threshold=Fraction(value)) for value in THRESHOLDS}
    table = curve(cycles, recounted(cycles, rules)).filter(pl.col("agent") == "")
    shares = [printed("turns_with_speaker", public=True, threshold=float(x)) for x in THRESHOLDS]
    data = table.select(
        pl.col("setting").alias("threshold"),
        pl.col("share").alias("somebody_speaks"),
        pl.Series("public_files", [None if x is None else x / 100 for x in shares]),
        pl.col("diverged").alias("lessons_that_differ"),
        pl.col("coverage").alias("share_before_first_difference"),
    )
    caption = (
        "Somebody speaks: share of logged cycles. Public files: the same share of the authors' 610 "
        "turns, computed by us."
    )
    return Table("thresholds", "Who would have spoken", caption, data)


def recount_document(run: SystemRun, changes: Mapping[str, tuple[str, ...]]) -> Document:
    """Who would have spoken under other settings, exact at every logged event.

    Raises:
        UsageError: On an unknown setting or a value outside its range.
    """
    cycles, logged = run_cycles(run), logged_rule(run)
    chosen = changes or {"threshold": THRESHOLDS}
    combined = list(product(*([Change(key, x) for x in values] for key, values in chosen.items())))
    rules = {
        ", ".join(f"{c.key}={c.value}" for c in combination): changed_rule(logged, combination)
        for combination in combined[:_MOST_VALUES]
    }
    found = recounted(cycles, rules)
    table = Table(
        "settings",
        "Who would have spoken",
        "Shares of logged cycles, everything said before held fixed; agent – stands for anybody.",
        curve(cycles, found).with_columns(pl.col("agent").replace("", None)),
    )
    return framed(
        run,
        summary=f"{counted(len(cycles.event), 'cycle')} of "
        f"{counted(len(cycles.starts), 'lesson')} under {counted(len(rules), 'setting')}.",
        answers=tuple(_recount_answers(found)),
        sections=(
            Section("settings", "Settings", "Exact from logged scores.", tables=(table,)),
            Section(
                "divergences",
                "First differences",
                "Nothing is claimed after a lesson's first difference: what would have been said "
                "next, nobody recorded.",
                tables=(_divergence_table(found),),
            ),
        ),
    )


def _recount_answers(found: Mapping[str, Recounted]) -> Iterator[Answer]:
    for label, (_, lessons) in list(found.items())[:5]:
        differ = lessons["event"].is_not_null().sum()
        yield Answer(
            f"With {label}?",
            f"{differ} of {counted(lessons.height, 'lesson')} would have gone another way",
            "The table says at which event, and who would have spoken there.",
            "divergences",
        )


def _divergence_table(found: Mapping[str, Recounted]) -> Table:
    data = pl.concat(
        lessons.select(pl.lit(label).alias("setting"), pl.all())
        for label, (_, lessons) in found.items()
    )
    caption = (
        "Another agent speaks, nobody does any more, or somebody does at last; coverage: share of "
        "the lesson's cycles before."
    )
    return Table("divergences", "First event that differs", caption, data)
