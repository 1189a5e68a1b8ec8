"""What a recount asks, the same for every part of the ballots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from tutorsim.analysis.counting.ballot_projection import AS_CAST, SHARED_SCORES, projection_name
from tutorsim.analysis.counting.rule_definitions import (
    CONVENTIONS,
    TARGETS,
    Rule,
    ballot_format,
    check_targets,
)
from tutorsim.analysis.counting.scores import RankScores
from tutorsim.analysis.identify import READINGS_OF_TIES, TieReading
from tutorsim.analysis.identify.reachable_vote_sums import WORK_LIMIT
from tutorsim.analysis.recount.own_rules import (
    FunctionRule,
    OwnRule,
    ScoreFunction,
    checked_rules,
    convention_words,
    vector_of,
)
from tutorsim.errors import UsageError
from tutorsim.vocabularies import TOP_SCORE, BallotFormat, Protocol

__all__ = ["NOBODY_NAME", "TABLES", "Plan", "Progress", "RecountTable", "make_plan"]

NOBODY_NAME: Final = "none"
"""The outcome "no Condorcet winner" in lists of winners."""

RecountTable = Literal["orders", "policies", "electorates", "readings", "rules"]
TABLES: Final[tuple[RecountTable, ...]] = get_args(RecountTable)
"""Tables of a recount, in the order of the questions."""

Progress = Callable[[int, int], None]
"""Is told how many of how many units of work are done."""


@dataclass(frozen=True)
class Plan:
    """What a recount asks, the same for every part."""

    order: tuple[str, ...]
    """The order recounted under: every candidate of every part."""
    own_order: tuple[str, ...] | None
    """The source's own order, which decided the logged winners; `None` where none is logged: then a
    turn that counting leaves tied has no winner, and ties stay open."""
    budget: int
    targets: tuple[str, ...]
    """Names of rules: targets in their order, then own rules."""
    exempt: tuple[int, ...]
    limit: int
    top: int = TOP_SCORE
    """The end of the scale of scores, which begins at 0."""
    tables: tuple[RecountTable, ...] = TABLES
    """What is counted; the other tables stay empty."""
    own_rules: Mapping[str, OwnRule] = field(default_factory=dict)
    """Own rules by name."""

    @property
    def functions(self) -> dict[str, FunctionRule]:
        """The rules of which nothing is known but a point."""
        return {name: r for name, r in self.own_rules.items() if isinstance(r, FunctionRule)}

    @property
    def rank_scores(self) -> dict[str, RankScores]:
        """The own rules that are scores by rank."""
        return {name: r for name, r in self.own_rules.items() if isinstance(r, RankScores)}

    def form(self, target: str) -> Protocol:
        """The ballot format that a rule counts, of rules with possible winners."""
        return "ranked" if target in self.own_rules else ballot_format(target)  # type: ignore[arg-type]

    def rule(self, target: str, m: int) -> Rule:
        """What a name stands for with m candidates, of rules with possible winners."""
        scores = self.rank_scores.get(target)
        return target if scores is None else vector_of(target, scores, m)  # type: ignore[return-value]

    def projection(self, protocol: BallotFormat, target: str) -> str:
        """The name of the convention behind a point."""
        if target not in self.own_rules:
            return projection_name(protocol, target)  # type: ignore[arg-type]
        as_cast = target in self.functions or protocol in ("ranked", "rich")
        return AS_CAST if as_cast else SHARED_SCORES

    def convention(self, target: str, sizes: Sequence[int]) -> str | None:
        """How a rule counts that was asked about such numbers of candidates."""
        rule = self.own_rules.get(target)
        if rule is None:
            return CONVENTIONS.get(target)
        return convention_words(target, rule, sizes)

    @property
    def readings(self) -> tuple[TieReading, ...]:
        """What a tie may mean; without a logged order it stays one."""
        return ("set",) if self.own_order is None else READINGS_OF_TIES


def make_plan(
    own_order: Sequence[str],
    budget: int,
    *,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    limit: int = WORK_LIMIT,
    top: int = TOP_SCORE,
    logged: bool = True,
    tables: Sequence[RecountTable] = TABLES,
    rules: Mapping[str, RankScores | ScoreFunction] = MappingProxyType({}),
) -> Plan:
    """What to ask of the turns of a source; see `analysis.recount.recount`.

    Args:
        own_order: The source's own order, over all its candidates.
        budget: Points of a cumulative ballot.
        targets: Names of targets; those of own rules may stand among them.
        exempt: Numbers of exempt voters.
        order: The order to recount under.
        limit: Units of work allowed for each panel under each target.
        top: The end of the scale of scores.
        logged: Whether the own order decided anything. If not, an order to recount under is taken
            for it, and without one there is none.
        tables: What to count.
        rules: Own rules by name.

    Raises:
        UsageError: As `analysis.recount.recount`.
    """
    named = checked_rules(rules)
    wanted = (*check_targets([name for name in targets if name not in named]), *named)
    used = _checked_order(order, own_order)
    _check(wanted, exempt, own_order)
    own = tuple(own_order) if logged else None if order is None else used
    numbers = tuple(sorted(set(exempt)))
    return Plan(used, own, budget, wanted, numbers, limit, top, tuple(tables), named)


def _checked_order(order: Sequence[str] | None, standing: Sequence[str]) -> tuple[str, ...]:
    if order is None:
        return tuple(standing)
    strangers = [c for c in order if c not in standing]
    if strangers or len(set(order)) != len(order):
        raise UsageError(
            f"The order {', '.join(order)} cannot be used.",
            why=f"{strangers[0]!r} is no candidate."
            if strangers
            else "A candidate is in it twice.",
            hint=f"The candidates are {', '.join(standing)}.",
        )
    return (*order, *(c for c in standing if c not in order))


def _check(targets: Sequence[str], exempt: Sequence[int], candidates: Sequence[str]) -> None:
    negative = [k for k in exempt if k < 0]
    if negative:
        raise UsageError(f"{negative[0]} voters cannot be exempt.", hint="Use 0, 1, 2, ….")
    if "condorcet" in targets and NOBODY_NAME in candidates:
        raise UsageError(
            f"A candidate is called {NOBODY_NAME!r}.",
            why="That is how the recount names the absence of a Condorcet winner.",
            hint="Rename the candidate, or leave the target condorcet out.",
        )
