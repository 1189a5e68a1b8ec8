"""Every protocol on the same debates: tables, their section, and the recount of whole debates.

What the tables and charts of a run of debates are of stands here too: `Evidence`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from textwrap import shorten
from typing import Any, Final

from tutorsim.analysis.pages.cells_and_tables import Written, bounds, number, p_value
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredTable,
    Rows,
    table,
    without_columns,
)
from tutorsim.analysis.pages.document import Answer, Document, Fact, Section
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed
from tutorsim.analysis.pages.words_and_safe_text import counted, listed, spoken
from tutorsim.analysis.runs.exported_tables import (
    Parts,
    Table,
    counted_of,
    real,
    several,
    text,
    whole,
    yes,
)
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, Estimate, NotEstimable
from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import Embedding
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    Contrast,
    chance_words,
    difference_words,
    leads,
    not_shown,
)
from tutorsim.analysis.systems.debate.council_report_self_votes_right_winners_other_rules import (
    council_outcomes,
    council_recount,
    is_council,
)
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    RULES,
    STUDY_RULES,
    Changes,
    Debate,
    Outcome,
    ProtocolRow,
    Rule,
    Slope,
    Told,
    accounts_of,
    contrasts,
    possible_outcomes,
    rounds_slopes,
    score_bounds,
    told,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, framed
from tutorsim.errors import UsageError
from tutorsim.records import RunRecord
from tutorsim.records.debate import DebateRecord, DebateSetup
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import MAJORITIES
from tutorsim.vocabularies import PROTOCOLS, SCORINGS, Scoring

# --- Evidence ---------------------------------------------------------------------------------

Key = tuple[str, str, str]
"""Benchmark, variant and condition."""


def grouped(records: Iterable[DebateRecord]) -> dict[Key, list[DebateRecord]]:
    """Records by benchmark, variant and condition, in the order of the grid."""
    return by_key(((one.benchmark, one.variant, one.condition), one) for one in records)


@dataclass(frozen=True)
class Variant:
    """The debates of one variant, and what every protocol makes of them."""

    name: str
    told: Sequence[tuple[Told, ...]] = field(repr=False)
    """What every protocol makes of each debate."""
    seed: int
    debates: Sequence[Debate] = field(default=(), repr=False)
    """The debates themselves; none where they are not held."""

    @cached_property
    def rows(self) -> list[ProtocolRow]:
        """What every protocol makes of them."""
        return accounts_of(self.told)

    @property
    def exact(self) -> bool:
        """Every outcome is known."""
        return all(row.exact == row.debates for row in self.rows)

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """Every two protocols of the study on the same debates."""
        return contrasts(self.told, seed=self.seed)

    @cached_property
    def differing(self) -> tuple[list[Debate], int]:
        """Debates to which the protocols of the study deliver answers that are known and not the
        same; and how many debates leave some outcome open."""
        differ: list[Debate] = []
        unknown = 0
        for debate in self.debates:
            outcomes = [debate.recounted(rule) for rule in STUDY_RULES]
            if any(one.certainty in ("open", "beyond") for one in outcomes):
                unknown += 1
                continue
            answers = {one.answers[0] for one in outcomes if one.certainty == "exact"}
            if len({a if a is None else short_answer(debate, a).casefold() for a in answers}) > 1:
                differ.append(debate)
        return differ, unknown


class Evidence:
    """What the tables and charts of a run are of.

    `beside`: printed figures to stand beside the run's.
    """

    def __init__(
        self,
        records: Sequence[DebateRecord],
        *,
        seed: int,
        beside: Sequence[Printed] = (),
        embedding: Embedding | None = None,
    ) -> None:
        self.records, self.seed, self.beside = records, seed, beside
        self.embedding = embedding
        self.complete = [record for record in records if record.status == "complete"]
        self.full = [record for record in self.complete if record.ended_by == "full"]
        asked = self.full or [record for record in self.complete if record.turns]
        self.debates = [Debate(record) for record in asked]
        """Debates that never stopped if there are any, otherwise every debate."""

    def printed(self, quantity: str | tuple[str, ...], **cell: object) -> list[Printed]:
        """The printed figures of a quantity whose cell has these names and values."""
        wanted = (quantity,) if isinstance(quantity, str) else quantity
        return [
            one
            for one in self.beside
            if one.quantity in wanted and all(one.cell.get(k) == v for k, v in cell.items())
        ]

    @cached_property
    def groups(self) -> dict[Key, list[DebateRecord]]:
        """Complete episodes by benchmark, variant and condition; none where all have failed."""
        every = grouped(self.records).items()
        return {key: [one for one in group if one.status == "complete"] for key, group in every}

    @cached_property
    def rounds(self) -> list[Slope]:
        """Scores by the first turn of a vote."""
        return rounds_slopes(self.debates if self.full else (), PROTOCOLS)

    @cached_property
    def variants(self) -> list[Variant]:
        """Each variant's debates that are asked what every protocol makes of them."""
        groups = by_key((one.record.variant, one) for one in self.debates)
        return [
            Variant(name, [told(one) for one in group], seed=self.seed, debates=group)
            for name, group in groups.items()
        ]


# --- Cells ------------------------------------------------------------------------------------

_LONGEST_ANSWER: Final = 24
"""Characters of an answer without a letter that a cell shows."""


def short_answer(debate: Debate, answer: str) -> str:
    """The letter of an answer that chooses an option; of others the beginning."""
    letter = debate.worth(answer).letter
    return letter or shorten(answer, _LONGEST_ANSWER, placeholder=" …")


def percent(share: float | None) -> Written:
    """A share in percent; a dash if there is none."""
    return number(None if share is None else 100 * share, digits=0, unit=" %")


def percent_estimate(found: Estimate | NotEstimable, *, signed: bool = False) -> Written:
    """A mean in percent with its interval."""
    if isinstance(found, NotEstimable):
        return Written("–", found)
    sign = "+" if signed else ""
    text = f"{found.value:{sign}.1f}" if round(found.value, 1) else "0.0"
    if found.low is not None and found.high is not None:
        text += f" [{found.low:{sign}.0f}, {found.high:{sign}.0f}]"
    return Written(text.replace("-", "−"), found)


slim = without_columns(lambda name, cells: name == "variant" and len(set(cells)) == 1)
"""A table's rows, without their column `variant` if there is one variant only."""


def overview(records: Iterable[DebateRecord]) -> tuple[str, tuple[Fact, ...]]:
    """How many episodes of what a run has, in one sentence, and each variant's settings.

    Records are gone through once, and none is held.
    """
    episodes, tasks = 0, set[tuple[str, str]]()
    conditions, setups = dict[str, None](), dict[str, DebateSetup]()
    for record in records:
        episodes += 1
        tasks.add((record.benchmark, record.task_id))
        conditions[record.condition] = None
        setups[record.variant] = record.setup
    several = f"Variants: {listed([*setups])}. " if len(setups) > 1 else ""
    summary = (
        f"{counted(episodes, 'episode')} of {counted(len(tasks), 'task')}. "
        f"{several}Conditions: {listed([*conditions])}."
    )
    return summary, tuple((f"Variant {n}", _setup_words(setup)) for n, setup in setups.items())


def _setup_words(setup: DebateSetup) -> str:
    known = f"{counted(setup.agents, 'agent')}, paradigm {setup.paradigm}"
    if setup.max_turns is None:
        return f"{known}; the logs say no other setting"
    return (
        f"{known}, at most {counted(setup.max_turns, 'turn')}, votes from turn {setup.vote_from}, "
        f"drafting {setup.drafting}, undecided {setup.undecided}"
    )


# --- What other protocols decide --------------------------------------------------------------


def _range(row: ProtocolRow) -> Written:
    """A score, with its interval, or its least and largest value."""
    if isinstance(row.score, Estimate):
        return percent_estimate(row.score)
    assert row.low is not None  # a protocol without debates has no row
    assert row.high is not None
    return bounds(Bounds(row.low, row.high, row.debates), digits=1)


@table("protocols", "every protocol")
def protocols(of: Variant) -> Rows:
    """n: debates that the protocol applies to; solution counting takes questions with options
    only. Score: percent right, with a 95 % interval over tasks where every outcome is exact,
    otherwise its least and largest value. Decided: debates that the protocol ended, and not the
    limit of turns. Turns: the turn in which the debate ends, on average. Ties: votes on the way
    that had no single winner. The last three are of exact outcomes."""
    for row in of.rows:
        if row.debates:
            known = {"exact": row.exact, "open": row.open, "beyond": row.beyond}
            yield {
                "protocol": spoken(row.rule),
                "n": row.debates,
                **({} if of.exact else known),
                "score": _range(row),
                "decided": percent(row.decided),
                "turns": number(row.turns, digits=2),
                "ties": row.ties,
            }


_MOST_DIFFERING: Final = 20
"""Debates that are shown one by one."""


def _differing_words(of: Variant) -> str:
    differ, unknown = of.differing
    left = f"; {unknown} leave some outcome open" if unknown else ""
    shown = min(len(differ), _MOST_DIFFERING)
    more = "" if shown == len(differ) else f" The first {shown} of {len(differ)} stand here."
    same = len(of.debates) - len(differ) - unknown
    return (
        f"Of {len(of.debates)} debates, {same} end with the same answer under all that apply"
        f"{left}.{more}"
    )


@table("differing", "debates on which the protocols differ", counts=_differing_words)
def differing(of: Variant) -> Rows:
    """What each protocol delivers and, in brackets, in which turn; a star: undecided at the limit
    of turns. {counts}"""
    for debate in of.differing[0][:_MOST_DIFFERING]:
        record = debate.record
        yield {
            "task": record.task_id,
            "right": ", ".join(record.gold[:1]) or "no answer",
            **{rule: _delivered(debate, debate.recounted(rule)) for rule in STUDY_RULES},
        }


def _delivered(debate: Debate, outcome: Outcome) -> str:
    if outcome.certainty != "exact":
        return "–"
    text = outcome.answers[0]
    said = "nothing" if text is None else short_answer(debate, text)
    return f"{said} ({outcome.turn}{'' if outcome.decided else '*'})"


def protocol_chance(of: Variant) -> str:
    """Which differences between protocols are beyond chance."""
    told = partial(difference_words, digits=1)
    return chance_words(of.contrasts, told, between="protocols", largest=100)


@table("contrasts", "paired differences", chance=protocol_chance)
def differences(of: Variant) -> Rows:
    """In points, on debates whose outcome is exact under both, with 95 % intervals over tasks.
    p by flipping the signs of tasks, all debates of a task together, then Holm's correction over
    all pairs of the table. {chance}"""
    for one in of.contrasts:
        if one.p is not None and one.p_holm is not None:
            yield {
                "pair": one.name,
                "difference": percent_estimate(one.difference, signed=True),
                "p (Holm)": p_value(one.p_holm),
                "p": p_value(one.p),
                "tasks": one.tasks,
            }


_OTHER_SETTINGS: Final[tuple[tuple[str, Changes, Sequence[Rule]], ...]] = (
    *(
        (f"undecided = {name}", Changes(undecided=name), PROTOCOLS)
        for name in ("first_agent", "leader", "none")
    ),
    ("merge_identical = true", Changes(merge_identical=True), PROTOCOLS),
    *((f"majority = {name}", Changes(majority=name), ("majority",)) for name in MAJORITIES),
)


@table("settings", "other settings of the same protocols")
def other_settings(of: Variant) -> Rows:
    """From the same recording. Exact, but for merged answers where some agents of a debate gave
    equal answers and others did not: a vote over fewer candidates would have had other ballots, so
    that the score is a range."""
    never_stopped = all(debate.record.ended_by == "full" for debate in of.debates)
    for words, changes, rules in _OTHER_SETTINGS if never_stopped else ():
        made = [told(debate, rules, changes) for debate in of.debates]
        for row in accounts_of(made, rules):
            if row.debates:
                yield {
                    "setting": words,
                    "protocol": row.rule,
                    "debates": row.debates,
                    "score": _range(row),
                    "decided": percent(row.decided),
                    "turns": number(row.turns, digits=2),
                }


@table("deciding", "Winners of deciding votes")
@slim
def deciding(of: Evidence) -> Rows:
    """Same: no other winner is possible. Open: the ballots also fit another one. Other: the
    delivered answer cannot win."""
    for (benchmark, variant, condition), group in grouped(of.complete).items():
        votes = [
            (turn, turn.decision.winner, record.setup.cumulative_budget)
            for record in group
            for turn in record.turns
            if turn.decision is not None and turn.ballots_final
        ]
        for rule in PROTOCOLS if votes else ():
            if rule == condition:
                continue
            found = [
                (
                    winner,
                    possible_outcomes(turn.ballots_final, turn.candidates, rule, budget=points),
                )
                for turn, winner, points in votes
            ]
            yield {
                "benchmark": benchmark,
                "variant": variant,
                "logged": condition,
                "counted as": rule,
                "votes": len(votes),
                "same": sum(winners == (winner,) for winner, winners in found),
                "open": sum(winner in all_ and len(all_) > 1 for winner, all_ in found),
                "other": sum(winner not in winners for winner, winners in found),
            }


OF_VARIANTS: Final = (differences, protocols, differing, other_settings)
"""Tables of each variant; a summary and a recount have `protocols` alone."""


def protocols_section(
    variants: Sequence[Variant],
    declared: Sequence[DeclaredTable[Any]] = (protocols,),
    figures: tuple[Any, ...] = (),
) -> Section:
    """What every protocol would have decided on the debates of each variant."""
    made = [
        replace(one, name=f"{one.name}_{of.name}", title=f"Variant {of.name}: {one.title}")(of)
        for of in variants
        for one in declared
    ]
    return Section(
        "protocols",
        "Every protocol on the same debates",
        "What each protocol would have decided on the same messages, answers and ballots. Until "
        "it ends, a debate does not depend on its protocol: no prompt names it, and no agent sees "
        "a vote. So each is applied afterwards, without a call: a vote ends the debate at the "
        "first turn with a single winner, a consensus rule as soon as enough agents agree. "
        + (
            "These debates went on to their last turn and voted in every format after each, so "
            "every line is exact."
            if all(one.exact for one in variants)
            else "Not every line is exact: these debates stopped where their own protocol stopped "
            "them, or no vote was held over merged answers. Open: the ballots leave several "
            "answers. Beyond: not decided by the logged end, so that any score is possible. The "
            "range is an outer bound, never narrower than the truth."
        ),
        figures=figures,
        tables=tuple(one for one in made if one is not None),
    )


def best_protocol(of: Variant, under: str = "") -> Answer:
    """Which protocol answers best on the debates of a variant.

    `under`: the changed settings in words; empty for those of the log.
    """
    debates = len(of.told)
    rows = [row for row in of.rows if row.debates == debates and row.rule in STUDY_RULES]
    least = max(row.low or 0.0 for row in rows)
    best = [row for row in rows if row.high is not None and row.high >= least]
    worse = [row for row in rows if row not in best]
    exact = all(row.low == row.high for row in rows)
    if exact and not worse:
        headline, scores = f"None, all {least:.1f} percent", ""
    elif not exact and len(best) > 1:
        headline = "Not known: the recording leaves it open"
        scores = f"It may be {_named(best, 'or')}. "
    else:
        last = min(worse, key=lambda row: row.low or 0.0)
        fewest = [row for row in worse if (row.low, row.high) == (last.low, last.high)]
        scores = (
            f"Most are right under {_named(best)} ({_score(best[0])}), fewest under "
            f"{_named(fewest)} ({_score(last)}). "
        )
        led = leads(of.contrasts, [row.rule for row in best], [row.rule for row in worse])
        headline = f"{_named(best)}, {_score(best[0])}" if led else not_shown(of.contrasts)
    same = f"{counted(debates, 'debate')} of {counted(rows[0].tasks, 'task')}"
    return Answer(
        f"Which protocol answers best on the same debates{under and f', with {under}'}?",
        headline,
        f"{scores}All were applied to the same {same}, variant {of.name}, after the "
        f"recording. {protocol_chance(of)}",
        "protocols",
    )


def _named(rows: Sequence[ProtocolRow], last: str = "and") -> str:
    return listed([spoken(row.rule) for row in rows], last)


def _score(row: ProtocolRow) -> str:
    """The mean score, or where it lies whatever the recording leaves open."""
    low, high = row.low or 0.0, row.high or 0.0
    return f"{low:.1f} percent" if low == high else f"{low:.1f} to {high:.1f} percent"


# --- Recount ----------------------------------------------------------------------------------


def recount_document(run: SystemRun, settings: Mapping[str, Sequence[str]]) -> Document:
    """Whole debates under other protocols and settings.

    `settings`: from `--set KEY=VALUE,…`: `vote_from`, `majority`, `undecided`, `merge_identical`,
    `agreement_reading`, `scoring`. Each combination has an answer, and a section for each condition
    of the recording, debates that never stopped first. Raises `UsageError` if a key or value is
    unknown.
    """
    combinations = _combinations(settings)
    if is_council(run.episodes):
        if settings:
            raise UsageError(
                "--set does not apply to councils.",
                why="They hold one vote each, without a protocol's settings.",
                hint="Leave --set out.",
            )
        return council_recount(run)
    debates: dict[str, dict[str, list[tuple[tuple[Told, ...], ...]]]] = {}

    def read() -> Iterator[DebateRecord]:
        """Every record, of which only what each protocol makes of its debate is held."""
        for record in run.episodes:
            if record.status == "complete" and record.turns:
                debate = Debate(record)
                made = tuple(
                    told(debate, changes=changes, scoring=scoring)
                    for _, changes, scoring in combinations
                )
                debates.setdefault(record.condition, {}).setdefault(record.variant, []).append(made)
            yield record

    summary, facts = overview(read())
    answers: list[Answer] = []
    sections: list[Section] = []
    for place, (words, _, _) in enumerate(combinations):
        for condition in sorted(debates, key=lambda name: name != "full"):
            found = [
                Variant(name, [one[place] for one in part], seed=run.head.study.seed)
                for name, part in debates[condition].items()
            ]
            title = f"Recorded as {condition}{words and f', with {words}'}"
            name = f"{condition}{words and f':{words}'}".replace(" ", "")
            sections.append(replace(protocols_section(found), id=name, title=title))
            if len(answers) == place:  # of the first condition
                answers.append(replace(best_protocol(found[0], words), section=name))
    return framed(
        run,
        summary=summary,
        answers=tuple(answers[:_MOST_ANSWERS]),
        sections=tuple(sections),
        facts=facts,
    )


_MOST_ANSWERS: Final = 5
"""Combinations of settings that are answered in words; every one has its section."""


def outcomes_under(settings: Mapping[str, Sequence[str]]) -> Table:
    """The table of each debate's outcome under each protocol.

    Of a council, each vote's winners under each rule.

    `settings`: as `recount_document` takes them. Raises `UsageError` if a key or value is unknown.
    """
    combinations = _combinations(settings)

    def came(records: Sequence[DebateRecord], run: RunRecord) -> Iterator[Parts]:
        if is_council(records):
            yield from council_outcomes(records, run)
            return
        debates = (Debate(one) for one in records if one.status == "complete" and one.turns)
        for debate, (words, changes, scoring), rule in product(debates, combinations, RULES):
            record, found = debate.record, debate.recounted(rule, changes)
            applies = found.certainty != "not_applicable"
            ends = [end / 100 for end in score_bounds(debate, found, scoring)]
            yield record, words, rule, ends if applies else (None, None), found

    return counted_of(
        came,
        ("record", "setting", "rule", "ends", "outcome"),
        repeat=whole("record.repeat"),
        setting=text(lambda _, words, *__: words or None),  # what was changed; null as logged
        protocol=text("rule"),
        certainty=text(),  # exact, open, beyond the logged end, or not_applicable
        answers=several(text()),  # delivered; several if open
        author=text(),  # null where several are possible
        turn=whole(),  # in which it ends; null where that is not known; so the next
        decided=yes(),  # by the protocol, and not by the limit of turns
        ties=whole(),  # votes that tied on the way
        messages=whole(),  # said until the end
        score_least=real(lambda _, __, ___, ends, ____: ends[0]),  # in [0, 1]; null without a score
        score_most=real(lambda _, __, ___, ends, ____: ends[1]),
    )


_SETTABLE: Final[Mapping[str, Sequence[str]]] = {
    "vote_from": (),  # a turn from 1
    "majority": MAJORITIES,
    "undecided": ("first_agent", "leader", "none"),
    "merge_identical": ("true", "false"),
    "agreement_reading": ("tag", "lenient"),
    "scoring": SCORINGS,
}
"""What `--set` takes for a recount → its values."""


def _combinations(settings: Mapping[str, Sequence[str]]) -> list[tuple[str, Changes, Scoring]]:
    """Every combination of values, with its words."""
    found = []
    for values in product(*settings.values()):
        given = dict(zip(settings, values, strict=True))
        words = ", ".join(f"{key} = {value}" for key, value in given.items())
        read = {key: _read(key, value) for key, value in given.items()}
        scoring: Scoring = read.pop("scoring", "standard")
        found.append((words, Changes(**read), scoring))
    return found


def _read(key: str, value: str) -> Any:
    if key not in _SETTABLE:
        raise UsageError(
            f"A recount of debates has no setting {key!r}.",
            why=f"It can change {', '.join(_SETTABLE)}.",
            hint="For example: --set vote_from=1,2,3.",
        )
    if key == "vote_from" and value.isdigit() and int(value) > 0:
        return int(value)
    if value not in _SETTABLE[key]:
        raise UsageError(
            f"--set {key}={value}: {value!r} is no value of it.",
            hint=f"Give {', '.join(_SETTABLE[key]) or 'a turn from 1'}.",
        )
    return value == "true" if key == "merge_identical" else value
