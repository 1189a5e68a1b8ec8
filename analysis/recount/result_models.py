"""The documented form of a recount: frozen models with one schema version.

Every table says in its caption that it holds fixed what came before a vote. Numbers of turns are
integers; shares and expectations are fractions, and in JSON the numbers nearest to them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Final, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PrivateAttr

from tutorsim.analysis.counting.names_and_parameters_of_rules import Approvals
from tutorsim.analysis.identify.possible_winners import TieReading

SCHEMA_VERSION: Final = 2
"""Version 1 wrote fractions as texts too, and had another shape where nobody votes."""

HELD_FIXED: Final = (
    "Each turn is recounted alone, and all that came before its vote is held fixed: another winner "
    "could have changed all that came after it."
)


class _Table(BaseModel):
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", arbitrary_types_allowed=True
    )


Exact = Annotated[Fraction, PlainSerializer(float, return_type=float, when_used="json")]
"""A rational number; in JSON the number nearest to it."""

_compared = Field(default=None, exclude_if=lambda turns: turns is None)
"""Turns that have a logged winner to compare with, where not all have: without an order, a turn
whose vote ended in a tie has none. Absent where every turn has one."""


Holds = tuple[bool, bool, bool]
"""Whether something holds of a turn for certain, under the named convention, and possibly."""


class Interval(_Table):
    """A number of turns that the ballots only bound."""

    lower: int
    """Turns where it is certain."""
    point: int | None
    """Turns under the named convention; `None` where there is none."""
    upper: int
    """Turns where it is possible, those not settled included."""

    def model_post_init(self, _: object) -> None:
        """Hold every interval to its point."""
        middle = self.lower if self.point is None else self.point
        assert self.lower <= middle <= self.upper, self

    @staticmethod
    def of(turns: Iterable[tuple[Holds, int]]) -> "Interval":
        """In how many turns something holds. `turns`: whether it does, and in how many."""
        every = list(turns)
        lower, point, upper = (sum(n for holds, n in every if holds[end]) for end in range(3))
        return Interval(lower=lower, point=point, upper=upper)


class OrderRow(_Table):
    """One fallback order."""

    order: tuple[str, ...]
    wins: dict[str, int]
    changed: int | None
    """Turns with another winner than under the logged order; `None` where none is logged."""


class RoleWins(_Table):
    """One candidate's wins over all orders."""

    candidate: str
    logged: int | None
    """Turns won under the logged order; `None` where none is logged."""
    least: int
    """Fewest wins under any order."""
    most: int
    """Most wins under any order."""
    expected: Exact
    """Mean over all orders, which is 1/|tied set| of each turn it is tied in."""
    robust: int
    """Turns won under every order; equal to `least`, since one order puts it last everywhere."""
    by_order: int | None
    """Turns of `logged` that the order decided; `None` where none is logged."""
    share_by_order: Exact | None
    """`by_order` as a share of `logged`; `None` without wins."""


class OrderTable(_Table):
    """Question 1: every fallback order. Exact."""

    asks: ClassVar[str] = "Every fallback order, exact."
    caption: str = f"{asks} {HELD_FIXED}"
    protocol: str | None
    """`None`: all protocols together."""
    logged_order: tuple[str, ...]
    """Empty for ballots from elsewhere without an order."""
    turns: int
    decided_by_order: int
    """Turns that some order can change."""
    candidates: tuple[RoleWins, ...]
    changed_expected: Exact | None
    """Turns changed under an order drawn at random, on average; `None` where none is logged."""
    changed_most: int | None
    """Most turns that any order changes; `None` with more candidates than orders are swept for,
    and where none is logged."""
    orders: int | str
    """How many orders there are; as a factorial, `19!`, with more than 18 candidates, since readers
    of JSON hold no whole number exactly that is above 2^53."""
    listed: tuple[OrderRow, ...]
    """All of them, or none where they are too many to list."""

    @property
    def many(self) -> str:
        """How many orders there are, as a text."""
        return self.orders if isinstance(self.orders, str) else f"{self.orders:,}"


class PolicyRow(_Table):
    """Question 2: another way to break ties. Exact."""

    asks: ClassVar[str] = "Other ways to break ties, exact."
    caption: str = f"{asks} {HELD_FIXED}"
    policy: str
    """`logged`; `tie_round` (as logged, under the order recounted); `no_tie_round` (the order
    straight after the final vote); `random` (a lot among those that counting left); or
    `random_no_tie_round` (a lot among those tied in the final vote)."""
    protocol: str | None
    turns: int
    wins: dict[str, Exact]
    """Expected wins where a lot is drawn."""
    changed: Exact
    """Expected turns with another winner than logged."""
    compared: int | None = _compared


class ElectorateRow(_Table):
    """Question 4: other ballots of the same turn, or fewer of them."""

    asks: ClassVar[str] = (
        "Other electorates, exact but for ties that were never put to a tie round: lower and "
        "upper bounds leave those open, the point lets the order decide."
    )
    caption: str = f"{asks} {HELD_FIXED}"
    scenario: str
    """`without_deliberation`, `leave_one_out`, `no_own_votes` or `confidence_weighted`."""
    voter: str | None
    """Who is left out; for `leave_one_out`, `None` means: any one voter. Then `changed` counts
    turns that some voter's absence changes, and `wins` is empty."""
    protocol: str | None
    turns: int
    """Turns recounted."""
    not_computable: int
    """Turns that lack what the scenario needs: a first vote, the voter, a confidence."""
    open_ties: int
    """Turns that end in a tie which nobody was asked to vote on."""
    wins: dict[str, Interval]
    changed: Interval
    compared: int | None = _compared


class ReadingRow(_Table):
    """Question 7: the raw replies read again."""

    asks: ClassVar[str] = (
        "Ballots read again from the raw replies. A reply that a stricter reader refuses counts as "
        "an abstention, since nobody asked again."
    )
    caption: str = f"{asks} {HELD_FIXED}"
    reading: str
    """`strict`, `standard` or `lenient`."""
    protocol: str | None
    turns: int
    not_computable: int
    """Turns without raw replies."""
    ballots: int
    ballots_changed: int
    """Ballots that read differently from the log."""
    abstained: int
    """Ballots that this reader cannot read."""
    open_ties: int
    wins: dict[str, Interval]
    changed: Interval


class RuleRow(_Table):
    """Question 3: one logged protocol under one target, one reading of ties, k exempt voters."""

    asks: ClassVar[str] = (
        "Winners under another rule, as far as the ballots tell. Bounds count what is certain and "
        "what is possible over all sincere ballots that agree with those cast; the point is the "
        "named projection."
    )
    caption: str = f"{asks} {HELD_FIXED}"
    logged_protocol: str
    target: str
    """Name of a target, or of an own rule."""
    approves: Approvals | None = Field(default=None, exclude_if=lambda number: number is None)
    """Under approval voting, where a number is assumed: the least and the most of candidates that
    each voter approves of, `null` for any number. Else absent."""
    convention: str | None
    """How the target counts, where counts of the same name differ: what is said of the row holds
    under this convention. `None` where there is one only."""
    projection: str
    reading: TieReading
    """`set`: a tie under the target stays a tie; `fallback`: the order decides."""
    exempt: int
    point_only: bool = Field(default=False, exclude_if=lambda only: not only)
    """Whether only the point is known, as of an own function of the ballots: every turn is not
    settled, and the ends of intervals say nothing. Absent where it is false."""
    turns: int
    not_settled: int
    """Turns too costly to settle; they count as possible and never as certain."""
    identified: int
    """Turns with exactly one possible winner."""
    widths: dict[int, int]
    """Number of possible winners → settled turns."""
    wins: dict[str, Interval]
    point_ties: int
    """Turns whose projection ends in a tie, under the reading `set`; in nobody's point."""
    point_impossible: int
    """Turns without a point: the projection's outcome is not possible. There the points of the
    intervals count what is certain."""
    agreement: Interval
    """Turns with the logged winner."""
    changes: int
    """Turns that certainly have another winner than logged; nobody is no winner."""
    compared: int | None = _compared
    flips: Interval | None
    """Turns whose leader after the first vote, under the target, is not its winner; `None`
    without first votes."""
    flip_turns: int
    """Turns with a first vote."""
    breakdown: dict[str, int]
    """Exempt voters that it takes to lose the necessary winner → turns; `0`: there was none;
    `never`: no number of them loses it; `not_settled`: finding it takes too much work;
    `point_only`: nothing is known of the rule but a point."""

    @property
    def other(self) -> bool:
        """Whether the target is another rule than that under which the ballots were logged."""
        return self.target != self.logged_protocol

    @property
    def with_winner(self) -> int:
        """Turns with a logged winner, which the rule can keep."""
        return self.turns if self.compared is None else self.compared


class Agreed(NamedTuple):
    """Whether every other target, nobody exempt, elects the logged winner of a turn."""

    reading: TieReading
    keeps: bool
    """All of them certainly do."""
    changes: bool
    """Some certainly does not."""


class RecountResult(_Table):
    """Everything that a recount says of a source's votes; the tables are empty without any."""

    schema_version: int = SCHEMA_VERSION
    source: str
    provenance: str
    caption: str = HELD_FIXED
    fallback_order: tuple[str, ...] = ()
    """The order recounted under; candidates outside the study's order stand behind it. Empty for
    ballots from elsewhere without one."""
    budget: int | None = None
    """Points of a cumulative ballot; `None` where nobody votes."""
    exempt: tuple[int, ...] = ()
    turns: int = 0
    orders: tuple[OrderTable, ...] = ()
    policies: tuple[PolicyRow, ...] = ()
    electorates: tuple[ElectorateRow, ...] = ()
    readings: tuple[ReadingRow, ...] = ()
    """Empty without a run's raw replies."""
    rules: tuple[RuleRow, ...] = ()
    approvals: tuple[RuleRow, ...] = ()
    """Approval voting by how many candidates each voter approves of; empty where it is not asked
    about."""
    approved: dict[int, int] = Field(default_factory=dict)
    """What logged approval ballots say of that number: candidates approved → ballots."""
    notes: tuple[str, ...] = ()
    _make_each_turn: Callable[..., Iterator[pl.DataFrame]] | None = PrivateAttr(default=None)
    _per_turn: pl.DataFrame | None = PrivateAttr(default=None)
    _agreed: Mapping[Agreed, int] = PrivateAttr(default_factory=dict)

    @property
    def per_turn(self) -> pl.DataFrame:
        """`PER_TURN_SCHEMA`, made when it is asked for; not in the JSON form."""
        if self._per_turn is None:
            self._per_turn = pl.concat(self.per_turn_frames())
        return self._per_turn

    def per_turn_frames(self, *, only: str | None = None) -> Iterator[pl.DataFrame]:
        """Frames of some turns at a time; of files read in batches, nobody holds all of them.

        `only`: the one target that is wanted, with nobody exempt and no breakdown point counted.
        """
        assert self._make_each_turn is not None, "only a recount has turns"
        return self._make_each_turn(only)

    def turns_under(self, target: str) -> pl.DataFrame:
        """The rows of `per_turn` under one target with nobody exempt, made without the others and
        without breakdown points."""
        frames = self.per_turn_frames(only=target)
        return pl.concat(frames).drop("breakdown", "breakdown_state")

    def agreed(self, reading: TieReading) -> tuple[int, int, int]:
        """Turns whose logged winner every other target keeps, some changes; and turns with one."""
        rows = [(one, n) for one, n in self._agreed.items() if one.reading == reading]
        keeps = sum(n for one, n in rows if one.keeps)
        return keeps, sum(n for one, n in rows if one.changes), sum(n for _, n in rows)

    def keep(
        self, each_turn: Callable[..., Iterator[pl.DataFrame]], agreed: Mapping[Agreed, int]
    ) -> "RecountResult":
        """Keep what is no part of the JSON form: how the per-turn table is made, and agreement."""
        self._make_each_turn, self._agreed = each_turn, agreed
        return self
