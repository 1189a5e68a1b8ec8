"""`tutorsim diverge`: where another rule would have left the logged path."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.recount_source import Source, open_source
from tutorsim.analysis.counting.rule_definitions import TARGETS, conventions_of
from tutorsim.analysis.recount import Progress, make_plan
from tutorsim.analysis.recount import recount as recount_source
from tutorsim.analysis.runs.written_tables import with_provenance, write_frame
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.analysis.systems.panel.divergence import (
    Alternatives,
    Divergence,
    alternatives_of,
    coverage_table,
    first_turns,
    under_order,
    with_random_ties,
    without_tie_round,
)
from tutorsim.analysis.systems.panel.divergence import diverge as find_divergence
from tutorsim.cli.ballot_options import of_panel_asked, panel_option
from tutorsim.cli.claims_file import publish_claimed
from tutorsim.cli.options import (
    Remembering,
    claims_option,
    order_option,
    report_options,
    table_option,
    tell_rows,
)
from tutorsim.cli.output_elements import Prose
from tutorsim.cli.progress import counted
from tutorsim.cli.source_head import source_shown
from tutorsim.cli.sources import RunPath, check_logs
from tutorsim.cli.terminal_documents import check_applies, parts_shown
from tutorsim.errors import UsageError

LISTED = 8
"""Divergent episodes listed in the terminal; JSON and `--episodes` have them all."""

POLICIES = {"no_tie_round": without_tie_round, "random": with_random_ties}


@click.command(cls=Remembering)
@click.argument("source", metavar="RUN", type=RunPath())
@click.option("--rule", type=click.Choice(TARGETS), help="Count the final votes under this rule.")
@order_option
@click.option(
    "--tie-policy",
    type=click.Choice(list(POLICIES)),
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
@table_option("--episodes", "one row per episode")
@claims_option(
    "Also write every number that is printed here, to be checked by `tutorsim verify --claims`."
)
@report_options
def diverge(
    source: Path,
    rule: str | None,
    fallback_order: tuple[str, ...] | None,
    tie_policy: str | None,
    ties: str,
    exempt: int,
    panel: str | None,
    episodes: Path | None,
    **_: Any,
) -> None:
    """Find the first turn of every episode at which another winner would have stood.

    Name one alternative: --rule, --fallback-order or --tie-policy. An episode without such a
    turn is covered, and its logged outcome holds for the alternative. What the others would have
    come to is not in the log, so outcomes over all episodes are worst-case bounds.

    \b
    --json gives:
      question, caption, provenance
      coverage: [{benchmark condition episodes covered divergent
                  coverage: {low high n} on_covered bounds logged}]
      episodes: [{episode_id benchmark condition turns path first_possible
                  first_certain logged_winner alternatives}]
    path is covered, possible (the ballots leave it open) or divergent.
    """
    check_logs(source)
    check_applies(source, "diverge")
    opened = of_panel_asked(open_source(source), panel)
    if not opened.ordered:
        opened = replace(opened, told=(*opened.notes, _OPEN))
    with counted("turns") as progress:
        question, alternatives = alternatives_under(
            opened, rule, fallback_order, tie_policy, ties=ties, exempt=exempt, progress=progress
        )
        found = find_divergence(opened, alternatives, question=question)
    if rule is not None:
        convention = conventions_of([rule])  # type: ignore[list-item]  # chosen from TARGETS
        found = replace(found, caption=f"{found.caption} {convention}".rstrip())
    if episodes is not None:
        tell_rows(
            write_frame(with_provenance(found.episodes, "; ".join(opened.answered_by)), episodes),
            episodes,
        )
    value = {"provenance": opened.provenance, **found.to_json()}
    publish_claimed(source, _shown(opened, found), lambda: value)


_OPEN = (
    "No order is logged: turns that counting leaves tied have no winner to diverge from, and are "
    "left out."
)


def alternatives_under(
    source: Source,
    rule: str | None,
    order: tuple[str, ...] | None,
    policy: str | None,
    *,
    ties: str = "set",
    exempt: int = 0,
    progress: Progress | None = None,
) -> tuple[str, Alternatives]:
    """The question in words, and the possible winners of every turn.

    Raises:
        UsageError: Unless exactly one of rule, order and policy is given.
    """
    if sum(option is not None for option in (rule, order, policy)) != 1:
        raise UsageError(
            "Name exactly one alternative.",
            why="Episodes diverge from the log under one rule, one order or one tie policy.",
            hint="Give --rule, --fallback-order or --tie-policy.",
        )
    if rule is None and (exempt or ties != "set"):
        raise UsageError(
            "--ties and --exempt go with --rule.",
            why="An order or a tie policy is recounted exactly from the logged ballots.",
            hint="Leave them out, or name a --rule.",
        )
    if ties == "fallback" and not source.ordered:
        raise UsageError(
            "Ties cannot go to an order.",
            why=f"No order is logged in {source.name}.",
            hint="Leave --ties out: then a tie leaves all its candidates possible.",
        )
    if rule is not None:
        return _under_rule(source, rule, ties, exempt, progress)
    if order is not None:
        checked = make_plan(source.votes.order, source.budget, order=order).order
        return f"Fallback order {' > '.join(checked)}", under_order(source, checked)
    words = {"no_tie_round": "Without the tie round", "random": "A lot where the order decided"}
    return words[str(policy)], POLICIES[str(policy)](source)


def _under_rule(
    source: Source, rule: str, ties: str, exempt: int, progress: Progress | None
) -> tuple[str, Alternatives]:
    found = recount_source(source, targets=(rule,), exempt=(exempt,), tables=(), progress=progress)
    rows = found.per_turn.filter(reading=ties)
    words = "ties stay open" if ties == "set" else "ties go to the order"
    exempted = f", {exempt} exempt voters" if exempt else ""
    return f"Rule {rule}, {words}{exempted}", alternatives_of(rows)


def _shown(source: Source, found: Divergence) -> Iterator[RenderableType]:
    yield from source_shown(source)
    if not found.coverage:
        yield Prose("There is no episode with a panel.")
        return
    yield from parts_shown([coverage_table(found)])
    if all(isinstance(row.logged["success"], NotEstimable) for row in found.coverage):
        yield Prose("No outcome is logged, so there is none to bound.")
    yield Text()
    yield from parts_shown(first_turns(found, LISTED))
