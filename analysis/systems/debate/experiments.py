"""The study's experiments on a run: rounds, agents, similarity of answers, challenges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from tutorsim.analysis.metrics.proposal_similarity import text_similarities
from tutorsim.analysis.metrics.text_embeddings import Embedding, embedded_similarities
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
)
from tutorsim.analysis.systems.debate.recounted import Changes, Rule, recounted, score_bounds
from tutorsim.records.debate import DebateRecord

__all__ = [
    "ChallengeCell",
    "SimilarityCell",
    "Slope",
    "agents_slopes",
    "challenge_cells",
    "rounds_slopes",
    "similarities",
    "slope",
]


@dataclass(frozen=True)
class Slope:
    """How a mean score changes with a number, on the same tasks."""

    name: str
    points: Mapping[int, float]
    """The number → mean score in percent."""
    slope: Estimate | NotEstimable
    """Least squares, in points per unit, with an interval over tasks."""
    tasks: int


def slope(name: str, scores: Mapping[str, Mapping[int, float]]) -> Slope | None:
    """The line through the means of tasks that have a score at every number.

    The slope of the means is the mean of the tasks' slopes, as all share the same numbers.

    Args:
        name: What the line is of.
        scores: Task → number → mean score in percent.

    Returns:
        `None` if there are fewer than two numbers.
    """
    numbers = sorted({number for values in scores.values() for number in values})
    whole = {task: v for task, v in scores.items() if sorted(v) == numbers}
    if len(numbers) < 2 or not whole:
        return None
    middle = mean(numbers)
    spread = sum((number - middle) ** 2 for number in numbers)
    slopes = {
        task: sum((number - middle) * values[number] for number in numbers) / spread
        for task, values in whole.items()
    }
    return Slope(
        name,
        {number: mean(values[number] for values in whole.values()) for number in numbers},
        mean_over_tasks(list(slopes.values()), list(slopes)),
        len(whole),
    )


def rounds_slopes(records: Sequence[DebateRecord], rules: Sequence[Rule]) -> list[Slope]:
    """Scores of voting by the first turn of a vote, each rule on the same debates of a variant.

    Args:
        records: Debates that never stopped.
        rules: Voting protocols.
    """
    variants: dict[str, list[DebateRecord]] = {}
    for record in records:
        variants.setdefault(record.variant, []).append(record)
    found = []
    for variant, debates in variants.items():
        last = min(record.turns_taken for record in debates)
        for rule in rules:
            scores: dict[str, dict[int, list[float]]] = {}
            for record in debates:
                for turn in range(1, last + 1):
                    outcome = recounted(record, rule, Changes(vote_from=turn))
                    if outcome.certainty == "exact":
                        task = scores.setdefault(f"{record.benchmark}.{record.task_id}", {})
                        task.setdefault(turn, []).append(score_bounds(record, outcome)[0])
            name = f"{rule} ({variant})" if len(variants) > 1 else rule
            found.append(slope(name, _means(scores)))
    return [one for one in found if one is not None]


def agents_slopes(records: Sequence[DebateRecord]) -> list[Slope]:
    """Scores by number of agents, per condition, over variants that differ in nothing else."""
    debated = [r for r in records if r.status == "complete" and r.turns and r.score is not None]
    told = _differing_settings(debated)
    scores: dict[tuple[str, ...], dict[str, dict[int, list[float]]]] = {}
    for record in debated:
        settings = tuple(f"{name} = {getattr(record.setup, name)}" for name in told)
        task = scores.setdefault((record.condition, *settings), {}).setdefault(
            f"{record.benchmark}.{record.task_id}", {}
        )
        task.setdefault(record.setup.agents, []).append(100 * (record.score or 0))
    found = [
        slope(f"{name} ({', '.join(settings)})" if settings else name, _means(tasks))
        for (name, *settings), tasks in scores.items()
    ]
    return [one for one in found if one is not None]


def _differing_settings(records: Sequence[DebateRecord]) -> list[str]:
    """Settings other than the number of agents in which some debates differ."""
    setups = [record.setup.model_dump(exclude={"agents"}) for record in records]
    return [name for name in (setups[0] if setups else ()) if len({s[name] for s in setups}) > 1]


def _means(scores: Mapping[str, Mapping[int, list[float]]]) -> dict[str, dict[int, float]]:
    return {
        task: {number: mean(values) for number, values in by_number.items()}
        for task, by_number in scores.items()
    }


@dataclass(frozen=True)
class SimilarityCell:
    """How alike the final answers of a variant's debates are, beside its score."""

    benchmark: str
    variant: str
    debates: int
    similarity: float
    """Mean pairwise TF–IDF cosine of a debate's last final answers, 0 to 1."""
    embedded: float | None
    """The same of their sentence embeddings, −1 to 1; `None` without a model of sentences."""
    score: float | None
    """Mean score in percent of the debates that delivered an answer."""


def similarities(
    records: Sequence[DebateRecord], embedding: Embedding | None = None
) -> list[SimilarityCell]:
    """One cell per benchmark and variant, over debates whose agents gave final answers."""
    kept: dict[tuple[str, str], list[tuple[DebateRecord, list[str]]]] = {}
    for record in records:
        answered = [turn for turn in record.turns if turn.answers]
        if record.status == "complete" and answered:
            texts = [answer.text for answer in answered[-1].answers.values()]
            kept.setdefault((record.benchmark, record.variant), []).append((record, texts))
    found = []
    for (benchmark, variant), debates in kept.items():
        panels = [texts for _, texts in debates]
        means = [one for one in text_similarities(panels) if one is not None]
        embedded: list[float | None] = []
        if embedding is not None:
            embedded = embedded_similarities(panels, embedding)
        scores = [100 * record.score for record, _ in debates if record.score is not None]
        if means:
            score = mean(scores) if scores else None
            alike = [one for one in embedded if one is not None]
            found.append(
                SimilarityCell(
                    benchmark,
                    variant,
                    debates=len(means),
                    similarity=mean(means),
                    embedded=mean(alike) if alike else None,
                    score=score,
                )
            )
    return found


@dataclass(frozen=True)
class ChallengeCell:
    """How agents judge an answer of one setting."""

    setting: str
    judged: int
    """Judgements that could be read."""
    unread: int
    challenged: int
    rises: int
    """Challenged ones whose other answer scores more than the delivered one."""
    falls: int
    stays: int


def challenge_cells(records: Sequence[DebateRecord]) -> list[ChallengeCell]:
    """One cell per setting, over all debates that were challenged."""
    settings = dict.fromkeys(one.setting for record in records for one in record.challenges)
    return [_challenge_cell(setting, records) for setting in settings]


def _challenge_cell(setting: str, records: Sequence[DebateRecord]) -> ChallengeCell:
    pairs = [
        (one, record.score or 0.0)
        for record in records
        for one in record.challenges
        if one.setting == setting
    ]
    changes = [(one.score or 0.0) - before for one, before in pairs if one.challenged]
    return ChallengeCell(
        setting,
        judged=sum(one.challenged is not None for one, _ in pairs),
        unread=sum(one.challenged is None for one, _ in pairs),
        challenged=len(changes),
        rises=sum(change > 0 for change in changes),
        falls=sum(change < 0 for change in changes),
        stays=sum(change == 0 for change in changes),
    )
