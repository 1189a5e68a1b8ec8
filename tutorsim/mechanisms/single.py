"""The baseline: one tutor writes, nobody votes."""

from collections.abc import Sequence

from tutorsim.agents.scene import Exchange, Scene
from tutorsim.agents.tutor import proposal_question
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.mechanisms.logged import proposal_from
from tutorsim.records import Turn

__all__ = ["single_turn"]


def single_turn(scene: Scene, exchanges: Sequence[Exchange]) -> Flow[Turn]:
    """One turn of the single tutor: its draft is delivered."""
    [answer] = yield from ask([proposal_question(scene, exchanges, "baseline")])
    proposal = proposal_from(answer)
    return Turn(
        turn=len(exchanges),
        proposals_initial={"baseline": proposal},
        reviews=(),
        ballots_initial=(),
        proposals_final={"baseline": proposal},
        ballots_final=(),
        tie_round=None,
        decision=None,
        delivered=proposal.text,
    )
