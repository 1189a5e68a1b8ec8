"""What became of the students, as tables."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from analysis.metrics import Gain, Rounds, Success, SuccessRate
from analysis.threshold import AtThreshold
from tutorsim.cli.figures import bar, bounds, estimate
from tutorsim.cli.render import HELD, caption, heading, percent, table

__all__ = ["gains_shown", "persona_shown", "success_shown", "thresholds_shown"]

Shown = Iterator[RenderableType]
MEASURES = {"score": "score", "code": "tests"}


def success_shown(rates: Sequence[SuccessRate], rounds: Sequence[Rounds]) -> Shown:
    """Success and rounds by benchmark and condition."""
    turns = {(row.benchmark, row.condition): row for row in rounds}
    yield Text()
    yield heading("Success by condition", "all complete episodes")
    yield table(
        ("benchmark", "condition", "", "success %", "episodes", "tutored", "turns"),
        [
            (
                row.benchmark,
                row.condition,
                bar(row.rate),
                estimate(row.rate, unit=percent),
                str(row.episodes) + (f" (−{row.unscored})" if row.unscored else ""),
                str(turns[row.benchmark, row.condition].fired),
                estimate(turns[row.benchmark, row.condition].mean),
            )
            for row in rates
        ],
        left=3,
    )
    yield caption(
        "Episodes: (−n) of them without a last score, not in the rate. "
        "Tutored: episodes whose first attempt did not succeed. Turns: mean over all episodes. "
        "“a to b”: 95 % intervals that resample tasks."
    )


def gains_shown(gains: Sequence[Gain]) -> Shown:
    """First and last score and verdict of tutored episodes, and the gain."""
    yield Text()
    yield heading("Scores before and after tutoring", "tutored episodes")
    yield table(
        ("benchmark", "condition", "measure", "n", "initial", "final", "gain"),
        [
            (
                row.benchmark,
                row.condition,
                MEASURES[row.measure],
                str(row.n) + (f" (+{row.unscored} unscored)" if row.unscored else ""),
                estimate(row.initial),
                estimate(row.final),
                estimate(row.gain),
            )
            for row in gains
        ],
        left=3,
    )
    yield caption("Score: the judge's, from 0 to 1. Tests: share of programs that passed.")


def persona_shown(successes: Sequence[Success]) -> Shown:
    """Successes of scored episodes, persona by condition, one table a benchmark."""
    for benchmark in dict.fromkeys(row.benchmark for row in successes):
        rows = [row for row in successes if row.benchmark == benchmark]
        conditions = list(dict.fromkeys(row.condition for row in rows))
        cells = {(row.persona, row.condition): _share(row) for row in rows}
        yield Text()
        yield heading(f"Success by persona, {benchmark}", "successes / scored episodes")
        yield table(
            ("persona", *conditions),
            [
                (persona, *(cells.get((persona, c), "") for c in conditions))
                for persona in dict.fromkeys(row.persona for row in rows)
            ],
        )


def thresholds_shown(found: Mapping[float, Sequence[AtThreshold]]) -> Shown:
    """Outcomes under other success thresholds."""
    for threshold, rows in found.items():
        yield Text()
        yield heading(f"Success threshold {threshold:g}")
        yield table(
            ("benchmark", "condition", "episodes", "exact", "success %", "turns", "gain"),
            [
                (
                    row.benchmark,
                    row.condition,
                    str(row.episodes),
                    str(row.exact),
                    bounds(row.success, unit=percent),
                    bounds(row.turns),
                    bounds(row.gain),
                )
                for row in rows
            ],
            left=2,
        )
        yield caption(
            "Exact: episodes whose path the log holds to its end; the others are bounded, which "
            f"gives “a to b”. Gain: in judge score, over tutored episodes. {HELD}"
        )


def _share(row: Success) -> str:
    scored = getattr(row.rate, "n", 0)
    return f"{row.successes}/{scored}"
