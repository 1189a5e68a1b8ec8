"""Rules that ballots can be counted under: their names, conventions and parameters."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.errors import UsageError
from tutorsim.vocabularies import Protocol

# --- Scores --------------------------------------------------------------------------------------


class RankVector(NamedTuple):
    """Scores by rank for one number of candidates, in the form in which they are counted.

    Vectors that elect the same candidates whatever the ballots, since one is the other times a
    factor and plus a constant, have one form.
    """

    scores: tuple[int, ...]
    """Best rank first: whole numbers that never rise; the last is 0, and they share no divisor."""

    @staticmethod
    def of(scores: Sequence[Fraction | int]) -> "RankVector":
        """The form of scores that never rise."""
        above = [Fraction(score) - scores[-1] for score in scores]
        scale = lcm(*(score.denominator for score in above))
        whole = [int(score * scale) for score in above]
        common = gcd(*whole) or 1
        return RankVector(tuple(score // common for score in whole))


# --- Rule definitions ----------------------------------------------------------------------------

Target = Literal[
    "simple",
    "ranked",
    "cumulative",
    "approval",
    "copeland",
    "minimax",
    "instant_runoff",
    "schulze",
    "bucklin",
    "condorcet",
    "mean_position",
    "score",
    "median_score",
]
"""What a recount may count: the four protocols and the further rules."""

TARGETS: Final[tuple[Target, ...]] = get_args(Target)


class Approvals(NamedTuple):
    """Approval voting in which each voter approves of so many candidates.

    The number is an assumption beside the voters' preferences: who may approve of everybody says
    nothing. `Approvals(1, 2)` is for voters who approve of one candidate or of two.
    """

    least: int
    most: int | None
    """`None`: of any number."""

    @staticmethod
    def read(text: str) -> "Approvals":
        """A range as people write it: `1..2`, `2`, `2..` or `..3`.

        Raises `UsageError` if it is none, or begins below 1 or above its end.
        """
        first, dots, last = (part.strip() for part in text.partition(".."))
        if not (first or last) or not all(part.isdecimal() for part in (first, last) if part):
            raise UsageError(
                f"{text!r} is no number of approvals.",
                why="It is the least and the most of candidates that each voter approves of.",
                hint="For example 1..2, 2 for exactly two, 2.. or ..3.",
            )
        least = int(first or 1)
        most = int(last) if last else None if dots else least
        return Approvals(least, most).checked()

    def checked(self, candidates: int | None = None) -> "Approvals":
        """This range; `UsageError` if it begins below 1, or above its end, or above the number of
        candidates, if that is known."""
        largest = self.least if self.most is None else self.most
        if candidates is not None and largest > candidates:
            raise UsageError(
                f"Nobody can approve of {largest} candidates.",
                why=f"No vote has more than {candidates}.",
                hint=f"Write {self.least}.. for {self.least} or more."
                if self.least <= candidates
                else f"The largest number is {candidates}.",
            )
        if self.least < 1 or (self.most is not None and self.most < self.least):
            raise UsageError(
                f"Nobody can approve of {self} candidates.",
                why="An approval of nobody says what an abstention does."
                if self.least < 1
                else "The least number is larger than the most.",
                hint="For example 1..2, 2 for exactly two, 2.. or ..3.",
            )
        return self

    def of(self, m: int) -> tuple[int, int]:
        """The least and the most of m candidates; of fewer than the least, all."""
        most = m if self.most is None else min(self.most, m)
        return min(self.least, m), most

    @property
    def words(self) -> str:
        """How many a voter approves of, as in "exactly one"."""
        if self == ANY_NUMBER:
            return "any number"
        if self.most is None:
            return f"{self.least} or more"
        if self.least == self.most:
            return f"exactly {self.least}"
        return f"up to {self.most}" if self.least == 1 else f"{self.least} to {self.most}"

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"{self.least}..{'' if self.most is None else self.most}"


ANY_NUMBER: Final = Approvals(1, None)
"""What the rule `approval` allows: the smallest assumption."""

Rule = Target | RankVector | Approvals
"""A rule whose possible winners can be sought: a target, scores by rank of somebody's own, or
approval voting with so many approvals."""


def approvals_of(rule: Rule) -> Approvals | None:
    """How many a voter approves of; `None` for rules that count other ballots."""
    return rule if isinstance(rule, Approvals) else ANY_NUMBER if rule == "approval" else None


CONVENTIONS: Final[Mapping[str, str]] = {
    "copeland": "Copeland: a pairwise tie counts half a win.",
    "minimax": "Minimax: the smallest largest defeat, by margins.",
    "instant_runoff": "Instant runoff: all with the fewest first places leave together, until "
    "those left have equally many; where they would leave one at a time, others may win.",
    "schulze": "Schulze: strongest paths over margins.",
    "bucklin": "Bucklin: as soon as anybody is on more than half of the ballots, the largest "
    "count wins.",
    "condorcet": "Condorcet: beats every other strictly, or nobody does.",
    "mean_position": "Mean position: the smallest mean place over the rankings that name a "
    "candidate; of every completed ranking, Borda.",
    "score": "Score: the largest mean of the scores given, as exact fractions.",
    "median_score": "Median score: the largest lower median of the scores given; ties stay.",
}
"""How a target counts, where counts of the same name differ."""


def check_targets(names: Sequence[str], others: Sequence[str] = ()) -> tuple[Target, ...]:
    """The targets named, in the order of `TARGETS`; a refusal names rules of others too.

    Raises `UsageError` if a name is no target.
    """
    for name in names:
        if name not in TARGETS:
            raise UsageError(
                f"{name!r} is not a rule that ballots can be recounted under.",
                hint=f"Choose from {', '.join((*TARGETS, *others))}.",
            )
    return tuple(target for target in TARGETS if target in names)


def conventions_of(targets: Iterable[Target]) -> str:
    """By which conventions some targets count, for a caption; empty where there is one only."""
    asked = set(targets)
    return " ".join(words for target, words in CONVENTIONS.items() if target in asked)


def ballot_format(rule: Rule | Protocol) -> Protocol:
    """The ballot format that a rule counts: rankings for scores by rank and the further rules.

    A format of no rule here is its own.
    """
    if isinstance(rule, Approvals):
        return "approval"
    if rule == "median_score":
        return "score"
    return next((form for form in get_args(Protocol) if form == rule), "ranked")


def rank_scores(rule: Rule | Protocol, m: int) -> tuple[int, ...] | None:
    """Scores of m ranks, best first, over complete rankings: of Borda and of scores by rank; `None`
    for other rules."""
    if isinstance(rule, RankVector):
        return rule.scores
    return tuple(range(m - 1, -1, -1)) if rule in ("ranked", "mean_position") else None
