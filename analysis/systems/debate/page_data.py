"""What a debate run's tables and charts are of, and the cells that they share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import shorten
from typing import Final

from tutorsim.analysis.pages.cells_and_tables import Written, number
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import without_columns
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed
from tutorsim.analysis.pages.words_and_safe_text import counted, listed
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.statistics.text_similarity import Embedding
from tutorsim.analysis.systems.contrasts_of_runs_or_conditions_of_any_system import Contrast
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    RULES,
    Debate,
    ProtocolRow,
    Rule,
    Told,
    accounts_of,
    contrasts,
    told,
)
from tutorsim.analysis.systems.debate.scores_by_condition_rounds_and_agents import (
    Key,
    Slope,
    agents_slopes,
    grouped,
    rounds_slopes,
)
from tutorsim.records.debate import DebateRecord, DebateSetup
from tutorsim.vocabularies import PROTOCOLS

STUDY_RULES: Final[tuple[Rule, ...]] = RULES[:7]
"""The seven protocols of the debate study."""
SOLO: Final = ("baseline", "baseline_cot", "self_refine")


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
    def agents(self) -> list[Slope]:
        """Scores by number of agents."""
        return agents_slopes(self.complete)

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


def as_printed(one: Printed) -> Written:
    """A figure as it is printed, with its deviation."""
    text = f"{one.value:g}" if one.sd is None else f"{one.value:.1f} ± {one.sd:.1f}"
    return Written(text.replace("-", "−"), one.value)


def first_printed(found: Sequence[Printed]) -> Written:
    """The first of some printed figures; a dash if there is none."""
    return as_printed(found[0]) if found else Written("–", None)


slim = without_columns(lambda name, cells: name == "variant" and len(set(cells)) == 1)
"""A table's rows, without their column `variant` if there is one variant only."""


class Overview:
    """What a run is of, noted record by record."""

    def __init__(self) -> None:
        self._episodes = 0
        self._tasks: set[tuple[str, str]] = set()
        self._conditions: dict[str, None] = {}
        self._setups: dict[str, DebateSetup] = {}

    def note(self, record: DebateRecord) -> None:
        """Take in the next record."""
        self._episodes += 1
        self._tasks.add((record.benchmark, record.task_id))
        self._conditions[record.condition] = None
        self._setups[record.variant] = record.setup

    def summary(self) -> str:
        """How many episodes of what, in one sentence."""
        variants, conditions = list(self._setups), list(self._conditions)
        several = f"Variants: {listed(variants)}. " if len(variants) > 1 else ""
        return (
            f"{counted(self._episodes, 'episode')} of {counted(len(self._tasks), 'task')}. "
            f"{several}Conditions: {listed(conditions)}."
        )

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Each variant's settings."""
        return tuple(
            (f"Variant {name}", _setup_words(setup)) for name, setup in self._setups.items()
        )


def _setup_words(setup: DebateSetup) -> str:
    known = f"{counted(setup.agents, 'agent')}, paradigm {setup.paradigm}"
    if setup.max_turns is None:
        return f"{known}; the logs say no other setting"
    return (
        f"{known}, at most {counted(setup.max_turns, 'turn')}, votes from turn {setup.vote_from}, "
        f"drafting {setup.drafting}, undecided {setup.undecided}"
    )
