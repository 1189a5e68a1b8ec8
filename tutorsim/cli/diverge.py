"""`tutorsim diverge`: where another rule would have left the logged path."""

from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import RenderableType
from rich.text import Text

from analysis.diverge import (
    Alternatives,
    Divergence,
    alternatives_of,
    under_order,
    with_random_ties,
    without_tie_round,
)
from analysis.diverge import diverge as find_divergence
from analysis.export import write_frame
from analysis.recount import recount as recount_source
from analysis.rules import TARGETS
from analysis.sources import Source, open_source
from analysis.statistics import NotEstimable
from tutorsim.cli.console import err
from tutorsim.cli.figures import bounds, plain_figure
from tutorsim.cli.options import order_option, report_options, table_option, tell_rows
from tutorsim.cli.overview import source_shown
from tutorsim.cli.render import (
    Prose,
    caption,
    heading,
    listing,
    percent,
    publish,
    table,
)
from tutorsim.errors import UsageError

__all__ = ["alternatives_under", "diverge"]

LISTED = 8
"""Divergent episodes listed in the terminal; JSON and `--episodes` have them all."""

POLICIES = {"no_tie_round": without_tie_round, "random": with_random_ties}


@click.command()
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
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
@table_option("--episodes", "one row per episode")
@report_options
def diverge(
    source: Path,
    rule: str | None,
    fallback_order: tuple[str, ...] | None,
    tie_policy: str | None,
    ties: str,
    exempt: int,
    episodes: Path | None,
    as_json: bool,
    output: Path | None,
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
    opened = open_source(source)
    with err().status("Counting under the alternative …"):
        question, alternatives = alternatives_under(
            opened, rule, fallback_order, tie_policy, ties=ties, exempt=exempt
        )
        found = find_divergence(opened, alternatives, question=question)
    if episodes is not None:
        tell_rows(write_frame(found.episodes, episodes), episodes)
    value = {"provenance": opened.provenance, **found.to_json()}
    publish(_shown(opened, found), value, as_json=as_json, output=output)


def alternatives_under(
    source: Source,
    rule: str | None,
    order: tuple[str, ...] | None,
    policy: str | None,
    *,
    ties: str = "set",
    exempt: int = 0,
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
    if rule is not None:
        return _under_rule(source, rule, ties, exempt)
    if order is not None:
        checked = recount_source(source, targets=(), exempt=(), order=order).fallback_order
        return f"Fallback order {' > '.join(checked)}", under_order(source, checked)
    words = {"no_tie_round": "Without the tie round", "random": "A lot where the order decided"}
    return words[str(policy)], POLICIES[str(policy)](source)


def _under_rule(source: Source, rule: str, ties: str, exempt: int) -> tuple[str, Alternatives]:
    found = recount_source(source, targets=(rule,), exempt=(exempt,))
    rows = found.per_turn.filter(reading=ties)
    words = "ties stay open" if ties == "set" else "ties go to the order"
    exempted = f", {exempt} exempt voters" if exempt else ""
    return f"Rule {rule}, {words}{exempted}", alternatives_of(rows)


def _shown(source: Source, found: Divergence) -> Iterator[RenderableType]:
    yield from source_shown(source)
    if not found.coverage:
        yield Prose("There is no episode with a panel.")
        return
    yield Text()
    yield heading(found.question, "episodes with a panel")
    yield table(
        ("benchmark", "condition", "episodes", "covered", "divergent", "coverage %"),
        [
            (
                row.benchmark or "",
                row.condition or "",
                str(row.episodes),
                str(row.covered),
                str(row.divergent),
                bounds(row.coverage, unit=percent),
            )
            for row in found.coverage
        ],
        left=2,
    )
    yield caption(
        "Covered: no turn can have another winner. Divergent: some turn has one for certain; the "
        f"others may go either way. {found.caption}"
    )
    yield from _outcomes(found)
    yield from _first_turns(found)


def _outcomes(found: Divergence) -> Iterator[RenderableType]:
    if all(isinstance(row.logged["success"], NotEstimable) for row in found.coverage):
        yield Prose("No outcome is logged, so there is none to bound.")
        return
    yield Text()
    yield heading("Success", "in %")
    yield table(
        ("benchmark", "condition", "logged", "on covered", "all, at worst to at best"),
        [
            (
                row.benchmark or "",
                row.condition or "",
                plain_figure(row.logged["success"], unit=percent),
                plain_figure(row.on_covered["success"], unit=percent),
                bounds(row.bounds["success"], unit=percent),
            )
            for row in found.coverage
        ],
        left=2,
    )
    yield caption(
        "Covered episodes are a selected part of all. The bounds let every other episode fail or "
        "succeed. The logged dialogue is held fixed up to the first divergent turn."
    )


def _first_turns(found: Divergence) -> Iterator[RenderableType]:
    rows = [row for row in found.episodes.to_dicts() if row["path"] != "covered"]
    yield Text()
    yield heading("First turns that may differ", f"episodes: {len(rows)}")
    for row in rows[:LISTED]:
        won = row["alternatives"]
        instead = listing(won, last="or") if won else "not settled"
        yield Prose(row["episode_id"], indent=2)
        yield Prose(
            f"turn {row['first_possible']}, {row['path']}: logged {row['logged_winner']}, "
            f"alternative {instead}",
            indent=4,
        )
    if len(rows) > LISTED:
        yield Prose(f"and {len(rows) - LISTED} more; --episodes FILE writes them all", indent=2)
