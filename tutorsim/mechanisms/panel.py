"""The panel: propose, review, vote, revise, vote again, and break ties.

Every stage is one round: one call per role, independent of one another. Ballots of the first
vote are diagnostic and never used for the decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tutorsim.agents.blinding import draw_labels
from tutorsim.agents.scene import Exchange, Scene
from tutorsim.agents.tutor import (
    ballot_question,
    proposal_question,
    review_question,
    revision_question,
)
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.mechanisms.logged import ballot_from, proposal_from, review_from
from tutorsim.records import BallotRecord, Proposal, ReviewRecord, TieRound, Turn
from tutorsim.types import Protocol, Stage
from tutorsim.voting import decide

__all__ = ["panel_turn"]


@dataclass(frozen=True)
class _Panel:
    """One turn's constants."""

    scene: Scene
    exchanges: Sequence[Exchange]
    protocol: Protocol

    @property
    def roles(self) -> tuple[str, ...]:
        return self.scene.study.roles

    @property
    def turn(self) -> int:
        return len(self.exchanges)

    def labels(self, stage: Stage, candidates: Sequence[str]) -> dict[str, dict[str, str]]:
        """Reader → (label → role)."""
        return {
            role: draw_labels(self.scene, candidates, turn=self.turn, stage=stage, reader=role)
            for role in self.roles
        }


def panel_turn(scene: Scene, exchanges: Sequence[Exchange], protocol: Protocol) -> Flow[Turn]:
    """One turn of the panel under one protocol."""
    panel = _Panel(scene, exchanges, protocol)
    drafts = yield from _propose(panel)
    reviews = yield from _review(panel, _texts(drafts), stage="critique")
    initial = yield from _vote(panel, _texts(drafts), stage="vote_initial")
    revised = yield from _revise(panel, _texts(drafts), reviews)
    texts = _texts(revised)
    final = yield from _vote(panel, texts, stage="vote_final")
    masses = [ballot.mass for ballot in final]
    decision = decide(masses, panel.roles, order=scene.study.order)
    tie_round = None
    if decision.tied_set:
        tie_round = yield from _tie_round(panel, {role: texts[role] for role in decision.tied_set})
        again = [ballot.mass for ballot in tie_round.ballots]
        decision = decide(masses, panel.roles, order=scene.study.order, tie_round=again)
    return Turn(
        turn=panel.turn,
        proposals_initial=drafts,
        reviews=tuple(reviews),
        ballots_initial=tuple(initial),
        proposals_final=revised,
        ballots_final=tuple(final),
        tie_round=tie_round,
        decision=decision,
        delivered=texts[decision.winner],
    )


def _texts(proposals: Mapping[str, Proposal]) -> dict[str, str]:
    return {role: proposal.text for role, proposal in proposals.items()}


def _propose(panel: _Panel) -> Flow[dict[str, Proposal]]:
    answers = yield from ask(
        [proposal_question(panel.scene, panel.exchanges, role) for role in panel.roles]
    )
    drafts = (proposal_from(answer) for answer in answers)
    return dict(zip(panel.roles, drafts, strict=True))


def _review(panel: _Panel, texts: Mapping[str, str], *, stage: Stage) -> Flow[list[ReviewRecord]]:
    labels = panel.labels(stage, tuple(texts))
    answers = yield from ask(
        [
            review_question(
                panel.scene, panel.exchanges, role, stage=stage, texts=texts, labels=labels[role]
            )
            for role in panel.roles
        ]
    )
    return [
        review_from(role, labels[role], answer)
        for role, answer in zip(panel.roles, answers, strict=True)
    ]


def _revise(
    panel: _Panel, texts: Mapping[str, str], reviews: Sequence[ReviewRecord]
) -> Flow[dict[str, Proposal]]:
    labels = panel.labels("revise", panel.roles)
    answers = yield from ask(
        [
            revision_question(
                panel.scene,
                panel.exchanges,
                role,
                texts=texts,
                labels=labels[role],
                reviews=reviews,
            )
            for role in panel.roles
        ]
    )
    revised = (proposal_from(answer) for answer in answers)
    return dict(zip(panel.roles, revised, strict=True))


def _vote(
    panel: _Panel,
    texts: Mapping[str, str],
    *,
    stage: Stage,
    reviews: Sequence[ReviewRecord] = (),
) -> Flow[list[BallotRecord]]:
    candidates = tuple(texts)
    labels = panel.labels(stage, candidates)
    answers = yield from ask(
        [
            ballot_question(
                panel.scene,
                panel.exchanges,
                role,
                stage=stage,
                protocol=panel.protocol,
                texts=texts,
                labels=labels[role],
                reviews=reviews,
            )
            for role in panel.roles
        ]
    )
    return [
        ballot_from(role, labels[role], candidates, answer, protocol=panel.protocol)
        for role, answer in zip(panel.roles, answers, strict=True)
    ]


def _tie_round(panel: _Panel, tied: Mapping[str, str]) -> Flow[TieRound]:
    """Review and vote again among the tied, by all voters under the same protocol."""
    reviews = yield from _review(panel, tied, stage="tie_critique")
    ballots = yield from _vote(panel, tied, stage="tie_vote", reviews=reviews)
    return TieRound(candidates=tuple(tied), reviews=tuple(reviews), ballots=tuple(ballots))
