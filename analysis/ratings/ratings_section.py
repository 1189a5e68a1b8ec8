"""What people said of a run, for its summary and its report."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.cells import DASH, Table, bounds, estimate, part_of, table
from tutorsim.analysis.pages.document import Answer, Document, Section, with_section
from tutorsim.analysis.ratings.agreement import (
    METRICS,
    Agreement,
    Alpha,
    BesideJudge,
    Gathered,
    Kind,
    agreement,
    beside_judge,
    gathered,
)
from tutorsim.analysis.ratings.human_scored_outcomes import (
    DeliveredScore,
    OtherRule,
    PeoplesSuccess,
    delivered_scores,
    other_rules,
    peoples_success,
    whole_turns,
)
from tutorsim.analysis.recount import HELD_FIXED, possible_winners
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
)
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records import StudySettings
from tutorsim.records.ratings import RatedBy

_SEED: Final = 0
"""Of every interval's draws."""


@dataclass(frozen=True)
class Ratings:
    """What people said of a run."""

    by: tuple[RatedBy, ...]
    agreement: tuple[Agreement, ...]
    judge: tuple[BesideJudge, ...]
    delivered: tuple[DeliveredScore, ...]
    success: tuple[PeoplesSuccess, ...]
    other_rules: tuple[OtherRule, ...]


def ratings_of(run: SystemRun) -> Ratings | None:
    """What people said of a run of any system; `None` where nobody was asked."""
    if not run.ratings:
        return None
    every = gathered(run, run.ratings)
    judged = (beside_judge(one) for one in every)
    source = run.source if isinstance(run.head.study, StudySettings) else None
    return Ratings(
        by=tuple(dict.fromkeys(one.by for one in every)),
        agreement=tuple(agreement(one) for one in every),
        judge=tuple(one for one in judged if one is not None),
        delivered=tuple(row for one in every for row in delivered_scores(one)),
        success=() if source is None else tuple(_success(every, source)),
        other_rules=() if source is None else tuple(_other_rules(every, source)),
    )


def _success(every: Iterable[Gathered], source: Source) -> Iterator[PeoplesSuccess]:
    assert source.run is not None
    most = source.run.panel.max_turns
    for one in every:
        if one.kind == "answers":
            yield from peoples_success(one, source.episodes, max_turns=most)


def _other_rules(every: Iterable[Gathered], source: Source) -> Iterator[OtherRule]:
    """Only turns that were rated as a whole are recounted."""
    for one in every:
        turns = whole_turns(one) if one.kind == "replies" else {}
        ballots = _of_turns(source.ballots, turns)
        if ballots.height:
            asked = replace(source, rows=ballots, episodes=())
            yield from other_rules(one, possible_winners(asked))


def _of_turns(ballots: pl.DataFrame, turns: Iterable[tuple[str, int]]) -> pl.DataFrame:
    key = {name: ballots.schema[name] for name in ("episode_id", "turn")}
    wanted = pl.DataFrame(list(turns), schema=key, orient="row")
    return ballots.join(wanted, on=list(key), how="semi", maintain_order="left")


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
        alpha = one.ordinal
        said = (
            f"not estimable ({alpha.reason})"
            if isinstance(alpha, NotEstimable)
            else f"{alpha.value:.2f}{_bracketed(alpha)}".replace("-", "−")
        )
        yield (
            f"{one.items} {one.kind} were rated by {_raters(one)} on the rubric {one.rubric!r}; "
            f"on the {one.shared} that several rated, Krippendorff's alpha (ordinal) is {said}."
        )
    for judged in found.judge:
        if isinstance(judged.bias, Estimate) and isinstance(judged.distance, Estimate):
            side = "above" if judged.bias.value > 0 else "below"
            yield (
                f"{_JUDGE[judged.kind]} of {judged.items} {judged.kind} lie "
                f"{abs(judged.bias.value):.2f} {side} theirs on average, and "
                f"{judged.distance.value:.2f} away from them."
            )
    if "script" in found.by:
        yield _SCRIPTED


def _raters(one: Agreement) -> str:
    if one.by == "script":
        return f"a script in the place of {one.raters} raters"
    return "one person" if one.raters == 1 else f"{one.raters} people"


def _bracketed(alpha: Alpha) -> str:
    for found, unit in ((alpha.over_tasks, "tasks"), (alpha.over_items, "items")):
        if isinstance(found, Interval):
            return f" [{found.low:.2f}, {found.high:.2f}; over {unit}]"
    return ""


def ratings_section(found: Ratings) -> Section:
    """The section of a summary or report."""
    tables = (
        _agreement_table(found),
        _judge_table(found),
        _bands_table(found),
        _delivered_table(found),
        _success_table(found),
        _other_rules_table(found),
    )
    lead = (
        f"Rated by {_WHO.get(found.by, _BOTH)}, blind to roles, rules and conditions. An item's "
        "score is the mean over its raters; what nobody rated is in no figure."
    )
    if "script" in found.by:
        lead += f" {_SCRIPTED}"
    shown = tuple(one for one in tables if one is not None)
    return Section("ratings", "What people say", lead, (), shown)


def with_ratings(document: Document, run: SystemRun) -> Document:
    """A summary or report with what people said of its run, where anybody was asked."""
    found = ratings_of(run)
    if found is None:
        return document
    said = tuple(ratings_verdict(found))
    answer = Answer(_QUESTION, _WHO.get(found.by, _BOTH).capitalize(), " ".join(said), "ratings")

    def values() -> Mapping[str, object]:
        return {**document.values(), "ratings": found}

    more = replace(document, answers=(*document.answers, answer), values=values)
    return with_section(more, "ratings", partial(ratings_section, found))


def _agreement_table(found: Ratings) -> Table | None:
    rows, reasons = [], _Reasons()
    for one in found.agreement:
        for metric in METRICS:
            alpha: Alpha | NotEstimable = getattr(one, metric)
            rows.append(
                (
                    one.kind,
                    one.rubric,
                    one.by,
                    metric,
                    *_alpha_cells(alpha, reasons),
                    one.raters,
                    one.items,
                    one.shared,
                )
            )
    return table(
        "rater-agreement",
        "How far raters agree",
        "Krippendorff's alpha over items that two or more rated (shared): 1 is agreement, 0 what "
        "chance would give. 95 % intervals are over tasks with all their items, and over items one "
        f"by one as if independent.{reasons}",
        ("texts", "rubric", "by", "metric", "alpha", "over_tasks", "over_items",
         "raters", "items", "shared"),
        rows,
    )  # fmt: skip


class _Reasons:
    """Why figures are missing, each once, for a caption."""

    def __init__(self) -> None:
        self.said: dict[str, None] = {}

    def dash(self, found: NotEstimable) -> str:
        self.said[found.reason] = None
        return DASH

    def cell(self, found: Estimate | NotEstimable, *, signed: bool = False) -> str:
        if isinstance(found, NotEstimable):
            return self.dash(found)
        return estimate(found, signed=signed)

    def __str__(self) -> str:
        return f" Not estimable: {'; '.join(self.said)}." if self.said else ""


def _alpha_cells(alpha: Alpha | NotEstimable, reasons: _Reasons) -> tuple[str, str, str]:
    if isinstance(alpha, NotEstimable):
        return (reasons.dash(alpha),) * 3
    ends = (
        reasons.dash(one)
        if isinstance(one, NotEstimable)
        else f"{one.low:.2f} to {one.high:.2f}".replace("-", "−")
        for one in (alpha.over_tasks, alpha.over_items)
    )
    over_tasks, over_items = ends
    return f"{alpha.value:.2f}".replace("-", "−"), over_tasks, over_items


def _judge_table(found: Ratings) -> Table | None:
    reasons = _Reasons()

    rows = [
        (
            one.kind,
            one.rubric,
            one.by,
            reasons.cell(one.bias, signed=True),
            reasons.cell(one.distance),
            reasons.cell(one.pearson),
            reasons.cell(one.spearman),
            one.items,
        )
        for one in found.judge
    ]
    return table(
        "judge-beside-people",
        "The model judge beside people",
        "The judge scored the student's answers; beside people's scores of replies stands its "
        "score of the answer that followed or, in a run that labels replies, the label of guidance "
        "(mean over conditions). Bias: mean of judge − people; distance: of its size. "
        f"95 % intervals are over tasks.{reasons}",
        ("texts", "rubric", "by", "bias", "distance", "pearson", "spearman", "items"),
        rows,
    )


def _bands_table(found: Ratings) -> Table | None:
    rows = [
        (
            f"{band.low:.1f} to {'' if band.high == one.most else 'below '}{band.high:.1f}",
            one.kind,
            one.rubric,
            one.by,
            band.items,
            band.judge,
            band.people,
        )
        for one in found.judge
        for band in one.bands
    ]
    return table(
        "judge-calibration",
        "Calibration of the model judge",
        "Items by the judge's score, and what people gave them on average, on the rubric's scale. "
        "A calibrated judge has the same mean as people in every band.",
        ("judge_score", "texts", "rubric", "by", "items", "mean_judge", "mean_people"),
        rows,
    )


def _delivered_table(found: Ratings) -> Table | None:
    reasons = _Reasons()

    rows = [
        (
            one.condition,
            one.kind,
            one.rubric,
            one.by,
            part_of(one.rated, one.texts),
            reasons.cell(one.score),
            reasons.cell(one.good),
        )
        for one in found.delivered
    ]
    return table(
        "people-by-condition",
        "People's scores by condition",
        "Delivered replies, and answers of students. Good: at least the rubric's threshold. "
        f"95 % intervals are over tasks.{reasons}",
        ("condition", "texts", "rubric", "by", "rated", "score", "good"),
        rows,
    )


def _success_table(found: Ratings) -> Table | None:
    rows = [
        (
            one.benchmark,
            one.condition,
            one.rubric,
            one.by,
            part_of(one.rated, one.answers),
            f"{one.logged:.2f}",
            bounds(one.success),
            one.episodes,
        )
        for one in found.success
    ]
    return table(
        "success-by-people",
        "Success if people had scored the answers",
        "An episode ends at its first answer that people let pass. “a to b” are bounds: an answer "
        "that nobody rated could be either, and so could what would have followed an answer that "
        "only the judge let pass. Programs must pass their tests, as logged.",
        ("benchmark", "condition", "rubric", "by", "rated", "judge", "people",
         "episodes"),
        rows,
    )  # fmt: skip


def _other_rules_table(found: Ratings) -> Table | None:
    rows = [
        (
            one.logged_protocol,
            one.rule,
            one.rubric,
            one.by,
            f"{one.delivered:.2f}",
            bounds(one.score),
            part_of(one.identified, one.turns),
            DASH if one.delivered_good is None else f"{one.delivered_good:.2f}",
            DASH if isinstance(one.good, NotEstimable) else bounds(one.good),
        )
        for one in found.other_rules
    ]
    return table(
        "people-other-rules",
        "People's scores of what other rules would have delivered",
        "Over turns whose every final proposal was rated. “a to b” are bounds over the winners "
        "that the ballots leave possible; in `identified` turns there is one. Good: at least the "
        f"rubric's threshold. {HELD_FIXED}",
        ("logged", "rule", "rubric", "by", "delivered", "under_rule", "identified",
         "delivered_good", "good_under_rule"),
        rows,
    )  # fmt: skip
