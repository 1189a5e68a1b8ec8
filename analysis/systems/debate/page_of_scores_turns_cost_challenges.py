"""The summary and the report of a run of debates: every table, and where it stands."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from statistics import mean, stdev
from typing import Any, Final

from tutorsim.analysis.pages.cells_and_tables import Written, estimate, number
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredSection,
    DeclaredTable,
    Row,
    Rows,
    section,
    sections_there,
    table,
)
from tutorsim.analysis.pages.document import Document
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed, printed, printed_in
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import (
    embedded_similarities,
    text_similarities,
)
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import noise_section
from tutorsim.analysis.systems.debate.council_report_self_votes_right_winners_other_rules import (
    council_document,
    drawn,
    is_council,
)
from tutorsim.analysis.systems.debate.episode_messages_and_telling_episodes import TELLING
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    STUDY_RULES,
    Slope,
    family,
    percent_over_tasks,
    slope,
    task_of,
)
from tutorsim.analysis.systems.debate.tables_of_protocols_recounted_on_same_debates import (
    OF_VARIANTS,
    Evidence,
    Key,
    best_protocol,
    deciding,
    grouped,
    overview,
    percent,
    percent_estimate,
    protocols_section,
    slim,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, episodes_of, framed
from tutorsim.records import uncollected
from tutorsim.records.debate import DebateRecord

PUBLISHED: Final = "tutorsim.analysis.systems.debate:published.toml"

_SOLO: Final = ("baseline", "baseline_cot", "self_refine")
_PLACE: Final = ("benchmark", "variant", "condition")

# --- Scores -----------------------------------------------------------------------------------


def _mean_score(complete: Sequence[DebateRecord]) -> Estimate | NotEstimable:
    """Mean score in percent, with an interval over tasks."""
    scored = [(100 * one.score, one.task_id) for one in complete if one.score is not None]
    return percent_over_tasks([score for score, _ in scored], [task for _, task in scored])


def _deviation(complete: Sequence[DebateRecord]) -> float | None:
    """Deviation of the repeats' mean scores in percent (n - 1); `None` with one repeat."""
    scores = ((one.repeat, 100 * one.score) for one in complete if one.score is not None)
    means = [mean(values) for values in by_key(scores).values()]
    return stdev(means) if len(means) > 1 else None


def _turn_shares(complete: Sequence[DebateRecord]) -> dict[int, float]:
    """Turn → percent of debates that ended in it; the last turn holds undecided ones too."""
    debates = [record for record in complete if record.turns]
    last = max((record.setup.max_turns or record.turns_taken for record in debates), default=0)
    return {
        turn: 100 * mean(record.turns_taken == turn for record in debates)
        for turn in range(1, last + 1)
    }


def _failed(of: Evidence) -> str:
    failed = len(of.records) - len(of.complete)
    return f"{counted(failed, 'failed episode')} left out." if failed else "No episode failed."


def _below_trivial(of: Evidence) -> str:
    """Accuracies of choice questions below those of answers that read none of them; empty where
    none is."""
    told = []
    for place, complete in of.groups.items():
        choices = [r for r in complete if r.answer_kind == "choice" and r.gold]
        score = _mean_score(complete).value
        if score is None or not choices:
            continue
        [(letter, times)] = Counter(gold for r in choices for gold in r.gold).most_common(1)
        always = 100 * times / len(choices)
        lot = 100 * mean(len(record.gold) / len(record.options) for record in choices)
        accuracy, name = (always, f"always {letter}") if always >= lot else (lot, "a lot")
        if accuracy > score:
            told.append(f"{' '.join(place)} {score:.1f}, {name} {accuracy:.1f}")
    return f" Below a trivial baseline: {'; '.join(told)}." if told else ""


def as_printed(one: Printed) -> Written:
    """A figure as it is printed, with its deviation."""
    text = f"{one.value:g}" if one.sd is None else f"{one.value:.1f} ± {one.sd:.1f}"
    return Written(text.replace("-", "−"), one.value)


def _first_printed(found: Sequence[Printed]) -> Written:
    """The first of some printed figures; a dash if there is none."""
    return as_printed(found[0]) if found else Written("–", None)


def _printed_scores(of: Evidence, place: Key) -> dict[str, Written]:
    benchmark, _, condition = place
    printed = partial(of.printed, ("accuracy", "f1"), benchmark=benchmark, condition=condition)
    return {name: _first_printed(printed(model=model)) for name, model in _MODELS.items()}


def _printed_how(of: Evidence) -> str:
    found = {one.value for place in of.groups for one in _printed_scores(of, place).values()}
    return " Printed: mean ± sd over three runs of the study." if found - {None} else ""


_MODELS: Final = {"printed 8B": "llama-3-8b", "printed 70B": "llama-3-70b"}
"""Column → the model of the study."""


@table(
    "performance",
    "Score by benchmark, variant and condition",
    failed=_failed,
    trivial=_below_trivial,
    printed=_printed_how,
)
@printed_in(*_MODELS)
@slim
def performance(of: Evidence) -> Rows:
    """{failed}{trivial}{printed}"""
    for place, complete in of.groups.items():
        decided = [one.decided for one in complete if one.decided is not None]
        debated = any(one.turns for one in complete)
        yield {
            **dict(zip(_PLACE, place, strict=True)),
            "n": len(complete),
            "score": percent_estimate(_mean_score(complete)),
            "sd": number(_deviation(complete)),
            "decided": percent(mean(decided) if decided else None),
            "turns": number(mean(r.turns_taken for r in complete) if debated else None, digits=2),
            **_printed_scores(of, place),
        }


@table("unread", "What could not be read")
@slim
def unread(of: Evidence) -> Rows:
    """Unclear: messages without a tag that was asked for; they count as not agreeing. Abstained:
    ballots that could not be read twice. Unreadable: delivered answers that name no option; they
    are wrong."""
    groups = by_key(((variant, name), one) for (_, variant, name), one in of.groups.items())
    for (variant, condition), found in groups.items():
        complete = list(chain.from_iterable(found))
        turns = [turn for record in complete for turn in record.turns]
        votes = [ballots for turn in turns for ballots in (turn.cast, *turn.ballots_as.values())]
        counts = {
            "unclear": sum(one.agreement == "unclear" for turn in turns for one in turn.messages),
            "abstained": sum(one.ballot_status == "abstained" for cast in votes for one in cast),
            "unreadable": sum(record.readable is False for record in complete),
        }
        if any(counts.values()):
            yield {"variant": variant, "condition": condition, **counts}


@table(
    "turns",
    "Where debates end",
    printed=lambda of: "Printed: Table 2 of the study." if of.beside else "",
)
@slim
def turns(of: Evidence) -> Rows:
    """{printed}"""
    last = max((one.setup.max_turns or one.turns_taken for one in of.records), default=0)

    def row(place: Sequence[str], source: str, shares: Mapping[int, str]) -> Row:
        named = dict(zip(_PLACE, place, strict=True))
        each = {f"turn {turn}": shares.get(turn, "–") for turn in range(1, last + 1)}
        return {**named, "source": source, **each}

    own = [
        row(place, "this run", {turn: number(one) for turn, one in shares.items()})
        for place, complete in of.groups.items()
        if (shares := _turn_shares(complete)) and place[2] != "full"
    ]
    yield from own
    for condition in STUDY_RULES if own else ():
        found = of.printed("turns_to_decision", condition=condition)
        if found:
            texts = {int(one.cell["turn"]): as_printed(one) for one in found}
            yield row(("mmlu", "default", condition), "printed, 8B", texts)


@table("answerable", "F1 by kind of question")
@slim
def answerable(of: Evidence) -> Rows:
    """Percent, with the 95 % interval over tasks."""
    for kind, has_answer in (("answerable", True), ("not answerable", False)):
        part = [
            one
            for one in of.complete
            if one.answer_kind == "passage" and bool(one.gold) == has_answer
        ]
        for (_, variant, condition), group in grouped(part).items():
            if condition != "full":
                yield {
                    "question": kind,
                    "variant": variant,
                    "condition": condition,
                    "episodes": len(group),
                    "F1": percent_estimate(_mean_score(group)),
                }


def _tokens(record: DebateRecord) -> int:
    return sum(call.input_tokens + call.output_tokens for call in record.calls)


@table("cost", "Calls and tokens of an episode")
@printed_in("printed ×")
@slim
def cost(of: Evidence) -> Rows:
    """Means over complete episodes; tokens are input and output together."""
    groups = by_key(((one.variant, one.condition), one) for one in of.complete)
    base = {
        (one.benchmark, one.task_id, one.repeat): one
        for one in of.complete
        if one.condition == "baseline_cot"
    }
    for (variant, condition), group in groups.items():
        pairs = [(one, base.get((one.benchmark, one.task_id, one.repeat))) for one in group]
        beside = [(one, alone) for one, alone in pairs if alone is not None]

        def factor(of_one: Callable[[DebateRecord], int], beside: Any = beside) -> Written:
            below = sum(of_one(alone) for _, alone in beside)
            return number(sum(of_one(one) for one, _ in beside) / below if below else None)

        solo = condition in (*_SOLO, "full")
        found = [] if solo else of.printed("compute_factor", family=family(condition))
        yield {
            "variant": variant,
            "condition": condition,
            "episodes": len(group),
            "calls": number(mean(len(one.calls) for one in group)),
            "tokens": number(mean(map(_tokens, group)), digits=0),
            "calls × CoT": factor(lambda one: len(one.calls)),
            "tokens × CoT": factor(_tokens),
            "printed ×": _first_printed(found),
        }


# --- Experiments of the study -----------------------------------------------------------------


def agents_slopes(records: Sequence[DebateRecord]) -> list[Slope]:
    """Scores by number of agents, per condition, over variants that differ in nothing else."""
    debated = [r for r in records if r.status == "complete" and r.turns and r.score is not None]
    setups = [record.setup.model_dump(exclude={"agents"}) for record in debated]
    told = [name for name in (setups[0] if setups else ()) if len({s[name] for s in setups}) > 1]
    groups = by_key(
        (
            (one.condition, *(f"{name} = {getattr(one.setup, name)}" for name in told)),
            (task_of(one), one.setup.agents, 100 * (one.score or 0)),
        )
        for one in debated
    )
    found = [
        slope(f"{name} ({', '.join(settings)})" if settings else name, scores)
        for (name, *settings), scores in groups.items()
    ]
    return [one for one in found if one is not None]


def _slopes(
    name: str, title: str, found: Callable[[Evidence], Sequence[Slope]]
) -> DeclaredTable[Evidence]:
    @table(name, title)
    def rows(of: Evidence) -> Rows:
        """Mean scores in percent; slope by least squares in points for each further one, with its
        95 % interval over tasks."""
        slopes = found(of)
        places = sorted({place for one in slopes for place in one.points})
        for one in slopes:
            yield {
                "condition": one.name,
                "slope": estimate(one.slope, signed=True),
                **{str(place): number(one.points.get(place)) for place in places},
                "tasks": one.tasks,
            }

    return rows


rounds = _slopes("rounds", "Score by first turn of a vote", lambda of: of.rounds)
agents = _slopes("agents", "Score by number of agents", lambda of: agents_slopes(of.complete))


@table(
    "similarity",
    "Similarity and score by variant",
    model=lambda of: f" Sentences: by the model {of.embedding.name}." if of.embedding else "",
)
@slim
def similarity(of: Evidence) -> Rows:
    """1 is the same words in the same proportions.{model}"""
    words, sentences = ("words", ("sentences",)) if of.embedding else ("similarity", ())
    groups = by_key(
        ((one.benchmark, one.variant), (one, [answer.text for answer in answered[-1]]))
        for one in of.complete
        if (answered := [turn.answers.values() for turn in one.turns if turn.answers])
    )
    for (benchmark, variant), debates in groups.items():
        panels = [texts for _, texts in debates]
        alike = [one for one in text_similarities(panels) if one is not None]
        scores = [100 * record.score for record, _ in debates if record.score is not None]
        embedded = embedded_similarities(panels, of.embedding) if of.embedding else []
        known = [one for one in embedded if one is not None]
        if alike:
            yield {
                "benchmark": benchmark,
                "variant": variant,
                "source": "this run",
                "debates": len(alike),
                words: number(mean(alike), digits=3),
                **dict.fromkeys(sentences, number(mean(known) if known else None, digits=3)),
                "score": number(mean(scores) if scores else None),
            }
    for one in of.printed("answer_similarity") if groups else ():
        variant = one.cell["variant"]
        found = of.printed("accuracy", variant=variant)
        difference = of.printed("accuracy_difference", variant=variant)
        note = f" ({difference[0].note})" if difference and difference[0].note else ""
        yield {
            "benchmark": one.cell["benchmark"],
            "variant": variant,
            "source": f"printed{note}",
            "debates": None,
            words: "–" if of.embedding else as_printed(one),
            **dict.fromkeys(sentences, as_printed(one)),
            "score": _first_printed([score for score in found if score.where == one.where]),
        }


@table("challenge", "Challenged answers")
@printed_in("printed rate")
def challenge(of: Evidence) -> Rows:
    """Rate: percent of readable judgements that challenge. Of these, the other answer scores more
    than the delivered one, less, or the same."""
    settings = by_key(
        (one.setting, (one, record.score or 0.0))
        for record in of.complete
        for one in record.challenges
    )
    for setting, pairs in settings.items():
        judged = sum(one.challenged is not None for one, _ in pairs)
        changes = [(one.score or 0.0) - before for one, before in pairs if one.challenged]
        yield {
            "setting": setting,
            "judged": judged,
            "unreadable": len(pairs) - judged,
            "rate": number(100 * len(changes) / judged if judged else None),
            "rises": sum(change > 0 for change in changes),
            "falls": sum(change < 0 for change in changes),
            "stays": sum(change == 0 for change in changes),
            "printed rate": _first_printed(of.printed("challenge_rate", setting=setting)),
        }


# --- Pages ------------------------------------------------------------------------------------


_PERFORMANCE: Final[DeclaredSection[Evidence]] = section(
    "performance",
    "Performance",
    "How often each condition answers right. Scores are percent: accuracy, and token F1 for "
    "squad2. In brackets the 95 % interval over tasks; sd is over repeats. An undecided "
    "debate is scored by what was delivered, and `full` delivers nothing.",
    performance,
    unread,
)
_TURNS: Final[DeclaredSection[Evidence]] = section(
    "turns",
    "Turns to decision",
    "Percent of debates that end in each turn. The last turn also holds debates that were still "
    "undecided.",
    turns,
)
_COST: Final[DeclaredSection[Evidence]] = section(
    "cost",
    "Cost",
    "What an episode costs, and how many times that of `baseline_cot` on the same tasks.",
    cost,
    when=lambda of: any(record.calls for record in of.records),
)


def _likeness(of: Evidence) -> str:
    """What the numbers of similarity are."""
    embedded, study = "", ""
    if of.embedding:
        embedded = ", and of sentence embeddings"
    if of.beside and of.embedding:
        study = " as in the study, whose model may be another one"
    elif of.beside:
        study = ", the study's of sentence embeddings: the two scales differ"
    return (
        "Mean pairwise similarity of the agents' last final answers in a debate, beside the mean "
        f"score. Similarity is the cosine of word weights (TF–IDF){embedded}{study}."
    )


def _printed_slope(of: Evidence, side: str) -> str:
    return f" The study prints a slope {side} zero and no numbers." if of.beside else ""


_EXPERIMENTS: Final[tuple[DeclaredSection[Evidence], ...]] = (
    section(
        "rounds",
        "Rounds",
        lambda of: (
            "What voting would have scored with its first vote after one turn, two turns, and so "
            f"on: the same debates of one variant at every point.{_printed_slope(of, 'below')}"
        ),
        drawn("rounds"),
        rounds,
        when=lambda of: of.full,
    ),
    section(
        "agents",
        "Agents",
        lambda of: (
            "Scores of variants that differ in the number of agents alone, on the same tasks. Each "
            "number has debates of its own, so chance is between them."
            f"{_printed_slope(of, 'above')}"
        ),
        agents,
    ),
    section("similarity", "Similarity of answers", _likeness, similarity),
    section(
        "answerable",
        "Answerable and not",
        "Token F1 on passages that hold an answer, and on those that hold none, where only "
        "`unknown` or an empty answer is right.",
        answerable,
    ),
    section(
        "challenge",
        "Challenge",
        "After the debate every agent judges an answer once for each setting, and gives another "
        "one if it disagrees.",
        challenge,
    ),
)
_DECIDING: Final[DeclaredSection[Evidence]] = section(
    "deciding",
    "Deciding ballots under other rules",
    "The votes whose winner was delivered, counted under other rules as far as their ballots say. "
    "`tutorsim recount RUN` asks more of them: orders, electorates, readings.",
    deciding,
)


@uncollected()  # of many records each table makes many more objects
def document(run: SystemRun, brief: bool) -> Document:
    """The summary (brief) or the report (whole) of a run."""
    if is_council(run.episodes):
        return council_document(run, brief)
    seed, beside = run.head.study.seed, () if brief else printed(PUBLISHED, run.head)
    of = Evidence(run.episodes, seed=seed, beside=beside, embedding=run.embedding)
    summary, facts = overview(of.records)
    middle = (_COST,) if brief else (*_EXPERIMENTS, _COST)
    sections = [*sections_there(of, (_PERFORMANCE, _TURNS, *middle))]
    if of.debates and brief:
        sections.append(protocols_section(of.variants))
    elif of.debates:  # what the page's first answer and chart rest on
        sections.insert(0, protocols_section(of.variants, OF_VARIANTS, (drawn("protocols")(of),)))
    if not brief:
        sections += sections_there(of, (_DECIDING,))
    noise = noise_section(run, lambda vote: vote.form)
    return framed(
        run,
        summary=summary,
        answers=tuple(best_protocol(one) for one in of.variants[:1]),
        sections=(*sections, *noise),
        episodes=episodes_of(run, TELLING),
        lead="protocols",
        facts=facts,
    )
