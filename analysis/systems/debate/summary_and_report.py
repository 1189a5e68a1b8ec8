"""The summary and the report of a run of debates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tutorsim.analysis.charts.number_words import counted, listed
from tutorsim.analysis.metrics.text_embeddings import Embedding
from tutorsim.analysis.report.document import Answer, Document, Section
from tutorsim.analysis.systems.debate.debate_trace import chosen, dialogue
from tutorsim.analysis.systems.debate.recounted import (
    Changes,
    ProtocolRow,
    Told,
    accounts_of,
    contrasts,
    told,
)
from tutorsim.analysis.systems.debate.sections import (
    agents_section,
    answerable_section,
    challenge_section,
    cost_section,
    deciding_section,
    performance_section,
    protocols_section,
    rounds_section,
    rows_section,
    similarity_section,
    turns_section,
)
from tutorsim.analysis.systems.debate.sections.shared_cells import STUDY_RULES
from tutorsim.analysis.systems.debate.sections.what_other_protocols_decide import protocol_chance
from tutorsim.analysis.systems.noise_floor import noise_section
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.errors import UsageError
from tutorsim.records.debate import DebateRecord, DebateSetup
from tutorsim.vocabularies import SCORINGS, Scoring
from tutorsim.voting import MAJORITIES

__all__ = ["document", "recount_document"]

_SETTINGS: Final = ("vote_from", "majority", "undecided", "merge_identical", "agreement_reading")


def document(run: SystemRun, brief: bool) -> Document:
    """The summary (brief) or the report (whole) of a run."""
    records: Sequence[DebateRecord] = run.episodes
    seed = run.head.study.seed
    of = _Overview()
    for record in records:
        of.note(record)
    complete = [record for record in records if record.status == "complete"]
    sections: list[Section | None] = [
        performance_section(records, beside_printed=not brief),
        turns_section(records, beside_printed=not brief),
    ]
    asked = _asked_of(complete)
    protocols = protocols_section(asked, seed=seed, whole=not brief) if asked else None
    called = any(record.calls for record in records)
    cost = cost_section(records, beside_printed=not brief) if called else None
    if brief:
        sections += [cost, protocols]
    else:
        sections += _whole(complete, embedding=run.embedding)
        sections += [cost, protocols, deciding_section(complete)]
    sections.append(noise_section(run, lambda vote: vote.form))
    return framed(
        run,
        summary=of.summary(),
        answers=_answers(complete, asked, seed=seed),
        sections=tuple(section for section in sections if section is not None),
        dialogues=() if brief else tuple(dialogue(one, why) for one, why in chosen(complete)),
        facts=of.facts(),
    )


def _whole(
    complete: Sequence[DebateRecord], *, embedding: Embedding | None
) -> list[Section | None]:
    full = [record for record in complete if record.ended_by == "full"]
    return [
        rounds_section(full) if full else None,
        agents_section(complete),
        similarity_section(complete, beside_printed=True, embedding=embedding),
        answerable_section(complete),
        challenge_section(complete, beside_printed=True),
    ]


def _asked_of(complete: Sequence[DebateRecord]) -> list[DebateRecord]:
    """Debates that never stopped if there are any, otherwise every debate."""
    debates = [record for record in complete if record.turns]
    full = [record for record in debates if record.ended_by == "full"]
    return full or debates


class _Overview:
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
        return (
            f"{counted(self._episodes, 'episode')} of {counted(len(self._tasks), 'task')}: "
            f"{counted(len(variants), 'variant')} ({listed(variants)}) under "
            f"{counted(len(conditions), 'condition')} ({listed(conditions)})."
        )

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Each variant's settings."""
        return tuple(
            (f"Variant {name}", _setup_words(setup)) for name, setup in self._setups.items()
        )


def _answers(
    complete: Sequence[DebateRecord], asked: Sequence[DebateRecord], *, seed: int
) -> tuple[Answer, ...]:
    """What a reader wants to know first."""
    if not asked:
        return ()
    variant = asked[0].variant
    part = [record for record in asked if record.variant == variant]
    made = [told(record) for record in part]
    rows = [row for row in accounts_of(made) if row.debates == len(part)]
    least = max(row.low or 0.0 for row in rows)
    best = [row for row in rows if row.high is not None and row.high >= least]
    worse = [row for row in rows if row not in best]
    exact = all(row.low == row.high for row in rows)
    of = f"{counted(len(part), 'debate')} of {counted(rows[0].tasks, 'task')}"
    if exact and not worse:
        headline = f"None, all {least:.1f} percent"
    elif exact or len(best) == 1:
        headline = f"{_named(best)}, {_score(best[0])}"
    else:
        headline = f"Not known: {_scores(best)}"
    others = f"The others: {_scores(worse)}. " if worse else ""
    bound = "" if exact else "A range holds every score that the recording leaves open. "
    return (
        Answer(
            "Which protocol answers best on the same debates?",
            headline,
            f"{others}{bound}All were applied to the same {of}, variant {variant}, after the "
            f"recording. {protocol_chance(contrasts(made, STUDY_RULES, seed=seed))}",
            "protocols",
        ),
    )


def _named(rows: Sequence[ProtocolRow]) -> str:
    return listed([row.rule.replace("_", " ") for row in rows])


def _scores(rows: Sequence[ProtocolRow]) -> str:
    """Scores of protocols, those with the same ones together."""
    by_score: dict[str, list[ProtocolRow]] = {}
    for row in rows:
        by_score.setdefault(_score(row), []).append(row)
    return "; ".join(f"{_named(same)} ({score})" for score, same in by_score.items())


def _score(row: ProtocolRow) -> str:
    """The mean score, or where it lies whatever the recording leaves open."""
    low, high = row.low or 0.0, row.high or 0.0
    return f"{low:.1f} percent" if low == high else f"{low:.1f} to {high:.1f} percent"


def _setup_words(setup: DebateSetup) -> str:
    known = f"{counted(setup.agents, 'agent')}, paradigm {setup.paradigm}"
    if setup.max_turns is None:
        return f"{known}; the logs say no other setting"
    return (
        f"{known}, at most {counted(setup.max_turns, 'turn')}, votes from turn {setup.vote_from}, "
        f"drafting {setup.drafting}, undecided {setup.undecided}"
    )


def recount_document(run: SystemRun, settings: Mapping[str, Sequence[str]]) -> Document:
    """Whole debates under other protocols and settings.

    Args:
        run: The run.
        settings: From `--set KEY=VALUE,…`: `vote_from`, `majority`, `undecided`,
            `merge_identical`, `agreement_reading`, `scoring`. Each combination is a section.

    Raises:
        UsageError: If a key or value is unknown.
    """
    combinations = _combinations(settings)
    of = _Overview()
    debates: dict[str, dict[str, list[tuple[tuple[Told, ...], ...]]]] = {}
    for record in run.episodes:  # one at a time: of a debate only what each protocol makes of it
        of.note(record)
        if record.status == "complete" and record.turns:
            made = tuple(
                told(record, changes=changes, scoring=scoring)
                for _, changes, scoring in combinations
            )
            debates.setdefault(record.condition, {}).setdefault(record.variant, []).append(made)
    sections: list[Section] = []
    for place, (words, _, _) in enumerate(combinations):
        for condition, variants in debates.items():
            rows = {
                variant: accounts_of([made[place] for made in part])
                for variant, part in variants.items()
            }
            title = f"Recorded as {condition}{f', with {words}' if words else ''}"
            sections.append(_retitled(rows_section(rows), f"{condition}-{len(sections)}", title))
    return framed(run, summary=of.summary(), answers=(), sections=tuple(sections), facts=of.facts())


def _retitled(section: Section, name: str, title: str) -> Section:
    return Section(name, title, section.lead, section.figures, section.tables)


def _combinations(
    settings: Mapping[str, Sequence[str]],
) -> list[tuple[str, Changes, Scoring]]:
    """Every combination of values, with its words."""
    found: list[tuple[str, Changes, Scoring]] = [("", Changes(), "standard")]
    for key, values in settings.items():
        found = [
            (
                ", ".join(filter(None, (words, f"{key} = {value}"))),
                changes if key == "scoring" else _changed(changes, key, value),
                _scoring(value) if key == "scoring" else scoring,
            )
            for words, changes, scoring in found
            for value in values
        ]
    return found


def _scoring(value: str) -> Scoring:
    found = next((name for name in SCORINGS if name == value), None)
    if found is None:
        raise _refused("scoring", value, SCORINGS)
    return found


def _changed(changes: Changes, key: str, value: str) -> Changes:
    allowed: dict[str, Iterable[str]] = {
        "majority": MAJORITIES,
        "undecided": ("first_agent", "leader", "none"),
        "merge_identical": ("true", "false"),
        "agreement_reading": ("tag", "lenient"),
    }
    if key == "vote_from":
        if not value.isdigit() or int(value) < 1:
            raise _refused(key, value, ("a turn from 1",))
        return Changes(**{**vars(changes), key: int(value)})
    if key not in allowed:
        raise UsageError(
            f"A recount of debates has no setting {key!r}.",
            why=f"It can change {', '.join((*_SETTINGS, 'scoring'))}.",
            hint="For example: --set vote_from=1,2,3.",
        )
    if value not in allowed[key]:
        raise _refused(key, value, allowed[key])
    given: object = value == "true" if key == "merge_identical" else value
    return Changes(**{**vars(changes), key: given})


def _refused(key: str, value: str, allowed: Iterable[str]) -> UsageError:
    return UsageError(
        f"--set {key}={value}: {value!r} is no value of it.", hint=f"Give {', '.join(allowed)}."
    )
