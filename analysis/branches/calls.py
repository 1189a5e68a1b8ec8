"""What a continuation cost: the calls that its parent's recording did not answer.

A log lists all calls of an episode, those among them that were taken over from the parent. A
call counts as taken over where the parent's episode has its key and the path was still the
parent's; a call of a tie round only where the parent held the very same round. Whatever is in
doubt counts as paid for, so the figures are never too low.
"""

from dataclasses import dataclass
from typing import Final

from tutorsim.records import CallRecord, EpisodeRecord, TieRound

__all__ = ["PaidCalls", "paid_calls"]

_TIE: Final = ("tie_critique", "tie_vote")
_AFTER_DELIVERY: Final = ("student", "judge")


@dataclass(frozen=True)
class PaidCalls:
    """Calls and tokens of continuations; the sum of two is that of both together."""

    reused: int = 0
    """Calls that the parent's recording answered."""
    paid: int = 0
    input_tokens: int = 0
    """Of the calls paid for."""
    output_tokens: int = 0

    def __add__(self, other: "PaidCalls") -> "PaidCalls":
        return PaidCalls(
            self.reused + other.reused,
            self.paid + other.paid,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def to_json(self) -> dict[str, int]:
        return dict(vars(self))


def paid_calls(parent: EpisodeRecord, continuation: EpisodeRecord) -> PaidCalls:
    """Count what a continuation paid for; see the module's text.

    Args:
        parent: The logged episode.
        continuation: One that continues it.
    """
    answered = {call.key for call in parent.calls}
    new = [c for c in continuation.calls if not _taken_over(c, answered, parent, continuation)]
    return PaidCalls(
        reused=len(continuation.calls) - len(new),
        paid=len(new),
        input_tokens=sum(call.input_tokens for call in new),
        output_tokens=sum(call.output_tokens for call in new),
    )


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
