"""Outcomes by people's scores: what was delivered, who succeeded, and what other rules would do.

Everything is of the items that were drawn and rated; how many that are stands beside each figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from tutorsim.analysis.ratings.agreement import Gathered, Kind
from tutorsim.analysis.ratings.items import Place
from tutorsim.analysis.runs.branch_continuations import by_origin
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.analysis.systems.panel.success_threshold import episode_at_threshold
from tutorsim.records import EpisodeRecord
from tutorsim.records.ratings import RatedBy

Possible = Mapping[tuple[str, int], Mapping[str, tuple[str, ...]]]
"""Episode and turn → rule → candidates that could have won."""


@dataclass(frozen=True)
class DeliveredScore:
    """People's scores of what one condition delivered, or its students answered."""

    kind: Kind
    rubric: str
    by: RatedBy
    condition: str
    texts: int
    """Delivered replies, or answers, of the condition."""
    rated: int
    score: Estimate | NotEstimable
    good: Estimate | NotEstimable
    """Share with at least the rubric's threshold."""


@dataclass(frozen=True)
class PeoplesSuccess:
    """Success under people's scores of the answers, beside the logged one."""

    rubric: str
    by: RatedBy
    benchmark: str
    condition: str
    episodes: int
    answers: int
    rated: int
    """Answers that people rated."""
    logged: float
    """Share of the episodes that the model judge, and tests, let succeed."""
    success: Bounds
    """Share under people's scores: an answer that nobody rated could be either, and so could
    what would have followed an answer that only the judge let pass."""


@dataclass(frozen=True)
class OtherRule:
    """People's scores of what another rule would have delivered, turn by turn."""

    rubric: str
    by: RatedBy
    logged_protocol: str
    rule: str
    turns: int
    """With every final proposal rated, and the rule's possible winners settled."""
    identified: int
    """With one possible winner."""
    delivered: float
    """Mean score of what was delivered there."""
    score: Bounds
    """Mean score of what the rule would have delivered."""
    delivered_good: float | None
    """Share of the delivered replies with at least the threshold; `None` without one."""
    good: Bounds | NotEstimable


def delivered_scores(found: Gathered) -> list[DeliveredScore]:
    """By condition: people's scores of delivered replies, or of answers."""
    means = found.means
    cells: dict[str, list[tuple[float | None, str]]] = {}
    for name, item in found.items.items():
        for place in (place for place in item.places if place.delivered):
            cells.setdefault(place.condition, []).append((means.get(name), place.task))
    rows = []
    for condition, texts in cells.items():
        rated = [(mean, task) for mean, task in texts if mean is not None]
        tasks = [task for _, task in rated]
        good: Estimate | NotEstimable = NotEstimable("the rubric has no threshold")
        if found.rubric.threshold is not None:
            passed = [float(found.is_good(mean) or False) for mean, _ in rated]
            good = share_over_tasks(passed, tasks)
        score = mean_over_tasks([mean for mean, _ in rated], tasks)
        if rated:
            told = (found.kind, found.rubric.name, found.by, condition, len(texts), len(rated))
            rows.append(DeliveredScore(*told, score, good))
    return rows


def peoples_success(
    found: Gathered, episodes: Sequence[EpisodeRecord], *, max_turns: int
) -> list[PeoplesSuccess]:
    """Success by benchmark and condition, if people's scores had decided who succeeds.

    An episode ends at its first answer that people let pass, on the logged path. One that the log
    ended, and that people let not pass, may have gone on to anything.

    Args:
        found: Ratings of answers.
        episodes: Of the run.
        max_turns: Tutoring turns at most.
    """
    passes = {
        (place.episode, place.turn): good
        for name, mean in found.means.items()
        for place in found.items[name].places
        if (good := found.is_good(mean)) is not None
    }
    cells: dict[tuple[str, str], list[EpisodeRecord]] = {}
    for episode in episodes:
        if episode.status == "complete":
            cells.setdefault((episode.benchmark, episode.condition), []).append(episode)
    return [
        _success_row(found, cell, group, passes, max_turns)
        for cell, group in cells.items()
        if any(_rated(episode, passes) for episode in group)
    ]


Passes = Mapping[tuple[str, int], bool]
"""Episode and turn → whether people let the answer pass; answers that were rated."""


def _rated(episode: EpisodeRecord, passes: Passes) -> int:
    return sum((episode.episode_id, attempt.turn) in passes for attempt in episode.attempts)


def _success_row(
    found: Gathered,
    cell: tuple[str, str],
    group: Sequence[EpisodeRecord],
    passes: Passes,
    max_turns: int,
) -> PeoplesSuccess:
    units = [
        (
            [float(e.success or False) for e in draws],
            [_success(e, passes, max_turns) for e in draws],
        )
        for draws in by_origin(group)
    ]
    n = len(units)
    low, high = (fsum(_mean([b[end] for b in bounds]) for _, bounds in units) for end in (0, 1))
    return PeoplesSuccess(
        rubric=found.rubric.name,
        by=found.by,
        benchmark=cell[0],
        condition=cell[1],
        episodes=n,
        answers=sum(len(episode.attempts) for episode in group),
        rated=sum(_rated(episode, passes) for episode in group),
        logged=fsum(_mean(logged) for logged, _ in units) / n,
        success=Bounds(low / n, high / n, n),
    )


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _success(episode: EpisodeRecord, passes: Passes, max_turns: int) -> tuple[float, float]:
    """Least and greatest success: answers that nobody rated fail, and pass."""
    found = [
        episode_at_threshold(_scored(episode, passes, unrated), 0.5, max_turns=max_turns).success
        for unrated in (0.0, 1.0)
    ]
    return found[0].low, max(one.high for one in found)


def _scored(episode: EpisodeRecord, passes: Passes, unrated: float) -> EpisodeRecord:
    """The episode with 1 for the score of an answer that people let pass, and 0 otherwise."""
    attempts = tuple(
        attempt.model_copy(
            update={"score": float(passes.get((episode.episode_id, attempt.turn), unrated))}
        )
        for attempt in episode.attempts
    )
    return episode.model_copy(update={"attempts": attempts})


def other_rules(found: Gathered, possible: Possible) -> list[OtherRule]:
    """People's scores of what each rule would have delivered, over turns rated as a whole.

    Each turn is looked at alone, and the logged dialogue is held fixed.

    Args:
        found: Ratings of proposals.
        possible: Who could have won each turn.
    """
    cells: dict[tuple[str, str], list[_Turn]] = {}
    for turn, (place, scores) in whole_turns(found).items():
        for rule, winners in possible.get(turn, {}).items():
            seen = _Turn(scores[place.role], [scores[role] for role in winners])
            cells.setdefault((place.condition, rule), []).append(seen)
    return [_rule_row(found, cell, turns) for cell, turns in cells.items()]


@dataclass(frozen=True)
class _Turn:
    delivered: float
    possible: list[float]
    """Scores of the proposals that could have won."""


def whole_turns(found: Gathered) -> dict[tuple[str, int], tuple[Place, dict[str, float]]]:
    """Turns with several proposals, all of them rated.

    Returns:
        Episode and turn → the delivered reply's place, and the score of every role's proposal.
    """
    means = found.means
    delivered: dict[tuple[str, int], Place] = {}
    scores: dict[tuple[str, int], dict[str, float | None]] = {}
    for name, item in found.items.items():
        for place in item.places:
            turn = (place.episode, place.turn)
            scores.setdefault(turn, {})[place.role] = means.get(name)
            if place.delivered:
                delivered[turn] = place
    known = {
        turn: {role: score for role, score in of_turn.items() if score is not None}
        for turn, of_turn in scores.items()
    }
    return {
        turn: (place, known[turn])
        for turn, place in delivered.items()
        if len(scores[turn]) > 1 and len(known[turn]) == len(scores[turn])
    }


def _rule_row(found: Gathered, cell: tuple[str, str], turns: Sequence[_Turn]) -> OtherRule:
    n = len(turns)
    delivered_good: float | None = None
    good: Bounds | NotEstimable = NotEstimable("the rubric has no threshold")
    if found.rubric.threshold is not None:
        delivered_good = sum(bool(found.is_good(t.delivered)) for t in turns) / n
        low, high = (
            sum(bool(found.is_good(end(t.possible))) for t in turns) / n for end in (min, max)
        )
        good = Bounds(low, high, n)
    return OtherRule(
        rubric=found.rubric.name,
        by=found.by,
        logged_protocol=cell[0],
        rule=cell[1],
        turns=n,
        identified=sum(len(t.possible) == 1 for t in turns),
        delivered=_mean([t.delivered for t in turns]),
        score=Bounds(
            _mean([min(t.possible) for t in turns]), _mean([max(t.possible) for t in turns]), n
        ),
        delivered_good=delivered_good,
        good=good,
    )
