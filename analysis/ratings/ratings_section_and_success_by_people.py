"""What people said of a run, for its summary and its report.

Outcomes by people's scores are of the items that were drawn and rated; how many that are stands
beside each figure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.cells_and_tables import (
    DASH,
    Written,
    bounds,
    estimate,
    number,
    part_of,
)
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredSection,
    Row,
    Rows,
    section,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document, with_section
from tutorsim.analysis.ratings.item_scores_and_agreement_of_raters_and_judge import (
    METRICS,
    Alpha,
    Gathered,
    Kind,
    agreement,
    beside_judge,
    gathered,
)
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Place
from tutorsim.analysis.recount import possible_winners
from tutorsim.analysis.recount.result_models import HELD_FIXED
from tutorsim.analysis.recount.success_under_other_score_thresholds import episode_at_threshold
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import by_origin
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.records import EpisodeRecord
from tutorsim.records.ratings import RatedBy

# --- Outcomes by people's scores ------------------------------------------------------------------

Possible = Mapping[tuple[str, int], Mapping[str, tuple[str, ...]]]
"""Episode and turn → rule → candidates that could have won."""


_NO_THRESHOLD: Final = NotEstimable("the rubric has no threshold")


def delivered_scores(found: Gathered) -> Rows:
    """By condition: people's scores of delivered replies, or of answers."""
    means = found.means
    cells = by_key(
        (place.condition, (means.get(name), place.task))
        for name, item in found.items.items()
        for place in item.places
        if place.delivered
    )
    for condition, texts in cells.items():
        rated = [(mean, task) for mean, task in texts if mean is not None]
        scores, tasks = [mean for mean, _ in rated], [task for _, task in rated]
        good = [found.is_good(score) or False for score in scores]
        if rated:
            yield {
                **found.of,
                "condition": condition,
                "texts": len(texts),  # delivered replies, or answers, of the condition
                "rated": len(rated),
                "score": mean_over_tasks(scores, tasks),
                "good": _NO_THRESHOLD  # share with at least the rubric's threshold
                if found.rubric.threshold is None
                else share_over_tasks(good, tasks),
            }


def peoples_success(found: Gathered, episodes: Sequence[EpisodeRecord], *, max_turns: int) -> Rows:
    """Success by benchmark and condition, if people's scores had decided who succeeds.

    An episode ends at its first answer that people let pass, on the logged path. One that the log
    ended, and that people let not pass, may have gone on to anything.
    """
    passes = {
        (place.episode, place.turn): good
        for name, mean in found.means.items()
        for place in found.items[name].places
        if (good := found.is_good(mean)) is not None
    }
    cells = by_key(((e.benchmark, e.condition), e) for e in episodes if e.status == "complete")
    for (benchmark, condition), group in cells.items():
        rated = sum((e.episode_id, answer.turn) in passes for e in group for answer in e.attempts)
        if rated:
            units = by_origin(group)
            n = len(units)
            ends = [[_success(draw, passes, max_turns) for draw in draws] for draws in units]
            low, high = (fsum(_mean([end[i] for end in one]) for one in ends) / n for i in (0, 1))
            logged = (_mean([float(draw.success or False) for draw in draws]) for draws in units)
            yield {
                "rubric": found.rubric.name,
                "by": found.by,
                "benchmark": benchmark,
                "condition": condition,
                "episodes": n,
                "answers": sum(len(episode.attempts) for episode in group),
                "rated": rated,  # answers that people rated
                "logged": fsum(logged) / n,  # share that the model judge, and tests, let succeed
                "success": Bounds(low, high, n),  # share under people's scores
            }


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _success(
    episode: EpisodeRecord, passes: Mapping[tuple[str, int], bool], max_turns: int
) -> tuple[float, float]:
    """Least and greatest success: answers that nobody rated fail, and pass.

    `passes`: episode and turn → whether people let the answer pass; answers that were rated.
    """

    def scored(unrated: bool) -> Bounds:
        attempts = tuple(
            answer.model_copy(
                update={"score": float(passes.get((episode.episode_id, answer.turn), unrated))}
            )
            for answer in episode.attempts
        )
        changed = episode.model_copy(update={"attempts": attempts})
        return episode_at_threshold(changed, 0.5, max_turns=max_turns).success

    return scored(False).low, scored(True).high


def other_rules(found: Gathered, possible: Possible) -> Rows:
    """People's scores of what each rule would have delivered, over turns rated as a whole.

    Each turn is looked at alone, and the logged dialogue is held fixed.

    `possible`: who could have won each turn.
    """
    cells = by_key(
        ((place.condition, rule), (scores[place.role], [scores[role] for role in winners]))
        for turn, (place, scores) in whole_turns(found).items()
        for rule, winners in possible.get(turn, {}).items()
    )

    def good(scores: Sequence[float]) -> float:
        return sum(bool(found.is_good(score)) for score in scores) / len(scores)

    judged = found.rubric.threshold is not None
    for (condition, rule), turns in cells.items():
        n, delivered = len(turns), [score for score, _ in turns]
        low, high = ([end(scores) for _, scores in turns] for end in (min, max))
        yield {
            "rubric": found.rubric.name,
            "by": found.by,
            "logged_protocol": condition,
            "rule": rule,
            "turns": n,  # with every final proposal rated, and the rule's possible winners settled
            "identified": sum(len(scores) == 1 for _, scores in turns),  # one possible winner
            "delivered": _mean(delivered),
            "score": Bounds(_mean(low), _mean(high), n),  # of what the rule would have delivered
            "delivered_good": good(delivered) if judged else None,
            "good": Bounds(good(low), good(high), n) if judged else _NO_THRESHOLD,
        }


def whole_turns(found: Gathered) -> dict[tuple[str, int], tuple[Place, dict[str, float]]]:
    """Turns with several proposals, all of them rated.

    Returns episode and turn → the delivered reply's place, and the score of every role's proposal.
    """
    means = found.means
    places = [(name, place) for name, item in found.items.items() for place in item.places]
    proposals = by_key(((p.episode, p.turn), (p.role, means.get(name))) for name, p in places)
    delivered = {(p.episode, p.turn): p for _, p in places if p.delivered}
    rated = {
        turn: {role: score for role, score in own if score is not None}
        for turn, own in proposals.items()
    }
    return {
        turn: (place, rated[turn])
        for turn, place in delivered.items()
        if 1 < len(rated[turn]) == len(proposals[turn])
    }


# --- What people said -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratings:
    """What people said of a run."""

    by: tuple[RatedBy, ...]
    agreement: tuple[Row, ...]
    """How far the raters of one kind of text, on one rubric, agree."""
    judge: tuple[Row, ...]
    """The model judge's scores beside people's."""
    delivered: tuple[Row, ...]
    """People's scores of what each condition delivered, or its students answered."""
    success: tuple[Row, ...]
    """Success under people's scores of the answers, beside the logged one."""
    other_rules: tuple[Row, ...]
    """People's scores of what other rules would have delivered, turn by turn."""


def ratings_of(run: SystemRun) -> Ratings:
    """What people said of a run of any system."""
    every = gathered(run, run.ratings)
    judged = (beside_judge(one) for one in every)
    success: list[Row] = []
    rules: list[Row] = []
    taught = run.head.success
    if taught is not None:
        source = run.source
        for one in every:
            if one.kind == "answers":
                success += peoples_success(one, source.episodes, max_turns=taught.max_turns)
            else:
                rules += other_rules(one, _possible(source, whole_turns(one)))
    return Ratings(
        by=tuple(dict.fromkeys(one.by for one in every)),
        agreement=tuple(agreement(one) for one in every),
        judge=tuple(one for one in judged if one is not None),
        delivered=tuple(row for one in every for row in delivered_scores(one)),
        success=tuple(success),
        other_rules=tuple(rules),
    )


def _possible(source: Source, turns: Iterable[tuple[str, int]]) -> Possible:
    """Who could have won these turns: no others are recounted."""
    key = {name: source.ballots.schema[name] for name in ("episode_id", "turn")}
    wanted = pl.DataFrame(list(turns), schema=key, orient="row")
    ballots = source.ballots.join(wanted, on=list(key), how="semi", maintain_order="left")
    return possible_winners(replace(source, rows=ballots, episodes=())) if ballots.height else {}


# --- For readers ----------------------------------------------------------------------------------

_SCRIPTED: Final = (
    "A script filled in sheets in the place of people. The figures show what the methods do; they "
    "say nothing of what people would say."
)


_WHO: Final[Mapping[tuple[RatedBy, ...], str]] = {
    ("people",): "people",
    ("script",): "a script in the place of people",
}
_JUDGE: Final[Mapping[Kind, str]] = {
    "answers": "The model judge's scores",
    "replies": "The run's labels of guidance",
}
_QUESTION: Final = "Who rated the texts, and how do they judge?"
_BOTH: Final = "people, and a script in the place of people"


def ratings_verdict(found: Ratings) -> Iterator[str]:
    """One sentence for each kind of text that was rated."""
    for one in found.agreement:
        alpha = one["ordinal"]
        said = (
            f"not estimable ({alpha.reason})"
            if isinstance(alpha, NotEstimable)
            else f"{alpha.value:.2f}{_bracketed(alpha)}".replace("-", "−")
        )
        yield (
            f"{one['items']} {one['kind']} were rated by {_raters(one)} on the rubric "
            f"{one['rubric']!r}. On the {one['shared']} that several rated, Krippendorff's alpha "
            f"(ordinal) is {said}."
        )
    for judged in found.judge:
        kind, bias, distance = (judged[name] for name in ("kind", "bias", "distance"))
        if isinstance(bias, Estimate) and isinstance(distance, Estimate):
            yield (
                f"{_JUDGE[kind]} of {judged['items']} {kind} lie {abs(bias.value):.2f} "
                f"{'above' if bias.value > 0 else 'below'} theirs on average. The distance to "
                f"theirs is {distance.value:.2f}."
            )
    if "script" in found.by:
        yield _SCRIPTED


def _raters(one: Row) -> str:
    if one["by"] == "script":
        return f"a script in the place of {one['raters']} raters"
    return "one person" if one["raters"] == 1 else f"{one['raters']} people"


def _bracketed(alpha: Alpha) -> str:
    for found, unit in ((alpha.over_tasks, "tasks"), (alpha.over_items, "items")):
        if isinstance(found, Interval):
            return f" [{found.low:.2f}, {found.high:.2f}] over {unit}"
    return ""


def with_ratings(document: Document, run: SystemRun) -> Document:
    """A summary or report with what people said of its run."""
    found = ratings_of(run)
    said = tuple(ratings_verdict(found))
    answer = Answer(_QUESTION, _WHO.get(found.by, _BOTH).capitalize(), " ".join(said), "ratings")
    more = replace(
        document,
        answers=(*document.answers, answer),
        values=lambda: {**document.values(), "ratings": found},
    )
    return with_section(more, "ratings", partial(_SECTION, found))


# --- Tables ---------------------------------------------------------------------------------------


def _of_texts(one: Row) -> Row:
    return {"texts": one["kind"], "rubric": one["rubric"], "by": one["by"]}


def _alpha_cells(alpha: Alpha | NotEstimable, n: int) -> dict[str, Written]:
    """Alpha, and its ends over tasks and over items."""
    if isinstance(alpha, NotEstimable):
        return dict.fromkeys(("alpha", "over_tasks", "over_items"), Written(DASH, alpha))
    return {
        "alpha": number(alpha.value, digits=2),
        "over_tasks": _ends(alpha.over_tasks, n),
        "over_items": _ends(alpha.over_items, n),
    }


def _ends(found: Interval | NotEstimable, n: int) -> Written:
    if isinstance(found, NotEstimable):
        return Written(DASH, found)
    low, high = (f"{end:.2f}".replace("-", "−") for end in (found.low, found.high))
    return Written(f"{low} to {high}", Bounds(found.low, found.high, n))


@table("rater-agreement", "How far raters agree")
def rater_agreement(of: Ratings) -> Rows:
    """Krippendorff's alpha over items that two or more rated (shared): 1 is agreement, 0 what
    chance would give. 95 % intervals are over tasks with all their items, and over items one by one
    as if independent.{absent}"""
    for one in of.agreement:
        for metric in METRICS:
            yield {
                **_of_texts(one),
                "metric": metric,
                **_alpha_cells(one[metric], one["shared"]),
                **{name: one[name] for name in ("raters", "items", "shared")},
            }


@table("judge-beside-people", "The model judge beside people")
def judge_beside_people(of: Ratings) -> Rows:
    """The judge scored the student's answers; beside people's scores of replies stands its score of
    the answer that followed or, in a run that labels replies, the label of guidance (mean over
    conditions). Bias: mean of judge − people; distance: of its size. 95 % intervals are over
    tasks.{absent}"""
    for one in of.judge:
        yield {
            **_of_texts(one),
            "bias": estimate(one["bias"], signed=True),
            **{name: estimate(one[name]) for name in ("distance", "pearson", "spearman")},
            "items": one["items"],
        }


@table("judge-calibration", "Calibration of the model judge")
def judge_calibration(of: Ratings) -> Rows:
    """Items by the judge's score, and what people gave them on average, on the rubric's scale. A
    calibrated judge has the same mean as people in every band."""
    for one in of.judge:
        for band in one["bands"]:
            below = "" if band["high"] == one["most"] else "below "
            yield {
                "judge_score": f"{band['low']:.1f} to {below}{band['high']:.1f}",
                **_of_texts(one),
                "items": band["items"],
                "mean_judge": band["judge"],
                "mean_people": band["people"],
            }


@table("people-by-condition", "People's scores by condition")
def people_by_condition(of: Ratings) -> Rows:
    """Delivered replies, and answers of students. Good: at least the rubric's threshold. 95 %
    intervals are over tasks.{absent}"""
    for one in of.delivered:
        yield {
            "condition": one["condition"],
            **_of_texts(one),
            "rated": part_of(one["rated"], one["texts"]),
            "score": estimate(one["score"]),
            "good": estimate(one["good"]),
        }


@table("success-by-people", "Success if people had scored the answers")
def success_by_people(of: Ratings) -> Rows:
    """An episode ends at its first answer that people let pass. “a to b” are bounds: an answer that
    nobody rated could be either, and so could what would have followed an answer that only the
    judge let pass. Programs must pass their tests, as logged."""
    for one in of.success:
        yield {
            **{name: one[name] for name in ("benchmark", "condition", "rubric", "by")},
            "rated": part_of(one["rated"], one["answers"]),
            "judge": number(one["logged"], digits=2),
            "people": bounds(one["success"]),
            "episodes": one["episodes"],
        }


@table(
    "people-other-rules",
    "People's scores of what other rules would have delivered",
    held=HELD_FIXED,
)
def people_other_rules(of: Ratings) -> Rows:
    """Over turns whose every final proposal was rated. “a to b” are bounds over the winners that
    the ballots leave possible; in `identified` turns there is one. Good: at least the rubric's
    threshold. {held}"""
    for one in of.other_rules:
        good = one["delivered_good"]
        yield {
            "logged": one["logged_protocol"],
            **{name: one[name] for name in ("rule", "rubric", "by")},
            "delivered": number(one["delivered"], digits=2),
            "under_rule": bounds(one["score"]),
            "identified": part_of(one["identified"], one["turns"]),
            "delivered_good": Written(DASH, None) if good is None else number(good, digits=2),
            "good_under_rule": bounds(one["good"]),
        }


_SECTION: Final[DeclaredSection[Ratings]] = section(
    "ratings",
    "What people say",
    lambda found: (
        f"Rated by {_WHO.get(found.by, _BOTH)}, blind to roles, rules and conditions. An item's "
        "score is the mean over its raters; what nobody rated is in no figure."
        + f" {_SCRIPTED}"
        * ("script" in found.by)
    ),
    rater_agreement,
    judge_beside_people,
    judge_calibration,
    people_by_condition,
    success_by_people,
    people_other_rules,
)
