"""The tutors: propose, review, revise and vote."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from tutorsim.mechanisms.author_labels import indented, labelled
from tutorsim.mechanisms.ballot_answers import ballot_question as asked_for
from tutorsim.model import Call, Question
from tutorsim.records import Note
from tutorsim.systems.panel.prompt_context import Exchange, Scene
from tutorsim.systems.panel.relabelled_notes import Notes
from tutorsim.systems.panel.reply_reading import (
    ReadProposal,
    read_proposal,
    read_reviews,
    salvage_proposal,
)
from tutorsim.vocabularies import BallotFormat
from tutorsim.voting import RULES, Choice

__all__ = ["ballot_question", "proposal_question", "review_question", "revision_question"]


def proposal_question(
    scene: Scene, exchanges: Sequence[Exchange], agent: str
) -> Question[ReadProposal]:
    """Ask a tutor, or the baseline tutor, for a first draft."""
    catalog = scene.catalog
    alone = agent == "baseline"
    role = scene.study.baseline_role if alone else agent
    call = scene.call(
        len(exchanges),
        "propose",
        agent,
        system=scene.told("baseline_system" if alone else "tutor_system", role),
        user=catalog.fill(
            "propose_baseline" if alone else "propose", conversation=scene.conversation(exchanges)
        ),
    )
    return _proposal(scene, call)


def review_question(
    scene: Scene,
    exchanges: Sequence[Exchange],
    agent: str,
    *,
    stage: str,
    texts: Mapping[str, str],
    labels: Mapping[str, str],
) -> Question[dict[str, Note]]:
    """Ask a tutor to review the drafts behind its labels.

    Args:
        scene: The episode.
        exchanges: The conversation so far.
        agent: The reviewing role.
        stage: `critique`, or `tie_critique` for the tied drafts.
        texts: Role → draft.
        labels: Label → role, as this reviewer sees them.
    """
    catalog = scene.catalog
    user = catalog.fill(
        "critique" if stage == "critique" else "critique_tied",
        conversation=scene.conversation(exchanges),
        proposals=labelled(texts, labels, blank=scene.blank),
        labels_first=next(iter(labels)),
    )
    call = scene.call(
        len(exchanges), stage, agent, system=scene.told("tutor_system", agent), user=user
    )
    return Question(
        call,
        lambda reply: read_reviews(reply, tuple(labels)),
        catalog.fill("critique_reminder"),
    )


def revision_question(
    scene: Scene,
    exchanges: Sequence[Exchange],
    agent: str,
    *,
    texts: Mapping[str, str],
    labels: Mapping[str, str],
    notes: Notes,
) -> Question[ReadProposal]:
    """Ask a tutor to revise its draft in the light of peers and reviews."""
    catalog = scene.catalog
    peers = {label: role for label, role in labels.items() if role != agent}
    user = catalog.fill(
        "revise",
        conversation=scene.conversation(exchanges),
        own_label=next(label for label, role in labels.items() if role == agent),
        own=indented(texts[agent]) or scene.blank,
        proposals=labelled(texts, peers, blank=scene.blank),
        reviews=notes.shown(labels),
    )
    call = scene.call(
        len(exchanges), "revise", agent, system=scene.told("tutor_system", agent), user=user
    )
    return _proposal(scene, call)


def ballot_question(
    scene: Scene,
    exchanges: Sequence[Exchange],
    agent: str,
    *,
    stage: str,
    form: BallotFormat,
    texts: Mapping[str, str],
    labels: Mapping[str, str],
    notes: Notes | None = None,
) -> Question[Choice]:
    """Ask a tutor, as an impartial assessor, for a ballot over its labels.

    Args:
        scene: The episode.
        exchanges: The conversation so far.
        agent: The voting role.
        stage: A stage in which votes are cast.
        form: The ballot's format.
        texts: Role → draft.
        labels: Label → role, as this voter sees them.
        notes: Those on the tied drafts, for a tie vote; `None` for another one.
    """
    catalog, budget = scene.catalog, scene.study.cumulative_budget
    shown = tuple(labels)
    ballot = scene.filled(
        f"ballot_{form}", example=_example(form, shown, budget), count=len(shown), budget=budget
    )
    tied = {} if notes is None else {"reviews": notes.shown(labels)}
    user = catalog.fill(
        "vote_tied" if tied else "vote",
        conversation=scene.conversation(exchanges),
        proposals=labelled(texts, labels, blank=scene.blank),
        criterion=scene.loaded.criterion,
        ballot=ballot,
        **tied,
    )
    system = scene.told("vote_system", agent)
    call = scene.call(len(exchanges), stage, agent, system=system, user=user)
    reminder = catalog.fill("vote_reminder")
    return asked_for(call, shown, form=form, budget=budget, reminder=reminder)


@lru_cache(maxsize=256)
def _example(form: BallotFormat, shown: tuple[str, ...], budget: int) -> str:
    """A well-formed ballot; every voter of a panel is shown the same one."""
    return RULES[form].example(shown, budget)


def _proposal(scene: Scene, call: Call) -> Question[ReadProposal]:
    reminder = scene.catalog.fill("propose_reminder")
    return Question(call, read_proposal, reminder, salvage_proposal)
