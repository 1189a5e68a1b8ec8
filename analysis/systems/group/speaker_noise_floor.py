"""The noise floor of speaking: how often the same thoughts, evaluated again, bring another speaker.

Everything but the evaluation is held fixed: the thoughts, the last message and the silences. The
speaker of each asking is that of the run's own rule, from the scores of that asking alone. Only
cycles count in which some agent wanted to speak, since only those were evaluated.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import polars as pl

from tutorsim.analysis.pages.cells import estimate, present
from tutorsim.analysis.pages.declared import Row, table
from tutorsim.analysis.pages.document import Answer, Section
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_over_tasks,
)
from tutorsim.analysis.systems.group.columns import BIDS, SCORES
from tutorsim.analysis.systems.group.speakers import (
    NOBODY,
    THRESHOLDS,
    cycles_of,
    logged_rule,
    speakers,
)
from tutorsim.analysis.systems.noise_floor import asked_again_words
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records import RetestReply
from tutorsim.systems.group.speaker_selection import Rule

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
    for text in THRESHOLDS:
        now = _speakers(bids, rule._replace(threshold=Fraction(text)))
        differ = [now[place] != logged[place] for place in places]
        changed[text] = share(differ, [episode for episode, _ in places])
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
            (f"threshold {text} in place of the logged one", of.cycles, share)
            for text, share in of.thresholds.items()
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
    value = found.other.value if isinstance(found.other, Estimate) else None
    return Answer(
        "How far does the speaker hang on one evaluation?",
        "not known" if value is None else f"in {100 * value:.0f} % of {found.pairs} pairs another",
        "The same thoughts evaluated twice, everything else held fixed: the noise floor of "
        "speaking.",
        "noise",
    )
