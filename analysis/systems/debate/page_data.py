"""What a debate run's tables and charts are of, and the cells that they share.

How well and how fast debates answer stands here too: by condition, by the turn of votes, by number
of agents.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import mean
from textwrap import shorten
from typing import Final

from tutorsim.analysis.pages.cells_and_tables import Written, number
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import without_columns
from tutorsim.analysis.pages.document import Fact
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed
from tutorsim.analysis.pages.words_and_safe_text import counted, listed
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, mean_over_tasks
from tutorsim.analysis.statistics.text_similarity import Embedding
from tutorsim.analysis.systems.contrasts_of_runs_or_conditions_of_any_system import Contrast
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    RULES,
    Changes,
    Debate,
    ProtocolRow,
    Rule,
    Told,
    accounts_of,
    contrasts,
    score_bounds,
    told,
)
from tutorsim.records.debate import DebateRecord, DebateSetup
from tutorsim.vocabularies import PROTOCOLS

STUDY_RULES: Final[tuple[Rule, ...]] = RULES[:7]
"""The seven protocols of the debate study."""


# --- Scores -----------------------------------------------------------------------------------

Key = tuple[str, str, str]
"""Benchmark, variant and condition."""


def grouped(records: Iterable[DebateRecord]) -> dict[Key, list[DebateRecord]]:
    """Records by benchmark, variant and condition, in the order of the grid."""
    return by_key(((one.benchmark, one.variant, one.condition), one) for one in records)


@dataclass(frozen=True)
class Slope:
    """How a mean score changes with a number, on the same tasks."""

    name: str
    points: Mapping[int, float]
    """The number → mean score in percent."""
    slope: Estimate | NotEstimable
    """Least squares, in points per unit, with an interval over tasks."""
    tasks: int


def slope(name: str, scores: Iterable[tuple[str, int, float]]) -> Slope | None:
    """The line through the means of tasks that have a score at every number.

    The slope of the means is the mean of the tasks' slopes, as all share the same numbers.

    `scores`: task, number and score in percent; those of one task and number count by their mean.
    Returns `None` if there are fewer than two numbers.
    """
    means: dict[str, dict[int, float]] = {}
    for (task, n), held in by_key(((task, n), score) for task, n, score in scores).items():
        means.setdefault(task, {})[n] = mean(held) if len(held) > 1 else held[0]
    numbers = sorted({n for values in means.values() for n in values})
    whole = {task: values for task, values in means.items() if sorted(values) == numbers}
    if len(numbers) < 2 or not whole:
        return None
    middle = mean(numbers)
    spread = sum((n - middle) ** 2 for n in numbers)
    slopes = {
        task: sum((n - middle) * values[n] for n in numbers) / spread
        for task, values in whole.items()
    }
    return Slope(
        name,
        {n: mean(values[n] for values in whole.values()) for n in numbers},
        mean_over_tasks(list(slopes.values()), list(slopes)),
        len(whole),
    )


def rounds_slopes(debates: Sequence[Debate], rules: Sequence[Rule]) -> list[Slope]:
    """Scores of voting by the first turn of a vote, each rule on the same debates of a variant."""
    variants = by_key((debate.record.variant, debate) for debate in debates)
    found = []
    for variant, group in variants.items():
        last = min(debate.record.turns_taken for debate in group)
        begun = [Changes(vote_from=turn) for turn in range(1, last + 1)]
        for rule in rules:
            scores = [
                (_task(debate.record), turn, score_bounds(debate, outcome)[0])
                for debate in group
                for turn, changes in enumerate(begun, start=1)
                if (outcome := debate.recounted(rule, changes)).certainty == "exact"
            ]
            found.append(slope(f"{rule} ({variant})" if len(variants) > 1 else rule, scores))
    return [one for one in found if one is not None]


def agents_slopes(records: Sequence[DebateRecord]) -> list[Slope]:
    """Scores by number of agents, per condition, over variants that differ in nothing else."""
    debated = [r for r in records if r.status == "complete" and r.turns and r.score is not None]
    told = _differing_settings(debated)
    groups = by_key(
        (
            (one.condition, *(f"{name} = {getattr(one.setup, name)}" for name in told)),
            (_task(one), one.setup.agents, 100 * (one.score or 0)),
        )
        for one in debated
    )
    found = [
        slope(f"{name} ({', '.join(settings)})" if settings else name, scores)
        for (name, *settings), scores in groups.items()
    ]
    return [one for one in found if one is not None]


def _differing_settings(records: Sequence[DebateRecord]) -> list[str]:
    """Settings other than the number of agents in which some debates differ."""
    setups = [record.setup.model_dump(exclude={"agents"}) for record in records]
    return [name for name in (setups[0] if setups else ()) if len({s[name] for s in setups}) > 1]


def _task(record: DebateRecord) -> str:
    return f"{record.benchmark}.{record.task_id}"


# --- Evidence ---------------------------------------------------------------------------------


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
        return contrasts(self.told, STUDY_RULES, seed=self.seed)

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
