"""Selection against sixty cases worked out by hand, and against a plain oracle of the framework."""

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.records.group import CycleRecord, PredictionRecord, StepRecord, ThoughtRecord
from tutorsim.systems.group.speaker_selection_and_its_reasons import (
    CRITERIA,
    Bid,
    Moment,
    Rule,
    adjusted_score,
    reason,
    select_speaker,
    total_score,
)

A, B, C = "alice", "bob", "charlie"
"""Catalog order in every case."""
L = "learner"


def bid(agent, score, silent=0, *, corrects=False):
    """A bid with the same score in all six criteria; `None` for a thought that listens."""
    if score is None:
        return Bid(agent, False, corrects, silent, None)
    return Bid(agent, True, corrects, silent, dict.fromkeys(CRITERIA, round(10 * score)))


def said(by=L, *, continues=False, to=()):
    return Moment(by, continues, tuple(to))


OFF = Rule(silence="off")
RAISE = Rule()
DECAY = Rule(silence="decay")

# name: bids, last message, rule, speaker, rules that applied. Scores are the totals; what silence
# makes of them stands in the comment.
CASES = {
    # --- rule 4: an open floor, the largest above 3.5
    "the largest speaks": ([(A, 4.0), (B, 3.9), (C, 3.8)], said(), OFF, A, []),
    "the largest speaks, last in order": ([(A, 3.6), (B, 3.7), (C, 4.8)], said(), OFF, C, []),
    "one above": ([(A, 3.6), (B, 3.5), (C, 1.0)], said(), OFF, A, ["threshold"]),
    "equal to the threshold is not above": ([(A, 3.5), (B, 3.5)], said(), OFF, None, ["threshold"]),
    "nobody above": ([(A, 3.4), (B, 2.0), (C, 1.0)], said(), OFF, None, ["threshold"]),
    "nobody wants": ([(A, None), (B, None), (C, None)], said(), OFF, None, []),
    "only one wants": ([(A, None), (B, 3.6), (C, None)], said(), OFF, B, []),
    "wanting beats a listener": ([(A, None), (B, 3.6)], said(), OFF, B, []),
    "before the first message": ([(A, 3.6), (B, 4.1)], Moment(None), OFF, B, []),
    "the last speaker is out": ([(A, 5.0), (B, 3.6)], said(A), OFF, B, []),
    "the last speaker alone": ([(A, 5.0)], said(A), OFF, None, []),
    "an unscored one is out": ([(A, 3.6), (B, "unscored")], said(), OFF, A, []),
    # --- silence: 3.5 · 1.01^s: 3.54 at 1; 3.47 · 1.01 is 3.50
    "silence lifts over the threshold": ([(A, 3.5, 1)], said(), RAISE, A, []),  # 3.535 -> 3.54
    "silence lifts to the threshold only": (
        [(A, 3.4, 2)],
        said(),
        RAISE,
        None,
        ["threshold"],
    ),  # 3.47
    "three messages lift 3.4 to it only": (
        [(A, 3.4, 3)],
        said(),
        RAISE,
        None,
        ["threshold"],
    ),  # 3.50
    "four messages lift 3.4": ([(A, 3.4, 4)], said(), RAISE, A, []),  # 3.538 -> 3.54
    "silence turns the order": ([(A, 4.0, 0), (B, 3.9, 3)], said(), RAISE, B, []),  # 4.00, 4.02
    "silence does not turn the order": ([(A, 4.0, 0), (B, 3.9, 2)], said(), RAISE, A, []),  # 3.98
    "silence is held to five": ([(A, 5.0, 0), (B, 4.9, 9)], said(), RAISE, B, ["silent_longest"]),
    "decay lowers": ([(A, 3.6, 3)], said(), DECAY, None, ["threshold"]),  # 3.494 -> 3.49
    "decay lowers to the threshold": ([(A, 3.6, 2)], said(), DECAY, A, []),  # 3.529 -> 3.53
    "decay turns the order": ([(A, 4.0, 3), (B, 3.9, 0)], said(), DECAY, B, []),  # 3.88, 3.90
    "off ignores silence": ([(A, 3.5, 40)], said(), OFF, None, ["threshold"]),
    "decay is held to one": ([(A, 1.0, 40)], said(), DECAY, None, ["threshold"]),
    # --- rule 1: the floor
    "the floor": ([(A, 2.0), (B, 5.0)], said(A, continues=True), OFF, A, ["floor"]),
    "the floor needs no threshold": ([(A, 1.0)], said(A, continues=True), OFF, A, ["floor"]),
    "the floor is not taken": (
        [(A, None), (B, 5.0)],
        said(A, continues=True),
        OFF,
        None,
        ["floor"],
    ),
    "the floor before the address": (
        [(A, 2.0), (B, 3.9)],
        said(A, continues=True, to=[B]),
        OFF,
        A,
        ["floor"],
    ),
    "nobody but the holder": ([(B, 5.0), (C, 5.0)], said(A, continues=True), OFF, None, ["floor"]),
    "the floor is cut off": (
        [(A, 3.0), (B, 4.0, 0, True)],
        said(A, continues=True),
        OFF,
        B,
        ["floor", "interruption"],
    ),
    "a weak correction does not cut off": (
        [(A, 3.0), (B, 3.9, 0, True)],
        said(A, continues=True),
        OFF,
        A,
        ["floor"],
    ),
    "a better holder keeps the floor": (
        [(A, 4.5), (B, 4.4, 0, True)],
        said(A, continues=True),
        OFF,
        A,
        ["floor", "interruption"],
    ),
    "a correction into a floor not taken": (
        [(A, None), (B, 4.0, 0, True)],
        said(A, continues=True),
        OFF,
        B,
        ["floor", "interruption"],
    ),
    "floor and correction tie": (
        [(A, 4.2, 0), (B, 4.2, 2, True)],
        said(A, continues=True),
        OFF,
        B,
        ["floor", "interruption", "silent_longest"],
    ),
    # --- rule 2: the address
    "the addressed one": ([(A, 4.9), (B, 2.0)], said(to=[B]), OFF, B, ["address"]),
    "the address waives the threshold": ([(B, 1.0)], said(to=[B]), OFF, B, ["address"]),
    "the better of two addressed": ([(A, 2.0), (B, 2.1)], said(to=[A, B]), OFF, B, ["address"]),
    "the addressed one listens": ([(A, 4.9), (B, None)], said(to=[B]), OFF, None, ["address"]),
    "one of two addressed listens": ([(A, None), (B, 2.0)], said(to=[A, B]), OFF, B, ["address"]),
    "only the learner addressed": ([(A, 5.0), (B, 5.0)], said(A, to=[L]), OFF, None, ["address"]),
    "learner and agent addressed": ([(A, 3.0), (B, 5.0)], said(C, to=[A, L]), OFF, A, ["address"]),
    "an agent addresses another": ([(B, 3.0), (C, 4.9)], said(A, to=[B]), OFF, B, ["address"]),
    "a correction beats the address": (
        [(A, 4.5, 0, True), (B, 4.4)],
        said(to=[B]),
        OFF,
        A,
        ["address", "interruption"],
    ),
    "the address beats a correction": (
        [(A, 4.0, 0, True), (B, 4.4)],
        said(to=[B]),
        OFF,
        B,
        ["address", "interruption"],
    ),
    "a correction at a learner's turn": (
        [(A, 4.0, 0, True), (B, 5.0)],
        said(C, to=[L]),
        OFF,
        A,
        ["address", "interruption"],
    ),
    "addressed tie, longest silent": (
        [(A, 3.0, 1), (B, 3.0, 2)],
        said(to=[A, B]),
        OFF,
        B,
        ["address", "silent_longest"],
    ),
    "addressed tie, order": (
        [(A, 3.0, 1), (B, 3.0, 1)],
        said(to=[A, B]),
        OFF,
        A,
        ["address", "silent_longest", "order"],
    ),
    "the last speaker named by itself": (
        [(A, 5.0), (B, 4.0)],
        said(A, to=[A]),
        OFF,
        None,
        ["address"],
    ),
    # --- rule 3: the interruption threshold, after silence
    "silence makes a correction strong": (
        [(A, 3.9, 3, True), (B, 2.0)],
        said(to=[B]),
        RAISE,
        A,
        ["address", "interruption"],
    ),  # 4.02
    "decay makes a correction weak": (
        [(A, 4.1, 3, True), (B, 2.0)],
        said(to=[B]),
        DECAY,
        B,
        ["address"],
    ),  # 3.98
    "a correction needs the threshold too": (
        [(A, 4.0, 0, True)],
        said(to=[L]),
        OFF._replace(threshold=Fraction(4)),
        None,
        ["address", "interruption", "threshold"],
    ),
    "a correction on an open floor is as any": ([(A, 3.6, 0, True), (B, 3.7)], said(), OFF, B, []),
    # --- rule 5: ties
    "a tie, longest silent": ([(A, 4.0, 1), (B, 4.0, 5)], said(), OFF, B, ["silent_longest"]),
    "a tie, order": ([(A, 4.0), (B, 4.0), (C, 4.0)], said(), OFF, A, ["silent_longest", "order"]),
    "a tie of two of three": (
        [(A, 3.6), (B, 4.0, 1), (C, 4.0, 1)],
        said(),
        OFF,
        B,
        ["silent_longest", "order"],
    ),
    "a tie by rounding": (
        [(A, 3.9, 1), (B, 3.9, 1)],
        said(),
        RAISE,
        A,
        ["silent_longest", "order"],
    ),
    "ties under the threshold": ([(A, 3.0), (B, 3.0)], said(), OFF, None, ["threshold"]),
    # --- other thresholds
    "a low threshold": ([(A, 2.6)], said(), OFF._replace(threshold=Fraction(5, 2)), A, []),
    "a high threshold": (
        [(A, 4.5)],
        said(),
        OFF._replace(threshold=Fraction(9, 2)),
        None,
        ["threshold"],
    ),
    "a low interruption threshold": (
        [(A, 3.6, 0, True), (B, 3.5)],
        said(to=[B]),
        OFF._replace(interrupt_threshold=Fraction(3)),
        A,
        ["address", "interruption"],
    ),
}


def bids_of(given_bids):
    made = []
    for agent, score, *more in given_bids:
        silent, corrects = [*more, *(0, False)[len(more) :]]
        if score == "unscored":
            made.append(Bid(agent, True, corrects, silent, None))
        else:
            made.append(bid(agent, score, silent, corrects=corrects))
    return made


def test_there_are_sixty_cases():
    assert len(CASES) == 60


@pytest.mark.parametrize("name", CASES)
def test_hand_computed(name):
    given_bids, moment, rule, speaker, rules = CASES[name]
    found = select_speaker(bids_of(given_bids), moment, rule)
    assert (found.chosen, [step.rule for step in found.steps]) == (speaker, rules)


def test_total_is_the_weighted_mean_of_both_groups():
    # internal (4.0 + 3.0 + 3.5) / 3 = 3.5; external (2.0 + 3.0 + 4.0) / 3 = 3.0
    scores = dict(zip(CRITERIA, (40, 30, 35, 20, 30, 40), strict=True))
    assert total_score(scores, Rule()) == Fraction(32, 10)  # 0.4 · 3.5 + 0.6 · 3.0
    assert total_score(scores, Rule(weight=Fraction(0))) == Fraction(35, 10)
    assert total_score(scores, Rule(criteria=("relevance", "balance"))) == Fraction(4)
    assert total_score(scores, Rule(criteria=("novelty",))) == Fraction(3)
    assert total_score({"internal": 35, "external": 30}, Rule()) == Fraction(32, 10)


def test_no_counted_criterion_is_refused():
    with pytest.raises(ValueError, match="none of the criteria"):
        total_score(dict.fromkeys(CRITERIA, 30), Rule(criteria=()))


def test_halves_are_rounded_to_even():
    assert adjusted_score(Fraction(3125, 1000), 0, Rule()) == 312
    assert adjusted_score(Fraction(3135, 1000), 0, Rule()) == 314
    assert adjusted_score(Fraction(325, 100), 0, Rule(selection="inner_thoughts")) == 320


@given(st.integers(10, 50), st.integers(0, 60), st.sampled_from(["raise", "off"]))
def test_adjusted_scores_equal_decimals(tenths, silent, silence):
    factor = Decimal("1.01") if silence == "raise" else Decimal(1)
    exact = min(Decimal(5), max(Decimal(1), Decimal(tenths) / 10 * factor**silent))
    expected = int(exact.quantize(Decimal("0.01"), ROUND_HALF_EVEN) * 100)
    assert adjusted_score(Fraction(tenths, 10), silent, Rule(silence=silence)) == expected


def framework(bids, moment, threshold):
    """The cited framework's way, as a plain loop: thresholds by turn, then the first best."""
    best, top = None, Decimal(0)
    for one in bids:
        if not one.wants or one.scores is None or one.agent == moment.speaker:
            continue
        score = Decimal(sum(one.scores.values())) / 60 * Decimal("1.01") ** one.silent
        score = min(Decimal(5), max(Decimal(1), score)).quantize(Decimal("0.1"), ROUND_HALF_EVEN)
        to_me = one.agent in moment.addressed
        offered = score >= threshold if not moment.addressed else to_me or score >= 4
        if offered and score > top:
            best, top = one.agent, score
    return best


agents = st.sampled_from([A, B, C])
moments = st.builds(
    Moment,
    st.sampled_from([A, B, C, L, None]),
    st.booleans(),
    st.lists(st.sampled_from([A, B, C, L]), unique=True, max_size=2).map(tuple),
)


@given(
    st.lists(st.tuples(st.integers(10, 50), st.booleans(), st.integers(0, 20)), max_size=3), moments
)
def test_inner_thoughts_equals_a_plain_loop(values, moment):
    bids = [
        Bid(agent, wants, False, silent, dict.fromkeys(CRITERIA, tenths))
        for agent, (tenths, wants, silent) in zip((A, B, C), values, strict=False)
    ]
    rule = Rule(selection="inner_thoughts", weight=Fraction(1, 2))
    chosen = select_speaker(bids, moment, rule).chosen
    assert chosen == framework(bids, moment, Decimal("3.5"))


# --- In words ------------------------------------------------------------------------------------

IN_WORDS = {
    "the largest speaks": "Alice had the highest score that was high enough.",
    "nobody above": "Nobody spoke: no score was high enough.",
    "nobody wants": "Nobody spoke: all listened.",
    "silence is held to five": "Bob had the highest score that was high enough. Of equal scores it "
    "was the longest silent.",
    "the floor": "Alice kept the floor, so the turn was not open to the others.",
    "the floor is not taken": "Nobody spoke: Alice kept the floor, and said no more.",
    "a better holder keeps the floor": "Alice kept the floor, so the turn was not open to the "
    "others.",
    "the floor is cut off": "Bob corrected an error, which may interrupt whoever had the turn.",
    "the addressed one": "Bob was addressed, so the turn was not open to the others.",
    "the addressed one listens": "Nobody spoke: only Bob had the turn.",
    "only the learner addressed": "Nobody spoke: only Tom had the turn.",
}
"""Case above → the rule that decided it."""


def logged(bids, moment, rule, **changed):
    found = select_speaker(bids, moment, rule)
    thoughts = [
        ThoughtRecord(
            agent=one.agent, status="valid", stimuli=(), thought="", corrects=one.corrects,
            action="speak" if one.wants else "listen", silent=one.silent,
            adjusted=found.adjusted.get(one.agent),
        )
        for one in bids
    ]  # fmt: skip
    steps = tuple(StepRecord(rule=rule, kept=kept) for rule, kept in found.steps)
    head = {"speaker": moment.speaker, "floor": moment.continues, "addressed": moment.addressed}
    made = {**head, "thoughts": thoughts, "steps": steps, "chosen": found.chosen, **changed}
    return CycleRecord.model_validate(made)


def in_words(cycle):
    return reason(cycle, lambda who: "Tom" if who == L else who.title())


@pytest.mark.parametrize("name", IN_WORDS)
def test_the_rule_that_decided_is_told(name):
    bids, moment, rule, _, _ = CASES[name]
    cycle = logged(bids_of(bids), moment, rule)
    assert in_words(cycle) == IN_WORDS[name]


def test_what_else_decided_is_told():
    bids, framework = [bid(A, 3.0), bid(B, 4.2)], OFF._replace(selection="inner_thoughts")
    both = [bid(A, 4.6), bid(B, 4.2)]
    assert in_words(logged(bids, said(to=[A]), framework)).startswith("Bob had the highest score")
    assert in_words(logged(both, said(to=[A]), framework)) == (
        "Alice was addressed, and had the highest score."
    )
    last = StepRecord(rule="after_withdrawal", kept=(B,))
    assert "after one that was withdrawn" in in_words(logged(bids, said(), OFF, steps=(last,)))
    assert "It was withdrawn" in in_words(logged(bids, said(), OFF, withdrawn=True))
    predicted = CycleRecord(prediction=PredictionRecord(status="valid", named=L))
    assert in_words(predicted) == "Predicted to speak next: Tom."
    assert in_words(CycleRecord()) == ""
