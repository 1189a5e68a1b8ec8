"""The same ballots under other rules, as tables: what is identified, and how far that holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from analysis.recount import RecountResult, RuleRow
from tutorsim.cli.held import captions, interval, open_interval
from tutorsim.cli.render import HELD, Cell, caption, heading, styled, table

__all__ = ["rules_shown"]

Shown = Iterator[RenderableType]
Cells = Mapping[tuple[str, str, str, int], RuleRow]
"""Logged protocol, target, reading of ties, exempt voters → row."""


def rules_shown(found: RecountResult, full: bool) -> Shown:
    """What other rules would have chosen, and how the sets grow with exempt voters."""
    if not found.rules:
        return
    least = min(found.exempt)
    cells: Cells = {(r.logged_protocol, r.target, r.reading, r.exempt): r for r in found.rules}
    turns = {row.logged_protocol: row.turns for row in found.rules}
    yield Text()
    exempt = f", {least} exempt voters" if least else ""
    yield heading("The same ballots under other rules", f"turns{exempt}")
    yield table(
        ("ballots, rule", "single", "single*", "same", "same*", "flips", "not settled"),
        _by_protocol(turns, found.rules, lambda at: _rule_cells(cells, *at, least)),
    )
    yield caption(
        "Single: turns whose ballots leave one winner. Same: turns with the logged winner. Flips: "
        "turns whose first leader did not win. Ties go to the role-priority order; with * a tie "
        "stays a tie. The figure is the named projection's, “a to b” what the ballots leave open. "
        f"Not settled: too costly to decide, counted as open. {captions(found.rules)}"
    )
    yield from _dial(found, cells, turns)
    if full:
        yield from _rule_wins(found, cells, turns, least)


def _by_protocol(
    turns: Mapping[str, int],
    rules: Sequence[RuleRow],
    cells: Callable[[tuple[str, str]], Sequence[Cell]],
) -> list[Sequence[Cell]]:
    """Rows of all targets, under a line for each logged protocol."""
    rows: list[Sequence[Cell]] = []
    for protocol, n in turns.items():
        targets = dict.fromkeys(r.target for r in rules if r.logged_protocol == protocol)
        found = [(f"  {target}", *cells((protocol, target))) for target in targets]
        title = styled(f"{protocol} ({n})", "bold")
        rows += [(title, *[""] * (len(found[0]) - 1)), *found]
    return rows


def _rule_cells(cells: Cells, protocol: str, target: str, k: int) -> Sequence[Cell]:
    order, tie = cells[protocol, target, "fallback", k], cells[protocol, target, "set", k]
    return (
        str(order.identified),
        str(tie.identified),
        interval(order.agreement),
        interval(tie.agreement),
        interval(order.flips),
        str(max(tie.not_settled, order.not_settled)),
    )


def _dial(found: RecountResult, cells: Cells, turns: Mapping[str, int]) -> Shown:
    """How the sets grow when k voters may have cast anything."""

    def dialled(at: tuple[str, str]) -> Sequence[Cell]:
        rows = [cells[*at, "fallback", k] for k in found.exempt]
        same = [f"{row.identified}, {open_interval(row.agreement)}" for row in rows]
        return (*same, _breakdown(rows[0].breakdown))

    yield Text()
    yield heading("With k exempt voters", "turns with a single winner, with the logged one")
    yield table(
        ("ballots, rule", *(f"k={k}" for k in found.exempt), "lost at k: turns"),
        _by_protocol(turns, found.rules, dialled),
    )
    yield caption(
        "An exempt voter may have cast any ballot at all. Lost at k: exempt voters that it takes "
        "until a second winner is possible, and in how many turns; at 0 two were possible to begin "
        f"with. Ties go to the role-priority order. {HELD}"
    )


def _rule_wins(found: RecountResult, cells: Cells, turns: Mapping[str, int], k: int) -> Shown:
    rows = [row for row in found.rules if row.exempt == k and row.reading == "fallback"]
    names = list(dict.fromkeys(name for row in rows for name in row.wins))

    def won(at: tuple[str, str]) -> Sequence[Cell]:
        row = cells[*at, "fallback", k]
        return [interval(row.wins[name]) if name in row.wins else "" for name in names]

    yield Text()
    yield heading("Wins under other rules", "turns, the role-priority order decides ties")
    yield table(("ballots, rule", *names), _by_protocol(turns, found.rules, won))
    projections = dict.fromkeys(
        f"{row.logged_protocol} as {row.target} by {row.projection}" for row in rows
    )
    yield caption(f"Projections: {'; '.join(projections)}. {captions(rows)}")


def _breakdown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{k}: {n}" for k, n in counts.items() if n)
