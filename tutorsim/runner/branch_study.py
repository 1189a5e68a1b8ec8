"""The study of a branch: a parent's study with an alternative, and the cursor of each episode."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tutorsim.errors import RecordingError, UsageError
from tutorsim.records import Branch, BranchedEpisode, EpisodeRecord
from tutorsim.runner.open_recording import Recording
from tutorsim.systems.panel.study import RESERVED_AGENTS, PanelStudy, panel_study
from tutorsim.vocabularies import MAX_ROLES, MIN_ROLES, Protocol, TiePolicy

__all__ = ["Alternative", "branch_study"]


@dataclass(frozen=True)
class Alternative:
    """What a branch changes; `None` leaves a thing as it was logged."""

    rule: Protocol | None = None
    fallback_order: tuple[str, ...] | None = None
    """Every role of the logged panel."""
    tie_policy: TiePolicy | None = None
    roles: tuple[str, ...] | None = None
    """The panel once another winner was delivered."""
    model: str | None = None
    """The tutors' model once another winner was delivered."""


def branch_study(
    recording: Recording,
    episodes: Sequence[EpisodeRecord],
    alternative: Alternative,
    first_turns: Mapping[str, int],
    *,
    continuations: int = 1,
    only: Set[str] | None = None,
) -> PanelStudy:
    """The study that a branch records.

    Args:
        recording: The parent.
        episodes: The parent's log; failed episodes are left out of the branch.
        alternative: What is changed.
        first_turns: Episode → first turn that the alternative may decide otherwise. Complete
            episodes that are not in it are covered.
        continuations: Draws of each episode's future.
        only: Take up these episodes alone, and leave the others open; `None` takes up all.

    Raises:
        UsageError: If the parent is a branch itself, or its catalog lacks a role.
        RecordingError: If the prompts of this tutorsim are not the recorded ones.
    """
    loaded = panel_study(recording.loaded, command="branch")
    study = loaded.study
    if study.branch is not None:
        raise UsageError(
            f"{recording.folder} is a branch itself.",
            why="A branch continues a recording of logged episodes.",
            hint="Branch its parent under the alternative that you want.",
        )
    _check_prompts(recording)
    loaded = loaded.with_shipped()
    _check_roles(loaded, alternative.roles)
    complete = [e for e in episodes if e.status == "complete"]
    taken_up = {
        e.episode_id: BranchedEpisode(turn=first_turns[e.episode_id], winners=_winners(e))
        for e in complete
        if e.episode_id in first_turns and (only is None or e.episode_id in only)
    }
    branch = Branch(
        parent=study.name,
        parent_study=recording.manifest.study_digest,
        parent_recording=recording.manifest.recording_digest(),
        **vars(alternative),
        continuations=continuations,
        covered=tuple(e.episode_id for e in complete if e.episode_id not in first_turns),
        episodes=taken_up,
    )
    changed = study.model_copy(update={"name": f"{study.name[:73]}-branch", "branch": branch})
    return replace(loaded, study=changed)


def _winners(episode: EpisodeRecord) -> tuple[str, ...]:
    return tuple(turn.decision.winner for turn in episode.turns if turn.decision is not None)


def _check_prompts(recording: Recording) -> None:
    if recording.drifted:
        raise RecordingError(
            f"{recording.folder}: the prompts of this tutorsim are not the recorded ones.",
            why="What follows the cursor would be asked in other words than what came before it.",
            hint="Branch with the tutorsim that recorded it, or record the study anew.",
        )


def _check_roles(loaded: PanelStudy, roles: Sequence[str] | None) -> None:
    if roles is None:
        return
    known = [role for role in loaded.catalog.roles if role not in RESERVED_AGENTS]
    unknown = [role for role in roles if role not in known]
    if unknown or len(set(roles)) != len(roles) or not MIN_ROLES <= len(roles) <= MAX_ROLES:
        raise UsageError(
            f"A panel of {', '.join(roles)} cannot go on.",
            why=f"The recording's catalog has no role {unknown[0]!r} for a panel."
            if unknown
            else f"A panel has {MIN_ROLES} to {MAX_ROLES} different roles.",
            hint=f"Its roles are {', '.join(known)}.",
        )
