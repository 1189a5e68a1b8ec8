"""The baseline: one tutor writes, nobody votes."""

from collections.abc import Sequence

from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.records import Turn
from tutorsim.systems.panel.prompt_context import Exchange, Scene
from tutorsim.systems.panel.proposal_answers import proposal_from
from tutorsim.systems.panel.tutor import proposal_question

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
