"""What two ballots of one voter in two formats say of the assumption behind recounts."""

from dataclasses import dataclass
from typing import Final

from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, to_json
from tutorsim.vocabularies import BallotFormat

__all__ = ["UNTESTED", "FormatInvariance", "FormatPair", "OneFormat"]

UNTESTED: Final = (
    "nobody cast ballots in two formats on the same proposals, so that the assumption is untested"
)


@dataclass(frozen=True)
class FormatPair:
    """Ballots of one voter on the same proposals, in two formats."""

    given: BallotFormat
    other: BallotFormat
    pairs: int
    """Pairs of ballots."""
    abstained: int
    """Pairs with an abstention; in no share."""
    consistent: Estimate | NotEstimable
    """Share of the other pairs in which `given` leaves `other` possible."""
    same_top: Estimate | NotEstimable
    """Share of the other pairs that put some same candidate first."""
    turns: int
    """Turns that the pairs are of."""
    same_winner: Estimate | NotEstimable | None
    """Share of turns with one winner, the rich ballots counted as the other format's, ties to the
    fallback order, turns of which nobody voted left out; `None` where neither format is
    rich, which alone determines the other."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class OneFormat:
    """Two askings of one prompt in one format."""

    form: BallotFormat
    pairs: int
    abstained: int
    same: Estimate | NotEstimable
    """Share of the other pairs that are the same ballot."""
    consistent: Estimate | NotEstimable
    """Share of the other pairs that some ranking agrees with."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class FormatInvariance:
    """Pairs of formats, and two askings of one."""

    pairs: list[FormatPair]
    from_vote: Estimate | NotEstimable
    """Consistent pairs over all formats, each from the format that the turn voted in."""
    askings: list[OneFormat]
    """Empty without a retest."""
    again: Estimate | NotEstimable
    """Two askings of one format that gave the same ballot, over all formats."""
    again_consistent: Estimate | NotEstimable
    """Two askings of one format that some ranking agrees with."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}
