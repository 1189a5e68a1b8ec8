"""A branch of a panel's recording: its study, and what it will take over and ask for.

Each episode is driven against its parent's recording until the first call that the parent cannot
answer: what was answered up to there is taken over for certain. From there on the number of
calls is a range. Tokens and cost are estimates from what the parent's calls of the same stage
took on average.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from tutorsim.errors import RecordingError, UsageError
from tutorsim.kernel.cost_plan import PriceTable
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import CallRange
from tutorsim.model import Call, CallKey, Reply
from tutorsim.records import Branch, BranchedEpisode, EpisodeRecord
from tutorsim.runner.branch_plan_and_answers_from_parent import (
    Alternative,
    Branching,
    BranchPlan,
    EpisodePlan,
    Parent,
    total_cost,
)
from tutorsim.runner.find_and_check_recording import Recording, length_of
from tutorsim.runner.play_recorded_episodes_and_retests import RecordedPrefix, recorded_prefix
from tutorsim.systems.panel.episode_flow_and_study import PanelStudy, episode, panel_study
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene, scene_of
from tutorsim.systems.panel.settings_and_members_of_compared_panels import (
    PANEL_STAGES,
    RESERVED_AGENTS,
    TIE_STAGES,
)
from tutorsim.systems.panel.turn_of_drafts_reviews_votes_and_notes_per_reader import panel_format
from tutorsim.vocabularies import MAX_ROLES, MIN_ROLES

# --- Branch study --------------------------------------------------------------------------------


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

    `first_turns`: episode → first turn that the alternative may decide otherwise. Complete episodes
    that are not in it are covered. `continuations`: draws of each episode's future. `only`: take up
    these episodes alone, and leave the others open; `None` takes up all. Raises `UsageError` if the
    parent is a branch itself, or its catalog lacks a role; `RecordingError` if the prompts of this
    tutorsim are not the recorded ones.
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
            hint="Branch with the tutorsim that recorded it, or record the study again.",
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


# --- Branch cost plan ----------------------------------------------------------------------------

Stages = Counter[str]
"""How many calls of each stage."""

Usage = Mapping[str, tuple[float, float]]
"""Stage → mean input and output tokens of a call."""

LIKE: Final[Mapping[str, str]] = {"tie_critique": "critique", "tie_vote": "vote_final"}
"""Where a parent held no tie round, what its calls are like."""


def plan_branch(
    loaded: PanelStudy,
    parent: Parent,
    episodes: Sequence[EpisodeRecord],
    prices: PriceTable,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> BranchPlan:
    """Plan a branch.

    Raises `RecordingRefused` if the parent lacks a call before an episode's cursor; `ReplayError`
    if such a call was recorded with another request; `RecordingError` if a recorded verdict is
    missing.
    """
    usage = _usage(episodes)
    cells: Counter[tuple[str, str]] = Counter(
        (e.benchmark, e.condition) for e in episodes if e.status == "complete"
    )
    specs = [spec for spec in loaded.grid() if spec.continuation == 1]
    plans = []
    for done, spec in enumerate(specs, start=1):
        shrinks = 1 / cells[spec.benchmark, spec.condition]
        plans.append(_plan_one(loaded, parent, spec, usage, prices, shrinks))
        on_progress(done, len(specs))
    plans.sort(key=lambda plan: (-plan.worth, plan.episode_id))
    covered = set(parent.branch.covered)
    kept = sum(len(e.calls) for e in episodes if e.episode_id in covered)
    length = length_of(parent.recording.folder)
    share = None if length is None else length.share
    return BranchPlan.of(plans, len(covered), kept, prices.as_of, share)


def _plan_one(
    loaded: PanelStudy,
    parent: Parent,
    spec: EpisodeSpec,
    usage: Usage,
    prices: PriceTable,
    shrinks: float,
) -> EpisodePlan:
    reused, calls = _taken_over(loaded, parent, spec)
    missing = [call.key for call in calls]
    least, most = calls_to_pay(scene_of(loaded, spec), parent.branch, missing)
    draws = parent.branch.continuations
    asked, answered = _tokens(most, usage)
    return EpisodePlan(
        episode_id=spec.parent_id,
        benchmark=spec.benchmark,
        condition=spec.condition,
        turn=parent.branch.episodes[spec.parent_id].turn,
        first_paid=str(missing[0]) if missing else "",
        reused=draws * reused,
        calls=CallRange(draws * least.total(), draws * most.total(), draws * 2 * most.total()),
        tokens=(draws * asked, draws * answered),
        least_cost=_times(draws, _cost(loaded, parent, least, usage, prices)),
        cost=_times(draws, _cost(loaded, parent, most, usage, prices)),
        shrinks=shrinks,
    )


def _taken_over(loaded: PanelStudy, parent: Parent, spec: EpisodeSpec) -> RecordedPrefix:
    """How far the parent's answers reach."""
    prior = parent.episode(spec)

    def recorded(call: Call, fresh: bool) -> Reply | None:
        one = prior.answer(call, fresh=fresh)
        return None if one is None else one.reply()

    return recorded_prefix(
        episode(scene_of(loaded, spec)),
        recorded,
        judged=lambda run: _recorded_verdict(parent, spec, run),
    )


def _recorded_verdict(parent: Parent, spec: EpisodeSpec, run: CodeRun) -> CodeResult:
    verdict = parent.verdicts.find(run)
    if verdict is None:
        raise RecordingError(
            f"{spec.parent_id}: the verdict on the program of turn {run.turn} is not in the "
            "parent.",
            hint="Restore the parent's files from version control.",
        )
    return verdict


def calls_to_pay(scene: Scene, branch: Branch, missing: Sequence[CallKey]) -> tuple[Stages, Stages]:
    """The least and the most that may follow from the first calls that are paid for.

    Where voters are asked first, the winner may turn out to be the logged one, and the parent
    then answers what follows.

    `missing`: calls of the first round that the parent does not answer whole; none where it answers
    everything.
    """
    if not missing:
        return Stages(), Stages()
    first = Stages(key.stage for key in missing)
    stage, turn = missing[0].stage, missing[0].turn
    later = scene.alternative(branch)
    n, left = len(scene.study.roles), scene.study.max_turns - turn
    tie = Stages({one: n for one in TIE_STAGES if later.study.tie_policy == "tie_round"})
    if stage == "student":
        least = Stages({"student": 1, "judge": 1})
        return least, _after_leaving(later, left)
    if stage == "tie_critique":
        return tie, tie + _longest(scene, later, tie, left)
    if stage == "tie_vote":
        return first, first + _longest(scene, later, tie, left)
    return first, first + tie + _longest(scene, later, tie, left)


def _longest(scene: Scene, later: Scene, tie: Stages, turns: int) -> Stages:
    """What may follow a decision that was paid for, if so many turns may come after it.

    Another winner leaves the path; with the logged one the next decision may have to be paid for.
    """
    leaving = _after_leaving(later, turns)
    if not turns:
        return leaving
    logged, wanted = panel_format(scene), panel_format(later)
    at_hand = wanted == logged or wanted in scene.study.vote_formats
    asked = Stages() if at_hand else Stages({f"vote_as_{wanted}": len(scene.study.roles)})
    staying = asked + tie + _longest(scene, later, tie, turns - 1)
    return max(leaving, staying, key=Stages.total)


def _after_leaving(later: Scene, turns: int) -> Stages:
    """All calls after another winner was delivered, if no attempt succeeds and each vote ties."""
    study, form = later.study, panel_format(later)
    stages = [*PANEL_STAGES, *(f"vote_as_{one}" for one in study.vote_formats if one != form)]
    if study.tie_policy == "tie_round":
        stages += TIE_STAGES
    around = Stages({"student": 1 + turns, "judge": 1 + turns})
    return around + Stages({stage: turns * len(study.roles) for stage in stages})


def _usage(episodes: Iterable[EpisodeRecord]) -> Usage:
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in episodes:
        for call in one.calls:
            if one.condition != "baseline" or call.stage in ("student", "judge"):
                found[call.stage].append((call.input_tokens, call.output_tokens))
    return {
        stage: (
            sum(asked for asked, _ in pairs) / len(pairs),
            sum(answered for _, answered in pairs) / len(pairs),
        )
        for stage, pairs in found.items()
    }


def _mean(stage: str, usage: Usage) -> tuple[float, float]:
    """Tokens of a call; of the most similar stage where the parent held none."""
    return usage.get(stage) or usage.get(LIKE.get(stage, "vote_final")) or (0.0, 0.0)


def _tokens(stages: Stages, usage: Usage) -> tuple[int, int]:
    asked = sum(n * _mean(stage, usage)[0] for stage, n in stages.items())
    answered = sum(n * _mean(stage, usage)[1] for stage, n in stages.items())
    return round(asked), round(answered)


def _cost(
    loaded: PanelStudy, parent: Parent, stages: Stages, usage: Usage, prices: PriceTable
) -> float | None:
    models = loaded.study.models
    named = {"student": models.student, "judge": models.judge}
    tutor = parent.branch.model or models.tutor
    costs = []
    for stage, n in stages.items():
        asked, answered = _mean(stage, usage)
        costs.append(prices.cost(named.get(stage, tutor), round(n * asked), round(n * answered)))
    return total_cost(costs)


def _times(draws: int, cost: float | None) -> float | None:
    return None if cost is None else draws * cost


BRANCHING: Final = Branching(study=branch_study, plan=plan_branch)
