"""Who would have spoken under other settings, from the logged scores of every cycle.

The noise floor of speaking stands beside it: how often the same thoughts, evaluated again, bring
another speaker. Everything but the evaluation is held fixed: the thoughts, the last message and the
silences. The speaker of each asking is that of the run's own rule, from the scores of that asking
alone. Only cycles count in which some agent wanted to speak, since only those were evaluated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice, product
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from tutorsim.analysis.pages.cells_and_tables import estimate, present
from tutorsim.analysis.pages.declared_tables_and_charts import Row, table
from tutorsim.analysis.pages.document import Answer, Section
from tutorsim.analysis.runs.run_tables import Parts, Table, counted_of, text, whole
from tutorsim.analysis.statistics.array_types import Bools, Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_over_tasks,
)
from tutorsim.analysis.systems.group.columns import BIDS, SCORES
from tutorsim.analysis.systems.summary_and_report import asked_again_words
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.errors import UsageError
from tutorsim.records import RetestReply, RunRecord
from tutorsim.records.group import GroupRecord, LessonRecord
from tutorsim.systems.group.speaker_selection_and_its_reasons import (
    CRITERIA,
    EXTERNAL,
    INTERNAL,
    SELECTIONS,
    SILENCES,
    Rule,
    adjusted_score,
    total_score,
)

NOBODY: Final = -1
"""Place of the speaker where nobody speaks."""
_NEAR_HALF: Final = 1e-6
"""Distance from a half within which the definition rounds; far above what a float can err."""
_FACTOR: Final = {"raise": 1.01, "decay": 1 / 1.01, "off": 1.0}


@dataclass(frozen=True)
class Cycles:
    """Cycles of self-selection; C cycles, A places for the agents that thought."""

    episode: Sequence[str]
    """C: the episode of each cycle."""
    event: Ints
    """C: the event that started it."""
    agents: npt.NDArray[np.object_]
    """C × A: names in catalog order; empty places have an empty name."""
    scores: Ints
    """C × A × 8: tenths by `INTERNAL`, `EXTERNAL`, then the two sums; 0 where not given."""
    bids: Bools
    """C × A: wants to speak and was scored."""
    corrects: Bools
    silent: Ints
    """C × A: messages since the agent last spoke."""
    addressed: Bools
    """C × A: named in the last message."""
    last: Bools
    """C × A: wrote the last message."""
    floor: Bools
    """C: the last message's author keeps the floor."""
    allocated: Bools
    """C: the last message names somebody."""
    chosen: Ints
    """C: place of the logged speaker, `NOBODY` where nobody spoke."""
    _means: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def starts(self) -> Sequence[int]:
        """The first cycle of each episode; its cycles stand together."""
        names = self.episode
        return [row for row in range(len(names)) if row == 0 or names[row] != names[row - 1]]

    def mean(self, counted: tuple[int, ...], whole: int) -> Floats:
        """C × A: mean of the counted criteria, or the sum given in their place, from 1 to 5."""
        found = self._means.get(counted)
        if found is None:
            parts = self.scores[:, :, counted].sum(axis=2) / (10 * len(counted))
            sums = self.scores[:, :, whole]
            found = self._means[counted] = np.where(sums > 0, sums / 10, parts)
        return found


def cycles_of(thoughts: pl.DataFrame) -> Cycles:
    """The cycles of a table of thoughts, in its order; prediction has none."""
    keys = thoughts.select("episode_id", "event").unique(maintain_order=True)
    here = _Places(thoughts, keys)
    spoke = here.flags(thoughts["chosen"])
    scored = thoughts.select(pl.any_horizontal(pl.col(INTERNAL[0], "internal").is_not_null()))
    names = np.full(here.shape, "", dtype=object)
    names[here.at] = thoughts["agent"].to_list()
    columns = (*INTERNAL, *EXTERNAL, "internal", "external")
    return Cycles(
        episode=keys["episode_id"].to_list(),
        event=keys["event"].to_numpy(),
        agents=names,
        scores=np.stack([here.tenths(thoughts[name]) for name in columns], axis=2),
        bids=here.flags((thoughts["action"] == "speak") & scored.to_series()),
        corrects=here.flags(thoughts["corrects"]),
        silent=here.whole(thoughts["silent"]),
        addressed=here.flags(thoughts["addressed"]),
        last=here.flags((thoughts["agent"] == thoughts["speaker"]).fill_null(value=False)),
        floor=_anywhere(here.flags(thoughts["floor"])),
        allocated=_anywhere(here.flags(thoughts["any_addressed"])),
        chosen=np.where(_anywhere(spoke), _first(spoke), NOBODY),
    )


class _Places:
    """Where each row of a table of thoughts goes: its cycle, and its place within it."""

    def __init__(self, thoughts: pl.DataFrame, keys: pl.DataFrame) -> None:
        numbered = thoughts.select("episode_id", "event").join(
            keys.with_row_index("cycle"), on=["episode_id", "event"], maintain_order="left"
        )
        place = thoughts.select(pl.int_range(pl.len()).over("episode_id", "event")).to_series()
        self.at = (numbered["cycle"].to_numpy().astype(np.int64), place.to_numpy())
        self.shape = (keys.height, 1 + int(self.at[1].max(initial=0)))

    def flags(self, values: pl.Series) -> Bools:
        made = np.zeros(self.shape, dtype=np.bool_)
        made[self.at] = values.to_numpy()
        return made

    def whole(self, values: pl.Series) -> Ints:
        made = np.zeros(self.shape, dtype=np.int64)
        made[self.at] = values.to_numpy()
        return made

    def tenths(self, values: pl.Series) -> Ints:
        return self.whole((10 * values.fill_null(0)).round().cast(pl.Int64))


def _anywhere(flags: Bools) -> Bools:
    """C: whether any place of a cycle has the flag."""
    return np.asarray(flags.any(axis=1), dtype=np.bool_)


def _first(flags: Bools) -> Ints:
    """C: the first place with the flag; 0 where none has it."""
    found: Ints = flags.argmax(axis=1)
    return found


def speakers(cycles: Cycles, rule: Rule) -> Ints:
    """C: the place of each cycle's speaker under a rule, what was said before held fixed."""
    adjusted = _adjusted(cycles, rule)
    if rule.selection == "inner_thoughts":
        candidates = _framework(cycles, adjusted, rule)
        best = _first(np.where(candidates, adjusted, 0) == _top(candidates, adjusted))
    else:
        candidates = _study(cycles, adjusted, rule)
        best = _first_best(cycles, candidates, adjusted)
    return np.where(_anywhere(candidates), best, NOBODY)


def _top(among: Bools, adjusted: Ints) -> Ints:
    """C × 1: the largest adjusted score among candidates."""
    top: Ints = np.where(among, adjusted, 0).max(axis=1, keepdims=True)
    return top


def _study(cycles: Cycles, adjusted: Ints, rule: Rule) -> Bools:
    """C × A: who is left for rule 4, the threshold applied where nobody is favoured."""
    floor, bids = cycles.floor[:, None], cycles.bids
    by_address = cycles.allocated[:, None] & ~floor
    holds = bids & cycles.last & floor
    named = bids & cycles.addressed & ~cycles.last & by_address
    first = np.zeros_like(named)
    rows = np.flatnonzero(_anywhere(named))
    first[rows, _first_best(cycles, named, adjusted)[rows]] = True
    favoured = holds | (first & named)
    others = bids & ~favoured & ~cycles.last
    interrupts = cycles.corrects & (adjusted >= _hundredths(rule.interrupt_threshold))
    others &= interrupts | ~(floor | by_address)
    return favoured | (others & _above(adjusted, rule.threshold))


def _framework(cycles: Cycles, adjusted: Ints, rule: Rule) -> Bools:
    allocated = cycles.allocated[:, None]
    to_other = adjusted >= 400
    is_open = adjusted >= _hundredths(rule.threshold)
    offers = np.where(allocated, cycles.addressed | to_other, is_open)
    kept: Bools = cycles.bids & ~cycles.last & offers
    return kept


def _first_best(cycles: Cycles, among: Bools, adjusted: Ints) -> Ints:
    """C: largest adjusted score, then longest silent, then catalog order."""
    longest = int(cycles.silent.max(initial=0)) + 1
    value = np.where(among, adjusted * longest + cycles.silent, -1)
    best: Ints = value.argmax(axis=1)
    return best


def _hundredths(threshold: Fraction) -> int:
    """The least whole number of hundredths at or above a threshold."""
    return -((-100 * threshold.numerator) // threshold.denominator)


def _above(adjusted: Ints, threshold: Fraction) -> Bools:
    limit = 100 * threshold.numerator
    return np.asarray(np.greater(adjusted * threshold.denominator, limit), dtype=np.bool_)


def _adjusted(cycles: Cycles, rule: Rule) -> Ints:
    """C × A: hundredths after silence; 0 for agents that made no bid."""
    total = _totals(cycles, rule)
    scale = 10 if rule.selection == "inner_thoughts" else 100
    powers = _FACTOR[rule.silence] ** np.arange(cycles.silent.max(initial=0) + 1)
    value = scale * np.clip(total * powers[cycles.silent], 1, 5)
    rounded = np.rint(value).astype(np.int64)
    doubtful = cycles.bids & (np.abs(value - np.floor(value) - 0.5) < _NEAR_HALF)
    rounded = rounded * (100 // scale)
    for row, column in zip(*np.nonzero(doubtful), strict=True):
        rounded[row, column] = _exactly(cycles, row, column, rule)
    return np.where(cycles.bids, rounded, 0)


def _totals(cycles: Cycles, rule: Rule) -> Floats:
    weight = float(rule.weight)
    inner = _means(cycles, rule, INTERNAL, first=0, whole=6)
    outer = _means(cycles, rule, EXTERNAL, first=3, whole=7)
    if inner is None or outer is None:
        made = outer if inner is None else inner
        if made is None:
            raise ValueError(f"none of the criteria {list(rule.criteria)} counts")
        return made
    return (1 - weight) * inner + weight * outer


def _means(
    cycles: Cycles, rule: Rule, names: Sequence[str], *, first: int, whole: int
) -> Floats | None:
    """C × A: mean of the criteria of a group that count; `None` where none does."""
    counted = tuple(first + i for i, name in enumerate(names) if name in rule.criteria)
    return cycles.mean(counted, whole) if counted else None


def _exactly(cycles: Cycles, row: int, column: int, rule: Rule) -> int:
    names = (*INTERNAL, *EXTERNAL, "internal", "external")
    tenths = cycles.scores[row, column]
    scores = {name: int(x) for name, x in zip(names, tenths, strict=True) if x}
    return adjusted_score(total_score(scores, rule), int(cycles.silent[row, column]), rule)


# --- Other settings ------------------------------------------------------------------------------

Difference = Literal["another", "nobody", "somebody"]
"""Another agent speaks, nobody does any more, or somebody does at last."""
CHANGES = ("threshold", "lambda", "interrupt_threshold", "silence", "selection", "criteria")
"""Keys of `--set`."""


@dataclass(frozen=True)
class Change:
    """One changed setting."""

    key: str
    value: str


_DIVERGENCES: Final[dict[str, pl.DataType]] = {
    "episode_id": pl.String(),
    "cycles": pl.Int64(),
    "event": pl.Int64(),
    "difference": pl.String(),
    "logged": pl.String(),
    "changed": pl.String(),
    "coverage": pl.Float64(),
}


class Recounted(NamedTuple):
    """All cycles under one rule."""

    speakers: Ints
    """C: the place of each cycle's speaker."""
    divergences: pl.DataFrame
    """As `divergences` gives them."""


def recounted(cycles: Cycles, rules: Mapping[str, Rule]) -> dict[str, Recounted]:
    """Name of a rule → all cycles under it."""
    places = {label: speakers(cycles, rule) for label, rule in rules.items()}
    return {label: Recounted(found, divergences(cycles, found)) for label, found in places.items()}


def changed_rule(rule: Rule, changes: Sequence[Change]) -> Rule:
    """The rule with settings changed.

    Raises `UsageError` on an unknown key, a value outside its range, or one that does nothing.
    """
    for change in changes:
        rule = rule._replace(**_parsed(change))
    for change in changes:
        if rule.selection == "inner_thoughts" and change.key == "interrupt_threshold":
            raise UsageError(
                f"{change.key}={change.value} does nothing under selection=inner_thoughts.",
                why="That rule knows no interruption, so every value would give the same.",
                hint="Leave it out, or add --set selection=prism.",
            )
    return rule


def _parsed(change: Change) -> Mapping[str, Any]:
    key, value = change.key, change.value
    if key in ("threshold", "interrupt_threshold"):
        return {key: _number(change, least=1, most=5)}
    if key == "lambda":
        return {"weight": _number(change, least=0, most=1)}
    if key == "criteria":
        names = tuple(name.strip() for name in value.split("+"))
        if set(names) <= set(CRITERIA):
            return {"criteria": names}
        raise _refused(change, "criteria are " + "+".join(CRITERIA))
    known = {"silence": SILENCES, "selection": SELECTIONS}.get(key)
    if known is None:
        raise UsageError(
            f"There is no setting {key!r} to recount.",
            why="Only what turns logged scores into a speaker can be recounted.",
            hint="Known are " + ", ".join(CHANGES) + ".",
        )
    if value not in known:
        raise _refused(change, f"{key} is one of " + ", ".join(known))
    return {key: value}


def _number(change: Change, *, least: int, most: int) -> Fraction:
    try:
        number = Fraction(change.value)
    except (ValueError, ZeroDivisionError):
        raise _refused(change, "it is a number") from None
    if not least <= number <= most:
        raise _refused(change, f"it lies between {least} and {most}")
    return number


def _refused(change: Change, why: str) -> UsageError:
    return UsageError(
        f"{change.key}={change.value} cannot be recounted.",
        why=f"The value does not fit: {why}.",
        hint="For example --set threshold=3 or --set criteria=relevance+coherence.",
    )


def divergences(cycles: Cycles, changed: Ints) -> pl.DataFrame:
    """Per lesson, the first event at which another would have spoken.

    `changed`: C: the place of each cycle's speaker under a changed rule, as `speakers` gives it.
    Returns `episode_id`, `cycles`; `event`, `difference`, and who spoke there as `logged` and
    `changed`, all null where the speakers never differ; who spoke is null for nobody too.
    `coverage` is the share of the lesson's cycles before that event.
    """
    count = len(cycles.episode)
    starts = np.asarray(cycles.starts, dtype=np.int64)
    lengths = np.diff(np.append(starts, count))
    differing = np.flatnonzero(changed != cycles.chosen)
    firsts = np.append(differing, count)[np.searchsorted(differing, starts)]
    before = np.minimum(firsts - starts, lengths)
    rows = np.where(before < lengths, firsts, NOBODY)
    logged, now = (_agents(cycles, rows, places) for places in (cycles.chosen, changed))
    return pl.DataFrame(
        {
            "episode_id": [cycles.episode[start] for start in cycles.starts],
            "cycles": lengths,
            "event": pl.Series(np.append(cycles.event, 0)[rows]).set(pl.Series(rows < 0), None),
            "difference": list(map(_difference, rows.tolist(), logged, now)),
            "logged": logged,
            "changed": now,
            "coverage": before / lengths,
        },
        schema=_DIVERGENCES,
    )


def _agents(cycles: Cycles, rows: Ints, places: Ints) -> list[str | None]:
    """Who has the place of each row; `None` for nobody, and where there is no row."""
    found = np.append(places, NOBODY)[rows]
    names = cycles.agents[rows, found] if len(rows) else rows
    return [
        name if row >= 0 and place != NOBODY else None
        for name, row, place in zip(names.tolist(), rows.tolist(), found.tolist(), strict=True)
    ]


def _difference(row: int, logged: str | None, changed: str | None) -> Difference | None:
    if row < 0:
        return None
    return "somebody" if logged is None else "nobody" if changed is None else "another"


def curve(cycles: Cycles, found: Mapping[str, Recounted]) -> pl.DataFrame:
    """Per named rule: cycles, share with a speaker, share of each agent, first divergence.

    Returns `setting`, `agent` (empty for anybody), `share` of cycles that this agent speaks in,
    `diverged` share of lessons that ever differ, `coverage` mean share before.
    """
    rows = []
    everybody = sorted({str(name) for name in cycles.agents.ravel() if name})
    number = {name: i for i, name in enumerate(everybody)}
    numbers = np.vectorize(lambda name: number.get(name, NOBODY), otypes=[np.int64])
    who = numbers(cycles.agents)
    for label, (places, lessons) in found.items():
        spoke = np.flatnonzero(places != NOBODY)
        said = np.bincount(who[spoke, places[spoke]], minlength=len(everybody)).tolist()
        shared = {
            "setting": label,
            "cycles": len(places),
            "diverged": lessons["event"].is_not_null().mean(),
            "coverage": lessons["coverage"].mean(),
        }
        rows.append(shared | {"agent": "", "share": _share(len(spoke), places)})
        rows += [
            shared | {"agent": name, "share": _share(count, places)}
            for name, count in zip(everybody, said, strict=True)
        ]
    schema: dict[str, pl.DataType] = {
        "setting": pl.String(),
        "agent": pl.String(),
        "share": pl.Float64(),
        "cycles": pl.Int64(),
        "diverged": pl.Float64(),
        "coverage": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema)


def _share(count: int, places: Ints) -> float | None:
    return count / len(places) if len(places) else None


# --- Under other settings -------------------------------------------------------------------------

THRESHOLDS: Final = ("2.5", "3.0", "3.5", "4.0", "4.5")
"""Thresholds of the curve, those of the printed figures."""
_PIECE: Final = 200
"""Lessons that are held at a time while their thoughts are gathered."""
_MOST_VALUES: Final = 400
"""Combinations of changed settings that one recount answers."""


def group_settings(run: RunRecord) -> Mapping[str, Any]:
    """The settings of `[group]` that are not their default."""
    found: Mapping[str, Any] = getattr(run.study, "settings", {}).get("group", {})
    return found


def logged_rule(run: RunRecord) -> Rule:
    """The rule that the run was recorded under."""
    settings = group_settings(run)
    default = Rule()
    return Rule(
        weight=_exact(settings.get("lambda"), default.weight),
        threshold=_exact(settings.get("threshold"), default.threshold),
        interrupt_threshold=_exact(
            settings.get("interrupt_threshold"), default.interrupt_threshold
        ),
        silence=settings.get("silence", default.silence),
        selection=settings.get("selection", default.selection),
        criteria=CRITERIA,
    )


def _exact(value: float | None, default: Fraction) -> Fraction:
    return default if value is None else Fraction(str(value))


def cycles_in(records: Iterable[GroupRecord], run: RunRecord) -> Cycles:
    """The cycles of the complete lessons among records; goes through them once."""
    lessons = (one for one in records if isinstance(one, LessonRecord) and one.status == "complete")
    pieces = iter(lambda: tuple(islice(lessons, _PIECE)), ())
    frames = [BIDS.frame(piece, run) for piece in pieces]
    return cycles_of(pl.concat(frames) if frames else BIDS.frame((), run))


def at_thresholds(cycles: Cycles, run: RunRecord) -> pl.DataFrame:
    """As `curve`, of anybody, a row for each of `THRESHOLDS`."""
    rule = logged_rule(run)
    rules = {value: rule._replace(threshold=Fraction(value)) for value in THRESHOLDS}
    return curve(cycles, recounted(cycles, rules)).filter(pl.col("agent") == "")


def rules_under(changes: Mapping[str, Sequence[str]], logged: Rule) -> dict[str, Rule]:
    """Every combination of changed settings in words → the logged rule with it.

    Raises `UsageError` on an unknown setting or a value outside its range.
    """
    chosen = changes or {"threshold": THRESHOLDS}
    combined = product(*([Change(key, x) for x in values] for key, values in chosen.items()))
    return {
        ", ".join(f"{c.key}={c.value}" for c in combination): changed_rule(logged, combination)
        for combination in islice(combined, _MOST_VALUES)
    }


def outcomes_under(changes: Mapping[str, Sequence[str]]) -> Table:
    """The table of who would have spoken at each event of a lesson under each setting.

    `changes`: as a recount takes them. Raises `UsageError` on an unknown setting or a value outside
    its range.
    """
    rules_under(changes, Rule())  # a setting that does not exist is refused now

    def came(records: Sequence[GroupRecord], run: RunRecord) -> Iterator[Parts]:
        cycles, rules = cycles_in(records, run), rules_under(changes, logged_rule(run))
        named, every = {one.episode_id: one for one in records}, np.arange(len(cycles.event))
        logged = _agents(cycles, every, cycles.chosen)
        now = {
            words: _agents(cycles, every, speakers(cycles, rule)) for words, rule in rules.items()
        }
        for row, event in enumerate(cycles.event.tolist()):
            for setting, found in now.items():
                yield named[cycles.episode[row]], event, setting, logged[row], found[row]

    return counted_of(
        came,
        ("lesson", "event", "setting", "logged", "speaker"),
        event=whole("event"),  # after which somebody may speak
        setting=text("setting"),  # what was changed
        logged=text("logged"),  # who spoke; null for nobody, as in the next
        speaker=text("speaker"),  # with everything before held fixed
    )


# --- Noise floor of speaking ---------------------------------------------------------------------

Place = tuple[str, int]
"""Episode and event."""
Speakers = Mapping[Place, str | None]
"""Who speaks; `None` for nobody."""


class SpeakingFloor(NamedTuple):
    """What re-asking alone changes of who speaks."""

    cycles: int
    pairs: int
    """Two askings of one evaluation, logged or re-asked."""
    other: Estimate | NotEstimable
    """Share of the pairs in which another agent speaks, or nobody in place of somebody."""
    another: Estimate | NotEstimable
    """Share of the pairs in which two different agents speak."""
    thresholds: dict[str, Estimate | NotEstimable]
    """Threshold → share of the same cycles in which another speaks under it than was logged."""


def speaking_floor(run: SystemRun) -> SpeakingFloor | None:
    """The floor; `None` for a run whose evaluations were not asked again."""
    asked = _asked(run)
    if not asked:
        return None
    rule, records = logged_rule(run.head), {one.episode_id: one for one in run.episodes}
    bids = BIDS.frame(run.episodes, run.head)
    logged = _speakers(bids, rule)
    most = max(len(values) for values in asked.values())
    askings = [logged, *(_speakers(_asked_again(bids, asked, i), rule) for i in range(most))]
    places = [place for place in asked if place in logged]
    pairs = [
        (place, one[place], other[place])
        for place in places
        for one, other in combinations([a for a in askings if place in a], 2)
    ]
    names = [episode for (episode, _), _, _ in pairs]

    def share(values: Sequence[bool], names: Sequence[str]) -> Estimate | NotEstimable:
        scenarios = [records[name].task_id for name in names]
        return share_over_tasks(values, scenarios, over="scenarios")

    changed = {}
    for given in THRESHOLDS:
        now = _speakers(bids, rule._replace(threshold=Fraction(given)))
        differ = [now[place] != logged[place] for place in places]
        changed[given] = share(differ, [episode for episode, _ in places])
    return SpeakingFloor(
        cycles=len(places),
        pairs=len(pairs),
        other=share([one != other for _, one, other in pairs], names),
        another=share(
            [None not in (one, other) and one != other for _, one, other in pairs], names
        ),
        thresholds=changed,
    )


def _asked(run: SystemRun) -> dict[Place, tuple[Any, ...]]:
    """Where an evaluation was asked again → what each asking gave."""
    complete = {one.episode_id for one in run.episodes if one.status == "complete"}
    return {
        (record.episode_id, reply.turn): reply.values
        for record in (run.retest.episodes if run.retest else ())
        if record.episode_id in complete
        for reply in record.votes
        if isinstance(reply, RetestReply) and reply.values
    }


def _asked_again(
    bids: pl.DataFrame, asked: Mapping[Place, tuple[Any, ...]], repeat: int
) -> pl.DataFrame:
    """The bids of the events that have an answer of one repeat, with its scores."""
    there = {place: values[repeat] or {} for place, values in asked.items() if len(values) > repeat}
    rows = [
        {**row, **dict.fromkeys(SCORES), **_scores(row, there[row["episode_id"], row["event"]])}
        for row in bids.iter_rows(named=True)
        if (row["episode_id"], row["event"]) in there
    ]
    return pl.DataFrame(rows, schema=bids.schema)


def _scores(row: Mapping[str, Any], given: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """What an evaluation gave the agent of a bid; nothing to who only listens."""
    return dict(given.get(row["agent"]) or {}) if row["action"] == "speak" else {}


def _speakers(bids: pl.DataFrame, rule: Rule) -> Speakers:
    cycles = cycles_of(bids)
    places = speakers(cycles, rule)
    keys = zip(cycles.episode, cycles.event.tolist(), strict=True)
    return {
        key: None if place == NOBODY else str(cycles.agents[row, place])
        for row, (key, place) in enumerate(zip(keys, places.tolist(), strict=True))
    }


@table("speaking", "How often another speaks", cycles=lambda of: of.cycles)
def speaking(of: SpeakingFloor) -> Iterator[Row]:
    """Over {cycles} cycles whose evaluation was asked again, everything before held fixed.
    Evaluated again: pairs of two askings of one prompt, logged or re-asked. What a threshold
    changes is to be read beside it. 95 % intervals in brackets: over scenarios."""
    for what, compared, share in (
        ("evaluated again, any difference", of.pairs, of.other),
        ("evaluated again, two different agents", of.pairs, of.another),
        *(
            (f"threshold {given} in place of the logged one", of.cycles, share)
            for given, share in of.thresholds.items()
        ),
    ):
        yield {
            "what changes": what,
            "compared": compared,
            "share with another speaker, or none": estimate(share),
        }


def speaking_section(run: SystemRun, found: SpeakingFloor) -> Section:
    """The floor beside what another threshold changes, for the summary and the report."""
    assert run.retest is not None
    lead = asked_again_words(run.retest)
    return Section("noise", "Noise floor of speaking", lead, tables=present(speaking(found)))


def speaking_answer(found: SpeakingFloor) -> Answer:
    """The floor in one sentence."""
    value = found.other.value
    return Answer(
        "How far does the speaker hang on one evaluation?",
        "not known" if value is None else f"in {100 * value:.0f} % of {found.pairs} pairs another",
        "The same thoughts evaluated twice, everything else held fixed: the noise floor of "
        "speaking.",
        "noise",
    )
