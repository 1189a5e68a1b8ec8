"""The summary, the report and the recount of a group's run: every table, and where it stands."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from statistics import stdev
from typing import Any, Final

import polars as pl

from tutorsim.analysis.pages.cells_and_tables import Table, Written, number, p_value, present
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredSection,
    Rows,
    chart,
    section,
    sections_there,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.numbers_printed_in_studies import printed_in
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.statistics.intervals_and_tests import (
    ALPHA,
    FEWEST_TASKS,
    Estimate,
    PermutationTest,
    fewest_tasks,
    flips_by_task,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.analysis.systems.group.episode_messages_and_telling_episodes import TELLING
from tutorsim.analysis.systems.group.page_data_and_shares_of_coded_talk import (
    CATEGORIES,
    CODERS,
    KINDS,
    PHASES,
    WINDOW,
    Evidence,
    acts_of,
    adherence_to,
    area_of,
    gini,
    ideal_profiles,
    kappa,
    phase_shares,
    public_files,
    rolling_task_share,
    slope,
)
from tutorsim.analysis.systems.group.speakers_under_other_settings import (
    at_thresholds,
    curve,
    cycles_in,
    group_settings,
    logged_rule,
    recounted,
    rules_under,
    share_of,
    speaking_answer,
    speaking_floor,
    speaking_section,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, episodes_of, framed
from tutorsim.records.group import CycleRecord, DuelRecord, LessonRecord


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _if_printed(said: str, **figures: float | None) -> str:
    """A sentence on printed figures, its places filled; empty without one of them."""
    return "" if None in figures.values() else said.format_map(figures)


# --- Lessons --------------------------------------------------------------------------------------


@table(
    "lessons",
    "Lessons",
    printed=lambda of: _if_printed(
        " Printed for lessons with people: about {turns:.0f} turns each, {conversations:.0f} "
        "conversations.",
        turns=of.printed("turns", study="human"),
        conversations=of.printed("conversations", study="human"),
    ),
)
def lessons(of: Evidence) -> Rows:
    """Means over lessons; tasks done is a share.{printed}"""
    for condition, some in of.conditions.items():
        ends = Counter(lesson.ended_by or "failed" for lesson in some).most_common()
        yield {
            "condition": condition,
            "lessons": len(some),
            "with_a_person": sum(lesson.variant == "person" for lesson in some),
            "events": number(_mean([len(lesson.events) for lesson in some])),
            "stage_reached": number(_mean([lesson.stage_reached for lesson in some])),
            "tasks_done": _mean([lesson.progress for lesson in some]),
            "ended": Written(", ".join(f"{end} {n}" for end, n in ends), dict(ends)),
        }


def _ginis(of: Evidence) -> str:
    """Mean Gini coefficient of messages by condition."""
    said = []
    for condition, some in of.conditions.items():
        each = []
        for lesson in some:
            counts = Counter(event.who for event in lesson.events if event.kind == "message")
            each.append(gini([counts[who] for who in (*lesson.agents, "learner")]))
        known = _mean([value for value in each if value is not None])
        said += [] if known is None else [f"{condition} {known:.2f}"]
    return ", ".join(said) or "not estimable"


@table("participation", "Who spoke", ginis=_ginis)
def participation(of: Evidence) -> Rows:
    """Gini of messages, mean over lessons: {ginis}."""
    for condition, some in of.conditions.items():
        said = [(e.who, len(e.text.split())) for x in some for e in x.events if e.kind == "message"]
        for who in (*some[0].agents, "learner"):
            words = [count for name, count in said if name == who]
            yield {
                "condition": condition,
                "participant": who,
                "messages": len(words),
                "share": share_of(len(words), len(said)),
                "words_each": number(_mean(words)),
            }


@table("reasons", "Why they spoke")
def reasons(of: Evidence) -> Rows:
    """Counts of cycles in which a rule applied; an interruption is a correction by somebody whom
    floor or address had left out."""
    for condition, some in of.conditions.items():
        found = [event.cycle for lesson in some for event in lesson.events if event.cycle]
        cycles = [cycle for cycle in found if cycle.thoughts or cycle.prediction]
        rules = Counter(rule for cycle in cycles for rule in {step.rule for step in cycle.steps})
        yield {
            "condition": condition,
            "cycles": len(cycles),
            "nobody_spoke": share_of(sum(c.chosen is None for c in cycles), len(cycles)),
            "floor": rules["floor"],
            "address": rules["address"],
            "interruptions": sum(map(_interrupted, cycles)),
            "threshold_held_back": rules["threshold"],
            "ties": rules["silent_longest"],
            "withdrawn": sum(c.withdrawn for c in cycles),
        }


def _interrupted(cycle: CycleRecord) -> bool:
    kept = [step.kept for step in cycle.steps if step.rule == "interruption"]
    return bool(kept) and cycle.chosen in kept[0]


# --- Coded messages -------------------------------------------------------------------------------


def _coded_pairs(of: Evidence) -> list[tuple[int | None, int | None]]:
    """The categories that both coders gave each message."""
    every = [lesson for some in of.coded.values() for lesson in some]
    by_coder = ([act.category for x in every for act in acts_of(x, coder)] for coder in CODERS)
    return list(zip(*by_coder, strict=True))


@table(
    "agreement",
    "Agreement of both coders",
    left_out=lambda of: sum(None in pair for pair in _coded_pairs(of)),
)
def agreement(of: Evidence) -> Rows:
    """{left_out} messages that a coder gave no category are left out."""
    pairs = [(a, b) for a, b in _coded_pairs(of) if a is not None and b is not None]
    areas = [(area_of(a), area_of(b)) for a, b in pairs]
    for name, both in (("twelve", pairs), ("two areas", areas)) if pairs else ():
        yield {
            "categories": name,
            "messages": len(both),
            "agreement": _mean([a == b for a, b in both]),
            "kappa": kappa([a for a, _ in both], [b for _, b in both]),
        }


def _participants(lessons: Sequence[LessonRecord]) -> list[str]:
    return list(dict.fromkeys((*(agent for x in lessons for agent in x.agents), "learner")))


_PRINTED_OF: Final = "self_select"
"""The condition of all lessons that the study prints shares of."""


def _beside(of: Evidence, condition: str, quantity: str, **cell: Any) -> float | None:
    """A printed share of lessons under a condition."""
    return of.printed_share(quantity, **cell) if condition == _PRINTED_OF else None


def _of_self_selection(of: Evidence) -> str:
    there = of.beside and _PRINTED_OF in of.coded
    return " Printed figures are of self-selection." if there else ""


@table("categories", "What kind of acts", printed=_of_self_selection)
@printed_in("printed")
def categories(of: Evidence) -> Rows:
    """Share of a participant's acts by coder 1; low and high over both coders.{printed}"""
    for condition, some in of.coded.items():
        acts = [[act for x in some for act in acts_of(x, coder)] for coder in CODERS]
        for who in _participants(some):
            by_coder = [
                [act.category for act in own if act.who == who and act.category is not None]
                for own in acts
            ]
            for category, name in enumerate(CATEGORIES, start=1):
                shares = [share_of(codes.count(category), len(codes)) for codes in by_coder]
                known = [share for share in shares if share is not None]
                beside = _beside(of, condition, "ipa_share", participant=who, category=name)
                if known and (max(known) > 0 or beside is not None):
                    yield {
                        "condition": condition,
                        "participant": who,
                        "category": name,
                        "share": shares[0],
                        "low": min(known),
                        "high": max(known),
                        "printed": beside,
                    }


@table("adherence", "Role adherence")
def adherence(of: Evidence) -> Rows:
    """Distance ½ Σ|p − q| from the role's ideal profile: 0 is equal, 1 has nothing in common. The
    profiles are ours, set before any lesson was recorded."""
    for condition, some in of.coded.items():
        for who, ideal in ideal_profiles().items():
            found, second = (
                adherence_to(ideal, [act for x in some for act in acts_of(x, coder)], who)
                for coder in CODERS
            )
            if found is not None:
                yield {
                    "condition": condition,
                    "participant": who,
                    **found,
                    "distance_coder_2": second["distance"] if second else None,
                }


@table(
    "balance",
    "Task and social-emotional acts",
    window=WINDOW,
    fewest=FEWEST_TASKS,
    printed=lambda of: _if_printed(
        " Printed for the start: {low:.0f} to {high:.0f} %.",
        low=of.printed("task_share_low", phase="start"),
        high=of.printed("task_share_high", phase="start"),
    ),
)
def balance(of: Evidence) -> Rows:
    """Share of task acts (4 to 9) in a rolling window of {window} messages; the rest is
    social-emotional. Change over a lesson by least squares; low and high: 95 %, over lessons, also
    where several have one problem, from {fewest} lessons on.{printed}"""
    for condition, some in of.coded.items():
        shares = [(x.episode_id, rolling_task_share(acts_of(x, "coder_1"))) for x in some]
        whole = [(name, values) for name, values in shares if len(values) > 1]
        slopes = [value for _, values in whole if (value := slope(values)) is not None]
        if slopes:
            change = mean_over_tasks(slopes, [name for name, _ in whole], over="lessons")
            assert isinstance(change, Estimate)
            yield {
                "condition": condition,
                "change": _mean(slopes),
                "low": change.low,
                "high": change.high,
                "task_share_first": _mean([values[0] for _, values in whole]),
                "task_share_last": _mean([values[-1] for _, values in whole]),
                "lessons": len(slopes),
            }


@table("phases", "Scaffolding by thirds of a lesson", printed=_of_self_selection)
@printed_in("printed")
def phases(of: Evidence) -> Rows:
    """Mean over lessons in which the participant acted in that third. Guiding 4 to 6, questioning
    7 to 9, affective 1 to 3, other 10 to 12; the four sum to 1.{printed}"""
    for condition, some in of.coded.items():
        for who in _participants(some):
            per_lesson = [phase_shares(acts_of(lesson, "coder_1"), who) for lesson in some]
            for place, phase in enumerate(PHASES):
                found = [shares for one in per_lesson if (shares := one[place]) is not None]
                if found:
                    yield {
                        "condition": condition,
                        "participant": who,
                        "phase": phase,
                        "lessons": len(found),
                        "printed": _printed_phase(of, condition, who, phase),
                        **{kind: _mean([shares[kind] for shares in found]) for kind in KINDS},
                    }


def _printed_phase(of: Evidence, condition: str, who: str, phase: str) -> str | None:
    cell = {"participant": "tom" if who == "learner" else who, "phase": phase}
    found = [
        f"{kind} {100 * share:.0f} %"
        for kind in KINDS
        if (share := _beside(of, condition, "scaffold_share", **cell, kind=kind)) is not None
    ]
    return ", ".join(found) or None


@table(
    "thresholds",
    "Who would have spoken",
    files=lambda of: public_files(of, "Public files: the same share of the authors' 610 turns"),
)
@printed_in("public_files")
def thresholds(of: Evidence) -> Rows:
    """Somebody speaks: share of logged cycles.{files}"""
    for row in at_thresholds(of.cycles, of.run).iter_rows(named=True):
        yield {
            "threshold": row["setting"],
            "somebody_speaks": row["share"],
            "public_files": of.printed_share(
                "turns_with_speaker", public=True, threshold=float(row["setting"])
            ),
            "lessons_that_differ": row["diverged"],
            "share_before_first_difference": row["coverage"],
        }


# --- Duels ----------------------------------------------------------------------------------------

_SPEAKERS: Final[Mapping[str, Callable[[DuelRecord], str | None]]] = {
    "self_select": lambda duel: duel.self_selected,
    "next_speaker": lambda duel: duel.prediction.named if duel.prediction else None,
}
"""System → who speaks under it."""


def _rate(duels: Sequence[DuelRecord], holds: Sequence[bool]) -> dict[str, float | None]:
    """A share of duels with its interval over scenarios; nulls where there is none."""
    found = share_over_tasks(holds, [duel.task_id for duel in duels])
    return {"share": found.value, "low": found.low, "high": found.high}


@table(
    "duels",
    "Self-selection against prediction",
    judged=lambda of: counted(len(of.judged), "duel"),
    draws=lambda of: counted(sum(duel.order_dependent for duel in of.judged), "draw"),
    left_out=lambda of: counted(len(of.duels) - len(of.judged), "duel"),
    files=lambda of: public_files(
        of, "Printed: 61 samples, judged once each; public files: all 84"
    ),
)
@printed_in("printed", "public_files")
def duels(of: Evidence) -> Rows:
    """From the view of self-selection, {judged}, each judged in both orders; opposite verdicts in
    the two orders gave {draws}. Left out: {left_out} without a readable verdict. Intervals: 95 %,
    over scenarios.{files}"""
    for result in ("win", "draw", "loss") if of.duels else ():
        came = [duel.result == result for duel in of.judged]
        yield {
            "result": result,
            "duels": sum(came),
            **_rate(of.judged, came),
            "first_order_only": sum(duel.first_order == result for duel in of.judged),
            "printed": of.printed_share("duel", result=result),
            "public_files": of.printed_share("duel", public=True, result=result),
        }


@table(
    "speaker_hit",
    "Who should have spoken",
    files=lambda of: public_files(of, "Public files: 61 samples"),
)
@printed_in("public_files")
def hits(of: Evidence) -> Rows:
    """Share of duels in which the expected speaker speaks, 95 % over scenarios.{files}"""
    for kind in ("all", *dict.fromkeys(duel.kind for duel in of.duels)) if of.duels else ():
        some = [duel for duel in of.duels if kind in ("all", duel.kind)]
        for system, speaker in _SPEAKERS.items():
            hit = [speaker(duel) == duel.expected_speaker for duel in some]
            files = partial(of.printed_share, "speaker_hit", public=True, system=system)
            yield {
                "kind": kind,
                "system": system,
                "hits": sum(hit),
                "duels": len(some),
                **_rate(some, hit),
                "public_files": files() if kind == "all" else None,
            }


@table(
    "quality",
    "Quality of the tenth message",
    printed=lambda of: " The printed scores rate likeness to a real turn." if of.beside else "",
)
@printed_in("printed")
def quality(of: Evidence) -> Rows:
    """Mean over replies of the mean over raters and criteria, 1 to 10; spread: standard deviation
    between raters of one reply.{printed}"""
    for kind in dict.fromkeys(duel.kind for duel in of.duels):
        for system in _SPEAKERS:
            by_duel = [_rater_means(duel, system) for duel in of.duels if duel.kind == kind]
            rated = [means for means in by_duel if means]
            if rated:
                own = system == "self_select"
                yield {
                    "kind": kind,
                    "system": system,
                    "replies": len(rated),
                    "mean": _mean([sum(means) / len(means) for means in rated]),
                    "spread_of_raters": _mean([stdev(m) for m in rated if len(m) > 1]),
                    "printed": of.printed("turn_quality", kind=kind) if own else None,
                }


def _rater_means(duel: DuelRecord, system: str) -> list[float]:
    """Each rater's mean over criteria for one reply."""
    scores = [rating.scores for rating in duel.ratings if rating.system == system]
    return [sum(one.values()) / len(one) for one in scores if one]


def best_system(of: Evidence) -> Answer:
    """Whether self-selection is better than prediction, by a test over scenarios.

    A win counts 1, a loss −1 and a draw 0; the duels of a scenario are flipped together.
    """
    results = Counter(str(duel.result) for duel in of.judged)
    worth = [(duel.result == "win") - (duel.result == "loss") for duel in of.judged]
    tasks = [duel.task_id for duel in of.judged]
    test = flips_by_task(worth, tasks, seed=of.run.study.seed)
    won, lost, drawn = (results[result] for result in ("win", "loss", "draw"))
    verdict, tested = "Not shown", "No duel was judged."
    if isinstance(test, PermutationTest):
        if test.p_value < ALPHA:
            verdict = "Yes" if test.difference > 0 else "No, worse"
        scenarios = counted(test.tasks, "scenario")
        tested = f"Tested over {scenarios} by flipping signs, p = {p_value(test.p_value)}."
        if test.tasks < fewest_tasks(1):
            verdict = "Not known"
            tested = f"{scenarios} cannot show it, {fewest_tasks(1)} are the fewest that could."
    dependent = sum(duel.order_dependent for duel in of.judged)
    unread = len(of.duels) - len(of.judged)
    read = f" The judge's verdict could not be read in {counted(unread, 'duel')}." if unread else ""
    return Answer(
        "Is self-selection better than prediction?",
        verdict,
        f"Duels won: {won}, lost: {lost}. Drawn: {drawn}. "
        f"{tested} Duels whose verdict depends on the order in which the judge reads: {dependent}."
        f"{read}",
        "duels",
    )


# --- Summary and report ---------------------------------------------------------------------------


@table("calls", "Calls by stage", every=lambda of: sum(len(record.calls) for record in of.records))
def calls(of: Evidence) -> Rows:
    """{every} calls; asked again: the first reply could not be read."""
    made = [call for record in of.records for call in record.calls]
    again = Counter(call.stage for call in made if call.key.endswith("/2"))
    for stage, count in Counter(call.stage for call in made).most_common():
        yield {"stage": stage, "calls": count, "asked_again": again[stage]}


def document(run: SystemRun, brief: bool) -> Document:
    """The summary of a run (brief) or its report."""
    of, floor = Evidence(run.episodes, run.head), speaking_floor(run)
    floors = () if floor is None else (floor,)
    return framed(
        run,
        summary=_summary(of),
        answers=(*_answers(of), *map(speaking_answer, floors)),
        sections=(
            *sections_there(of, (_LESSONS, _DUELS) if brief else _WHOLE),
            *(speaking_section(run, one) for one in floors),
            Section("calls", "Calls", "", tables=present(calls(of))),
        ),
        episodes=episodes_of(run, TELLING),
        lead="speakers",
    )


def _summary(of: Evidence) -> str:
    persons = sum(lesson.variant == "person" for lesson in of.lessons)
    failed = len(of.records) - len(of.lessons) - len(of.duels)
    note = group_settings(of.run).get("person_note", "") if persons else ""
    left_out = f" {counted(failed, 'episode')} failed." if failed else ""
    return (
        f"{counted(len(of.lessons), 'group lesson')} and {counted(len(of.duels), 'duel')}. "
        f"A person takes part in {persons} of the lessons, a simulated learner in "
        f"{len(of.lessons) - persons}.{note and f' The person was {note}.'}{left_out}"
    )


def _answers(of: Evidence) -> Iterator[Answer]:
    if of.lessons:
        reached = sum(lesson.stage_reached == 4 for lesson in of.lessons)
        yield Answer(
            "How far do lessons come?",
            f"{reached} of {len(of.lessons)} reach the last stage",
            f"{sum(lesson.ended_by == 'tasks_done' for lesson in of.lessons)} do all its tasks.",
            "lessons",
        )
        if len(of.cycles.event):
            spoke = int((of.cycles.chosen >= 0).sum())
            yield Answer(
                "How often does somebody speak?",
                f"In {100 * spoke / len(of.cycles.event):.0f} % of {len(of.cycles.event)} cycles "
                "of self-selection",
                "The rest are silences: nobody wanted to speak, or nobody was above the threshold.",
                "lessons",
            )
    if of.duels:
        yield best_system(of)


_chart = partial(chart, "tutorsim.analysis.systems.group.charts_of_speakers_thresholds_and_acts")


_LESSONS: Final[DeclaredSection[Evidence]] = section(
    "lessons",
    "Lessons",
    "As logged; the lesson is the unit.",
    *(lessons, participation, reasons),
    when=lambda of: of.lessons,
)
_DUELS: Final[DeclaredSection[Evidence]] = section(
    "duels",
    "Duels on nine-message scenarios",
    "Both systems continue the same nine messages; a judge reads both orders.",
    *(duels, hits),
    when=lambda of: of.duels,
)
_WHOLE: Final[tuple[DeclaredSection[Evidence], ...]] = (
    replace(_LESSONS, parts=(_chart("speakers"), *_LESSONS.parts)),
    section(
        "interaction",
        "How the talk went",
        "Messages coded twice by interaction process analysis; figures are of coder 1.",
        *(_chart("balance"), agreement, categories, adherence, balance, phases),
        when=lambda of: of.lessons,
    ),
    section(
        "recount",
        "Other thresholds",
        "At every logged event the speaker under another threshold is exact, with what was said "
        "before held fixed. Nothing is said of what would have followed.",
        *(_chart("thresholds"), thresholds),
        when=lambda of: of.lessons and len(of.cycles.event),
    ),
    replace(_DUELS, parts=(*_DUELS.parts, quality)),
)


# --- Recount --------------------------------------------------------------------------------------


def recount(run: SystemRun, changes: Mapping[str, tuple[str, ...]]) -> Document:
    """Who would have spoken under other settings, exact at every logged event."""
    cycles, rules = (cycles_in(run.episodes, run.head), rules_under(changes, logged_rule(run.head)))
    found = recounted(cycles, rules)
    settings = Table(
        "settings",
        "Who would have spoken",
        "Shares of logged cycles, everything said before held fixed; agent – stands for anybody.",
        curve(cycles, found).with_columns(pl.col("agent").replace("", None)),
    )
    divergences = Table(
        "divergences",
        "First event that differs",
        "Another agent speaks, nobody does any more, or somebody does at last; coverage: share of "
        "the lesson's cycles before.",
        pl.concat(
            lessons.select(pl.lit(label).alias("setting"), pl.all())
            for label, (_, lessons) in found.items()
        ),
    )
    answers = (_how_many_differ(label, lessons) for label, (_, lessons) in islice(found.items(), 5))
    return framed(
        run,
        summary=f"{counted(len(cycles.event), 'cycle')} of "
        f"{counted(len(cycles.starts), 'lesson')} under {counted(len(rules), 'setting')}.",
        answers=tuple(answers),
        sections=(
            Section("settings", "Settings", "Exact from logged scores.", tables=(settings,)),
            Section(
                "divergences",
                "First differences",
                "Nothing is claimed after a lesson's first difference: what would have been said "
                "next, nobody recorded.",
                tables=(divergences,),
            ),
        ),
    )


def _how_many_differ(setting: str, lessons: pl.DataFrame) -> Answer:
    """How many lessons would have gone another way under a setting."""
    differ = lessons["event"].is_not_null().sum()
    return Answer(
        f"With {setting}?",
        f"{differ} of {counted(lessons.height, 'lesson')} would have gone another way",
        "Section divergences says at which event, and who would have spoken there."
        if differ
        else "At every logged event the same agent would have spoken, or nobody as logged.",
        "divergences",
    )
