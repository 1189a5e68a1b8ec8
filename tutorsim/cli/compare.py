"""`tutorsim compare`: two runs side by side, paired."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.recount_source import Source, open_source
from tutorsim.analysis.pages.values import to_value
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, to_json
from tutorsim.analysis.systems.paired_comparison import compare_conditions, compare_system_runs
from tutorsim.analysis.systems.panel.branch_beside_parent import branch_parts
from tutorsim.analysis.systems.panel.branches import BranchComparison, compare_branch, is_branch_of
from tutorsim.analysis.systems.panel.contrasts import (
    Contrast,
    contrast_table,
    contrast_words,
    contrasts_of,
)
from tutorsim.analysis.systems.panel.format_invariance import (
    FormatInvariance,
    askings_by_format_table,
    format_invariance_of_two,
    invariance_table,
)
from tutorsim.analysis.systems.panel.student_outcomes import OUTCOMES
from tutorsim.analysis.systems.panel.summary import comparison_verdict
from tutorsim.analysis.systems.panel.two_runs import (
    Comparison,
    compare_runs,
    differences_table,
    same_winner_table,
)
from tutorsim.analysis.systems.system_view import open_run, view_of
from tutorsim.cli.claims_file import publish_claimed
from tutorsim.cli.options import Remembering, claims_option, report_options
from tutorsim.cli.output_elements import Prose, caption
from tutorsim.cli.source_head import source_shown
from tutorsim.cli.sources import RunPath, check_logs
from tutorsim.cli.terminal_documents import check_applies, document_shown, parts_shown, system_run
from tutorsim.errors import UsageError
from tutorsim.kernel.cost_plan import PriceTable, load_prices

Shown = Iterator[RenderableType]

_WHERE = {"first": "first run", "second": "second run", "across": "both runs"}


@click.command(cls=Remembering)
@click.argument("first", metavar="RUN", type=RunPath())
@click.argument("second", metavar="[RUN]", required=False, type=RunPath())
@click.option("--full", is_flag=True, help="Show every outcome, and what else was compared.")
@claims_option(
    "Also write every number that is printed here, to be checked by `tutorsim verify --claims`."
)
@report_options
def compare(first: Path, second: Path | None, full: bool, **_: Any) -> None:
    """Compare two RUN folders, or the conditions of one, in pairs.

    The conditions of one run are paired on benchmark, task and persona; two runs also on
    condition.

    Differences are second minus first over the pairs that both runs have complete, with
    intervals over tasks and a test that flips signs by task, all pairs of a task together; p-values
    carry Holm's correction over all that is compared. First attempts are drawn separately in
    each run, so pairs share their place in the grid and nothing else.

    Where the second is a branch of the first, their episodes share all that comes before the
    branch. Then the logged outcomes, the worst-case bounds of the first under what the branch
    changes, and the re-simulated outcomes stand side by side.

    \b
    --json gives, of one run:
      source, verdict
      contrasts: [{benchmark outcome first second test p_holm p_alone
                   difference detectable}]
    Of two:
      first, second, caption: names, and what answered each
      pairs, only_first, only_second: how many there are
      outcomes: [{benchmark condition outcome first second difference test p_holm
                  differing}]
      same_winner: {protocol: share of first turns that both gave to one role}
      format_invariance: {first second across: {from_vote again again_consistent
        pairs: [{given other pairs abstained consistent same_top turns
                 same_winner}]
        askings: [{form pairs abstained same consistent}]}}, or not_estimable
    For a branch:
      parent, child, changes, continuations, caption
      cells: [{benchmark condition episodes covered continued left_out draws failed
               left moves: [{turn before after draws}]
               calls: {reused paid input_tokens output_tokens models}
               outcomes: [{outcome logged before after: {low high n} interval estimate
                           continued_logged continued_resimulated difference test
                           p_holm}]}]
      paths: [{episode_id benchmark condition turn continuations left logged draws
               resimulated}]
      format_invariance: as above
    Estimates are {value n interval: {low high method}}; what cannot be estimated
    is {not_estimable: reason}.
    """
    check_logs(*filter(None, (first, second)))
    if second is None:
        _publish_conditions(first, full=full)
        return
    for path in (first, second):
        check_applies(path, "compare")
    runs = [run for run in (system_run(first), system_run(second)) if run is not None]
    if runs:
        _publish_systems(first, second, full=full)
        return
    one, two = open_source(first), open_source(second)
    if is_branch_of(one, two):
        branch, formats = compare_branch(one, two), format_invariance_of_two(one, two)
        value = {**branch.to_json(), "format_invariance": to_json(formats)}
        publish_claimed(first, _beside(one, two, branch, formats), lambda: value, second=second)
        return
    found = compare_runs(one, two)
    value = {**found.to_json(), "verdict": list(comparison_verdict(found))}
    publish_claimed(first, _shown(one, two, found, full=full), lambda: value, second=second)


def _publish_conditions(run: Path, *, full: bool) -> None:
    """One run: its conditions against one another."""
    check_applies(run, "compare")
    whole = system_run(run)
    if whole is not None:
        view = view_of(whole.head.system)
        cluster = view.cluster_of(whole)
        document = compare_conditions(whole, view.outcomes, cluster=cluster, over=view.over)
        shown = document_shown(document, full=full)
        publish_claimed(run, shown, lambda: to_value(document))
        return
    source = open_source(run)
    if source.run is None:
        raise UsageError(
            f"{run} holds ballots from elsewhere, which have no outcomes to compare.",
            hint=f"Use `tutorsim recount {run}`.",
        )
    found = contrasts_of(source, OUTCOMES)
    words = contrast_words(found)
    value = {"source": source.name, "verdict": [words], "contrasts": to_json(found)}
    shown = _conditions_shown(source, found, words, full=full)
    publish_claimed(run, shown, lambda: value)


def _conditions_shown(
    source: Source, found: Sequence[Contrast], words: str, *, full: bool
) -> Shown:
    """Every contrast, or those of success alone."""
    yield from source_shown(source)
    yield Text()
    yield Prose(words)
    made = contrast_table(
        [row for row in found if full or row.outcome == "success"], family=len(found)
    )
    yield from parts_shown([made], every_row=full)
    if not full:
        yield Text()
        yield caption("More: --full shows every outcome.")


def _publish_systems(first: Path, second: Path, *, full: bool) -> None:
    """Two runs of which one at least is of a system other than the panel."""
    one, two = open_run(first), open_run(second)
    view = view_of(two.head.system)
    cluster = view.cluster_of(two)
    document = compare_system_runs(one, two, view.outcomes, cluster=cluster, over=view.over)
    shown = document_shown(document, full=full)
    publish_claimed(first, shown, lambda: to_value(document), second=second)


def _beside(
    parent: Source,
    child: Source,
    found: BranchComparison,
    formats: Mapping[str, FormatInvariance | NotEstimable],
) -> Shown:
    yield from _heads(parent, child)
    prices = load_prices()
    dollars = [_dollars(cell.calls.tokens, prices) for cell in found.cells]
    yield from parts_shown(branch_parts(found, dollars, prices.as_of))
    yield from _formats_shown(formats)


def _dollars(tokens: Mapping[str, tuple[int, int]], prices: PriceTable) -> float | None:
    """What the calls paid for come to; `None` where a model has no price."""
    costs = [prices.cost(model, *counts) for model, counts in tokens.items()]
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if len(known) == len(costs) else None


def _heads(first: Source, second: Source) -> Shown:
    yield from source_shown(first)
    yield Text()
    yield from source_shown(second)


def _formats_shown(found: Mapping[str, FormatInvariance | NotEstimable]) -> Shown:
    """Ballots of one voter in two formats, in each run and across both."""
    places = {_WHERE[where]: of for where, of in found.items()}
    untested = [f"{w}: {of.reason}." for w, of in places.items() if isinstance(of, NotEstimable)]
    yield Text()
    yield from parts_shown(untested)
    again = askings_by_format_table(places)
    yield from parts_shown([invariance_table(places), again])
    if again is None and len(untested) < len(places):
        yield caption(
            "No prompt was re-asked, so how far one format agrees with itself is unknown."
        )


def _shown(first: Source, second: Source, found: Comparison, *, full: bool) -> Shown:
    yield from _heads(first, second)
    yield Text()
    yield from parts_shown(comparison_verdict(found))
    if not full:
        rows = [row for row in found.outcomes if row.outcome == "success" and row.differing]
        yield from parts_shown([differences_table(rows)])
        yield Text()
        yield caption("More: --full shows every outcome.")
        return
    winners = same_winner_table(found.same_winner, found.caption)
    yield from parts_shown([differences_table(found.outcomes), winners], every_row=True)
    yield from _formats_shown(found.format_invariance)
