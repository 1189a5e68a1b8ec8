"""Speakers over arrays: held to the definition, and to lessons played under other settings."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.systems.group.conftest import RUN, thoughts
from tests.reference.speaking import speaker
from tests.tutorsim.systems.group.conftest import play, standin
from tutorsim.analysis.systems.group import VIEW
from tutorsim.analysis.systems.group import speakers_under_other_settings as speakers
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.errors import UsageError
from tutorsim.records import (
    Provenance,
    Retest,
    RetestHead,
    RetestRecord,
    RetestReply,
    RunRecord,
    SystemSettings,
    to_line,
)
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import builtin_lessons
from tutorsim.systems.group.settings import GroupSettings
from tutorsim.systems.group.speaker_selection_and_its_reasons import (
    CRITERIA,
    Bid,
    Moment,
    Rule,
    select_speaker,
)

AGENTS = ("alice", "bob", "charlie")
EMPTY = thoughts([])

scores = st.one_of(
    st.none(),
    st.fixed_dictionaries(dict.fromkeys(CRITERIA, st.integers(10, 50))),
    st.sampled_from([30, 35, 40]).map(lambda x: dict.fromkeys(CRITERIA, x)),
    st.fixed_dictionaries(dict.fromkeys(("internal", "external"), st.integers(10, 50))),
)
bids = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.integers(0, 30), scores), min_size=1, max_size=3
)
moments = st.builds(
    Moment,
    st.sampled_from([*AGENTS, "learner", None]),
    st.booleans(),
    st.lists(st.sampled_from([*AGENTS, "learner"]), unique=True, max_size=2).map(tuple),
)
rules = st.builds(
    Rule,
    weight=st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(3, 5), Fraction(1)]),
    threshold=st.sampled_from([Fraction(1), Fraction(5, 2), Fraction(7, 2), Fraction(3501, 1000)]),
    interrupt_threshold=st.sampled_from([Fraction(3), Fraction(4)]),
    silence=st.sampled_from(["raise", "decay", "off"]),
    selection=st.sampled_from(["prism", "inner_thoughts"]),
    criteria=st.sampled_from([CRITERIA, CRITERIA[:3], ("relevance", "balance")]),
)


def rows(episode, event, made, moment):
    for one in made:
        tenths = one.scores or {}
        yield {
            **dict.fromkeys(EMPTY.columns), "episode_id": episode, "event": event,
            "agent": one.agent, "action": "speak" if one.wants else "listen",
            "corrects": one.corrects, "silent": one.silent, "speaker": moment.speaker,
            "floor": moment.continues, "addressed": one.agent in moment.addressed,
            "any_addressed": bool(moment.addressed), **{name: x / 10 for name, x in tenths.items()},
            "chosen": False,
        }  # fmt: skip


@pytest.mark.costly
@settings(max_examples=150)
@given(st.lists(st.tuples(bids, moments), min_size=1, max_size=4), rules)
def test_arrays_choose_as_the_definition_does(cycles, rule):
    table, expected = [], []
    for event, (values, moment) in enumerate(cycles, start=1):
        made = [
            Bid(agent, wants, corrects, silent, found)
            for agent, (wants, corrects, silent, found) in zip(AGENTS, values, strict=False)
        ]
        table += rows("e", event, made, moment)
        chosen = select_speaker(made, moment, rule).chosen
        expected.append(speakers.NOBODY if chosen is None else AGENTS.index(chosen))
    arrays = speakers.cycles_of(pl.DataFrame(table, schema=EMPTY.schema))
    assert speakers.speakers(arrays, rule).tolist() == expected


@pytest.mark.parametrize(
    ("silent", "speaks"), [((1, 5, 3), "bob"), ((5, 1, 5), "alice"), ((0, 0, 0), "alice")]
)
def test_of_equal_bids_the_longest_silent_speaks_then_the_first(silent, speaks):
    rule, moment = Rule(silence="off"), Moment("learner", False, ())
    made = [
        Bid(agent, True, False, turns, dict.fromkeys(CRITERIA, 40))
        for agent, turns in zip(AGENTS, silent, strict=True)
    ]
    arrays = speakers.cycles_of(pl.DataFrame([*rows("e", 1, made, moment)], schema=EMPTY.schema))
    assert speakers.speakers(arrays, rule).tolist() == [AGENTS.index(speaks)]
    assert select_speaker(made, moment, rule).chosen == speaks


def test_no_thought_is_no_cycle():
    arrays = speakers.cycles_of(EMPTY)
    assert speakers.speakers(arrays, Rule()).tolist() == []


# --- Other settings -------------------------------------------------------------------------------

LOGGED = GroupSettings().rule()
CHANGED = [
    {"threshold": "3"}, {"threshold": "4"}, {"threshold": "4.5"}, {"lambda": "0.1"},
    {"lambda": "1"}, {"silence": "decay"}, {"silence": "off", "threshold": "3.9"},
    {"interrupt_threshold": "5"}, {"selection": "inner_thoughts"},
]  # fmt: skip


def speaking(record):
    """Event → who spoke, of every cycle that came to a selection."""
    return {e.number: e.cycle.chosen for e in record.events if e.cycle and e.cycle.thoughts}


@pytest.fixture(scope="module")
def logged():
    return {
        lesson.id: play(lesson).record.model_copy(update={"episode_id": lesson.id})
        for lesson in builtin_lessons()[:2]
    }


def rule_of(changed):
    return speakers.changed_rule(LOGGED, changed)


def divergences_of(records, rule):
    cycles = speakers.cycles_of(thoughts(records))
    return speakers.divergences(cycles, speakers.speakers(cycles, rule)).to_dicts()


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_lesson_played_under_the_change_agrees_before_and_differs_at_divergence(logged, changed):
    numbers = {"threshold", "lambda", "interrupt_threshold"}
    setting = {key: float(x) if key in numbers else x for key, x in changed.items()}
    for lesson in builtin_lessons()[:2]:
        before = speaking(logged[lesson.id])
        again = speaking(play(lesson, standin(), **setting).record)
        [found] = divergences_of([logged[lesson.id]], rule_of(changed))
        first = found["event"]
        shared = [event for event in before if first is None or event < first]
        assert {e: before[e] for e in shared} == {e: again[e] for e in shared}
        assert found["cycles"] == len(before)
        assert found["coverage"] == len(shared) / len(before)
        if first is None:
            assert before == again
            assert found["difference"] is None
        else:
            assert (before[first], again[first]) == (found["logged"], found["changed"])
            assert found["logged"] != found["changed"]
            silent = [found[when] is None for when in ("logged", "changed")]
            kinds = {(True, False): "somebody", (False, True): "nobody"}
            assert found["difference"] == kinds.get(tuple(silent), "another")


def test_some_change_differs_somewhere(logged):
    lessons = [*logged.values()]
    kinds = {
        one["difference"]
        for changed in CHANGED
        for one in divergences_of(lessons, rule_of(changed))
    }
    assert {"another", "nobody", "somebody"} <= kinds


def test_the_logged_rule_recounts_to_the_log(logged):
    cycles = speakers.cycles_of(thoughts([*logged.values()]))
    assert speakers.speakers(cycles, LOGGED).tolist() == cycles.chosen.tolist()
    found = speakers.divergences(cycles, speakers.speakers(cycles, LOGGED))
    assert found["event"].is_null().all()
    assert found["coverage"].to_list() == [1.0, 1.0]


def test_a_curve_falls_with_the_threshold(logged):
    cycles = speakers.cycles_of(thoughts([*logged.values()]))
    rules = {value: rule_of({"threshold": value}) for value in ("1", "3.5", "5")}
    table = speakers.curve(cycles, speakers.recounted(cycles, rules))
    anybody = table.filter(table["agent"] == "")["share"].to_list()
    assert anybody[0] > anybody[1] > anybody[2]
    shares = table.filter((table["setting"] == "3.5") & (table["agent"] != ""))["share"]
    assert sum(shares) == pytest.approx(anybody[1])


def test_no_cycle_gives_no_divergence_and_no_share():
    assert divergences_of([], Rule()) == []
    cycles = speakers.cycles_of(thoughts([]))
    table = speakers.curve(cycles, speakers.recounted(cycles, {"x": Rule()}))
    assert table["share"].to_list() == [None]
    assert table["diverged"].to_list() == [None]


@pytest.mark.parametrize(
    ("key", "value"),
    [("threshold", "7"), ("threshold", "high"), ("lambda", "-1"), ("silence", "on"),
     ("criteria", "charm"), ("agents", "bob"), ("interrupt_threshold", "4.5")],
)  # fmt: skip
def test_bad_changes_are_refused(key, value):
    with pytest.raises(UsageError) as caught:
        rule_of({"selection": "inner_thoughts", key: value})
    assert value in str(caught.value) or key in str(caught.value)
    assert caught.value.why
    assert caught.value.hint


def test_each_event_has_its_speaker_under_each_setting(logged):
    """The logged threshold gives who was logged; nobody is null."""
    records = [*logged.values()]
    made = VIEW.outcomes_under({"threshold": ("3.5", "5")})
    frame = made.frame(records, RUN)
    assert frame.height == 2 * sum(len(speaking(record)) for record in records)
    for record in records:
        mine = frame.filter(pl.col("episode_id") == record.episode_id)
        same = mine.filter(pl.col("setting") == "threshold=3.5")
        assert dict(same.select("event", "speaker").iter_rows()) == speaking(record)
        assert same["logged"].equals(same["speaker"].alias("logged"))
    assert frame.filter(pl.col("setting") == "threshold=5")["speaker"].null_count()
    with pytest.raises(UsageError, match="no setting 'colour'"):
        VIEW.outcomes_under({"colour": ("1",)})


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [("threshold", 1, 5), ("interrupt_threshold", 1, 5), ("lambda", 0, 1)],
)
def test_a_threshold_or_weight_outside_its_range_is_refused(key, least, most):
    assert rule_of({key: f"{least}"}) != rule_of({key: f"{most}"})
    for beyond in (least - 0.01, most + 0.01):
        with pytest.raises(UsageError) as refused:
            rule_of({key: f"{beyond}"})
        assert refused.value.why == f"The value does not fit: it lies between {least} and {most}."


@pytest.mark.parametrize("silence", ["raise", "decay", "off"])
def test_outcomes_are_those_of_the_plain_computation_from_the_log(logged, silence):
    changes = {"threshold": ("2.5", "3.5", "4"), "interrupt_threshold": ("3", "4.2")}
    made = VIEW.outcomes_under({**changes, "silence": (silence,)})
    raw = {record.episode_id: json.loads(to_line(record)) for record in logged.values()}
    cycles = {
        (name, event["number"]): event["cycle"]
        for name, lesson in raw.items()
        for event in lesson["events"]
    }
    found = made.frame([*logged.values()], RUN).to_dicts()
    assert len(found) > 100
    for row in found:
        given = dict(part.split("=") for part in row["setting"].split(", "))
        assert given.pop("silence") == silence
        settings = {name: Decimal(value) for name, value in given.items()}
        cycle = cycles[row["episode_id"], row["event"]]
        agents = raw[row["episode_id"]]["agents"]
        assert row["speaker"] == speaker(cycle, agents, silence=silence, **settings), row
        assert row["logged"] == cycle["chosen"]


def test_the_first_five_settings_of_a_recount_are_answered(logged):
    """The table has them all."""
    run = SystemRun(
        "made",
        RunRecord(
            study=SystemSettings(name="made", system="group", conditions=("self_select",)),
            provenance=Provenance(kind="stand-in", name="script"),
        ),
        tuple(logged.values()),
    )
    values = ("3", "3.5", "4", "4.5", "4.75", "5")
    made = VIEW.recount(run, {"threshold": values})
    assert [one.question for one in made.answers] == [f"With threshold={x}?" for x in values[:5]]
    assert made.answers[0].headline == "1 of 2 lessons would have gone another way"
    assert "says at which event" in made.answers[0].detail
    assert made.answers[1].headline == "0 of 2 lessons would have gone another way"
    assert "says at which event" not in made.answers[1].detail
    [table] = made.sections[0].tables
    assert set(table.data["setting"]) == {f"threshold={x}" for x in values}


# --- Noise floor of speaking ---------------------------------------------------------------------

STATED = Provenance(kind="relay", name="script")
ANY, TWO = "evaluated again, any difference", "evaluated again, two different agents"
LOGGED_THRESHOLD = "threshold 3.5 in place of the logged one"


@pytest.fixture(scope="module")
def record():
    return play(builtin_lessons()[0]).record


def run_of(record, *values):
    """A run of one lesson whose evaluations gave these values, repeat by repeat."""
    evaluated = {
        event.number: {t.agent: t.scores for t in event.cycle.thoughts if t.scores}
        for event in record.events
        if event.cycle and any(t.score_status for t in event.cycle.thoughts)
    }
    again = RetestRecord(
        episode_id=record.episode_id,
        votes=tuple(
            RetestReply(
                turn=turn,
                stage="evaluate",
                agent="evaluator",
                values=tuple(value(scores) for value in values),
            )
            for turn, scores in evaluated.items()
        ),
    )
    head = RetestHead(
        recording_digest="0" * 64, repeats=len(values), stages=("evaluate",), provenance=STATED
    )
    settings = SystemSettings(name="made", system="group", conditions=("self_select",))
    run = RunRecord(study=settings, provenance=STATED, episodes=1)
    return SystemRun("made", run, (record,), Retest(head, (again,)) if values else None)


def test_without_a_retest_there_is_no_floor(record):
    assert speakers.speaking_floor(run_of(record)) is None


def test_the_same_scores_choose_the_same_speaker(record):
    found = speakers.speaking_floor(run_of(record, dict, dict))
    assert found.shares[ANY][0] == 3 * found.cycles  # three askings are three pairs
    assert found.shares[ANY][1].value == found.shares[TWO][1].value == 0
    assert found.shares[LOGGED_THRESHOLD][1].value == 0  # the default, under which it was recorded


def test_an_evaluation_that_was_asked_less_often_is_in_fewer_pairs(record):
    run = run_of(record, dict, dict)
    [again] = run.retest.episodes
    first, *others = again.votes
    once = first.model_copy(update={"values": first.values[:1]})
    asked = again.model_copy(update={"votes": (once, *others)})
    found = speakers.speaking_floor(replace(run, retest=Retest(run.retest.head, (asked,))))
    assert found.shares[ANY][0] == 3 * found.cycles - 2


def test_scores_that_nobody_can_read_silence_whoever_spoke(record):
    spoke = [
        event.cycle.chosen is not None
        for event in record.events
        if event.cycle and any(t.score_status for t in event.cycle.thoughts)
    ]
    found = speakers.speaking_floor(run_of(record, lambda scores: {}))
    assert (found.cycles, found.shares[ANY][0]) == (len(spoke), len(spoke))
    assert found.shares[ANY][1].value == pytest.approx(sum(spoke) / len(spoke))
    assert sum(spoke) > 0
    assert found.shares[TWO][1].value == 0  # nobody in place of somebody is no other agent


def test_two_different_agents_are_counted_apart_from_silence(record):
    """Alice alone is scored high: she speaks where she wanted to, and otherwise nobody does.

    Of 18 cycles bob spoke in five where she did not want to; charlie spoke before her in one.
    """

    def alice_first(scores):
        return {
            agent: dict.fromkeys(of, 5.0 if agent == "alice" else 1.0)
            for agent, of in scores.items()
        }

    found = speakers.speaking_floor(run_of(record, alice_first))
    assert (found.cycles, found.shares[ANY][0]) == (18, 18)
    assert found.shares[ANY][1].value == pytest.approx(6 / 18)
    assert found.shares[TWO][1].value == pytest.approx(1 / 18)


def test_the_section_says_who_answered_and_sets_thresholds_beside_the_floor(record):
    run = run_of(record, dict)
    section = speakers.speaking_section(run, speakers.speaking_floor(run))
    assert section.lead == "Asked again 1 × by relay: script."
    [table] = section.tables
    assert table.data.height == 2 + 5
