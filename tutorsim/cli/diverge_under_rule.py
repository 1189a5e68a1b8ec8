"""`tutorsim diverge`: where another rule would have left the logged path."""

from pathlib import Path
from typing import Any

import click

from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.pages.document_as_json import to_value
from tutorsim.analysis.runs.write_tables import with_provenance, write_frame
from tutorsim.analysis.systems.system_view import Leaving, opened, view_for
from tutorsim.cli.ballot_options import panel_option
from tutorsim.cli.claims_of_commands import publish_claimed
from tutorsim.cli.options import (
    Remembering,
    claims_option,
    order_option,
    report_options,
    table_option,
    tell_rows,
)
from tutorsim.cli.progress import counted
from tutorsim.cli.sources import RunPath, check_logs
from tutorsim.cli.terminal_documents import check_applies, document_shown


@click.command("diverge", cls=Remembering)
@click.argument("source", metavar="RUN", type=RunPath())
@click.option("--rule", type=click.Choice(TARGETS), help="Count the final votes under this rule.")
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
        tell_rows(write_frame(with_provenance(found.episodes, told), episodes), episodes)
    document = found.document()
    publish_claimed(source, document_shown(document, full=full), lambda: to_value(document))
