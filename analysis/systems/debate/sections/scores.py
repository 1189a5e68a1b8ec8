"""How well each condition does, how soon it ends, and what it costs."""

from collections.abc import Sequence

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.report.document import Section
from tutorsim.analysis.systems.debate.answer_scores import Cell, cells, costs, grouped, turn_shares
from tutorsim.analysis.systems.debate.published_figures import MODELS, printed
from tutorsim.analysis.systems.debate.recounted import family
from tutorsim.analysis.systems.debate.sections.shared_cells import (
    STUDY_RULES,
    first_printed,
    one_number,
    percent_estimate,
    slim,
)
from tutorsim.analysis.views.cells import present
from tutorsim.records.debate import DebateRecord

__all__ = [
    "answerable_section",
    "cost_section",
    "performance_section",
    "turns_section",
]


def performance_section(records: Sequence[DebateRecord], *, beside_printed: bool) -> Section:
    """Score by benchmark, variant and condition."""
    found = cells(records)
    columns = [
        *("benchmark", "variant", "condition", "n", "score", "sd", "decided", "turns"),
        *(("printed 8B", "printed 70B") if beside_printed else ()),
    ]
    return Section(
        "performance",
        "Performance",
        "How often each condition answers right. Scores are percent: accuracy, and token F1 for "
        "squad2. In brackets the 95 % interval over tasks; sd is over repeats. An "
        "undecided debate is scored by what was delivered, and `full` delivers nothing.",
        tables=present(
            slim(
                "performance",
                "Score by benchmark, variant and condition",
                _failed(found)
                + (" Printed: mean ± sd over three runs of the study." if beside_printed else ""),
                columns,
                [_performance_row(cell, beside_printed=beside_printed) for cell in found],
            ),
            slim(
                "unread",
                "What could not be read",
                "Unclear: messages without a tag that was asked for; they count as not agreeing. "
                "Abstained: ballots that could not be read twice. Unreadable: delivered answers "
                "that name no option; they are wrong.",
                ["variant", "condition", "unclear", "abstained", "unreadable"],
                _unread_rows(found),
            ),
        ),
    )


def _unread_rows(found: Sequence[Cell]) -> list[tuple[object, ...]]:
    """Counts by variant and condition, where there are any."""
    sums: dict[tuple[str, str], list[int]] = {}
    for cell in found:
        counts = sums.setdefault((cell.variant, cell.condition), [0, 0, 0])
        for i, count in enumerate((cell.unclear, cell.abstentions, cell.unreadable)):
            counts[i] += count
    return [(*key, *counts) for key, counts in sums.items() if any(counts)]


def _failed(found: Sequence[Cell]) -> str:
    failed = sum(cell.failed for cell in found)
    return f"{counted(failed, 'failed episode')} left out." if failed else "No episode failed."


def _performance_row(cell: Cell, *, beside_printed: bool) -> tuple[object, ...]:
    row = (
        cell.benchmark,
        cell.variant,
        cell.condition,
        cell.episodes,
        percent_estimate(cell.score),
        one_number(cell.sd),
        "–" if cell.decided is None else f"{100 * cell.decided:.0f} %",
        one_number(cell.turns, digits=2),
    )
    if not beside_printed:
        return row
    beside = {
        model: printed(
            ("accuracy", "f1"), model=model, benchmark=cell.benchmark, condition=cell.condition
        )
        for model in MODELS
    }
    return (*row, *(first_printed(beside[model]) for model in MODELS))


def turns_section(records: Sequence[DebateRecord], *, beside_printed: bool) -> Section:
    """In which turn debates end."""
    rows: list[tuple[object, ...]] = []
    turns = max((record.setup.max_turns or record.turns_taken for record in records), default=0)
    for (benchmark, variant, condition), group in grouped(records).items():
        shares = turn_shares(group)
        if shares and condition != "full":
            cells_ = [one_number(shares.get(turn)) for turn in range(1, turns + 1)]
            rows.append((benchmark, variant, condition, "this run", *cells_))
    for condition in STUDY_RULES if beside_printed else ():
        found = {
            one.cell["turn"]: one.text for one in printed("turns_to_decision", condition=condition)
        }
        if found:
            cells_ = [found.get(turn, "–") for turn in range(1, turns + 1)]
            rows.append(("mmlu", "default", condition, "printed, 8B", *cells_))
    return Section(
        "turns",
        "Turns to decision",
        "Percent of debates that end in each turn. The last turn also holds debates that were "
        "still undecided.",
        tables=present(
            slim(
                "turns",
                "Where debates end",
                "Printed: Table 2 of the study." if beside_printed else "",
                ["benchmark", "variant", "condition", "source"]
                + [f"turn {turn}" for turn in range(1, turns + 1)],
                rows,
            )
        ),
    )


def answerable_section(records: Sequence[DebateRecord]) -> Section | None:
    """F1 of passages with and without an answer; `None` without such tasks."""
    open_ones = [record for record in records if record.answer_kind == "passage"]
    if not open_ones:
        return None
    rows = []
    for answerable in (True, False):
        part = [record for record in open_ones if bool(record.gold) == answerable]
        for cell in cells(part):
            if cell.condition != "full":
                kind = "answerable" if answerable else "not answerable"
                named = (kind, cell.variant, cell.condition, cell.episodes)
                rows.append((*named, percent_estimate(cell.score)))
    return Section(
        "answerable",
        "Answerable and not",
        "Token F1 on passages that hold an answer, and on those that hold none, where only "
        "`unknown` or an empty answer is right.",
        tables=present(
            slim(
                "answerable",
                "F1 by kind of question",
                "Percent, with the 95 % interval over tasks.",
                ["question", "variant", "condition", "episodes", "F1"],
                rows,
            )
        ),
    )


def cost_section(records: Sequence[DebateRecord], *, beside_printed: bool) -> Section:
    """Calls and tokens, as multiples of one model that thinks step by step."""
    rows = []
    for cell in costs(records):
        beside = first_printed(printed("compute_factor", family=family(cell.condition)))
        solo = cell.condition in ("baseline", "baseline_cot", "self_refine", "full")
        row = (cell.variant, cell.condition, cell.debates, one_number(cell.calls))
        factors = (one_number(cell.call_factor), one_number(cell.token_factor))
        printed_cell = ("–" if solo else beside,) if beside_printed else ()
        rows.append((*row, one_number(cell.tokens, digits=0), *factors, *printed_cell))
    return Section(
        "cost",
        "Cost",
        "What an episode costs, and how many times that of `baseline_cot` on the same tasks.",
        tables=present(
            slim(
                "cost",
                "Calls and tokens of an episode",
                "Means over complete episodes; tokens are input and output together.",
                [
                    *("variant", "condition", "episodes", "calls", "tokens"),
                    *("calls × CoT", "tokens × CoT"),
                    *(("printed ×",) if beside_printed else ()),
                ],
                rows,
            )
        ),
    )
