"""`tutorsim compare`: two runs side by side, paired."""

from pathlib import Path
from typing import Any

import click

from tutorsim.analysis.pages.document_as_json import to_value
from tutorsim.analysis.systems.paired_comparison import compared
from tutorsim.analysis.systems.system_view import Asked, opened
from tutorsim.cli.claims_of_commands import publish_claimed
from tutorsim.cli.options import Remembering, claims_option, report_options
from tutorsim.cli.sources import RunPath, check_logs
from tutorsim.cli.terminal_documents import check_applies, document_shown
from tutorsim.kernel.cost_plan import load_prices


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
    --json gives, as `summary --json` does, a document with its sections; values has, of
    the conditions of a panel's run:
      contrasts: [{benchmark outcome first second test p_holm p_alone
                   difference detectable}]
    Of two panels' runs:
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
    paths = [path for path in (first, second) if path is not None]
    check_logs(*paths)
    for path in paths:
        check_applies(path, "compare")
    one, *two = (opened(path, asked=Asked(prices=load_prices())) for path in paths)
    document = compared(one, two[0] if two else None)
    shown = document_shown(document, full=full)
    publish_claimed(first, shown, lambda: to_value(document), second=second)
