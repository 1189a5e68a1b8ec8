"""The summary, the report and the recount of an oversight run: every table, and where it stands."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Final, get_args

from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, conventions_of
from tutorsim.analysis.pages.cells_and_tables import Written, bounds, estimate, p_value
from tutorsim.analysis.pages.cells_and_tables import number as plain_number
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredSection,
    Row,
    chart,
    number,
    section,
    sections_there,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document, Fact
from tutorsim.analysis.pages.numbers_printed_in_studies import printed_in
from tutorsim.analysis.pages.words_and_safe_text import counted, listed, spoken
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    NotEstimable,
    PermutationTest,
    corrected,
)
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import noise_section
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    Contrast,
    beyond_chance,
    chance_words,
    leads,
    not_shown,
    p_words,
)
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    RULES,
    AdaptiveCurve,
    aggregated,
    brier,
    debate_shares,
    phases,
)
from tutorsim.analysis.systems.oversight.episode_messages_and_telling_episodes import TELLING
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    OUTCOMES,
    delivered_shares,
    score_changes,
)
from tutorsim.analysis.systems.oversight.label_accuracy import (
    BASELINES,
    HEADLINE,
    Evaluation,
    Over,
    by_condition,
    changed_labels,
    complete,
    differences,
    evaluate,
    headline_of,
    judged,
    pair_of,
    relabelled,
)
from tutorsim.analysis.systems.oversight.page_data_and_strict_or_lenient_rereading import (
    Evidence,
    reread_label,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, episodes_of, framed
from tutorsim.errors import UsageError
from tutorsim.records import SystemSettings
from tutorsim.records.gold_labels_of_one_annotation import gold_labels
from tutorsim.records.oversight import LABELS, Labels, OversightRecord
from tutorsim.vocabularies import READINGS

Rows = Iterator[Row]


# --- Scores ---------------------------------------------------------------------------------------


def _same_text(of: Evidence) -> str:
    """How many dialogues of the log stand under several ids."""
    pairs = zip(of.records, of.run.episodes, strict=True)
    ids = by_key((one.conversation, named.conversation) for one, named in pairs)
    several = sum(len(set(names)) > 1 for names in ids.values())
    return f" {counted(several, 'dialogue')} of these under several ids." if several else ""


@table("items", "Items", several=_same_text)
def items(of: Evidence) -> Rows:
    """Every item of the log. A repeated conversation is one dialogue.{several}"""
    skips = any(record.skipped for record in of.records)
    for condition, records in by_condition(of.records).items():
        yield {
            "condition": condition,
            "items": len(records),
            "dialogues": len({r.conversation for r in records}),
            "failed": sum(r.status == "failed" for r in records),
            "unjudged": sum(r.unjudged for r in records),
            **({"skipped_debates": sum(r.skipped for r in records)} if skips else {}),
            "with_gold": sum(r.gold is not None for r in records),
            "calls": sum(len(r.calls) for r in records),
        }


_SCORES = [f"{label}_{score}" for label in LABELS for score in ("accuracy", "macro_f1")]
_SHOWN: Final = ("headline", *_SCORES)


def _method(of: Evidence) -> str:
    intervals = (s.interval for e in of.scores.values() for s in e.metrics.values())
    methods = (one.method for one in intervals if not isinstance(one, NotEstimable))
    return next(methods, "no interval, as the dialogues are too few")


@table(
    "scores",
    "Scores by condition",
    headline=HEADLINE,
    maps=lambda of: {"mistake_map": "lenient", "guidance_map": "plain", **of.settings},
    method=_method,
)
def scores(of: Evidence) -> Rows:
    """Headline: {headline}. Maps: mistake {maps[mistake_map]}, guidance {maps[guidance_map]}. In
    brackets, {method}. An unjudged item is wrong for every score. Trivial baselines give every
    item one class, and stand below."""
    for condition, found in of.scores.items():
        yield {
            "condition": condition,
            **{metric: number(found.metrics[metric]) for metric in _SHOWN},
            "items": found.items,
            "dialogues": found.dialogues,
            "unjudged": int(found.confusion["guidance"][:, -1].sum()),
        }
    for name, found in of.trivial.items():
        label, value = BASELINES[name]
        known = {metric: one.value for metric, one in found.metrics.items()}
        yield {
            "condition": f"{name} ({label} = {value})",
            **{metric: plain_number(known.get(metric), digits=4) for metric in _SHOWN},
            "items": found.items,
            "dialogues": found.dialogues,
            "unjudged": 0,
        }


_OFFICIAL: Final = {
    ("guidance", "exact"): "guidance",
    ("guidance", "lenient"): "guidance_lenient",
    ("mistake", "lenient"): "mistake",
}
"""Label and setting of the shared task → our scores of it."""


@table(
    "official",
    "Official settings of the shared task",
    best=lambda of: " The best results are of other test data." if of.beside else "",
)
@printed_in("best_accuracy", "best_macro_f1")
def official(of: Evidence) -> Rows:
    """Maps: mistake lenient, guidance plain, whatever the study's. Lenient guidance takes partial
    and effective together. Exact scores of the mistake are left out: its labels are binary, and a
    binary prediction cannot be one of three classes.{best}"""
    groups = {name: judged(rs, gold=_official_gold) for name, rs in of.conditions.items()}
    found = evaluate(groups, over=of.over)
    for (label, setting), ours in _OFFICIAL.items():
        cell = {"label": label, "setting": setting, "system": "bea_best"}
        best = {
            f"best_{s}": of.printed(s, "BEA 2025 shared task, best of all teams", **cell)
            for s in ("accuracy", "macro_f1")
        }
        for condition, one in found.items():
            said = {s: number(one.metrics[f"{ours}_{s}"]) for s in ("accuracy", "macro_f1")}
            yield {"label": label, "setting": setting, "condition": condition, **said, **best}


def _official_gold(record: OversightRecord) -> Labels | None:
    said = record.annotation
    return gold_labels(said, mistake_map="lenient", guidance_map="plain") if said else None


@table("confusion", "Confusion matrices")
def confusion(of: Evidence) -> Rows:
    """Rows actual, columns predicted; a dash stands for a class that the label lacks."""
    for condition, found in of.scores.items():
        for label, matrix in found.confusion.items():
            for actual, (*counts, unjudged) in enumerate(matrix.tolist()):
                counts += [None] * (3 - len(counts))
                yield {
                    "condition": condition,
                    "label": label,
                    "actual": actual,
                    **{f"predicted_{p}": count for p, count in enumerate(counts)},
                    "unjudged": unjudged,
                }


@table("differences", "Paired differences of the headline")
def paired(of: Evidence) -> Rows:
    """First minus second [95 % interval over dialogues], on the items that both have. p by swapping
    the two conditions within whole dialogues; those by Holm are corrected over all pairs, and each
    interval stands by itself."""
    for row in of.differences:
        if isinstance(row.test, PermutationTest):
            yield {
                "pair": row.name,
                "difference": estimate(row.difference, signed=True),
                "p (Holm)": p_words(row),
                "p": p_value(row.test.p_value),
                "items": row.pairs,
            }


_ABLATED: Final = {
    **{name: name for name in ("no_briefing", "no_advocate", "no_debate")},
    "hpo": "no_tuning",
}
"""Condition → its name in the printed table of parts taken away."""


@table(
    "ablation",
    "Parts of the debate taken away",
    printed=lambda of: (
        " Printed: Table 2 of the oversight study, whose data and models are others; its row of "
        "multi-turn debate stands beside `no_debate`."
        if of.beside
        else ""
    ),
)
@printed_in("printed")
def ablation(of: Evidence) -> Rows:
    """The whole debate without one part.{printed}"""
    there = {condition: name for condition, name in _ABLATED.items() if condition in of.scores}
    for condition, name in there.items() if "hpo" in there and len(there) > 1 else ():
        yield {
            "condition": condition,
            "headline": number(of.scores[condition].metrics["headline"]),
            "printed": of.printed("macro_f1", "Table 2", label="both", system=name),
        }


_PRINTED: Final = (
    ("mistake", "accuracy", "mistake_accuracy"),
    ("mistake", "f1", "mistake_macro_f1"),
    ("guidance", "accuracy", "guidance_accuracy"),
    ("guidance", "f1", "guidance_macro_f1"),
    ("both", "macro_f1", "headline"),
)
"""Label and quantity as printed, and our score."""


@table("printed", "Beside the oversight study's figures")
def printed(of: Evidence) -> Rows:
    """Printed: Tables 1 and 4, other data and other models. That study's confusion matrix of
    guidance gives accuracy .8451 and macro-F1 .8437 where its text has .89 and .83; which items
    its gold labels are of, it does not say."""
    for condition, found in of.scores.items():
        for label, quantity, ours in _PRINTED:
            value = of.printed(quantity, "Table 1", "Table 4", label=label, system=condition)
            if value is not None:
                yield {
                    "condition": condition,
                    "score": f"{label} {quantity}",
                    "here": found.metrics[ours].value,
                    "printed": value,
                }


# --- What else the logged replies and opinions would have given -----------------------------------


@table("readings", "Other readings of the replies")
def readings(of: Evidence) -> Rows:
    """The run reads as `standard`. `strict` takes exactly the form asked for; `lenient` the last
    line of labels in any order, and types that the run forgives on a second asking. `changed`
    counts labels, two an item. A reply that only the strict reader cannot read would have been
    asked for again, which nobody recorded: the item has no label."""
    for condition, logged in by_condition(complete(of.run.episodes)).items():
        pairs = {name: [pair_of(reread_label(r, name)) for r in logged] for name in READINGS}
        gold, standard = judged(logged), [pair_of(record.label) for record in logged]
        for name, said in (pairs | {"standard": standard}).items():
            known = [pair for pair, record in zip(said, logged, strict=True) if record.gold]
            yield {
                "condition": condition,
                "reading": name,
                "items": len(said),
                "changed": changed_labels(standard, said),
                "unjudged": sum(None in pair for pair in said),
                "headline": headline_of(relabelled(gold, known)),
            }


_TO_LOGGED: Final = (
    " Difference of the headline to the logged one [95 % interval over dialogues], paired; p by "
    "swapping whole dialogues, corrected by Holm over all rows."
)


@table(
    "aggregation",
    "Other ways to put the opinions together",
    secondary=("unjudged", "ties", "items"),
    difference=lambda of: _TO_LOGGED if of.has_gold else "",
)
def aggregation(of: Evidence) -> Rows:
    """Exact, from the labels that critics, judge, stress tester and lead stated; `lead` is what was
    logged. `changed` counts labels, two an item. A tie goes to the lead's label. An agent that
    states no confidence has half a vote under `confidence_weighted`.{difference}"""
    debated, family = {}, {}
    for condition, some in of.conditions.items():
        if records := [record for record in some if record.judge]:
            labels = [aggregated(record) or {} for record in records]
            gold = [rules for rules, record in zip(labels, records, strict=True) if record.gold]
            base = judged(records)
            groups = {rule: relabelled(base, [row[rule][:2] for row in gold]) for rule in RULES}
            scored = evaluate(groups, over=of.over, metrics=["headline"])
            debated[condition] = labels, [pair_of(record.label) for record in records], scored
            for row in differences(groups, seed=of.seed, reference="lead"):
                family[condition, row.second] = row
    tests = dict(zip(family, corrected(list(family.values())), strict=True))
    for (condition, (labels, logged, scored)), rule in product(debated.items(), RULES):
        pairs = [row[rule][:2] for row in labels]
        yield {
            "condition": condition,
            "rule": rule,
            "items": len(pairs),
            "changed": changed_labels(logged, pairs),
            "ties": sum(row[rule].ties for row in labels),
            "unjudged": sum(None in pair for pair in pairs),
            **_scored(scored.get(rule), tests.get((condition, rule))),
        }


def _scored(found: Evaluation | None, tested: Contrast | None) -> Row:
    """Cells of a rule's headline and of its difference to the logged one; none without gold."""
    if found is None:
        return {}
    none = Written("–", None)
    return {
        "headline": number(found.metrics["headline"]),
        "difference": estimate(tested.difference, signed=True) if tested else none,
        "p (Holm)": p_words(tested) if tested else none,
    }


_MOST_POINTS: Final = 24
"""Rows of the adaptive curve that a table shows."""


def _shown(curve: AdaptiveCurve) -> list[Any]:
    last = len(curve.points) - 1
    step = max(1, -(-len(curve.points) // _MOST_POINTS))
    return [point for i, point in enumerate(curve.points) if i % step == 0 or i == last]


@table(
    "adaptive",
    "What an adaptive debate would have been",
    points=lambda of: len(of.adaptive.points),
    shown=lambda of: len(_shown(of.adaptive)),
)
def adaptive(of: Evidence) -> Rows:
    """Exact for every threshold: the debate is skipped if the quick confidence is above it.
    {adaptive.items} items, {points} different outcomes, {shown} of them shown. Above 1 nothing is
    skipped; below every stated confidence the quick labels stand."""
    curve = of.adaptive
    if curve is None:
        return
    for point in _shown(curve):
        yield {
            "skip_above": point.threshold,
            "skipped": point.skipped,
            "share_skipped": point.skipped / curve.items,
            "calls_saved": point.calls_saved,
            "tokens_saved": point.tokens_saved,
            "headline": None if point.headline != point.headline else point.headline,
        }


# --- What the debates did -------------------------------------------------------------------------


@table("diagnostics", "What happened in the debates")
def diagnostics(of: Evidence) -> Rows:
    """Each share with its count and what it is of. Sides are shown in an order drawn by hash."""
    for condition, records in of.conditions.items():
        for name, hits in debate_shares(records).items():
            counts = {"share": sum(hits) / len(hits), "count": sum(hits), "of": len(hits)}
            yield {"condition": condition, "what": name, **counts}


def _brier(of: Evidence) -> str:
    scores = {name: brier(records) for name, records in of.conditions.items()}
    return ", ".join(f"{name} {score:.3f}" for name, score in scores.items() if score is not None)


@table("calibration", "Confidence of the lead", brier=_brier)
def confidence(of: Evidence) -> Rows:
    """Right means both labels. Brier score (0 is best): {brier}. Unjudged items state none."""
    for condition, one in of.calibrations:
        yield {
            "condition": condition,
            "confidence": bounds(Bounds(one.low, one.high, one.items), digits=1),
            "items": one.items,
            "mean_confidence": one.stated,
            "both_right": one.right,
        }


@table("cost", "Calls and tokens by phase")
def cost(of: Evidence) -> Rows:
    """Second askings are counted in their phase. A log has no times."""
    for condition, records in of.conditions.items():
        for phase, spent in phases(records).items():
            yield {
                "condition": condition,
                "phase": phase,
                "calls": spent.calls,
                "calls_per_item": spent.calls / len(records),
                "input_tokens": spent.input_tokens,
                "output_tokens": spent.output_tokens,
            }


# --- Audits ---------------------------------------------------------------------------------------


@table("delivered", "What the delivered replies do")
def delivered(of: Evidence) -> Rows:
    """Shares of the judged replies: guide (2), hint (1), give no guidance (0: none, or the answer
    itself; the label does not tell the two apart), and identify the mistake. In brackets,
    intervals at 95 % over tasks, if they are enough."""
    for condition, records in of.conditions.items():
        for row in delivered_shares(records):
            shares = {name: number(row[name]) for name in OUTCOMES}
            yield {"labelled_by": condition, **row, **shares}


@table("rules", "What other rules would have delivered", conventions=conventions_of(TARGETS))
def other_rules(of: Evidence) -> Rows:
    """`no_guidance` is none, or the answer itself. The first row of each format is what was
    delivered. For every turn and rule the recount of the run says which proposals could have won;
    the label of what it would have delivered is among theirs. Sums over turns are ranges, not
    intervals of chance; `one_winner` counts turns with one possible winner. The logged dialogue is
    held fixed, ties stay open, and a proposal without a label could have any. {conventions}"""
    for condition, found in of.predicted:
        yield {
            "labelled_by": condition,
            "voted_in": found.logged,
            "rule": found.rule,
            "turns": found.turns,
            "one_winner": found.identified,
            **{name: bounds(Bounds(*ends, 1)) for name, ends in found.shares.items()},
        }


@table("after", "What followed the delivered replies")
def followed(of: Evidence) -> Rows:
    """As logged. A link and no cause: whoever needs help gets other replies."""
    for condition, records in of.conditions.items():
        for guidance, change in score_changes(records).items():
            if isinstance(change, Estimate):
                yield {
                    "labelled_by": condition,
                    "guidance": guidance,
                    "next_score_minus_this": number(change),
                    "replies": change.n,
                }


# --- Pages ----------------------------------------------------------------------------------------

_chart = partial(chart, "tutorsim.analysis.systems.oversight.charts_of_scores_confidence_audits")


def _scores_lead(of: Evidence) -> str:
    if of.has_gold:
        return (
            "Labels against the published annotations. Intervals and tests take replies to one "
            "dialogue together."
        )
    return (
        "No item has gold labels: files of replies to be judged, and audits, come without "
        "annotations. They can be labelled, but not scored."
    )


_AUDIT: Final[DeclaredSection[Evidence]] = section(
    "audit",
    "What the audited run delivered",
    "Labels of the replies of a recorded run. They are the labels of this study's agents, not of "
    "people.",
    *(delivered, other_rules, followed),
)
_AGGREGATION: Final[DeclaredSection[Evidence]] = section(
    "aggregation",
    "What other aggregations would have labelled",
    "Exact: the opinions are logged, and the debate is held fixed.",
    *(aggregation, adaptive),
)
_BRIEF: Final[tuple[DeclaredSection[Evidence], ...]] = (
    section("scores", "Scores", _scores_lead, items, scores),
    _AUDIT,
    section("cost", "Calls", "", cost),
)
"""Sections of the summary."""
_WHOLE: Final[tuple[DeclaredSection[Evidence], ...]] = (
    replace(_AUDIT, parts=(_chart("delivered"), _chart("rules"), *_AUDIT.parts)),
    section(
        *("scores", "Scores", _scores_lead),
        *(_chart(name) for name in ("accuracy", "scores", "differences")),
        *(paired, scores, official, printed, ablation, confusion, items),
    ),
    replace(_AGGREGATION, parts=(_chart("adaptive"), *_AGGREGATION.parts)),
    section(
        "debates",
        "What the debates did",
        "Whether critics move, defences fail, the judge follows the order shown, and confidence "
        "means anything.",
        *(_chart("calibration"), diagnostics, confidence),
    ),
    section("cost", "What it cost", "Calls and tokens as logged.", cost),
)
_RECOUNT: Final[tuple[DeclaredSection[Evidence], ...]] = (
    _AGGREGATION,
    section(
        "readings",
        "What other readings of the replies would have labelled",
        "Exact: raw replies are logged, and the debate is held fixed.",
        readings,
    ),
)


def document(run: SystemRun, brief: bool) -> Document:
    """The terminal's summary (brief), or the report (whole)."""
    of = Evidence(run)
    sections = [
        made  # scores are there, if only to say why not
        for one in (_BRIEF if brief else _WHOLE)
        for made in ((one(of),) if one.id == "scores" else sections_there(of, (one,)))
    ]
    noise = noise_section(
        run, lambda v: f"{v.place.condition}, {v.candidates[0].rpartition('_')[0]}"
    )
    return framed(
        run,
        summary=_summary(of),
        answers=tuple(_answers(of)),
        sections=(*sections, *noise),
        episodes=episodes_of(run, TELLING),
        lead="accuracy" if of.has_gold else "delivered",
        facts=_facts(of),
    )


_SETTABLE: Final[Mapping[str, tuple[str, ...]]] = {"over": get_args(Over), "reading": READINGS}
"""What `--set` takes for a recount → its values."""


def recount(run: SystemRun, changes: Mapping[str, tuple[str, ...]]) -> Document:
    """Other ways to put the logged opinions together, and the adaptive debate.

    `changes`: `over`, `dialogues` (the default) or `items`; `reading`, how the replies are read
    before anything is put together, `standard` as in the run. Others are refused.
    """
    of = Evidence(run, **chosen(changes))
    return framed(
        run,
        summary="What other ways to put the logged opinions together would have labelled.",
        answers=(),
        sections=tuple(sections_there(of, _RECOUNT)),
        facts=_facts(of),
    )


def chosen(changes: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Setting → its one value; `UsageError` if a setting or a value is unknown."""
    for key, values in changes.items():
        if len(values) != 1 or values[0] not in _SETTABLE.get(key, ()):
            listed = ", ".join(f"{name}={'|'.join(one)}" for name, one in _SETTABLE.items())
            raise UsageError(
                f"{key}={','.join(values)} cannot be set for a recount of opinions.",
                why="Every aggregation and every threshold is counted anyway.",
                hint=f"What can be set, one value each: {listed}.",
            )
    return {key: value for key, (value,) in changes.items()}


def _summary(of: Evidence) -> str:
    replies = counted(
        len({(r.benchmark, r.task_id) for r in of.records}), "reply", plural="replies"
    )
    dialogues = len({r.conversation for r in of.records})
    what = f"{replies} of tutors to {counted(dialogues, 'dialogue')}"
    run = next((record.audited.run for record in of.records if record.audited), None)
    if run is not None:
        unknown = "" if of.run.head.inputs else " (what gave them, this recording does not say)"
        what = f"{replies} of the recorded run {run}{unknown}, on {counted(dialogues, 'task')}"
    return (
        f"Labels of {what}: did the reply identify the student's mistake, and does it guide? "
        f"Conditions: {listed(list(of.conditions))}."
    )


def below_trivial(of: Evidence) -> str:
    """Accuracies that are below those of giving every item one class; empty where none is."""
    told = []
    for name, trivial in of.trivial.items():
        metric = f"{BASELINES[name][0]}_accuracy"
        least = trivial.metrics[metric].value
        below = [c for c, one in of.scores.items() if one.metrics[metric].value < least]
        if below:
            told.append(
                f" Labels of {BASELINES[name][0]} are right less often than “{name}”, "
                f"{least:.3f}, under {listed(below)}."
            )
    return "".join(told)


def _answers(of: Evidence) -> Iterator[Answer]:
    def differing(row: Contrast) -> str:
        return f"{row.name} {estimate(row.difference, signed=True)}"

    if of.has_gold:
        known = {name: one.metrics["headline"] for name, one in of.scores.items()}
        first = max(found.value for found in known.values())
        best = [name for name, found in known.items() if found.value == first]
        others = [name for name in known if name not in best]
        led = others and leads(of.differences, best, others)
        chance = chance_words(of.differences, differing, over="dialogues")
        highest = f"Highest is {listed(best)}, {number(known[best[0]])}: mean of both macro-F1"
        yield Answer(
            "Which condition labels best?",
            listed(best) if led else not_shown(of.differences),
            f"{highest}, with its interval over {of.over}. {chance}{below_trivial(of)}",
            "scores",
        )
    if of.has_gold and {"hpo", "single"} <= of.scores.keys():
        row = next(r for r in of.differences if {r.first, r.second} == {"hpo", "single"})
        told = ("not estimable", f"{getattr(row.test, 'reason', '').capitalize()}.")
        if isinstance(row.test, PermutationTest):
            better = (row.test.difference > 0) == (row.second == "hpo")
            verdict = not_shown(of.differences)
            if beyond_chance(row):
                verdict = "Yes" if better else "No, worse"
            told = (
                verdict,
                f"{row.name}: {estimate(row.difference, signed=True)} of the headline on "
                f"{counted(row.pairs, 'item')} that both label. "
                f"p = {p_value(row.p_holm or 0)} over {counted(row.test.tasks, 'dialogue')}, "
                "corrected over all pairs.",
            )
        yield Answer("Is the debate better than the lead alone?", *told, "scores")
    every = [record for records in of.conditions.values() for record in records]
    told_of = [one for one in every if one.audited and one.audited.delivered and one.label]
    if told_of and len(of.conditions) == 1:
        said = Counter(one.label.guidance for one in told_of if one.label)
        drafts = sum(not one.audited.delivered for one in every if one.audited)
        yield Answer(
            "What do the delivered replies do?",
            f"No guidance: {said[0]:,} of {len(told_of):,}",
            f"Guidance: {said[2]:,}. A hint: {said[1]:,}."
            + f" Labels of drafts that were not delivered: {drafts:,}." * bool(drafts),
            "audit",
        )
    yield Answer(
        "How many items have no label?",
        f"{sum(record.unjudged for record in every)} of {len(every)}",
        "Replies that could not be read after a second asking."
        + (" They are wrong for every score." if of.has_gold else ""),
        "scores",
    )


def _facts(of: Evidence) -> tuple[Fact, ...]:
    study = of.run.head.study
    assert isinstance(study, SystemSettings)
    settings = {**of.settings, **study.settings.get("models", {})}
    return (
        ("Conditions", ", ".join(study.conditions)),
        *(
            (spoken(name).capitalize(), value if type(value) in (int, float) else str(value))
            for name, value in settings.items()
        ),
        ("Seed of the draws", of.seed),
    )
