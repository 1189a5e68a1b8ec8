"""Selection against sixty cases worked out by hand, and against a plain oracle of the framework."""

import re
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
WHO = {"a": A, "b": B, "c": C, "l": L, "-": None}


def bid(agent, score, silent=0, *, corrects=False):
    """A bid with the same score in all six criteria; `-` listens, and `?` has no score."""
    scores = None if score in ("-", "?") else dict.fromkeys(CRITERIA, round(10 * float(score)))
    return Bid(agent, score != "-", corrects, silent, scores)


def said(by=L, *, continues=False, to=()):
    return Moment(by, continues, tuple(to))


OFF = Rule(silence="off")
RULES = {
    "": OFF,
    "raise": Rule(),
    "decay": Rule(silence="decay"),
    "above 2.5": OFF._replace(threshold=Fraction(5, 2)),
    "above 4": OFF._replace(threshold=Fraction(4)),
    "above 4.5": OFF._replace(threshold=Fraction(9, 2)),
    "interrupt 3": OFF._replace(interrupt_threshold=Fraction(3)),
}

# Name | bids: agent, total, `/` messages of silence, `!` corrects an error | last speaker, `+` goes
# on, `>` whom it addressed, then the rule above | speaker | rules that applied.
# What silence makes of the totals stands behind.
TABLE = """
# rule 4: an open floor, the largest above 3.5
the largest speaks                   | a4.0 b3.9 c3.8 | l         | a |
the largest speaks, last in order    | a3.6 b3.7 c4.8 | l         | c |
one above                            | a3.6 b3.5 c1.0 | l         | a | threshold
equal to the threshold is not above  | a3.5 b3.5      | l         | - | threshold
nobody above                         | a3.4 b2.0 c1.0 | l         | - | threshold
nobody wants                         | a- b- c-       | l         | - |
only one wants                       | a- b3.6 c-     | l         | b |
wanting beats a listener             | a- b3.6        | l         | b |
before the first message             | a3.6 b4.1      | -         | b |
the last speaker is out              | a5.0 b3.6      | a         | b |
the last speaker alone               | a5.0           | a         | - |
an unscored one is out               | a3.6 b?        | l         | a |
# silence: 3.5 · 1.01^s: 3.54 at 1; 3.47 · 1.01 is 3.50
silence lifts over the threshold     | a3.5/1         | l raise   | a |  # 3.535 -> 3.54
silence lifts to the threshold only  | a3.4/2         | l raise   | - | threshold  # 3.47
three messages lift 3.4 to it only   | a3.4/3         | l raise   | - | threshold  # 3.50
four messages lift 3.4               | a3.4/4         | l raise   | a |  # 3.538 -> 3.54
silence turns the order              | a4.0 b3.9/3    | l raise   | b |  # 4.00, 4.02
silence does not turn the order      | a4.0 b3.9/2    | l raise   | a |  # 3.98
silence is held to five              | a5.0 b4.9/9    | l raise   | b | silent_longest
decay lowers                         | a3.6/3         | l decay   | - | threshold  # 3.494 -> 3.49
decay lowers to the threshold        | a3.6/2         | l decay   | a |  # 3.529 -> 3.53
decay turns the order                | a4.0/3 b3.9    | l decay   | b |  # 3.88, 3.90
off ignores silence                  | a3.5/40        | l         | - | threshold
decay is held to one                 | a1.0/40        | l decay   | - | threshold
# rule 1: the floor
the floor                            | a2.0 b5.0      | a+        | a | floor
the floor needs no threshold         | a1.0           | a+        | a | floor
the floor is not taken               | a- b5.0        | a+        | - | floor
the floor before the address         | a2.0 b3.9      | a+>b      | a | floor
nobody but the holder                | b5.0 c5.0      | a+        | - | floor
the floor is cut off                 | a3.0 b4.0!     | a+        | b | floor interruption
a weak correction does not cut off   | a3.0 b3.9!     | a+        | a | floor
a better holder keeps the floor      | a4.5 b4.4!     | a+        | a | floor interruption
a correction into a floor not taken  | a- b4.0!       | a+        | b | floor interruption
floor and correction tie         | a4.2 b4.2/2!  | a+      | b | floor interruption silent_longest
# rule 2: the address
the addressed one                    | a4.9 b2.0      | l>b       | b | address
the address waives the threshold     | b1.0           | l>b       | b | address
the better of two addressed          | a2.0 b2.1      | l>ab      | b | address
the addressed one listens            | a4.9 b-        | l>b       | - | address
one of two addressed listens         | a- b2.0        | l>ab      | b | address
only the learner addressed           | a5.0 b5.0      | a>l       | - | address
learner and agent addressed          | a3.0 b5.0      | c>al      | a | address
an agent addresses another           | b3.0 c4.9      | a>b       | b | address
a correction beats the address       | a4.5! b4.4     | l>b       | a | address interruption
the address beats a correction       | a4.0! b4.4     | l>b       | b | address interruption
a correction at a learner's turn     | a4.0! b5.0     | c>l       | a | address interruption
addressed tie, longest silent        | a3.0/1 b3.0/2  | l>ab      | b | address silent_longest
addressed tie, order                 | a3.0/1 b3.0/1  | l>ab      | a | address silent_longest order
the last speaker named by itself     | a5.0 b4.0      | a>a       | - | address
# rule 3: the interruption threshold, after silence
silence makes a correction strong    | a3.9/3! b2.0   | l>b raise | a | address interruption  # 4.02
decay makes a correction weak        | a4.1/3! b2.0   | l>b decay | b | address  # 3.98
a correction needs the threshold too | a4.0!      | l>l above 4 | - | address interruption threshold
a correction on an open floor is as any | a3.6! b3.7     | l         | b |
# rule 5: ties
a tie, longest silent                | a4.0/1 b4.0/5  | l         | b | silent_longest
a tie, order                         | a4.0 b4.0 c4.0 | l         | a | silent_longest order
a tie of two of three                | a3.6 b4.0/1 c4.0/1 | l         | b | silent_longest order
a tie by rounding                    | a3.9/1 b3.9/1  | l raise   | a | silent_longest order
ties under the threshold             | a3.0 b3.0      | l         | - | threshold
# other thresholds
a low threshold                      | a2.6           | l above 2.5 | a |
a high threshold                     | a4.5           | l above 4.5 | - | threshold
a low interruption threshold         | a3.6! b3.5     | l>b interrupt 3 | a | address interruption
"""


def read_case(line):
    name, bids, last, speaker, rules = (cell.strip() for cell in line.split("|"))
    made = [
        bid(WHO[agent], score, int(silent or 0), corrects=bool(corrects))
        for agent, score, silent, corrects in re.findall(r"(\w)([\d.]+|-|\?)/?(\d*)(!?)", bids)
    ]
    by, floor, to, rule = re.fullmatch(r"(.)(\+?)>?(\w*) ?(.*)", last).groups()
    moment = said(WHO[by], continues=bool(floor), to=[WHO[one] for one in to])
    return name, (made, moment, RULES[rule], WHO[speaker], rules.split())


CASES = dict(read_case(line.split("#")[0]) for line in TABLE.splitlines() if "|" in line)


@pytest.mark.parametrize("name", CASES)
def test_hand_computed(name):
    bids, moment, rule, speaker, rules = CASES[name]
    found = select_speaker(bids, moment, rule)
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
    cycle = logged(bids, moment, rule)
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
