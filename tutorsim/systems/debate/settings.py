"""`[debate]` of a study file: how agents discuss, in variants that override one another's settings.

Defaults are those of the debate study (Kaesberg et al. 2025); where its program differs, the
study's value is the default and the program's is a switch.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tutorsim.records.debate import (
    AgreementReading,
    DebateSetup,
    Drafting,
    Majority,
    Paradigm,
    Undecided,
)
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import consensus_rule
from tutorsim.vocabularies import CUMULATIVE_BUDGET, PROTOCOLS, Protocol

MAX_AGENTS: Final = 10

Condition = Literal[
    "baseline",
    "baseline_cot",
    "self_refine",
    "simple",
    "ranked",
    "cumulative",
    "approval",
    "majority",
    "supermajority",
    "unanimity",
    "hybrid",
    "full",
]
"""Who answers: one model alone in three ways, a debate under one protocol, or one that never stops
and records what every protocol needs."""
Generator = Literal["simple", "free", "critical", "reasoning"]
"""What a message asks for."""
Challenge = Literal["solution", "history", "facts", "wrong", "irrelevant"]
"""What the agents are asked to judge after the debate."""

CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
BASELINES: Final[tuple[Condition, ...]] = ("baseline", "baseline_cot", "self_refine")


def vote_protocol(condition: str) -> Protocol | None:
    """The voting protocol of a condition; `None` for the others."""
    return next((name for name in PROTOCOLS if name == condition), None)


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GivenPersona(_Settings):
    """A participant that the study file describes."""

    role: str = Field(min_length=1)
    description: str = Field(min_length=1)


class DebateSettings(_Settings):
    """How one variant debates."""

    agents: int = Field(default=3, ge=1, le=MAX_AGENTS, strict=True)
    max_turns: int = Field(default=5, ge=1, le=99, strict=True)
    vote_from: int = Field(default=3, ge=1, le=99, strict=True)
    """First turn at whose end a vote is held."""
    paradigm: Paradigm = "memory"
    """Who sees which message."""
    debate_rounds: int | None = Field(default=None, ge=1, le=9, strict=True)
    """Rounds of the others in a turn of paradigm `debate`, 2 if left out; `None` elsewhere."""
    visible_turns: Annotated[int, Field(ge=0, strict=True)] | Literal["all"] = 2
    """Earlier turns shown beside the current one."""
    generator: Generator = "simple"
    chain_of_thought: bool = True
    drafting: Drafting = "none"
    """Turns in which everybody writes a solution unseen by the others."""
    collective_shows: Literal["messages", "solutions"] = "messages"
    """What paradigm `collective` shows of the turn before."""
    personas: Literal["expert", "none"] | tuple[GivenPersona, ...] = "expert"
    """Generated for the task, none, or those given, one for each agent."""
    undecided: Undecided = "first_agent"
    """Whose answer is delivered if the vote of the last turn ties."""
    majority: Majority = "more_than_half"
    agreement_reading: AgreementReading = "tag"
    merge_identical: bool = False
    """Answers that are the same text are one candidate, the first author's."""
    confidence: bool = False
    """Ask for a confidence with every final answer."""
    blinding: Literal["per_reader", "shared", "listed"] = "per_reader"
    """Labels drawn for each voter, once for a vote, or the agents' order for everybody."""
    cumulative_budget: int = Field(default=CUMULATIVE_BUDGET, ge=1, le=1_000_000, strict=True)
    challenge: tuple[Challenge, ...] = ()

    @model_validator(mode="after")
    def _coherent(self) -> "DebateSettings":
        if self.debate_rounds is not None and self.paradigm != "debate":
            raise ValueError(
                f"debate_rounds = {self.debate_rounds} needs paradigm = 'debate', "
                f"and it is {self.paradigm!r}"
            )
        if isinstance(self.personas, tuple) and len(self.personas) != self.agents:
            raise ValueError(
                f"personas names {len(self.personas)}, and there are agents = {self.agents}"
            )
        roles = [given.role.casefold() for given in self.given_personas]
        twice = sorted({role for role in roles if roles.count(role) > 1})
        if twice:
            raise ValueError(f"personas names the role {twice[0]!r} twice")
        if len(set(self.challenge)) != len(self.challenge):
            raise ValueError(f"challenge = {list(self.challenge)} names a setting twice")
        return self

    @property
    def given_personas(self) -> tuple[GivenPersona, ...]:
        """The personas of the study file; empty if there are none."""
        return self.personas if isinstance(self.personas, tuple) else ()

    @property
    def rounds(self) -> int:
        """Rounds of the others in a turn of paradigm `debate`."""
        return 2 if self.debate_rounds is None else self.debate_rounds

    def setup(self) -> DebateSetup:
        """The settings that a record carries."""
        return DebateSetup(**self.model_dump(include=set(DebateSetup.model_fields)))


class DebateVariant(BaseModel):
    """One variant, with its settings in force and the conditions that it is run in."""

    model_config = ConfigDict(frozen=True)

    name: str
    settings: DebateSettings
    conditions: tuple[Condition, ...]


class DebateTable(DebateSettings):
    """The whole `[debate]` table: settings for all variants, and what each variant changes."""

    variants: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")], dict[str, Any]] = Field(
        default_factory=dict
    )
    """`[debate.variants.NAME]`: settings that differ, and `conditions` that narrow the grid."""

    def resolved(self, conditions: tuple[Condition, ...]) -> tuple[DebateVariant, ...]:
        """Every variant with its settings and conditions.

        Raises `ValueError` if a variant's settings are wrong, nothing is left of its conditions, or
        a consensus rule meets a paradigm that asks for no agreement.
        """
        changes = self.variants or {"default": {}}
        return tuple(
            _variant(name, {**self._inherited(changed), **changed}, conditions)
            for name, changed in changes.items()
        )

    def _inherited(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that a variant takes over; the rounds only if it stays with their paradigm."""
        shared = self._shared
        if changed.get("paradigm", self.paradigm) == "debate":
            return shared
        return {key: value for key, value in shared.items() if key != "debate_rounds"}

    @cached_property
    def _shared(self) -> dict[str, Any]:
        return self.model_dump(exclude={"variants"}, exclude_none=True)


def _variant(
    name: str, given: Mapping[str, Any], conditions: tuple[Condition, ...]
) -> DebateVariant:
    place = f"debate.variants.{name}"
    narrowed = given.get("conditions", conditions)
    if not isinstance(narrowed, list | tuple) or not set(narrowed) <= set(CONDITIONS):
        raise ValueError(f"{place}.conditions = {narrowed!r} is no list of conditions")
    kept = tuple(condition for condition in conditions if condition in narrowed)
    if not kept:
        raise ValueError(
            f"{place}.conditions = {list(narrowed)} leaves none of the study's {list(conditions)}"
        )
    rest = {key: value for key, value in given.items() if key != "conditions"}
    try:
        settings = DebateSettings.model_validate(rest)
    except ValueError as error:
        raise ValueError(f"{place}: {_first(error)}") from error
    if settings.vote_from > settings.max_turns and _votes(kept):
        raise ValueError(
            f"{place}: vote_from = {settings.vote_from} lies behind max_turns = "
            f"{settings.max_turns}, so no vote would be held"
        )
    refused = [condition for condition in kept if consensus_rule(condition)]
    if settings.paradigm == "collective" and refused:
        raise ValueError(
            f"{place}: condition {refused[0]!r} needs agreement, and paradigm = 'collective' asks "
            "nobody for any"
        )
    return DebateVariant(name=name, settings=settings, conditions=kept)


def _votes(conditions: Iterable[str]) -> bool:
    """Whether some debate holds a vote; a consensus holds none."""
    return any(vote_protocol(one) is not None or one == "full" for one in conditions)


def _debates(conditions: Iterable[str]) -> bool:
    """Whether agents debate; in a baseline one model answers alone."""
    return not set(conditions) <= set(BASELINES)


def _speaks_in_turns(settings: DebateSettings, conditions: Sequence[str]) -> bool:
    return _debates(conditions) and settings.paradigm != "collective"


_A_DEBATE: Final = "a condition other than a baseline"
_COLLECTIVE: Final = "a debate under a paradigm other than 'collective'"
_A_VOTE: Final = "a condition that votes"
_NEEDS: Final[Mapping[str, tuple[str, Callable[[DebateSettings, Sequence[str]], bool]]]] = {
    **dict.fromkeys(
        ("agents", "chain_of_thought"),
        (
            "a condition other than 'baseline' and 'baseline_cot'",
            lambda one, conditions: _debates(conditions) or "self_refine" in conditions,
        ),
    ),
    **dict.fromkeys(
        ("max_turns", "paradigm", "personas"),
        (_A_DEBATE, lambda one, conditions: _debates(conditions)),
    ),
    "vote_from": (
        _A_VOTE,
        lambda one, conditions: _votes(conditions) or "self_refine" in conditions,
    ),
    "visible_turns": (_COLLECTIVE, _speaks_in_turns),
    "generator": (
        f"{_COLLECTIVE}, or to be 'reasoning'",
        lambda one, conditions: (
            _debates(conditions) and (one.paradigm != "collective" or one.generator == "reasoning")
        ),
    ),
    "drafting": (
        f"{_COLLECTIVE}, whose first turn is one of drafts, or to be 'every'",
        lambda one, conditions: (
            _debates(conditions) and (one.paradigm != "collective" or one.drafting == "every")
        ),
    ),
    "collective_shows": (
        "paradigm = 'collective'",
        lambda one, conditions: one.paradigm == "collective" and _debates(conditions),
    ),
    "agreement_reading": (_COLLECTIVE, _speaks_in_turns),
    "undecided": (_A_VOTE, lambda one, conditions: _votes(conditions)),
    "merge_identical": (_A_VOTE, lambda one, conditions: _votes(conditions)),
    "confidence": (_A_VOTE, lambda one, conditions: _votes(conditions)),
    "blinding": (_A_VOTE, lambda one, conditions: _votes(conditions)),
    "majority": (
        "condition 'majority' or 'full'",
        lambda one, conditions: not {"majority", "full"}.isdisjoint(conditions),
    ),
    "cumulative_budget": (
        "condition 'cumulative' or 'full'",
        lambda one, conditions: not {"cumulative", "full"}.isdisjoint(conditions),
    ),
    "challenge": (
        "a condition in which a debate delivers an answer, and 'full' delivers none",
        lambda one, conditions: any(vote_protocol(c) or consensus_rule(c) for c in conditions),
    ),
}
"""Setting → what it needs to have an effect, in words and as a test of a variant."""


def idle_settings(variants: Sequence[DebateVariant]) -> Iterator[str]:
    """Settings that were given and have no effect in any variant, each with what it needs."""
    usual = DebateSettings()
    for name, (words, has_effect) in _NEEDS.items():
        given = [one for one in variants if getattr(one.settings, name) != getattr(usual, name)]
        if given and not any(has_effect(one.settings, one.conditions) for one in given):
            value = given[0].settings.model_dump(mode="json")[name]
            yield (
                f"{name} = {json.dumps(value)} has no effect in variant {given[0].name!r}: it "
                f"needs {words}."
            )


def _first(error: ValueError) -> str:
    """The first fault of a validation error, with its key."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    first = errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{key} = {first['input']!r}: {message}" if key else message


# --- Which templates a study can use, told by its settings alone ----------------------------------


FIRST_TEXTS: Final = {
    "other_message": "$name, turn $turn: $text",
    "own_message": "$name, turn $turn, your own: $text",
    "participant": "Participant $number",
    "participant_description": "You take part in the discussion.",
    "no_text": "(no text)",
}
"""What was said before recordings held these templates. A text here never changes."""


def parts_of(variant: DebateVariant) -> Iterator[str]:
    """The parts of a study with this variant under which `prompts.toml` has templates."""
    for condition in variant.conditions:
        yield from _parts_of(condition, variant.settings)


def _parts_of(condition: Condition, settings: DebateSettings) -> Iterator[str]:
    thinks = settings.chain_of_thought
    if condition in BASELINES:
        yield from ("alone", condition)
        if condition == "baseline_cot" or (condition == "self_refine" and thinks):
            yield "think"
        return
    yield from ("debate", settings.generator)
    if settings.personas == "expert":
        yield "expert"
    if thinks:
        yield "think"
    kind = "reasoning" if settings.generator == "reasoning" else "plain"
    yield f"{kind} drafts"
    collective = settings.paradigm == "collective"
    yield f"{kind} improvement" if collective else f"{settings.generator} messages"
    forms = PROTOCOLS if condition == "full" else (vote_protocol(condition),)
    if forms != (None,):
        yield from ("vote", *(f"{form} ballots" for form in forms))
        if settings.confidence:
            yield "confidence"
    if settings.challenge and condition != "full":
        yield from ("challenge", *(f"{one} challenge" for one in settings.challenge))
