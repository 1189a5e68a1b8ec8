"""What a branch will take over and what it will ask for, before anything is sent.

Each episode is driven against its parent's recording until the first call that the parent cannot
answer: what was answered up to there is taken over for certain. From there on the number of
calls is a range. Tokens and cost are estimates from what the parent's calls of the same stage
took on average.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive
from tutorsim.episode import episode
from tutorsim.errors import RecordingError
from tutorsim.mechanisms.flow import CodeRun, Effect, Sent
from tutorsim.model import CallKey, Reply
from tutorsim.plan import PANEL_STAGES, TIE_STAGES, CallRange, PriceTable
from tutorsim.records import EpisodeRecord
from tutorsim.runner.parent import Parent
from tutorsim.study import EpisodeSpec, LoadedStudy

__all__ = ["BranchPlan", "EpisodePlan", "plan_branch"]

Stages = Counter[str]
"""How many calls of each stage."""

Usage = Mapping[str, tuple[float, float]]
"""Stage → mean input and output tokens of a call."""

LIKE: Final[Mapping[str, str]] = {"tie_critique": "critique", "tie_vote": "vote_final"}
"""Where a parent held no tie round, what its calls are like."""


@dataclass(frozen=True)
class EpisodePlan:
    """What one episode of the parent takes to continue."""

    episode_id: str
    benchmark: str
    condition: str
    turn: int
    """The cursor: the first turn that the alternative decides."""
    first_paid: str
    """Key of the first call that the parent cannot answer."""
    reused: int
    """Calls taken over before that one, for each continuation."""
    calls: CallRange
    """Calls to pay for, all continuations together."""
    tokens: tuple[int, int]
    """Estimated input and output tokens of the longest path without second askings."""
    least_cost: float | None
    """US dollars; `None` where a price is unknown."""
    cost: float | None
    """Of the longest path."""
    shrinks: float
    """Width by which the worst-case bounds of its benchmark and condition shrink, at most."""

    @property
    def worth(self) -> float:
        """Width per dollar at the middle of the range; per call where a price is unknown."""
        if self.least_cost is None or self.cost is None or not self.cost:
            return self.shrinks / max((self.calls.least + self.calls.most) / 2, 1)
        return self.shrinks / ((self.least_cost + self.cost) / 2)


@dataclass(frozen=True)
class BranchPlan:
    """What a branch takes."""

    episodes: tuple[EpisodePlan, ...]
    """The one that shrinks the bounds most per dollar first."""
    covered: int
    """Episodes that the alternative cannot change."""
    reused: int
    """Calls taken over, those of covered episodes among them."""
    calls: CallRange
    tokens: tuple[int, int]
    least_cost: float | None
    cost: float | None
    prices_as_of: str


class _NotThere(Exception):
    """The parent cannot answer a call."""

    def __init__(self, key: CallKey) -> None:
        super().__init__(str(key))
        self.key = key


def plan_branch(
    loaded: LoadedStudy, parent: Parent, episodes: Sequence[EpisodeRecord], prices: PriceTable
) -> BranchPlan:
    """Plan a branch.

    Args:
        loaded: The branch's study.
        parent: The recording that it continues.
        episodes: The parent's log.
        prices: Prices for the estimate.

    Raises:
        RecordingRefused: If the parent lacks a call before an episode's cursor.
        ReplayError: If such a call was recorded with another request.
        RecordingError: If a recorded verdict is missing.
    """
    usage = _usage(episodes)
    cells = Counter((e.benchmark, e.condition) for e in episodes if e.status == "complete")
    plans = [
        _plan_one(loaded, parent, spec, usage, prices, 1 / cells[spec.benchmark, spec.condition])
        for spec in loaded.grid()
        if spec.continuation == 1
    ]
    plans.sort(key=lambda plan: (-plan.worth, plan.episode_id))
    draws, covered = parent.branch.continuations, set(parent.branch.covered)
    kept = sum(len(e.calls) for e in episodes if e.episode_id in covered)
    return BranchPlan(
        episodes=tuple(plans),
        covered=len(covered),
        reused=kept + draws * sum(plan.reused for plan in plans),
        calls=sum((plan.calls for plan in plans), CallRange(0, 0, 0)),
        tokens=(sum(p.tokens[0] for p in plans), sum(p.tokens[1] for p in plans)),
        least_cost=_total(plan.least_cost for plan in plans),
        cost=_total(plan.cost for plan in plans),
        prices_as_of=prices.as_of,
    )


def _plan_one(
    loaded: LoadedStudy,
    parent: Parent,
    spec: EpisodeSpec,
    usage: Usage,
    prices: PriceTable,
    shrinks: float,
) -> EpisodePlan:
    reused, key = _taken_over(loaded, parent, spec)
    least, most = (Stages(), Stages()) if key is None else _to_pay(loaded, parent, spec, key)
    draws = parent.branch.continuations
    asked, answered = _tokens(most, usage)
    return EpisodePlan(
        episode_id=spec.parent_id,
        benchmark=spec.benchmark,
        condition=spec.condition,
        turn=parent.branch.episodes[spec.parent_id].turn,
        first_paid="" if key is None else str(key),
        reused=reused,
        calls=CallRange(draws * least.total(), draws * most.total(), draws * 2 * most.total()),
        tokens=(draws * asked, draws * answered),
        least_cost=_times(draws, _cost(loaded, parent, least, usage, prices)),
        cost=_times(draws, _cost(loaded, parent, most, usage, prices)),
        shrinks=shrinks,
    )


def _taken_over(
    loaded: LoadedStudy, parent: Parent, spec: EpisodeSpec
) -> tuple[int, CallKey | None]:
    """Calls that the parent answers, and the first that it does not; `None` if it answers all."""
    answered = 0

    def world(effect: Effect) -> Sent:
        nonlocal answered
        if isinstance(effect, CodeRun):
            verdict = parent.verdicts.find(effect)
            if verdict is None:
                raise RecordingError(
                    f"{spec.parent_id}: the verdict on the program of turn {effect.turn} is not "
                    "in the parent.",
                    hint="Restore the parent's files from version control.",
                )
            return verdict
        replies: list[Reply] = []
        for call in effect.calls:
            one = parent.answer(spec, call, fresh=effect.fresh)
            if one is None:
                raise _NotThere(call.key)
            replies.append(one.reply())
            answered += 1
        return tuple(replies)

    try:
        drive(episode(Scene(loaded, spec)), world)
    except _NotThere as stop:
        return answered, stop.key
    return answered, None


def _to_pay(
    loaded: LoadedStudy, parent: Parent, spec: EpisodeSpec, key: CallKey
) -> tuple[Stages, Stages]:
    """The least and the most that may follow from the first call that is paid for.

    Where voters are asked first, the winner may turn out to be the logged one, and the parent
    then answers what follows.
    """
    study = loaded.study
    later = Scene(loaded, spec).alternative(parent.branch).study
    asked = Stages({key.stage: len(study.roles)})
    tie: Stages = Stages({stage: len(study.roles) for stage in TIE_STAGES})
    turns = study.max_turns - key.turn
    rest: Stages = Stages(student=1 + turns, judge=1 + turns)
    further = [f"vote_as_{form}" for form in later.vote_formats if form != spec.condition]
    held = TIE_STAGES if later.tie_policy == "tie_round" else ()
    for stage in (*PANEL_STAGES, *further, *held):
        rest[stage] += turns * len(later.roles)
    if key.stage == "student":
        return Stages(student=1, judge=1), rest
    if key.stage == "tie_critique":
        return tie, tie + rest
    if key.stage == "tie_vote":
        return asked, asked + rest
    return asked, asked + (tie if held else Stages()) + rest


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
    loaded: LoadedStudy, parent: Parent, stages: Stages, usage: Usage, prices: PriceTable
) -> float | None:
    models = loaded.study.models
    named = {"student": models.student, "judge": models.judge}
    tutor = parent.branch.model or models.tutor
    costs = []
    for stage, n in stages.items():
        asked, answered = _mean(stage, usage)
        costs.append(prices.cost(named.get(stage, tutor), round(n * asked), round(n * answered)))
    return _total(costs)


def _total(costs: Iterable[float | None]) -> float | None:
    found = list(costs)
    known = [cost for cost in found if cost is not None]
    return sum(known) if len(known) == len(found) else None


def _times(draws: int, cost: float | None) -> float | None:
    return None if cost is None else draws * cost
