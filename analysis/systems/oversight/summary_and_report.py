"""Summary, report and recount of an oversight run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.metrics.retest.repeated_votes import AskedVote
from tutorsim.analysis.report.document import Answer, Document, Section, Table
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, PermutationTest
from tutorsim.analysis.systems.noise_floor import noise_section
from tutorsim.analysis.systems.oversight.audit_tables import (
    change_table,
    delivered_table,
    rules_table,
)
from tutorsim.analysis.systems.oversight.debate_tables import (
    adaptive_table,
    aggregation_table,
    calibration_table,
    cost_table,
    diagnostics_table,
)
from tutorsim.analysis.systems.oversight.dialogue_intervals import Over
from tutorsim.analysis.systems.oversight.item_trace import telling
from tutorsim.analysis.systems.oversight.reply_readings import reread
from tutorsim.analysis.systems.oversight.run_inputs import Evidence, interval_text, scored
from tutorsim.analysis.systems.oversight.score_tables import (
    ablation_table,
    confusion_table,
    counts_table,
    differences_table,
    official_table,
    printed_table,
    readings_table,
    scores_table,
)
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.analysis.views.cells import present
from tutorsim.errors import UsageError
from tutorsim.records import SystemSettings
from tutorsim.vocabularies import READINGS, Reading

if TYPE_CHECKING:
    from tutorsim.analysis.charts.figure import Figure

__all__ = ["document", "evidence_of", "recount"]

_SETTABLE: Final[Mapping[str, tuple[str, ...]]] = {"over": get_args(Over), "reading": READINGS}
"""What `--set` takes for a recount → its values."""

_NO_GOLD = (
    "No item has gold labels: files of replies to be judged, and audits, come without annotations. "
    "They can be run, and scored by nobody."
)


def evidence_of(
    run: SystemRun, *, over: Over = "dialogues", reading: Reading = "standard"
) -> Evidence:
    """What a run's documents are counted from."""
    study = run.head.study
    assert isinstance(study, SystemSettings)
    settings = study.settings.get("oversight", {})
    records = run.episodes
    if reading != "standard":
        records = tuple(reread(record, reading) for record in records)
    return Evidence(records, seed=study.seed, settings=settings, over=over)


def document(run: SystemRun, brief: bool) -> Document:
    """The terminal's summary (brief), or the report (whole)."""
    evidence = evidence_of(run)
    sections = _brief(evidence) if brief else _whole(evidence)
    noise = noise_section(run, _vote_of, cluster=lambda record: record.conversation)
    sections = sections if noise is None else (*sections, noise)
    return framed(
        run,
        summary=_summary(evidence),
        answers=_answers(evidence),
        sections=tuple(section for section in sections if section.tables or section.id == "scores"),
        dialogues=() if brief else telling(run.episodes),
        facts=_facts(run, evidence),
    )


def _vote_of(vote: AskedVote) -> str:
    """Condition and label of a vote."""
    return f"{vote.turn.place.condition}, {vote.turn.candidates[0].rpartition('_')[0]}"


def recount(run: SystemRun, changes: Mapping[str, tuple[str, ...]]) -> Document:
    """Other ways to put the logged opinions together, and the adaptive debate.

    Args:
        run: The run.
        changes: `over`: `dialogues` (the default) or `items`; `reading`: how the replies are
            read before anything is put together, `standard` as in the run.

    Raises:
        UsageError: If another setting or value is given.
    """
    for key, values in changes.items():
        known = _SETTABLE.get(key, ())
        if len(values) != 1 or values[0] not in known:
            listed = ", ".join(f"{name}={'|'.join(one)}" for name, one in _SETTABLE.items())
            raise UsageError(
                f"{key}={','.join(values)} cannot be set for a recount of opinions.",
                why="Every aggregation and every threshold is counted anyway.",
                hint=f"What can be set, one value each: {listed}.",
            )
    chosen: dict[str, Any] = {key: values[0] for key, values in changes.items()}
    evidence = evidence_of(run, **chosen)
    return framed(
        run,
        summary="What other ways to put the logged opinions together would have labelled.",
        answers=(),
        sections=tuple(s for s in (_aggregation(evidence), _readings(run)) if s.tables),
        facts=_facts(run, evidence),
    )


def _brief(evidence: Evidence) -> tuple[Section, ...]:
    return (
        _scores(evidence),
        _audit(evidence),
        Section("cost", "Calls", "", tables=present(cost_table(evidence))),
    )


def _whole(evidence: Evidence) -> tuple[Section, ...]:
    from tutorsim.analysis.systems.oversight.charts import (  # the library that draws loads slowly
        adaptive_figure,
        calibration_figure,
        rules_figure,
        scores_figure,
    )

    return (
        _scores(
            evidence,
            differences_table(evidence),
            official_table(evidence),
            printed_table(evidence),
            ablation_table(evidence),
            confusion_table(evidence),
            figures=_drawn(scores_figure(evidence.evaluations)),
        ),
        _audit(evidence, figures=_drawn(rules_figure(evidence.predicted))),
        _aggregation(
            evidence,
            figures=_drawn(evidence.adaptive and adaptive_figure(evidence.adaptive)),
        ),
        Section(
            "debates",
            "What the debates did",
            "Whether critics move, defences fail, the judge follows the order shown, and "
            "confidence means anything.",
            figures=_drawn(calibration_figure(evidence.calibrations)),
            tables=present(diagnostics_table(evidence), calibration_table(evidence)),
        ),
        Section(
            "cost",
            "What it cost",
            "Calls and tokens as logged.",
            tables=present(cost_table(evidence)),
        ),
    )


def _scores(
    evidence: Evidence, *further: Table | None, figures: tuple["Figure", ...] = ()
) -> Section:
    lead = (
        "Labels against the published annotations. Intervals and tests take replies to one "
        "dialogue together."
    )
    return Section(
        "scores",
        "Scores",
        lead if evidence.has_gold else _NO_GOLD,
        figures=figures,
        tables=present(counts_table(evidence), scores_table(evidence), *further),
    )


def _audit(evidence: Evidence, *, figures: tuple["Figure", ...] = ()) -> Section:
    return Section(
        "audit",
        "What the audited run delivered",
        "Labels of the replies of a recorded run. They are the labels of this study's agents, "
        "not of people.",
        figures=figures,
        tables=present(delivered_table(evidence), rules_table(evidence), change_table(evidence)),
    )


def _aggregation(evidence: Evidence, *, figures: tuple["Figure", ...] = ()) -> Section:
    return Section(
        "aggregation",
        "What other aggregations would have labelled",
        "Exact: the opinions are logged, and the debate is held fixed.",
        figures=figures,
        tables=present(aggregation_table(evidence), adaptive_table(evidence)),
    )


def _readings(run: SystemRun) -> Section:
    return Section(
        "readings",
        "What other readings of the replies would have labelled",
        "Exact: raw replies are logged, and the debate is held fixed.",
        tables=present(readings_table(run.episodes)),
    )


def _drawn(figure: "Figure | None") -> tuple["Figure", ...]:
    return () if figure is None else (figure,)


def _summary(evidence: Evidence) -> str:
    records = evidence.records
    items = {(r.benchmark, r.task_id) for r in records}
    dialogues = {r.conversation for r in records}
    replies = counted(len(items), "reply", plural="replies")
    if evidence.is_audit:
        what = f"{replies} of a recorded run, on {counted(len(dialogues), 'task')}"
    else:
        what = f"{replies} of tutors to {counted(len(dialogues), 'dialogue')}"
    return (
        f"Labels of {what}, under {counted(len(evidence.conditions), 'condition')}: did the reply "
        "identify the student's mistake, and does it guide or give the answer away?"
    )


def _answers(evidence: Evidence) -> tuple[Answer, ...]:
    answers = [_best(evidence)] if evidence.has_gold else []
    answers += [_debate_or_single(evidence)] if _has_pair(evidence) else []
    judged = [r for records in evidence.conditions.values() for r in records]
    unjudged = sum(r.unjudged for r in judged)
    answers.append(
        Answer(
            "How many items have no label?",
            f"{unjudged} of {len(judged)}",
            "Replies that could not be read after a second asking. They are wrong for every score.",
            "scores",
        )
    )
    return tuple(answers)


def _best(evidence: Evidence) -> Answer:
    headlines = {
        name: found.metrics["headline"]
        for name, found in scored(evidence).items()
        if isinstance(found.metrics["headline"], Estimate)
    }
    best = max(headlines, key=lambda name: getattr(headlines[name], "value", 0.0))
    return Answer(
        "Which condition labels best?",
        f"{best}, headline {interval_text(headlines[best])}",
        "Mean of both macro-F1, with its interval over dialogues; intervals that overlap leave "
        "the order open.",
        "scores",
    )


def _has_pair(evidence: Evidence) -> bool:
    return evidence.has_gold and {"hpo", "single"} <= evidence.evaluations.keys()


def _debate_or_single(evidence: Evidence) -> Answer:
    row = next(r for r in evidence.differences if {r.first, r.second} == {"hpo", "single"})
    if not isinstance(row.test, PermutationTest):
        headline, detail = "not estimable", row.test.reason.capitalize() + "."
    else:
        gain = row.test.difference if row.first == "hpo" else -row.test.difference
        headline = f"{100 * gain:+.1f} points of the headline"
        detail = f"p = {row.p_holm:.3f}, corrected over all pairs; {row.items} items in both."
    return Answer("Is the debate better than the lead alone?", headline, detail, "scores")


def _facts(run: SystemRun, evidence: Evidence) -> tuple[tuple[str, str], ...]:
    study = run.head.study
    assert isinstance(study, SystemSettings)
    settings = {**evidence.settings, **study.settings.get("models", {})}
    facts = [("Conditions", ", ".join(study.conditions))]
    facts += [(name.replace("_", " ").capitalize(), str(value)) for name, value in settings.items()]
    return (*facts, ("Seed of the draws", str(evidence.seed)))
