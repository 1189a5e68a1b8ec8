"""`tutorsim compare`: two runs side by side, paired."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.console import RenderableType
from rich.text import Text

from analysis.branches import BranchComparison, compare_branch, is_branch_of
from analysis.compare import Comparison, OutcomeDifference, compare_runs
from analysis.invariance import FormatInvariance, format_invariance_of_two
from analysis.sources import Source, open_source
from analysis.statistics import NotEstimable, to_json
from tutorsim.cli.branch_comparison import branch_shown
from tutorsim.cli.figures import estimate, p_value, plain_figure, signed
from tutorsim.cli.invariance import invariance_shown
from tutorsim.cli.options import report_options
from tutorsim.cli.overview import source_shown
from tutorsim.cli.render import (
    Prose,
    caption,
    heading,
    percent,
    publish,
    table,
)

__all__ = ["compare"]

Shown = Iterator[RenderableType]

OUTCOMES = {
    "final_score": "Final judge score",
    "score_gain": "Gain in judge score, tutored episodes",
    "final_code": "Tests passed at the end",
    "code_gain": "Gain in tests passed, tutored episodes",
    "success": "Success",
    "turns": "Tutoring turns",
}

_WHERE = {"first": "first run", "second": "second run", "across": "both runs"}


@click.command()
@click.argument("first", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("second", metavar="RUN", type=click.Path(path_type=Path))
@report_options
def compare(first: Path, second: Path, as_json: bool, output: Path | None) -> None:
    """Compare two RUN folders, paired on benchmark, task, persona and condition.

    Differences are second minus first over the pairs that both runs have complete, with a
    bootstrap over tasks and a permutation test that flips whole pairs; p-values carry Holm's
    correction over all rows. First attempts are drawn anew in each run, so pairs share their
    place in the grid and nothing else.

    Where the second is a branch of the first, their episodes share all that comes before the
    branch. Then the logged outcomes, the worst-case bounds of the first under what the branch
    changes, and the re-simulated outcomes stand side by side.

    \b
    --json gives:
      first, second, caption: names, and what answered each
      pairs, only_first, only_second: how many there are
      outcomes: [{benchmark condition outcome first second difference test p_holm}]
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
    one, two = open_source(first), open_source(second)
    if is_branch_of(one, two):
        branch, formats = compare_branch(one, two), format_invariance_of_two(one, two)
        value = {**branch.to_json(), "format_invariance": to_json(formats)}
        publish(_beside(one, two, branch, formats), value, as_json=as_json, output=output)
        return
    found = compare_runs(one, two)
    publish(_shown(one, two, found), found.to_json(), as_json=as_json, output=output)


def _beside(
    parent: Source,
    child: Source,
    found: BranchComparison,
    formats: Mapping[str, FormatInvariance | NotEstimable],
) -> Shown:
    yield from source_shown(parent)
    yield Text()
    yield from source_shown(child)
    yield Text()
    yield from branch_shown(found)
    yield from invariance_shown({_WHERE[where]: of for where, of in formats.items()})


def _shown(first: Source, second: Source, found: Comparison) -> Shown:
    yield from source_shown(first)
    yield Text()
    yield from source_shown(second)
    yield Text()
    yield Prose(
        f"Pairs in both: {found.pairs}; only in the first: {found.only_first}, only in the "
        f"second: {found.only_second}."
    )
    if not found.pairs:
        yield Prose("The runs share no pair, so no outcome can be compared.")
    for outcome, title in OUTCOMES.items():
        rows = [row for row in found.outcomes if row.outcome == outcome]
        if rows:
            yield Text()
            yield heading(title, "second − first")
            yield _outcome_table(rows)
    if found.outcomes:
        yield caption(
            "p: permutation of whole pairs, Holm's correction over all rows of all tables. "
            "“a to b”: 95 % intervals that resample tasks."
        )
    yield Text()
    yield heading("Same winner in the first turn", "share of shared episodes, in %")
    yield table(
        ("protocol", "same %"),
        [(name, estimate(share, unit=percent)) for name, share in found.same_winner.items()],
    )
    yield caption(found.caption)
    yield from invariance_shown(
        {_WHERE[where]: of for where, of in found.format_invariance.items()}
    )


def _outcome_table(rows: Sequence[OutcomeDifference]) -> RenderableType:
    return table(
        ("benchmark", "condition", "pairs", "first", "second", "difference", "p"),
        [
            (
                row.benchmark,
                row.condition,
                str(getattr(row.difference, "n", 0)),
                plain_figure(row.first),
                plain_figure(row.second),
                estimate(row.difference, unit=signed),
                p_value(row.test, row.p_holm),
            )
            for row in rows
        ],
        left=2,
    )
