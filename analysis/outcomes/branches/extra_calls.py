"""What a continuation cost: the calls that its parent's recording did not answer.

A log lists all calls of an episode, those among them that were taken over from the parent. A
call counts as taken over where the parent's episode has its key and the path was still the
parent's; a call of a tie round only where the parent held the very same round. Whatever is in
doubt counts as paid for, so the figures are never too low.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tutorsim.records import CallRecord, EpisodeRecord, TieRound

__all__ = ["PaidCalls", "Tokens", "paid_calls"]

_TIE: Final = ("tie_critique", "tie_vote")
_AFTER_DELIVERY: Final = ("student", "judge")


class Tokens(NamedTuple):
    """Tokens that calls sent and received."""

    input: int
    output: int


@dataclass(frozen=True)
class PaidCalls:
    """Calls and tokens of continuations; the sum of two is that of both together."""

    reused: int = 0
    """Calls that the parent's recording answered."""
    paid: int = 0
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    """Model → tokens of the calls paid for."""

    def __add__(self, other: "PaidCalls") -> "PaidCalls":
        names = sorted({*self.tokens, *other.tokens})
        none = Tokens(0, 0)
        both = {m: (self.tokens.get(m, none), other.tokens.get(m, none)) for m in names}
        return PaidCalls(
            self.reused + other.reused,
            self.paid + other.paid,
            {m: Tokens(a.input + b.input, a.output + b.output) for m, (a, b) in both.items()},
        )

    @property
    def total(self) -> Tokens:
        """Tokens of all models."""
        of = self.tokens.values()
        return Tokens(sum(t.input for t in of), sum(t.output for t in of))

    def to_json(self) -> dict[str, object]:
        return {
            "reused": self.reused,
            "paid": self.paid,
            "input_tokens": self.total.input,
            "output_tokens": self.total.output,
            "models": {model: tokens._asdict() for model, tokens in self.tokens.items()},
        }


def paid_calls(parent: EpisodeRecord, continuation: EpisodeRecord) -> PaidCalls:
    """Count what a continuation paid for; see the module's text.

    Args:
        parent: The logged episode.
        continuation: One that continues it.
    """
    answered = {call.key for call in parent.calls}
    new = [c for c in continuation.calls if not _taken_over(c, answered, parent, continuation)]
    each = [PaidCalls(0, 1, {c.model: Tokens(c.input_tokens, c.output_tokens)}) for c in new]
    return sum(each, PaidCalls(reused=len(continuation.calls) - len(new)))


def _taken_over(
    call: CallRecord, answered: set[str], parent: EpisodeRecord, continuation: EpisodeRecord
) -> bool:
    turn = int(call.key.partition("/")[0])
    left = continuation.branch.left if continuation.branch else None
    is_past = left is not None and (turn > left or (turn == left and call.stage in _AFTER_DELIVERY))
    if is_past or call.key not in answered:
        return False
    if call.stage not in _TIE:
        return True
    return _tie_round(parent, turn) == _tie_round(continuation, turn)


def _tie_round(episode: EpisodeRecord, turn: int) -> TieRound | None:
    """The tie round of a turn; `None` where none was held or the turn was not finished."""
    found = [t.tie_round for t in episode.turns if t.turn == turn]
    return found[0] if found else None
