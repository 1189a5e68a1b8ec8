"""Which wordings a study of the panel can use, told by its settings alone.

The study's digest covers these entries and no other, and a recording stores them.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.vocabularies import BallotFormat, Condition, TiePolicy
from tutorsim.vocabularies import Protocol as Rule

FIRST_FORM_PROMPTS: Final = (
    *("student_system", "student_science", "student_code", "student_reminder"),
    *("judge_system", "judge_science", "judge_code", "judge_reminder"),
    *("tutor_system", "baseline_system", "propose", "propose_baseline", "critique", "revise"),
    *("critique_tied", "propose_reminder", "critique_reminder"),
    *("vote_system", "vote", "vote_tied", "vote_reminder", "vote_criterion"),
    *("ballot_simple", "ballot_ranked", "ballot_cumulative", "ballot_approval", "ballot_rich"),
    *("task_science", "task_code", "situation_first", "situation_next", "conversation"),
)
"""Templates that the digest of a recording of the first form covers, used or not."""

FIRST_TEXTS: Final = {
    "student_said": "Student, message $number: $text",
    "tutor_said": "Tutor, reply $number: $text",
    "notes_on": "On $label:",
    "note_strength": "- Strength: $text",
    "note_weakness": "- Weakness: $text",
    "no_review": "- (no review)",
    "no_text": "(no text)",
}
"""What was said before recordings held these templates. A text here never changes."""

_EVERYWHERE: Final = (
    *("student_system", "student_reminder", "judge_system", "judge_reminder", "situation_first"),
)
_OF_BENCHMARK: Final = {
    "sciq": ("student_science", "judge_science", "task_science"),
    "humaneval": ("student_code", "judge_code", "task_code"),
}
_OF_TURNS: Final = (
    *("situation_next", "conversation", "propose_reminder", "student_said", "tutor_said"),
)
_OF_SINGLE_TUTOR: Final = ("baseline_system", "propose_baseline")
_OF_PANEL: Final = (
    *("tutor_system", "propose", "critique", "critique_reminder", "revise"),
    *("vote_system", "vote", "vote_reminder"),
    *("notes_on", "note_strength", "note_weakness", "no_review", "no_text"),
)
_OF_TIE_ROUND: Final = ("critique_tied", "vote_tied")


class BranchSettings(Protocol):
    """What a branch changes, as far as wordings depend on it; `None` leaves a thing as it was."""

    @property
    def rule(self) -> Rule | None: ...
    @property
    def tie_policy(self) -> TiePolicy | None: ...
    @property
    def roles(self) -> Sequence[str] | None: ...


class PanelSettings(Protocol):
    """The settings that decide what is used."""

    @property
    def conditions(self) -> Sequence[Condition]: ...
    @property
    def personas(self) -> Sequence[str]: ...
    @property
    def catalog_roles(self) -> Sequence[str]: ...
    @property
    def baseline_role(self) -> str: ...
    @property
    def max_turns(self) -> int: ...
    @property
    def tie_policy(self) -> TiePolicy: ...
    @property
    def vote_formats(self) -> Sequence[BallotFormat]: ...
    @property
    def vote_criterion(self) -> str: ...
    @property
    def ask_cut_off_again(self) -> bool: ...
    @property
    def branch(self) -> BranchSettings | None: ...


def panel_wordings(study: PanelSettings, benchmarks: Collection[str]) -> WordingNames:
    """The entries of the catalog that some call of the study can contain.

    Args:
        study: Its settings.
        benchmarks: Those of its tasks.
    """
    return {
        "roles": frozenset(_roles(study)),
        "personas": frozenset(study.personas),
        "prompts": frozenset(_prompts(study, benchmarks)),
    }


def first_form(study: PanelSettings) -> WordingNames:
    """The entries that a recording of the first form is told in; its digest covers all of them
    that do not hold their first text."""
    later = (study.branch and study.branch.roles) or ()
    return {
        "roles": {*study.catalog_roles, *later, study.baseline_role},
        "personas": study.personas,
        "prompts": {*FIRST_FORM_PROMPTS, *FIRST_TEXTS},
    }


def _taught_alone(study: PanelSettings) -> bool:
    return study.max_turns > 0 and "baseline" in study.conditions


def _taught_by_panel(study: PanelSettings) -> bool:
    return study.max_turns > 0 and set(study.conditions) != {"baseline"}


def _roles(study: PanelSettings) -> Iterator[str]:
    if _taught_alone(study):
        yield study.baseline_role
    if _taught_by_panel(study):
        yield from study.catalog_roles
        yield from (study.branch and study.branch.roles) or ()


def _prompts(study: PanelSettings, benchmarks: Collection[str]) -> Iterator[str]:
    yield from _EVERYWHERE
    if study.ask_cut_off_again:
        yield "cut_off_reminder"
    for benchmark in benchmarks:
        yield from _OF_BENCHMARK.get(benchmark, _OF_BENCHMARK["sciq"])  # only its form is renamed
    if not study.vote_criterion:
        yield "vote_criterion"  # the settings in the log quote it, even where nobody votes
    if study.max_turns > 0:
        yield from _OF_TURNS
    if _taught_alone(study):
        yield from _OF_SINGLE_TUTOR
    if _taught_by_panel(study):
        yield from _OF_PANEL
        yield from (f"ballot_{form}" for form in _formats(study))
        if "tie_round" in (study.tie_policy, study.branch and study.branch.tie_policy):
            yield from _OF_TIE_ROUND


def _formats(study: PanelSettings) -> set[str]:
    """Every format in which a ballot can be asked for."""
    rule = study.branch and study.branch.rule
    formats = {*study.conditions, *study.vote_formats, *([rule] if rule else ())}
    return {form for form in formats if form != "baseline"}
