"""`tutorsim compare` and `tutorsim diverge`: two runs in pairs, and where a rule would turn."""

from pathlib import Path
from typing import Any

import click

from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.pages.document_as_json_and_as_claims import to_value
from tutorsim.analysis.runs.write_export_and_preflib_files import write_frames
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import compared
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Asked,
    Leaving,
    opened,
    view_for,
)
from tutorsim.cli.ballot_options import panel_option
from tutorsim.cli.claims_options_and_write_or_check_claims import publish_claimed
from tutorsim.cli.console_progress_and_safe_text import counted
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs
from tutorsim.cli.options_that_commands_share import (
    Remembering,
    claims_option,
    order_option,
    report_options,
    table_option,
    tell_rows,
)
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


# --- Diverge under rule --------------------------------------------------------------------------


@click.command("diverge", cls=Remembering)
@click.argument("source", metavar="RUN", type=RunPath())
@click.option(
    "--rule",
    metavar="RULE",
    help=f"Count the final votes under this rule: {', '.join(TARGETS)}, or scores by rank of "
    "another package.",
)
@order_option
@click.option(
    "--tie-policy",
    type=click.Choice(["no_tie_round", "random"]),
    help="Leave the tie round out, or draw a lot where the order decided.",
)
@click.option(
    "--ties",
    type=click.Choice(["set", "fallback"]),
    default="set",
    show_default=True,
    help="With --rule: a tie leaves all its candidates possible, or goes to the order.",
)
@click.option(
    "--exempt",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="With --rule: voters that may have cast any ballot at all.",
)
@panel_option
@click.option("--full", is_flag=True, help="Show the first turn of every episode.")
@table_option("--episodes", "one row per episode")
@claims_option(
    "Also write every number that is printed here, to be checked by `tutorsim verify --claims`."
)
@report_options
def diverge_under_rule(
    source: Path,
    rule: str | None,
    fallback_order: tuple[str, ...] | None,
    tie_policy: str | None,
    ties: str,
    exempt: int,
    panel: str | None,
    full: bool,
    episodes: Path | None,
    **_: Any,
) -> None:
    """Find the first turn of every episode at which another winner would have stood.

    Name one alternative: --rule, --fallback-order or --tie-policy. An episode without such a
    turn is covered, and its logged outcome holds for the alternative. What the others would have
    come to is not in the log, so outcomes over all episodes are worst-case bounds.

    \b
    --json gives, as `summary --json` does, a document with its sections; values has
      question, caption
      coverage: [{benchmark condition episodes covered divergent
                  coverage: {low high n} on_covered bounds logged}]
      episodes: [{episode_id benchmark condition turns path first_possible
                  first_certain logged_winner alternatives}]
    path is covered, possible (the ballots leave it open) or divergent.
    """
    check_logs(source)
    check_applies(source, "diverge")
    what = opened(source, panel=panel)
    leave = view_for(what).diverge
    assert leave is not None  # the command applies
    with counted("turns") as progress:
        found = leave(what, Leaving(rule, fallback_order, tie_policy, ties, exempt, progress))
    if episodes is not None:
        told = "; ".join(what.source.answered_by)
        tell_rows(write_frames([found.episodes], episodes, told), episodes)
    document = found.document()
    publish_claimed(source, document_shown(document, full=full), lambda: to_value(document))
