"""What commands show of a group's run: summary, report, one episode, recounts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from tutorsim.analysis.pages.cells import Table, present
from tutorsim.analysis.pages.document import Answer, Dialogue, Document, Section
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.systems.group import duel_tables as duel_tables
from tutorsim.analysis.systems.group import lesson_tables
from tutorsim.analysis.systems.group.charts import balance_figure, threshold_figure
from tutorsim.analysis.systems.group.exported_tables import TABLES, lesson_passages
from tutorsim.analysis.systems.group.lesson_trace import episode_dialogue, without_words
from tutorsim.analysis.systems.group.other_speakers import (
    group_settings,
    outcomes_under,
    parts_of,
    recount_document,
    run_cycles,
    threshold_table,
)
from tutorsim.analysis.systems.group.speaker_noise_floor import (
    speaking_answer,
    speaking_floor,
    speaking_section,
)
from tutorsim.analysis.systems.system_view import SystemRun, View, framed
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord

# --- Summary and report ---------------------------------------------------------------------------


def _document(run: SystemRun, brief: bool) -> Document:
    """The summary of a run (brief) or its report."""
    lessons, duels = parts_of(run)
    sections = [*_lesson_sections(run, lessons, brief), *_duel_sections(duels, brief)]
    floor, answers = speaking_floor(run), list(_answers(run, lessons, duels))
    if floor is not None:
        sections.append(speaking_section(run, floor))
        answers.append(speaking_answer(floor))
    sections.append(Section("calls", "Calls", "", tables=(_calls_table(run),)))
    dialogues = () if brief else tuple(_shown_in_report(run, lessons, duels))
    return framed(
        run,
        summary=_summary(run, lessons, duels),
        answers=tuple(answers),
        sections=tuple(sections),
        dialogues=dialogues,
    )


def _summary(run: SystemRun, lessons: Sequence[LessonRecord], duels: Sequence[DuelRecord]) -> str:
    persons = sum(lesson.variant == "person" for lesson in lessons)
    failed = len(run.episodes) - len(lessons) - len(duels)
    return (
        f"{counted(len(lessons), 'group lesson')}, {persons} of them with a person and "
        f"{len(lessons) - persons} with a simulated learner, and {counted(len(duels), 'duel')}; "
        f"{counted(failed, 'episode')} failed.{_person_note(run) if persons else ''}"
    )


def _person_note(run: SystemRun) -> str:
    note = group_settings(run.head).get("person_note", "")
    return f" The person was {note}." if note else ""


def _answers(
    run: SystemRun, lessons: Sequence[LessonRecord], duels: Sequence[DuelRecord]
) -> Iterator[Answer]:
    if lessons:
        reached = sum(lesson.stage_reached == 4 for lesson in lessons)
        yield Answer(
            "How far do lessons come?",
            f"{reached} of {len(lessons)} reach the last stage",
            f"{sum(lesson.ended_by == 'tasks_done' for lesson in lessons)} do all its tasks.",
            "lessons",
        )
        cycles = run_cycles(run)
        if len(cycles.event):
            spoke = int((cycles.chosen >= 0).sum())
            yield Answer(
                "How often does somebody speak?",
                f"in {100 * spoke / len(cycles.event):.0f} % of {len(cycles.event)} cycles",
                "The rest are silences: nobody wanted to speak, or nobody was above the threshold.",
                "lessons",
            )
    if duels:
        yield duel_tables.duels_answer(duels, seed=run.head.study.seed)


def _lesson_sections(
    run: SystemRun, lessons: Sequence[LessonRecord], brief: bool
) -> Iterator[Section]:
    if not lessons:
        return
    first = (
        lesson_tables.ends_table(lessons),
        lesson_tables.participation_table(lessons),
        lesson_tables.reasons_table(lessons),
    )
    lead = "As logged; the lesson is the unit."
    yield Section("lessons", "Lessons", lead, tables=present(*first))
    if brief:
        return
    coded = (
        lesson_tables.agreement_table(lessons),
        lesson_tables.categories_table(lessons),
        lesson_tables.adherence_table(lessons),
        lesson_tables.balance_table(lessons),
        lesson_tables.phases_table(lessons),
    )
    yield Section(
        "interaction",
        "How the talk went",
        "Messages coded twice by interaction process analysis; figures are of coder 1.",
        figures=(balance_figure(lessons),),
        tables=tuple(table for table in coded if table is not None),
    )
    cycles = run_cycles(run)
    if len(cycles.event):
        thresholds = threshold_table(run, cycles)
        yield Section(
            "recount",
            "Other thresholds",
            "At every logged event the speaker under another threshold is exact, with what was "
            "said before held fixed. Nothing is said of what would have followed.",
            figures=(threshold_figure(thresholds.data),),
            tables=(thresholds,),
        )


def _duel_sections(duels: Sequence[DuelRecord], brief: bool) -> Iterator[Section]:
    if duels:
        quality = None if brief else duel_tables.quality_table(duels)
        tables = (duel_tables.duels_table(duels), duel_tables.hits_table(duels), quality)
        yield Section(
            "duels",
            "Duels on nine-message scenarios",
            "Both systems continue the same nine messages; a judge reads both orders.",
            tables=tuple(table for table in tables if table is not None),
        )


def _calls_table(run: SystemRun) -> Table:
    calls = Counter(call.stage for record in run.episodes for call in record.calls)
    again = Counter(
        call.stage for record in run.episodes for call in record.calls if call.key.endswith("/2")
    )
    rows = [
        {"stage": stage, "calls": count, "asked_again": again[stage]}
        for stage, count in calls.most_common()
    ]
    schema = {"stage": pl.String(), "calls": pl.Int64(), "asked_again": pl.Int64()}
    caption = f"{sum(calls.values())} calls; asked again: the first reply could not be read."
    return Table("calls", "Calls by stage", caption, pl.DataFrame(rows, schema=schema))


# --- Episodes of a report ----------------------------------------------------------------------


def _shown_in_report(
    run: SystemRun, lessons: Sequence[LessonRecord], duels: Sequence[DuelRecord]
) -> Iterator[Dialogue]:
    """The first lesson and the first duel; a person's lesson without a word unless asked for."""
    for records in (lessons, duels):
        if records:
            shown = episode_dialogue(records[0])
            hidden = records[0].variant == "person" and not run.with_messages
            yield without_words(shown) if hidden else shown


def _trace(run: SystemRun, record: GroupRecord) -> Dialogue:
    return episode_dialogue(record)


# --- Outcomes of `compare` ------------------------------------------------------------------------


def _of_lesson(name: str) -> Any:
    def value(record: GroupRecord) -> float | None:
        return float(getattr(record, name)) if isinstance(record, LessonRecord) else None

    return value


def _silence_share(record: GroupRecord) -> float | None:
    if not isinstance(record, LessonRecord) or not record.events:
        return None
    kinds = [event.kind for event in record.events]
    return kinds.count("silence") / len(kinds)


def _hit(record: GroupRecord) -> float | None:
    if not isinstance(record, DuelRecord):
        return None
    return float(record.self_selected == record.expected_speaker)


VIEW: Final = View(
    tables={**TABLES, "outcomes": outcomes_under({})},
    document=_document,
    trace=_trace,
    recount=recount_document,
    outcomes_under=outcomes_under,
    recount_in_one_pass=True,
    outcomes={
        "progress": _of_lesson("progress"),
        "stage_reached": _of_lesson("stage_reached"),
        "silence_share": _silence_share,
        "speaker_hit": _hit,
    },
    published="tutorsim.analysis.data:group.published.toml",
    passages={"replies": lesson_passages},
)
