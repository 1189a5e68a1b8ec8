"""One turn of tutoring: the panel proposes, reviews, votes, revises, votes again, and breaks ties.

Notes of reviews are put into the labels of whoever reads them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from tutorsim.ballot_reading_and_decisions import Choice, decide
from tutorsim.kernel.flow_drivers_and_call_log import Flow
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask, counted_as, indented, vote
from tutorsim.model import Question
from tutorsim.records import BallotRecord, Note, Proposal, ReviewRecord, TieRound, Turn
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import (
    Exchange,
    ReadProposal,
    Scene,
    read_proposal,
    read_reviews,
    salvage_proposal,
)
from tutorsim.systems.panel.settings_and_members_of_compared_panels import PanelCatalog
from tutorsim.vocabularies import BALLOT_FORMATS, BallotFormat, Protocol

# --- Relabelled notes ----------------------------------------------------------------------------


class Notes:
    """The notes of a round of reviews, for several readers.

    `reviews`: in the order in which their notes are shown.
    """

    def __init__(self, reviews: Iterable[ReviewRecord], catalog: PanelCatalog) -> None:
        self._part = catalog.part
        self._heads: dict[str, str] = {}
        said: dict[str, list[str | _Mentioning]] = {}
        for review in reviews:
            for role, note in review.notes.items():
                said.setdefault(role, []).extend(self._lines(note, review.labels))
        self._on = {role: _joined(lines) for role, lines in said.items() if lines}

    def shown(self, labels: Mapping[str, str]) -> str:
        """All notes, grouped by the proposal they are about, in the reader's own labels.

        Label mentions inside the notes are translated from the reviewer's labels to the reader's.
        """
        label_of = {role: label for label, role in labels.items()}
        groups = []
        for label, role in labels.items():
            parts = self._on.get(role) or (self._part("no_review"),)
            lines = [
                part if isinstance(part, str) else self._translated(part, label_of)
                for part in parts
            ]
            head = self._heads.get(label) or self._headed(label)
            groups.append("\n".join([head, *lines]))
        return "\n\n".join(groups)

    def _headed(self, label: str) -> str:
        """What stands above the notes on a label, for every reader."""
        head = self._heads[label] = self._part("notes_on", label=label)
        return head

    def _translated(self, note: "_Mentioning", label_of: Mapping[str, str]) -> str:
        text = indented(relabel(note.text, note.written, label_of))
        return self._part(note.template, text=text)

    def _lines(self, note: Note, written: Mapping[str, str]) -> "Iterator[str | _Mentioning]":
        said = (("note_strength", note.strength), ("note_weakness", note.weakness))
        for template, text in said:
            if text is None:
                continue
            if len(_mentions(text)) > 1:
                yield _Mentioning(template, text, written)
            else:
                yield self._part(template, text=indented(text))


class _Mentioning(NamedTuple):
    """A note that mentions labels, so that every reader sees another one."""

    template: str
    """What shows it."""
    text: str
    written: Mapping[str, str]
    """Label → role of the reviewer."""


def _joined(lines: Sequence["str | _Mentioning"]) -> tuple["str | _Mentioning", ...]:
    """The lines that every reader sees alike as one, where all are."""
    alike = [line for line in lines if isinstance(line, str)]
    return ("\n".join(alike),) if len(alike) == len(lines) else tuple(lines)


_CUE = (
    r"(?i:\b(?:proposal|draft|reply|label|option|candidate|response|version|tutor)s?|\breplies"
    r"|\b(?:than|unlike|versus|vs\.?|like|as in|compared (?:to|with)|while|whereas|both|neither))"
)
_VERB = (
    r"(?:is|has|does|was|gives|asks|names|uses|offers|explains|shows|helps|goes|says|tells|makes"
    r"|lets|leaves|invites|encourages|points|starts|states|ignores|misses|needs|seems|sounds"
    r"|praises|breaks|lacks|keeps|puts|could|can|should|would|may|might|also)"
)
_MORE = r"(?:, | and | or |, and |, or )[A-H]\b"
_MENTION = re.compile(
    rf"{_CUE}\s[A-H]\b(?:{_MORE})*"
    r"|\([A-H](?=\))"
    r"|\b[A-H](?=['’]s\b)"
    rf"|(?:^|(?<=[.;:,!?]\s))[A-H](?:{_MORE}|(?=\s{_VERB}\b))"
)
_LABEL = re.compile(r"[A-H](?!\w)(?<!\w.)")
_REACH = 16
"""Characters that the longest cue and its space do not exceed: no mention begins sooner."""


def relabel(text: str, written: Mapping[str, str], label_of: Mapping[str, str]) -> str:
    """Translate label mentions in a note.

    A capital letter counts as a mention after a word such as `draft` or `than`, in brackets,
    with `'s`, or before a verb where a clause begins; other capitals (the article A, vitamin C)
    are left alone.

    `written`: label → role of whoever wrote the note. `label_of`: role → label of whoever reads it.
    """
    parts = _mentions(text)
    if len(parts) == 1:
        return text
    said = list(parts)
    said[1::2] = [label_of.get(written.get(label, ""), label) for label in parts[1::2]]
    return "".join(said)


@lru_cache(maxsize=256)
def _mentions(text: str) -> tuple[str, ...]:
    """A note in parts, read once for all readers; every second part is a label mentioned."""
    parts, end = [], 0
    if first := _LABEL.search(text):
        for mention in _MENTION.finditer(text, max(0, first.start() - _REACH)):
            for label in _LABEL.finditer(mention[0]):
                at = mention.start() + label.start()
                parts += [text[end:at], label[0]]
                end = at + 1
    return (*parts, text[end:])


# --- Turn ----------------------------------------------------------------------------------------

VOTE_AS: Final[Mapping[BallotFormat, str]] = {form: f"vote_as_{form}" for form in BALLOT_FORMATS}

Proposals = dict[str, Proposal]
Ballots = Mapping[BallotFormat, tuple[BallotRecord, ...]]


class _Deliberation(NamedTuple):
    """What a turn comes to before it is decided."""

    drafts: Proposals
    reviews: tuple[ReviewRecord, ...]
    initial: tuple[BallotRecord, ...]
    revised: Proposals
    final: tuple[BallotRecord, ...]
    others: Ballots
    """Diagnostic ballots in further formats."""


def single_turn(scene: Scene, exchanges: Sequence[Exchange]) -> Flow[Turn]:
    """One turn of the single tutor: its draft is delivered."""
    alone = _Panel(scene, exchanges, "simple")
    proposals = yield from _proposals(["baseline"], [alone.proposal("baseline")])
    return Turn(
        turn=alone.turn,
        proposals_initial=proposals,
        proposals_final=proposals,
        delivered=proposals["baseline"].text,
    )


def panel_turn(scene: Scene, exchanges: Sequence[Exchange], form: BallotFormat) -> Flow[Turn]:
    """One turn of the panel, voting in one format."""
    panel = _Panel(scene, exchanges, form)
    deliberation = yield from _deliberate(panel)
    return (yield from _decided(panel, deliberation, deliberation.final, deliberation.others))


def panel_turn_decided_by(
    scene: Scene, exchanges: Sequence[Exchange], form: BallotFormat, *, deciding: Scene
) -> Flow[Turn]:
    """One turn of the panel as it was logged, but decided by an alternative.

    `scene`: the episode as logged; deliberation and votes are its own. `form`: the format that the
    log voted in. `deciding`: the same panel under the alternative; its condition is the format
    whose rule decides. Ballots that the vote does not determine are asked for on the same
    proposals.
    """
    logged = _Panel(scene, exchanges, form)
    deliberation = yield from _deliberate(logged)
    changed = {"fallback_order": deciding.study.order}
    changed |= {name: getattr(deciding.study, name) for name in ("tie_policy", "rich_protocol")}
    panel = _Panel(scene.under(changed), exchanges, panel_format(deciding))
    ballots = yield from _ballots_under(panel, deliberation)
    others = {**deliberation.others, form: deliberation.final}
    others.pop(panel.form, None)
    return (yield from _decided(panel, deliberation, ballots, others))


def panel_format(scene: Scene) -> BallotFormat:
    """The format that a scene's panel votes in.

    Raises `ValueError` for the single tutor, which does not vote.
    """
    for form in BALLOT_FORMATS:
        if form == scene.spec.condition:
            return form
    raise ValueError("the single tutor does not vote")


# --- What a turn asks -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Panel:
    """One turn's constants, and its questions."""

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

    @cached_property
    def conversation(self) -> str:
        return self.scene.conversation(self.exchanges)

    def rule(self, form: BallotFormat) -> Protocol:
        """The protocol that ballots of a format count under."""
        return self.scene.study.rich_protocol if form == "rich" else form

    def labels(self, stage: str, candidates: Sequence[str]) -> dict[str, dict[str, str]]:
        """Reader → (label → role)."""
        return self.scene.labels(candidates, turn=self.turn, stage=stage, readers=self.roles)

    def proposal(
        self, agent: str, stage: str = "propose", template: str = "", **values: object
    ) -> Question[ReadProposal]:
        """Ask a tutor, or the single one, for a draft or a revised one."""
        alone = agent == "baseline"
        role = self.scene.study.baseline_role if alone else agent
        name = template or ("propose_baseline" if alone else "propose")
        return self.scene.asking(
            self.turn,
            stage,
            agent,
            read_proposal,
            system=self.scene.told("baseline_system" if alone else "tutor_system", role),
            user=self.scene.fill(name, conversation=self.conversation, **values),
            reminder="propose_reminder",
            salvage=salvage_proposal,
        )

    def review(
        self, agent: str, stage: str, texts: Mapping[str, str], labels: Mapping[str, str]
    ) -> Question[dict[str, Note]]:
        """Ask a tutor to review the drafts behind its labels."""
        scene, shown = self.scene, tuple(labels)
        return scene.asking(
            self.turn,
            stage,
            agent,
            lambda reply: read_reviews(reply, shown),
            system=scene.told("tutor_system", agent),
            user=scene.fill(
                "critique" if stage == "critique" else "critique_tied",
                conversation=self.conversation,
                proposals=scene.labelled(texts, labels),
                labels_first=shown[0],
            ),
            reminder="critique_reminder",
        )

    def revision(
        self, agent: str, texts: Mapping[str, str], labels: Mapping[str, str], notes: Notes
    ) -> Question[ReadProposal]:
        """Ask a tutor to revise its draft in the light of peers and reviews."""
        peers = {label: role for label, role in labels.items() if role != agent}
        return self.proposal(
            agent,
            "revise",
            "revise",
            own_label=next(label for label, role in labels.items() if role == agent),
            own=indented(texts[agent]) or self.scene.blank,
            proposals=self.scene.labelled(texts, peers),
            reviews=notes.shown(labels),
        )

    def ballot(
        self,
        agent: str,
        stage: str,
        form: BallotFormat,
        texts: Mapping[str, str],
        labels: Mapping[str, str],
        notes: Notes | None,
    ) -> Question[Choice]:
        """Ask a tutor, as an impartial assessor, for a ballot over its labels.

        `texts`: role → draft. `labels`: label → role, as this voter sees them. `notes`: those on
        the tied drafts, for a tie vote; `None` for another one.
        """
        scene = self.scene
        return scene.ballot(
            self.turn,
            stage,
            agent,
            labels,
            form=form,
            budget=scene.study.cumulative_budget,
            system=scene.told("vote_system", agent),
            template="vote" if notes is None else "vote_tied",
            conversation=self.conversation,
            proposals=scene.labelled(texts, labels),
            criterion=scene.study.criterion(scene.catalog),
            reviews="" if notes is None else notes.shown(labels),
        )


# --- How a turn goes ------------------------------------------------------------------------


def _deliberate(panel: _Panel) -> Flow[_Deliberation]:
    """Propose, review, vote, revise and vote again; then the diagnostic ballots."""
    roles, form = panel.roles, panel.form
    drafts = yield from _proposals(roles, [panel.proposal(role) for role in roles])
    texts = _texts(drafts)
    reviews = yield from _review(panel, texts, "critique")
    initial = yield from _vote(panel, texts, {form: "vote_initial"})
    labels, notes = panel.labels("revise", roles), Notes(reviews, panel.scene.catalog)
    revised = yield from _proposals(
        roles, [panel.revision(role, texts, labels[role], notes) for role in roles]
    )
    texts = _texts(revised)
    final = yield from _vote(panel, texts, {form: "vote_final"})
    further = [one for one in panel.scene.study.vote_formats if one != form]
    others = {}
    if further:
        others = yield from _vote(panel, texts, {one: VOTE_AS[one] for one in further})
    return _Deliberation(drafts, reviews, initial[form], revised, final[form], others)


def _ballots_under(panel: _Panel, deliberation: _Deliberation) -> Flow[tuple[BallotRecord, ...]]:
    """Another format's ballots on the proposals: at hand if determined, else asked for."""
    form = panel.form
    if form in deliberation.others:
        return deliberation.others[form]
    counted = [counted_as(ballot, panel.rule(form)) for ballot in deliberation.final]
    known = tuple(ballot for ballot in counted if ballot is not None)
    if len(known) == len(counted):
        return known
    asked = yield from _vote(panel, _texts(deliberation.revised), {form: VOTE_AS[form]})
    return asked[form]


def _decided(
    panel: _Panel, deliberation: _Deliberation, ballots: tuple[BallotRecord, ...], others: Ballots
) -> Flow[Turn]:
    """Count, hold a tie round in the panel's format where one is due, and deliver."""
    texts, study = _texts(deliberation.revised), panel.scene.study
    masses = [ballot.mass for ballot in ballots]
    decision = decide(masses, panel.roles, order=study.order)
    tie_round = None
    if decision.tied_set and study.tie_policy == "tie_round":
        tied = {role: texts[role] for role in decision.tied_set}
        tie_round = yield from _tie_round(panel, tied)
        again = [ballot.mass for ballot in tie_round.ballots]
        decision = decide(masses, panel.roles, order=study.order, tie_round=again)
    return Turn(
        turn=panel.turn,
        proposals_initial=deliberation.drafts,
        reviews=deliberation.reviews,
        ballots_initial=deliberation.initial,
        proposals_final=deliberation.revised,
        ballots_final=ballots,
        ballots_as=dict(others),
        tie_round=tie_round,
        decision=decision,
        delivered=texts[decision.winner],
    )


def _tie_round(panel: _Panel, tied: Mapping[str, str]) -> Flow[TieRound]:
    """Review and vote again among the tied, by all voters in the same format."""
    reviews = yield from _review(panel, tied, "tie_critique")
    notes = Notes(reviews, panel.scene.catalog)
    ballots = yield from _vote(panel, tied, {panel.form: "tie_vote"}, notes)
    return TieRound(candidates=tuple(tied), reviews=reviews, ballots=ballots[panel.form])


def _proposals(
    roles: Sequence[str], questions: Sequence[Question[ReadProposal]]
) -> Flow[Proposals]:
    """One proposal of each role; one that never came stands as an empty text."""
    answers = yield from ask(questions)
    proposals = {}
    for role, answer in zip(roles, answers, strict=True):
        text, rationale, confidence = answer.value or ReadProposal("", None, None)
        proposals[role] = Proposal(
            text=text,
            rationale=rationale,
            confidence=confidence,
            status=answer.status,
            attempts=answer.attempts,
        )
    return proposals


def _review(panel: _Panel, texts: Mapping[str, str], stage: str) -> Flow[tuple[ReviewRecord, ...]]:
    """A review by each role, with its notes by role."""
    labels = panel.labels(stage, tuple(texts))
    answers = yield from ask(
        [panel.review(role, stage, texts, labels[role]) for role in panel.roles]
    )
    return tuple(
        ReviewRecord(
            reviewer=role,
            labels=labels[role],
            raw=answer.raw,
            notes={labels[role][label]: note for label, note in (answer.value or {}).items()},
            status=answer.status,
            attempts=answer.attempts,
        )
        for role, answer in zip(panel.roles, answers, strict=True)
    )


def _vote(
    panel: _Panel,
    texts: Mapping[str, str],
    stages: Mapping[BallotFormat, str],
    notes: Notes | None = None,
) -> Flow[dict[BallotFormat, tuple[BallotRecord, ...]]]:
    """Ballots in each format; those in further formats have the labels of the final vote."""
    drawn_for = next((one for one in stages.values() if one not in VOTE_AS.values()), "vote_final")
    labels = panel.labels(drawn_for, tuple(texts))
    return (
        yield from vote(
            panel.roles,
            tuple(texts),
            labels,
            {form: panel.rule(form) for form in stages},
            lambda form, role: panel.ballot(role, stages[form], form, texts, labels[role], notes),
        )
    )


def _texts(proposals: Proposals) -> dict[str, str]:
    return {role: proposal.text for role, proposal in proposals.items()}
