"""Who would have spoken under other settings, from the logged scores of every cycle.

The noise floor of speaking stands beside it: how often the same thoughts, evaluated again, bring
another speaker. Everything but the evaluation is held fixed: the thoughts, the last message and the
silences. The speaker of each asking is that of the run's own rule, from the scores of that asking
alone. Only cycles count in which some agent wanted to speak, since only those were evaluated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice, product
from math import ceil
from math import floor as floor_of
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from tutorsim.analysis.pages.cells_and_tables import estimate, present
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.document import Answer, Section
from tutorsim.analysis.runs.exported_tables import Parts, Table, counted_of, text, whole
from tutorsim.analysis.statistics.array_types import Anything, Bools, Floats, Ints, Objects
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_over_tasks,
)
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import (
    asked_again_words,
)
from tutorsim.analysis.systems.group.exported_tables_messages_to_rate import BIDS, SCORES
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
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


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cycles of self-selection; C cycles, A places for the agents that thought."""

    episode: Sequence[str]
    """C: the episode of each cycle."""
    event: Ints
    """C: the event that started it."""
    agents: Objects
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
    event = pl.struct("episode_id", "event")
    numbered = thoughts.select(cycle=event.rle_id(), place=pl.int_range(pl.len()).over(event))
    keys = thoughts.filter(numbered["place"] == 0)
    at = (numbered["cycle"].to_numpy(), numbered["place"].to_numpy())
    shape = (keys.height, 1 + int(at[1].max(initial=0)))

    def placed(values: pl.Series, empty: object, kind: npt.DTypeLike) -> Anything:
        made = np.full(shape, empty, dtype=kind)
        made[at] = values.to_numpy()
        return made

    def flags(values: pl.Series) -> Bools:
        return placed(values, empty=False, kind=np.bool_)

    def tenths(values: pl.Series) -> Ints:
        whole = (10 * values.fill_null(0)).round().cast(pl.Int64)
        return placed(whole, 0, np.int64)

    spoke = flags(thoughts["chosen"])
    scored = thoughts.select(pl.any_horizontal(pl.col(INTERNAL[0], "internal").is_not_null()))
    return Cycles(
        episode=keys["episode_id"].to_list(),
        event=keys["event"].to_numpy(),
        agents=placed(thoughts["agent"], "", object),
        scores=np.stack([tenths(thoughts[name]) for name in SCORES], axis=2),
        bids=flags((thoughts["action"] == "speak") & scored.to_series()),
        corrects=flags(thoughts["corrects"]),
        silent=placed(thoughts["silent"], 0, np.int64),
        addressed=flags(thoughts["addressed"]),
        last=flags((thoughts["agent"] == thoughts["speaker"]).fill_null(value=False)),
        floor=keys["floor"].to_numpy(),
        allocated=keys["any_addressed"].to_numpy(),
        chosen=np.where(spoke.any(axis=1), spoke.argmax(axis=1), NOBODY),
    )


def speakers(cycles: Cycles, rule: Rule) -> Ints:
    """C: the place of each cycle's speaker under a rule, what was said before held fixed."""
    adjusted = _adjusted(cycles, rule)
    if rule.selection == "inner_thoughts":
        candidates, value = _framework(cycles, adjusted, rule), adjusted
    else:  # of equal scores the longest silent, then the first in catalog order
        candidates = _study(cycles, adjusted, rule)
        value = adjusted * (int(cycles.silent.max(initial=0)) + 1) + cycles.silent
    best = np.where(candidates, value, -1).argmax(axis=1)
    return np.where(candidates.any(axis=1), best, NOBODY)


def _study(cycles: Cycles, adjusted: Ints, rule: Rule) -> Bools:
    """C × A: who is left for rule 4, the threshold applied where nobody is favoured.

    All that are addressed are left, though the study favours their best alone: who is worse does
    not win beside it.
    """
    floor, bids = cycles.floor[:, None], cycles.bids
    by_address = cycles.allocated[:, None] & ~floor
    named = cycles.addressed & ~cycles.last & by_address
    favoured = bids & (named | (cycles.last & floor))
    interrupts = cycles.corrects & (adjusted >= ceil(100 * rule.interrupt_threshold))
    others = bids & ~cycles.last & (interrupts | ~(floor | by_address))
    left: Bools = favoured | (others & (adjusted > floor_of(100 * rule.threshold)))
    return left


def _framework(cycles: Cycles, adjusted: Ints, rule: Rule) -> Bools:
    allocated = cycles.allocated[:, None]
    to_other = adjusted >= 400
    is_open = adjusted >= ceil(100 * rule.threshold)
    offers = np.where(allocated, cycles.addressed | to_other, is_open)
    kept: Bools = cycles.bids & ~cycles.last & offers
    return kept


def _adjusted(cycles: Cycles, rule: Rule) -> Ints:
    """C × A: hundredths after silence; 0 for agents that made no bid."""
    scale = 10 if rule.selection == "inner_thoughts" else 100
    powers = _FACTOR[rule.silence] ** np.arange(cycles.silent.max(initial=0) + 1)
    value = scale * np.clip(_totals(cycles, rule) * powers[cycles.silent], 1, 5)
    rounded = np.rint(value).astype(np.int64) * (100 // scale)
    doubtful = cycles.bids & (np.abs(value - np.floor(value) - 0.5) < _NEAR_HALF)
    for row, column in zip(*np.nonzero(doubtful), strict=True):
        tenths = zip(SCORES, cycles.scores[row, column].tolist(), strict=True)
        total = total_score({name: x for name, x in tenths if x}, rule)
        rounded[row, column] = adjusted_score(total, int(cycles.silent[row, column]), rule)
    return np.where(cycles.bids, rounded, 0)


def _totals(cycles: Cycles, rule: Rule) -> Floats:
    """C × A: the weighted mean of both groups of criteria, or of the one that counts."""
    means = [
        cycles.mean(counted, SCORES.index(whole))
        for group, whole in ((INTERNAL, "internal"), (EXTERNAL, "external"))
        if (counted := tuple(SCORES.index(name) for name in group if name in rule.criteria))
    ]
    if len(means) == 1:
        return means[0]
    weight = float(rule.weight)
    return (1 - weight) * means[0] + weight * means[1]


# --- Other settings ------------------------------------------------------------------------------

_TEXTS: Final = ("episode_id", "difference", "logged", "changed")
_DIFFERENCES: Final = (None, "somebody", "nobody", "another")
"""None; somebody speaks at last, nobody does any more, or another agent does."""


Recounted = tuple[Ints, pl.DataFrame]
"""All cycles under one rule: the place of each cycle's speaker, and as `divergences` gives them."""


def recounted(cycles: Cycles, rules: Mapping[str, Rule]) -> dict[str, Recounted]:
    """Name of a rule → all cycles under it."""
    places = {label: speakers(cycles, rule) for label, rule in rules.items()}
    return {label: (found, divergences(cycles, found)) for label, found in places.items()}


def _between(least: int, most: int) -> Callable[[str], Fraction]:
    def number(value: str) -> Fraction:
        try:
            found = Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError("it is a number") from None
        if not least <= found <= most:
            raise ValueError(f"it lies between {least} and {most}")
        return found

    return number


def _one_of(key: str, names: Sequence[str]) -> Callable[[str], str]:
    def name(value: str) -> str:
        if value not in names:
            raise ValueError(f"{key} is one of {', '.join(names)}")
        return value

    return name


def _criteria(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split("+"))
    if not set(names) <= set(CRITERIA):
        raise ValueError("criteria are " + "+".join(CRITERIA))
    return names


_SETTINGS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "threshold": ("threshold", _between(1, 5)),
    "lambda": ("weight", _between(0, 1)),
    "interrupt_threshold": ("interrupt_threshold", _between(1, 5)),
    "silence": ("silence", _one_of("silence", SILENCES)),
    "selection": ("selection", _one_of("selection", SELECTIONS)),
    "criteria": ("criteria", _criteria),
}
"""Key of `--set` → its field of a rule, and how a value is read."""


def changed_rule(rule: Rule, changes: Mapping[str, str]) -> Rule:
    """The rule with settings changed.

    Raises `UsageError` on an unknown key, a value outside its range, or one that does nothing.
    """
    for key, value in changes.items():
        if key not in _SETTINGS:
            raise UsageError(
                f"There is no setting {key!r} to recount.",
                why="Only what turns logged scores into a speaker can be recounted.",
                hint=f"Known are {', '.join(_SETTINGS)}.",
            )
        name, read = _SETTINGS[key]
        try:
            rule = rule._replace(**{name: read(value)})
        except ValueError as error:
            raise UsageError(
                f"{key}={value} cannot be recounted.",
                why=f"The value does not fit: {error}.",
                hint="For example --set threshold=3 or --set criteria=relevance+coherence.",
            ) from None
    if rule.selection == "inner_thoughts" and "interrupt_threshold" in changes:
        raise UsageError(
            f"interrupt_threshold={changes['interrupt_threshold']} does nothing under "
            "selection=inner_thoughts.",
            why="That rule knows no interruption, so every value would give the same.",
            hint="Leave it out, or add --set selection=prism.",
        )
    return rule


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
    was, now = (np.append(places, NOBODY)[rows] for places in (cycles.chosen, changed))
    kind = np.select([rows < 0, was == NOBODY, now == NOBODY], [0, 1, 2], 3)
    logged, instead = (
        np.append(_agents(cycles, places), np.array([None]))[rows].tolist()
        for places in (cycles.chosen, changed)
    )
    return pl.DataFrame(
        {
            "episode_id": [cycles.episode[start] for start in cycles.starts],
            "cycles": lengths,
            "event": pl.Series(np.append(cycles.event, 0)[rows]).set(pl.Series(rows < 0), None),
            "difference": [_DIFFERENCES[one] for one in kind.tolist()],
            "logged": logged,
            "changed": instead,
            "coverage": before / lengths,
        },
        schema_overrides=dict.fromkeys(_TEXTS, pl.String),
    )


def _agents(cycles: Cycles, places: Ints) -> Objects:
    """C: who has the place of each cycle; `None` for nobody."""
    names: Objects = cycles.agents[np.arange(len(places)), places]
    names[places == NOBODY] = None
    return names


def curve(cycles: Cycles, found: Mapping[str, Recounted]) -> pl.DataFrame:
    """Per named rule: cycles, share with a speaker, share of each agent, first divergence.

    Returns `setting`, `agent` (empty for anybody), `share` of cycles that this agent speaks in,
    `diverged` share of lessons that ever differ, `coverage` mean share before.
    """
    rows, shares = [], ("share", "diverged", "coverage")
    everybody, inverse = np.unique(cycles.agents.astype(str), return_inverse=True)
    who = inverse.reshape(cycles.agents.shape)
    for label, (places, lessons) in found.items():
        spoke = np.flatnonzero(places != NOBODY)
        said = np.bincount(who[spoke, places[spoke]], minlength=len(everybody)).tolist()
        each = zip(everybody.tolist(), said, strict=True)
        counts = {"": len(spoke)} | {agent: count for agent, count in each if agent}
        rows += [
            {
                "setting": label,
                "agent": agent,
                "share": share_of(count, len(places)),
                "cycles": len(places),
                "diverged": lessons["event"].is_not_null().mean(),
                "coverage": lessons["coverage"].mean(),
            }
            for agent, count in counts.items()
        ]
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(shares, pl.Float64))


def share_of(part: int, whole: int) -> float | None:
    """A part of a whole; `None` of nothing."""
    return part / whole if whole else None


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
    known = (
        (field, read, settings[key]) for key, (field, read) in _SETTINGS.items() if key in settings
    )
    return Rule(**{field: read(str(value)) for field, read, value in known})


def cycles_in(records: Iterable[GroupRecord], run: RunRecord) -> Cycles:
    """The cycles of the complete lessons among records; goes through them once."""
    lessons = (one for one in records if isinstance(one, LessonRecord) and one.status == "complete")
    pieces = iter(lambda: tuple(islice(lessons, _PIECE)), ())
    frames = [BIDS.frame(piece, run) for piece in pieces]
    return cycles_of(pl.concat(frames) if frames else BIDS.frame((), run))


def at_thresholds(cycles: Cycles, run: RunRecord) -> pl.DataFrame:
    """The curve of anybody, a row for each of `THRESHOLDS`."""
    rule = logged_rule(run)
    rules = {value: rule._replace(threshold=Fraction(value)) for value in THRESHOLDS}
    return curve(cycles, recounted(cycles, rules)).filter(pl.col("agent") == "")


def rules_under(changes: Mapping[str, Sequence[str]], logged: Rule) -> dict[str, Rule]:
    """Every combination of changed settings in words → the logged rule with it.

    Raises `UsageError` on an unknown setting or a value outside its range.
    """
    chosen = changes or {"threshold": THRESHOLDS}
    combined = (dict(zip(chosen, values, strict=True)) for values in product(*chosen.values()))
    return {
        ", ".join(f"{key}={value}" for key, value in one.items()): changed_rule(logged, one)
        for one in islice(combined, _MOST_VALUES)
    }


def outcomes_under(changes: Mapping[str, Sequence[str]]) -> Table:
    """The table of who would have spoken at each event of a lesson under each setting.

    `changes`: as a recount takes them. Raises `UsageError` on an unknown setting or a value outside
    its range.
    """
    rules_under(changes, Rule())  # a setting that does not exist is refused now

    def came(records: Sequence[GroupRecord], run: RunRecord) -> Iterator[Parts]:
        cycles, rules = cycles_in(records, run), rules_under(changes, logged_rule(run))
        named, logged = {one.episode_id: one for one in records}, _agents(cycles, cycles.chosen)
        now = {words: _agents(cycles, speakers(cycles, rule)) for words, rule in rules.items()}
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


class SpeakingFloor(NamedTuple):
    """What re-asking alone changes of who speaks."""

    cycles: int
    shares: dict[str, tuple[int, Estimate | NotEstimable]]
    """What changes → how many are compared, and the share in which another speaks, or nobody.

    Compared are pairs of two askings of one evaluation, logged or re-asked; or the same cycles
    under a threshold and as they were logged.
    """


_ANY: Final = "evaluated again, any difference"


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

    differ = {
        _ANY: [one != other for _, one, other in pairs],
        "evaluated again, two different agents": [
            None not in (one, other) and one != other for _, one, other in pairs
        ],
    }
    shares = {what: (len(pairs), share(values, names)) for what, values in differ.items()}
    for given in THRESHOLDS:
        now = _speakers(bids, rule._replace(threshold=Fraction(given)))
        changed = [now[place] != logged[place] for place in places]
        found = share(changed, [episode for episode, _ in places])
        shares[f"threshold {given} in place of the logged one"] = (len(places), found)
    return SpeakingFloor(len(places), shares)


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
    rows = []
    for row in bids.iter_rows(named=True):
        given = there.get((row["episode_id"], row["event"]))
        if given is not None:  # nothing is given to who only listens
            scores = given.get(row["agent"]) if row["action"] == "speak" else None
            rows.append({**row, **dict.fromkeys(SCORES), **(scores or {})})
    return pl.DataFrame(rows, schema=bids.schema)


def _speakers(bids: pl.DataFrame, rule: Rule) -> dict[Place, str | None]:
    """Who speaks; `None` for nobody."""
    cycles = cycles_of(bids)
    places = zip(cycles.episode, cycles.event.tolist(), strict=True)
    return dict(zip(places, _agents(cycles, speakers(cycles, rule)).tolist(), strict=True))


@table("speaking", "How often another speaks", cycles=lambda of: of.cycles)
def speaking(of: SpeakingFloor) -> Iterator[Row]:
    """Over {cycles} cycles whose evaluation was asked again, everything before held fixed.
    Evaluated again: pairs of two askings of one prompt, logged or re-asked. What a threshold
    changes is to be read beside it. 95 % intervals in brackets: over scenarios."""
    for what, (compared, share) in of.shares.items():
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
    pairs, share = found.shares[_ANY]
    return Answer(
        "How far does the speaker hang on one evaluation?",
        "not known"
        if share.value is None
        else f"in {100 * share.value:.0f} % of {pairs} pairs another",
        "The same thoughts evaluated twice, everything else held fixed: the noise floor of "
        "speaking.",
        "noise",
    )
