"""The panels that a run compares: which episodes are whose, and what each is made of."""

from collections.abc import Mapping

from tutorsim.records import EpisodeRecord, PanelMakeup, RunRecord, StudySettings

__all__ = ["makeup_words", "of_one_panel", "panels_of", "sizes_of", "taught_by"]


def panels_of(run: RunRecord | None) -> Mapping[str, PanelMakeup]:
    """The panels that a run compares, by name; empty where it has one panel or is no run."""
    return {} if run is None else run.panels


def sizes_of(run: RunRecord) -> tuple[int, ...]:
    """How many tutors a panel of a run has; every size where it compares panels."""
    sizes = {len(made.roles) for made in run.panels.values()} or {len(run.panel.roles)}
    return tuple(sorted(sizes))


def makeup_words(makeup: PanelMakeup) -> str:
    """Who sits on a panel, in its order, for a table."""
    if makeup.placebo == "copied":
        return f"{makeup.copied}, {len(makeup.roles)} times"
    drawn = " (drawn by lot)" if makeup.placebo == "random" else ""
    return " › ".join(makeup.fallback_order) + drawn


def taught_by(episode: EpisodeRecord, run: RunRecord) -> str:
    """Which panel taught in an episode, behind its condition; empty where the run has one."""
    if episode.panel is None:
        return ""
    return f", panel {episode.panel} ({makeup_words(run.panels[episode.panel])})"


def of_one_panel(run: RunRecord, name: str) -> RunRecord:
    """The head of a run as if its study had one of its panels alone."""
    study, makeup = run.study, run.panels[name]
    assert isinstance(study, StudySettings)
    branch = study.branch
    if branch is not None and branch.fallback_order is not None:
        seated = {*makeup.roles, *(branch.roles or ())}
        order = tuple(role for role in branch.fallback_order if role in seated)
        branch = branch.model_copy(update={"fallback_order": order})
    changed: dict[str, object] = {
        "roles": makeup.roles,
        "fallback_order": makeup.fallback_order,
        "panels": {},
        "branch": branch,
    }
    return run.model_copy(update={"study": study.model_copy(update=changed)})
