"""What a recount asks, the same for every part of the ballots; rules of somebody's own with it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib.metadata import entry_points
from itertools import pairwise, product
from numbers import Rational, Real
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.reading_options_and_column_words import checked_order
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import distinct_rows
from tutorsim.analysis.counting.ballot_format_conversion import (
    AS_CAST,
    SHARED_SCORES,
    projection_name,
)
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    ANY_NUMBER,
    CONVENTIONS,
    TARGETS,
    Approvals,
    RankVector,
    Rule,
    Target,
    ballot_format,
    check_targets,
)
from tutorsim.analysis.identify.possible_winners import READINGS_OF_TIES, WORK_LIMIT, TieReading
from tutorsim.analysis.recount.decided_turns_of_one_format_and_outcome_counts import (
    StageVotes,
    TurnGroup,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.errors import UsageError
from tutorsim.system_registry import RULES, loaded, place_of
from tutorsim.vocabularies import BallotFormat, Protocol

# --- Own rules -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CastBallots:
    """The valid ballots of one vote, as a function that scores candidates gets them.

    Attributes:
        cast: Voter → candidate → mass; who abstained is not in it. Masses are votes, approvals (0
            or 1), points, or Borda points from 0 for the last rank; of rich ballots those under the
            protocol that the study counts.
        format: `simple`, `ranked`, `cumulative`, `approval`, `score` or `rich`.
        candidates: Everybody who can win, in the order that decides ties.
    """

    cast: dict[str, dict[str, int]]
    format: BallotFormat
    candidates: tuple[str, ...]


ScoreFunction = Callable[[CastBallots], Mapping[str, float | Fraction]]
"""Gives every candidate a score; the largest wins, and equal largest scores are a tie."""

_Leaders = dict[tuple[object, ...], tuple[bool, ...]]
"""Everything that a function is told of a vote → who has the largest score."""


Score = int | float | Fraction | Decimal | str
"""A number. A float stands for the decimal that it prints: 0.1 is a tenth. A text is a whole
number, a decimal, or a fraction such as 1/3."""

_TEXT: Final = re.compile(r"\s*[+-]?\d+(\.\d+|/\d+)?\s*")


@dataclass(frozen=True)
class RankScores:
    """A rule that gives each rank of a ballot a score; the largest sum of scores wins.

    `RankScores([3, 1, 0, 0])` is for votes with four candidates. For any number of candidates give
    a function of that number: `RankScores(lambda m: [m - 1, *[0] * (m - 1)])`.

    Args:
        scores: Scores, best rank first, that never rise from a rank to the next. Whole numbers,
            fractions and decimals, below 0 too; a float stands for the decimal that it prints.
            Or a function that gives them for a number of candidates.

    Raises:
        UsageError: If scores are no numbers, or rise.
    """

    scores: Sequence[Score] | Callable[[int], Sequence[Score]]

    def __post_init__(self) -> None:
        if not callable(self.scores):
            object.__setattr__(self, "scores", _fractions(self.scores))

    def at(self, m: int) -> tuple[Fraction, ...]:
        """The scores for a number of candidates.

        Raises `UsageError` if there is not one score for each candidate, or the function fails.
        """
        found = self.scores
        if callable(found):
            try:
                given = found(m)
            except Exception as error:
                raise UsageError(
                    f"The function of scores fails for {m} candidates.",
                    why=f"{type(error).__name__}: {error}",
                    hint="Let it give one score for each of so many candidates, best rank first.",
                ) from error
            found = _fractions(given)
        if len(found) != m:
            raise UsageError(
                f"There are {len(found)} scores for {m} candidates.",
                why="A rule over ranks needs one score for each candidate of every vote.",
                hint="Give a score for each candidate, or, in Python, a function of their number: "
                "tutorsim.RankScores(lambda m: …).",
            )
        return found  # type: ignore[return-value]  # fractions since __post_init__


def _fractions(scores: Sequence[Score]) -> tuple[Fraction, ...]:
    """Scores as exact numbers; `UsageError` if they are none, or rise."""
    if isinstance(scores, str) or not isinstance(scores, Iterable):
        raise UsageError(
            f"{scores!r} is no list of scores.",
            why="A rule over ranks needs one score for each rank, best rank first.",
            hint="For example RankScores([3, 1, 0, 0]), or RankScores(function of the number of "
            "candidates).",
        )
    found = tuple(map(_fraction, scores))
    if not found:
        raise UsageError(
            "There are no scores.",
            why="A rule over ranks needs one score for each rank, best rank first.",
            hint="For example RankScores([3, 1, 0, 0]).",
        )
    for rank, (score, following) in enumerate(pairwise(found), start=1):
        if following > score:
            raise UsageError(
                f"The scores {', '.join(map(str, found))} rise from rank {rank} to {rank + 1}.",
                why="Possible winners are sought where a better rank is never worth less.",
                hint="Give scores that never rise, best rank first; in Python a function of the "
                "ballots may score as it likes, and gets a point without bounds.",
            )
    return found


def _fraction(score: Score) -> Fraction:
    try:
        if isinstance(score, Rational):
            return Fraction(int(score.numerator), int(score.denominator))
        text = str(score) if isinstance(score, Real) else score
        if isinstance(score, str) and not _TEXT.fullmatch(score):
            raise ValueError(score)
        return Fraction(text)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(
            f"{score!r} is no score.",
            why="A score is a whole number, a decimal or a fraction.",
            hint="For example 1, 0.5 or 1/3.",
        ) from error


@dataclass(frozen=True, eq=False)
class FunctionRule:
    """A function from ballots to scores, asked once about each different vote."""

    name: str
    function: ScoreFunction
    _leaders: _Leaders = field(default_factory=dict, repr=False)

    def leaders(self, ballots: CastBallots, turn: str) -> tuple[bool, ...]:
        """Who has the largest score, candidate by candidate.

        `turn`: names an example of it, for errors. Raises `UsageError` if the function fails, or
        its scores are none.
        """
        cast = (*((voter, *ballot.values()) for voter, ballot in ballots.cast.items()),)
        key = (ballots.format, ballots.candidates, cast)
        if key in self._leaders:
            return self._leaders[key]
        candidates = ballots.candidates
        try:
            scores = self.function(ballots)
        except Exception as error:
            raise UsageError(
                f"The rule {self.name!r} fails for {turn}.",
                why=f"{place_of(error)}: {type(error).__name__}: {error}",
                hint="Call the function with tutorsim.CastBallots of your own to find the cause.",
            ) from error
        fault = _fault(scores, candidates)
        if fault:
            raise UsageError(
                f"The rule {self.name!r} gives no scores for {turn}.",
                why=fault,
                hint="A rule returns a number for each candidate, as {candidate: score}; here for "
                f"{', '.join(candidates)}.",
            )
        best = max(scores[c] for c in candidates)
        led = self._leaders[key] = tuple(bool(scores[c] == best) for c in candidates)
        return led


def _fault(scores: object, candidates: Sequence[str]) -> str:
    """What keeps a result from being scores; empty if nothing does."""
    if not isinstance(scores, Mapping):
        return f"It returned {scores!r}, which is no mapping of candidates to scores."
    for candidate in candidates:
        if candidate not in scores:
            return f"It gave no score for {candidate!r}."
        score = scores[candidate]
        if not isinstance(score, Real):
            return f"The score of {candidate!r} is {score!r}, which is no number."
        if score != score:
            return f"The score of {candidate!r} is not a number (NaN)."
    strangers = [name for name in scores if name not in candidates]
    return f"It gave a score to {strangers[0]!r}, who is no candidate." if strangers else ""


OwnRule = RankScores | FunctionRule
AskedRule = Target | Approvals | OwnRule
"""What the name of a rule stands for in a recount."""


def installed_rules(names: Iterable[str]) -> dict[str, RankScores | ScoreFunction]:
    """The rules of these names that other packages bring; a name without one is left out.

    Raises `UsageError` if the module of one cannot be loaded.
    """
    wanted = set(names).difference(TARGETS)
    found = entry_points(group=RULES) if wanted else ()
    return {point.name: loaded(point) for point in found if point.name in wanted}


def refuse_shadowed(names: Sequence[str]) -> None:
    """Refuse a shipped rule asked for by a name that another package gives to one of its own."""
    for point in entry_points(group=RULES) if names else ():
        if point.name in TARGETS and point.name in names:
            raise UsageError(
                f"{point.value} brings a rule called {point.name!r}.",
                why="That is the name of a rule that is always there, so it is never asked.",
                hint=f"Give the entry point of the group {RULES!r} another name, and install its "
                "package again.",
            )


def checked_rules(rules: Mapping[str, RankScores | ScoreFunction]) -> dict[str, OwnRule]:
    """Rules as they are asked.

    Raises `UsageError` if a name is a target's or none, or a rule is neither scores nor a function.
    """
    for name, rule in rules.items():
        if not isinstance(name, str) or not name.strip() or name in TARGETS:
            raise UsageError(
                f"An own rule cannot be called {name!r}.",
                why="That is the name of a rule that is always there."
                if name in TARGETS
                else "A name is a text that is not empty.",
                hint=f"Take a name that is none of {', '.join(TARGETS)}.",
            )
        if not isinstance(rule, RankScores) and not callable(rule):
            raise UsageError(
                f"The rule {name!r} is {rule!r}.",
                why="An own rule is scores by rank, or a function from ballots to scores.",
                hint="For example tutorsim.RankScores([3, 1, 0, 0]).",
            )
    return {
        name: rule if isinstance(rule, RankScores) else FunctionRule(name, rule)
        for name, rule in rules.items()
    }


@lru_cache(maxsize=1 << 8)  # asked for by every group, stage and table
def _vector(rule: RankScores, m: int) -> RankVector:
    return RankVector.of(rule.at(m))


def function_leaders(rule: FunctionRule, group: TurnGroup, votes: StageVotes) -> tuple[Bools, Ints]:
    """Who leads the different votes of a stage, shape (votes, m), and the vote of each round."""
    part = votes.rounds
    rounds, _, m = part.masses.shape
    columns = [*part.candidates.T, *part.voters.T, *part.cast.T]
    first, of = distinct_rows([*columns, *part.masses.reshape(rounds, -1).T])
    lists, of_lists = votes.candidates
    led = []
    for row in first.tolist():
        candidates, masses = lists[of_lists[row]], part.masses[row].tolist()
        cast = {
            group.votes.voters[voter]: dict(zip(candidates, masses[seat], strict=True))
            for seat, voter in enumerate(part.voters[row].tolist())
            if part.cast[row, seat]
        }
        ballots = CastBallots(cast, votes.protocol, candidates)
        led.append(rule.leaders(ballots, _turn(group, votes, row)))
    return np.array(led, dtype=np.bool_).reshape(len(first), m), of


def check_sizes(groups: Iterable[TurnGroup], rules: Mapping[str, object]) -> None:
    """Hold those rules that are scores by rank to the numbers of candidates that there are.

    Raises `UsageError` if a rule has no scores for one, naming a turn.
    """
    scores = {name: rule for name, rule in rules.items() if isinstance(rule, RankScores)}
    for group, (name, rule) in product(groups, scores.items()):
        for votes in (group.final, *group.firsts):
            try:
                _vector(rule, votes.rounds.masses.shape[2])
            except UsageError as error:
                raise UsageError(
                    f"The rule {name!r} does not fit {_turn(group, votes, 0)}.",
                    why=" ".join(filter(None, (error.what, error.why))),
                    hint=error.hint,
                ) from error


def _turn(group: TurnGroup, votes: StageVotes, row: int) -> str:
    """The turn of a vote by its names."""
    episode, turn = group.votes.turns.row(int(votes.rounds.turn[row]))[:2]
    return f"turn {turn} of {episode}"


_LISTED: Final = 6
"""Scores that are listed whole."""


def convention_words(name: str, rule: OwnRule, sizes: Iterable[int]) -> str:
    """How an own rule counts, for captions.

    `sizes`: numbers of candidates that it was asked about.
    """
    if isinstance(rule, FunctionRule):
        return f"{name}: a function of the ballots as cast; a point only, which nothing bounds."
    said = {}
    for m in sorted(set(sizes)):
        scores = [str(score) for score in rule.at(m)]
        shown = [*scores[: _LISTED - 2], "…", scores[-1]] if m > _LISTED else scores
        said[m] = f"{', '.join(shown)} by rank"
    if len(said) == 1:
        return f"{name}: {said.popitem()[1]}."
    return f"{name}: {'; '.join(f'{scores} of {m}' for m, scores in said.items())}."


# --- Recount plan --------------------------------------------------------------------------------

NOBODY_NAME: Final = "none"
"""The outcome "no Condorcet winner" in lists of winners."""

RecountTable = Literal["orders", "policies", "electorates", "readings", "rules", "kept"]
"""Tables of a recount; `kept` is what `rules` have without breakdown points and flips."""
TABLES: Final[tuple[RecountTable, ...]] = tuple(t for t in get_args(RecountTable) if t != "kept")
"""All of them, in the order of the questions."""

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
    rules: Mapping[str, AskedRule]
    """What is recounted under by name: targets in their order, then own rules."""
    exempt: tuple[int, ...]
    limit: int
    top: int
    """The end of the scale of scores, which begins at 0."""
    tables: tuple[RecountTable, ...]
    """What is counted; the other tables stay empty."""
    dial: Mapping[str, Approvals]
    """Numbers along which approval voting is answered besides, by the name in `RuleKey` under which
    the answers are: `approval` for that which the rule of this name is asked with."""

    @property
    def whole(self) -> bool:
        """Whether breakdown points and flips are asked for, which need every exempt voter and the
        first votes."""
        return "rules" in self.tables

    @property
    def units(self) -> int:
        """How often each turn is counted."""
        return 1 + len(self.asked)

    @cached_property
    def asked(self) -> dict[str, AskedRule]:
        """The rules, then what the dial asks besides."""
        return {**self.rules, **{n: r for n, r in self.dial.items() if n not in self.rules}}

    @property
    def functions(self) -> dict[str, FunctionRule]:
        """The rules of which nothing is known but a point."""
        return {name: r for name, r in self.rules.items() if isinstance(r, FunctionRule)}

    def form(self, target: str) -> Protocol:
        """The ballot format that a rule counts, of rules with possible winners."""
        rule = self.asked[target]
        return "ranked" if isinstance(rule, RankScores) else ballot_format(rule)  # type: ignore[arg-type]

    def rule(self, target: str, m: int) -> Rule:
        """What a name stands for with m candidates, of rules with possible winners."""
        rule = self.asked[target]
        if isinstance(rule, RankScores):
            return _vector(rule, m)
        return "approval" if rule == ANY_NUMBER else rule  # type: ignore[return-value]

    def points(self, target: str) -> int:
        """Points of a ballot under a rule, or the end of the scale of its scores."""
        return self.budget if FORMATS[self.form(target)].budget else self.top

    def projection(self, protocol: BallotFormat, target: str) -> str:
        """The name of the convention behind a point."""
        rule = self.asked[target]
        if isinstance(rule, RankScores):
            return AS_CAST if protocol in ("ranked", "rich") else SHARED_SCORES
        if isinstance(rule, FunctionRule):
            return AS_CAST
        return projection_name(protocol, self.rule(target, 0))  # type: ignore[arg-type]

    def convention(self, target: str, sizes: Iterable[int]) -> str | None:
        """How a rule counts that was asked about such numbers of candidates."""
        rule = self.asked[target]
        if isinstance(rule, Approvals):
            known = rule == ANY_NUMBER
            return None if known else f"Approval: each voter approves of {rule.words}."
        if isinstance(rule, str):
            return CONVENTIONS.get(rule)
        return convention_words(target, rule, sizes)

    @property
    def readings(self) -> tuple[TieReading, ...]:
        """What a tie may mean; without a logged order it stays one."""
        return ("set",) if self.own_order is None else READINGS_OF_TIES


def approvals_asked(candidates: int) -> tuple[Approvals, ...]:
    """Along which numbers approval voting is answered with so many candidates: only the first, up
    to two, up to three, any number."""
    some = (Approvals(1, most) for most in (1, 2, 3) if most < candidates)
    return (*some, ANY_NUMBER)


def make_plan(
    source: Source,
    *,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    limit: int = WORK_LIMIT,
    tables: Sequence[RecountTable] = TABLES,
    rules: Mapping[str, RankScores | ScoreFunction] = MappingProxyType({}),
    approves: Approvals | None = None,
) -> Plan:
    """What to ask of the turns of a source; arguments and refusals as of `recount.recount`.

    Own rules may stand among the targets, and rules that other packages bring.
    """
    own_order = source.order
    named = checked_rules({**installed_rules(targets), **rules})
    shipped = [name for name in targets if name not in named]
    unknown = set(shipped).difference(TARGETS)
    wanted = check_targets(shipped, [p.name for p in entry_points(group=RULES)] if unknown else ())
    used = own_order if order is None else checked_order(order, own_order)
    negative = [k for k in exempt if k < 0]
    if negative:
        raise UsageError(f"{negative[0]} voters cannot be exempt.", hint="Use 0, 1, 2, ….")
    if "condorcet" in wanted and NOBODY_NAME in own_order:
        raise UsageError(
            f"A candidate is called {NOBODY_NAME!r}.",
            why="That is how the recount names the absence of a Condorcet winner.",
            hint="Rename the candidate, or leave the target condorcet out.",
        )
    number, m = approves or ANY_NUMBER, len(own_order)
    along = approvals_asked(m) if approves is None else (approves.checked(m),)
    return Plan(
        order=used,
        own_order=own_order if source.ordered else None if order is None else used,
        budget=source.budget,
        rules={**{t: number if t == "approval" else t for t in wanted}, **named},
        exempt=tuple(sorted(set(exempt))),
        limit=limit,
        top=source.top,
        tables=tuple(tables),
        dial={"approval" if n == number else f"approval {n}": n for n in along}
        if "approval" in wanted
        else {},
    )
