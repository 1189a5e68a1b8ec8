"""The panel: propose, review, vote, revise, vote again, and break ties.

Every stage is one round: one call per role, independent of one another. Ballots of the first
vote are diagnostic and never used for the decision, and so are those in further formats that a
study asks for after the final vote.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tutorsim.mechanisms.ballot_answers import ballot_from, counted_as
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.model import Answer, Question
from tutorsim.records import BallotRecord, Proposal, ReviewRecord, TieRound, Turn
from tutorsim.systems.panel.prompt_context import Exchange, Scene
from tutorsim.systems.panel.proposal_answers import proposal_from, review_from
from tutorsim.systems.panel.relabelled_notes import Notes
from tutorsim.systems.panel.tutor import (
    ballot_question,
    proposal_question,
    review_question,
    revision_question,
)
from tutorsim.vocabularies import BALLOT_FORMATS, BallotFormat, Protocol
from tutorsim.voting import Choice, decide

__all__ = ["panel_format", "panel_turn", "panel_turn_decided_by"]

VOTE_AS: Final[Mapping[BallotFormat, str]] = {
    "simple": "vote_as_simple",
    "ranked": "vote_as_ranked",
    "cumulative": "vote_as_cumulative",
    "approval": "vote_as_approval",
    "rich": "vote_as_rich",
}


@dataclass(frozen=True)
class _Panel:
    """One turn's constants."""

    scene: Scene
    exchanges: Sequence[Exchange]
    form: BallotFormat
    """The format that the turn votes in."""

    @property
    def roles(self) -> tuple[str, ...]:
        return self.scene.study.roles

    @property
    def turn(self) -> int:
        return len(self.exchanges)

    def rule(self, form: BallotFormat) -> Protocol:
        """The protocol that ballots of a format count under."""
        return self.scene.study.rich_protocol if form == "rich" else form

    def labels(self, stage: str, candidates: Sequence[str]) -> dict[str, dict[str, str]]:
        """Reader → (label → role)."""
        return self.scene.labels(candidates, turn=self.turn, stage=stage, readers=self.roles)


class _Heard(NamedTuple):
    """What a turn comes to before it is decided."""

    drafts: dict[str, Proposal]
    reviews: list[ReviewRecord]
    initial: list[BallotRecord]
    revised: dict[str, Proposal]
    final: list[BallotRecord]
    others: dict[BallotFormat, tuple[BallotRecord, ...]]
    """Diagnostic ballots in further formats."""


def panel_turn(scene: Scene, exchanges: Sequence[Exchange], form: BallotFormat) -> Flow[Turn]:
    """One turn of the panel, voting in one format."""
    panel = _Panel(scene, exchanges, form)
    heard = yield from _deliberate(panel)
    return (yield from _decided(panel, heard, heard.final, heard.others, form=form))


def panel_turn_decided_by(
    scene: Scene, exchanges: Sequence[Exchange], form: BallotFormat, *, deciding: Scene
) -> Flow[Turn]:
    """One turn of the panel as it was logged, but decided by an alternative.

    Args:
        scene: The episode as logged; deliberation and votes are its own.
        exchanges: The conversation so far.
        form: The format that the log voted in.
        deciding: The same panel under the alternative; its condition is the format whose rule
            decides. Ballots that the vote does not determine are asked for on the same proposals.
    """
    panel = _Panel(scene, exchanges, form)
    heard = yield from _deliberate(panel)
    changed = {"fallback_order": deciding.study.order}
    changed |= {name: getattr(deciding.study, name) for name in ("tie_policy", "rich_protocol")}
    changed_panel = _Panel(scene.under(changed), exchanges, form)
    wanted = panel_format(deciding)
    ballots = yield from _ballots_under(changed_panel, heard, wanted)
    others = {**heard.others, form: tuple(heard.final)} if wanted != form else heard.others
    kept = {name: cast for name, cast in others.items() if name != wanted}
    return (yield from _decided(changed_panel, heard, ballots, kept, form=wanted))


def panel_format(scene: Scene) -> BallotFormat:
    """The format that a scene's panel votes in.

    Raises:
        ValueError: For the single tutor, which does not vote.
    """
    for form in BALLOT_FORMATS:
        if form == scene.spec.condition:
            return form
    raise ValueError("the single tutor does not vote")


def _deliberate(panel: _Panel) -> Flow[_Heard]:
    """Propose, review, vote, revise and vote again; then the diagnostic ballots."""
    drafts = yield from _propose(panel)
    reviews = yield from _review(panel, _texts(drafts), stage="critique")
    initial = yield from _vote(panel, _texts(drafts), stage="vote_initial", form=panel.form)
    revised = yield from _revise(panel, _texts(drafts), reviews)
    texts = _texts(revised)
    final = yield from _vote(panel, texts, stage="vote_final", form=panel.form)
    further = [form for form in panel.scene.study.vote_formats if form != panel.form]
    others = yield from _vote_as(panel, texts, further)
    return _Heard(drafts, reviews, initial, revised, final, others)


def _ballots_under(
    panel: _Panel, heard: _Heard, form: BallotFormat
) -> Flow[Sequence[BallotRecord]]:
    """The ballots of another format on the final proposals.

    Those at hand where they are determined, otherwise what the voters say when they are asked.
    """
    at_hand = heard.others.get(form)
    if at_hand is not None:
        return at_hand
    counted = [counted_as(ballot, panel.rule(form)) for ballot in heard.final]
    known = [ballot for ballot in counted if ballot is not None]
    if len(known) == len(counted):
        return known
    asked = yield from _vote_as(panel, _texts(heard.revised), [form])
    return asked[form]


def _decided(
    panel: _Panel,
    heard: _Heard,
    ballots: Sequence[BallotRecord],
    others: Mapping[BallotFormat, tuple[BallotRecord, ...]],
    *,
    form: BallotFormat,
) -> Flow[Turn]:
    """Count, hold a tie round in the format where one is due, and deliver."""
    texts, study = _texts(heard.revised), panel.scene.study
    masses = [ballot.mass for ballot in ballots]
    decision = decide(masses, panel.roles, order=study.order)
    tie_round = None
    if decision.tied_set and study.tie_policy == "tie_round":
        tied = {role: texts[role] for role in decision.tied_set}
        tie_round = yield from _tie_round(panel, tied, form)
        again = [ballot.mass for ballot in tie_round.ballots]
        decision = decide(masses, panel.roles, order=study.order, tie_round=again)
    return Turn(
        turn=panel.turn,
        proposals_initial=heard.drafts,
        reviews=tuple(heard.reviews),
        ballots_initial=tuple(heard.initial),
        proposals_final=heard.revised,
        ballots_final=tuple(ballots),
        ballots_as=dict(others),
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


def _review(panel: _Panel, texts: Mapping[str, str], *, stage: str) -> Flow[list[ReviewRecord]]:
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
    labels, notes = panel.labels("revise", panel.roles), Notes(reviews, panel.scene.catalog)
    answers = yield from ask(
        [
            revision_question(
                panel.scene,
                panel.exchanges,
                role,
                texts=texts,
                labels=labels[role],
                notes=notes,
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
    stage: str,
    form: BallotFormat,
    notes: Notes | None = None,
) -> Flow[list[BallotRecord]]:
    labels = panel.labels(stage, tuple(texts))
    questions = [
        _ballot_question(panel, role, texts, labels[role], stage=stage, form=form, notes=notes)
        for role in panel.roles
    ]
    answers = yield from ask(questions)
    return _cast(panel, tuple(texts), labels, answers, form)


def _vote_as(
    panel: _Panel, texts: Mapping[str, str], forms: Sequence[BallotFormat]
) -> Flow[dict[BallotFormat, tuple[BallotRecord, ...]]]:
    """Ask every voter in further formats, side by side, under the labels of the final vote."""
    if not forms:
        return {}
    labels = panel.labels("vote_final", tuple(texts))
    answers = yield from ask(
        [
            _ballot_question(panel, role, texts, labels[role], stage=VOTE_AS[form], form=form)
            for form in forms
            for role in panel.roles
        ]
    )
    n = len(panel.roles)
    return {
        form: tuple(_cast(panel, tuple(texts), labels, answers[i * n : (i + 1) * n], form))
        for i, form in enumerate(forms)
    }


def _ballot_question(
    panel: _Panel,
    role: str,
    texts: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    stage: str,
    form: BallotFormat,
    notes: Notes | None = None,
) -> Question[Choice]:
    return ballot_question(
        panel.scene,
        panel.exchanges,
        role,
        stage=stage,
        form=form,
        texts=texts,
        labels=labels,
        notes=notes,
    )


def _cast(
    panel: _Panel,
    candidates: Sequence[str],
    labels: Mapping[str, Mapping[str, str]],
    answers: Sequence[Answer[Choice]],
    form: BallotFormat,
) -> list[BallotRecord]:
    return [
        ballot_from(role, labels[role], candidates, answer, form=form, rule=panel.rule(form))
        for role, answer in zip(panel.roles, answers, strict=True)
    ]


def _tie_round(panel: _Panel, tied: Mapping[str, str], form: BallotFormat) -> Flow[TieRound]:
    """Review and vote again among the tied, by all voters in the same format."""
    reviews = yield from _review(panel, tied, stage="tie_critique")
    notes = Notes(reviews, panel.scene.catalog)
    ballots = yield from _vote(panel, tied, stage="tie_vote", form=form, notes=notes)
    return TieRound(candidates=tuple(tied), reviews=tuple(reviews), ballots=tuple(ballots))
