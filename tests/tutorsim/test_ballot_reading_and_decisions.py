"""What a ballot says: its masses, the roles behind its labels, and what it determines."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tutorsim.ballot_reading_and_decisions import (
    RULES,
    RichBallot,
    cast_as,
    decide,
    first_in_order,
    leaders,
    masses_of,
    read_ballot,
    repair_ballot,
    resolve,
    tally,
)
from tutorsim.vocabularies import BALLOT_FORMATS, DEFAULT_ROLES, LABELS, PROTOCOLS, READINGS

ABCD = ("A", "B", "C", "D")
RICH = RichBallot(
    points={"v": 12, "s": 9, "c": 4, "m": 0}, order=("v", "s", "c", "m"), approved=("v", "s")
)


def test_masses_are_those_of_the_protocol():
    roles = ("s", "m", "v", "c")
    assert masses_of("m", roles, protocol="simple") == {"s": 0, "m": 1, "v": 0, "c": 0}
    ranked = masses_of(("v", "s", "c", "m"), roles, protocol="ranked")
    assert ranked == {"s": 2, "m": 0, "v": 3, "c": 1}
    points = {"s": 10, "m": 5, "v": 5, "c": 5}
    assert masses_of(points, roles, protocol="cumulative") == points
    assert masses_of(("s", "c"), roles, protocol="approval") == {"s": 1, "m": 0, "v": 0, "c": 1}
    assert masses_of(("m", "s"), ("s", "m"), protocol="ranked") == {"s": 0, "m": 1}


@pytest.mark.parametrize(
    ("protocol", "masses"),
    [
        ("simple", {"s": 0, "m": 0, "v": 1, "c": 0}),
        ("ranked", {"s": 2, "m": 0, "v": 3, "c": 1}),
        ("cumulative", {"s": 9, "m": 0, "v": 12, "c": 4}),
        ("approval", {"s": 1, "m": 0, "v": 1, "c": 0}),
    ],
)
def test_a_rich_ballot_has_the_masses_of_its_ballot_under_the_protocol(protocol, masses):
    assert masses_of(RICH, ("s", "m", "v", "c"), protocol=protocol) == masses


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_abstention_has_no_mass_and_approving_nobody_is_no_abstention(protocol):
    assert masses_of(None, ABCD, protocol=protocol) == {}
    assert masses_of((), ABCD, protocol="approval") == dict.fromkeys(ABCD, 0)


def test_labels_are_resolved_to_the_roles_behind_them():
    labels = {"A": "motivation", "B": "scaffolding", "C": "misconception"}
    assert resolve("B", labels) == "scaffolding"
    assert resolve(("C", "A", "B"), labels) == ("misconception", "motivation", "scaffolding")
    values = resolve({"A": 20, "B": 5, "C": 0}, labels)
    assert values == {"motivation": 20, "scaffolding": 5, "misconception": 0}
    read = read_ballot("C=15,A=10|B=0", ("A", "B", "C"), form="rich")
    assert resolve(read, labels) == RichBallot(
        points={"misconception": 15, "motivation": 10, "scaffolding": 0},
        order=("misconception", "motivation", "scaffolding"),
        approved=("misconception", "motivation"),
    )


ORDER = ("B", "A", "D", "C")
APART = {"A": 8, "B": 10, "C": 3, "D": 4}
LEVEL = {"A": 10, "B": 10, "C": 5, "D": 0}
NARROW = {"A": 15, "B": 5, "C": 5, "D": 0}
SAME = dict.fromkeys(ABCD, 5)
BALLOT = RichBallot(points=APART, order=ORDER, approved=("B",))
DETERMINED = [
    # form, ballot: simple, ranked, cumulative, approval
    ("simple", "B", ["B", None, None, None]),
    ("ranked", ORDER, ["B", ORDER, None, None]),
    ("cumulative", APART, ["B", ORDER, APART, None]),
    ("cumulative", LEVEL, [None, None, LEVEL, None]),
    ("cumulative", NARROW, ["A", None, NARROW, None]),
    ("cumulative", SAME, [None, None, SAME, ABCD]),
    ("approval", ("C",), ["C", None, None, ("C",)]),
    ("approval", ("C", "A"), [None, None, None, ("C", "A")]),
    ("approval", ABCD, [None, None, None, ABCD]),
    ("approval", (), [None, None, None, ()]),
    ("rich", BALLOT, ["B", ORDER, APART, ("B",)]),
]


@pytest.mark.parametrize(("form", "ballot", "cast"), DETERMINED)
def test_a_ballot_determines_another_where_exactly_one_fits(form, ballot, cast):
    for protocol, expected in zip(PROTOCOLS, cast, strict=True):
        assert cast_as(ballot, form=form, protocol=protocol) == expected


def falls(masses, order):
    return all(masses[x] >= masses[y] for x, y in pairwise(order))


def is_upper_level_set(points, names):
    others = [x for x in ABCD if x not in names]
    return bool(names) and all(points[x] > points[y] for x in names for y in others)


def reply_of(order, cuts, bar):
    """Points that fall along the order and sum to 25."""
    points = sorted((b - a for a, b in pairwise([0, *sorted(cuts), 25])), reverse=True)
    parts = [f"{label}={n}" for label, n in zip(order, points, strict=True)]
    return f"{','.join(parts[:bar])}|{','.join(parts[bar:])}"


rich_replies = st.builds(
    reply_of,
    st.permutations(ABCD),
    st.lists(st.integers(0, 25), min_size=3, max_size=3),
    st.integers(1, 4),
)


@given(rich_replies)
def test_the_four_ballots_of_a_rich_one_are_consistent_with_one_another(reply):
    ballot = read_ballot(reply, ABCD, form="rich")
    if ballot is None:  # the bar stands between equal points
        return
    cast = {p: cast_as(ballot, form="rich", protocol=p) for p in PROTOCOLS}
    order, points = cast["ranked"], cast["cumulative"]
    assert sorted(order) == list(ABCD)
    assert sum(points.values()) == 25
    assert cast["simple"] == order[0]
    assert points[order[0]] == max(points.values())
    assert falls(points, order)
    assert cast["approval"] == order[: len(cast["approval"])]
    assert is_upper_level_set(points, cast["approval"])


@given(rich_replies, st.sampled_from(PROTOCOLS), st.sampled_from(PROTOCOLS))
def test_what_a_ballot_determines_is_what_a_consistent_rich_ballot_says(reply, form, protocol):
    """A plain ballot and the rich one that it is part of never determine different ballots."""
    ballot = read_ballot(reply, ABCD, form="rich")
    if ballot is None:
        return
    plain = cast_as(ballot, form="rich", protocol=form)
    determined = cast_as(plain, form=form, protocol=protocol)
    if determined is None:
        return
    said = cast_as(ballot, form="rich", protocol=protocol)
    if protocol == "approval":
        determined, said = set(determined), set(said)
    assert determined == said


# --- Reading ballots: what counts as one, what it is worth, and what is repaired ------------------


def rich(approved, **points):
    """A rich ballot: points in the order of the arguments, approved so many of the first."""
    order = tuple(points)
    return RichBallot(points=points, order=order, approved=order[:approved])


BADC = rich(2, B=10, A=8, D=4, C=3)

FORMS = {
    ("simple", "B"): "B",
    ("ranked", "B,A,D,C"): ("B", "A", "D", "C"),
    ("cumulative", "A=10,B=5,C=5,D=5"): {"A": 10, "B": 5, "C": 5, "D": 5},
    ("cumulative", "D=25,C=0,B=0,A=0"): {"D": 25, "C": 0, "B": 0, "A": 0},
    ("approval", "A,C"): ("A", "C"),
    ("approval", "A,B,C,D"): ("A", "B", "C", "D"),
    ("approval", "none"): (),
    ("rich", "B=10,A=8|D=4,C=3"): BADC,
    ("rich", "D=25|C=0,B=0,A=0"): rich(1, D=25, C=0, B=0, A=0),
    # Nothing is left for behind the bar: all are approved, with or without points.
    ("rich", "B=10,A=8,D=4,C=3|"): rich(4, B=10, A=8, D=4, C=3),
    ("rich", "D=25,C=0,B=0,A=0|"): rich(4, D=25, C=0, B=0, A=0),
    # Equal points are in the order written, which is not that of the labels.
    ("rich", "D=9,B=9,A=7|C=0"): rich(3, D=9, B=9, A=7, C=0),
    ("rich", "D=9,B=9|A=7,C=0"): rich(2, D=9, B=9, A=7, C=0),
}

FORGIVEN = {
    ("simple", " b.\n"): "B",
    ("simple", "**B**"): "B",
    ("simple", "`B`"): "B",
    ("simple", "B\r\n"): "B",
    ("ranked", "b, a , D,C"): ("B", "A", "D", "C"),
    ("cumulative", "a = 10, b=5, C= 5, D =5"): {"A": 10, "B": 5, "C": 5, "D": 5},
    ("cumulative", "A=010,B=5,C=5,D=5"): {"A": 10, "B": 5, "C": 5, "D": 5},
    ("approval", "None."): (),
    ("approval", '"C, A"'): ("C", "A"),
    ("rich", " b = 10, a=8 | d=4 , c=3.\n"): BADC,
    ("rich", "**B=10, A=8 | D=4, C=3**"): BADC,
}

PEOPLE = {
    ("simple", "I choose the second.\nVote: B"): "B",
    ("simple", "[B]"): "B",
    ("ranked", "B > A > D > C"): ("B", "A", "D", "C"),
    ("ranked", "1. B\n2. A\n3. D\n4. C"): ("B", "A", "D", "C"),
    ("cumulative", "A: 10; B: 5; C: 5; D: 5"): {"A": 10, "B": 5, "C": 5, "D": 5},
    ("approval", "A and C"): ("A", "C"),
    ("approval", "A | C"): ("A", "C"),
    ("rich", "My ballot: B: 10; A: 8 | D: 4; C: 3"): BADC,
    ("rich", "B=10 > A=8 | D=4 > C=3"): BADC,
    ("rich", "B=10, A=8, | D=4, C=3"): BADC,
    ("rich", "B=10\nA=8\n|\nD=4\nC=3"): BADC,
    ("rich", "1. B = 10\n2. A = 8 |\n3. D = 4\n4. C = 3"): BADC,
    ("rich", "B=25|A=0,C=0,D=0 is my draft.\nFinal: [B=10, A=8 | D=4, C=3]"): BADC,
}

CONTRADICTIONS = [
    "", "B", "B,A|D,C",
    # The order against the points.
    "A=8,B=10|D=4,C=3", "B=10,A=8|C=3,D=4", "A=3,B=4,C=8,D=10|",
    # The bar between equal points.
    "B=9|A=9,D=4,C=3", "B=10,A=15,D=0|C=0", "B=10,A=8,D=7|C=0,C=0", "B=13,A=12,D=0|C=0",
    # No bar, two, or one before everything.
    "B=10,A=8,D=4,C=3", "B=10|A=8|D=4,C=3", "|B=10,A=8,D=4,C=3", "|",
    # A label missing, twice or unknown.
    "B=10,A=8|D=7", "B=10,A=8|D=4,B=3", "B=10,A=8|D=4,C=2,D=1", "B=10,A=8|D=4,E=3",
    # Another sum, parts of points.
    "B=10,A=8|D=4,C=2", "B=20,A=16|D=8,C=6", "B=0,A=0,D=0,C=0|", "B=10.5,A=7.5|D=4,C=3",
    "B=26,A=0,D=0|C=-1",
]  # fmt: skip
"""Rich replies whose parts contradict each other or are not all there."""

MALFORMED = {
    "simple": ["", "E", "AB", "A,B", "I vote for B", "none", "B\nbecause it is short"],
    "ranked": ["B,A,D", "B,A,D,D", "B,A,D,C,A", "B,A,D,E", "BADC"],
    "cumulative": [
        "A=10,B=5,C=5,D=4", "A=30,B=-5,C=0,D=0", "A=12.5,B=12.5,C=0,D=0", "A=25",
        "A=10,A=5,C=5,D=5", "10,5,5,5", "A=٢٥,B=0,C=0,D=0",
    ],
    "approval": ["", "A,A", "A,none", "A,E", "A,"],
    "rich": ["B=10,A=8,|D=4,C=3", "B=10,A=8|,D=4,C=3", *CONTRADICTIONS],
}  # fmt: skip


@pytest.mark.parametrize(("case", "expected"), FORMS.items())
@pytest.mark.parametrize("reading", READINGS)
def test_every_reading_reads_the_form_that_the_prompt_asks_for(case, expected, reading):
    protocol, reply = case
    assert read_ballot(reply, ABCD, form=protocol, reading=reading) == expected


@pytest.mark.parametrize(("case", "expected"), FORGIVEN.items())
def test_the_standard_reading_forgives_case_spaces_and_wrapping(case, expected):
    protocol, reply = case
    assert read_ballot(reply, ABCD, form=protocol) == expected


@pytest.mark.parametrize(("case", "expected"), PEOPLE.items())
def test_only_the_lenient_reading_takes_what_people_write(case, expected):
    protocol, reply = case
    assert read_ballot(reply, ABCD, form=protocol) is None
    assert read_ballot(reply, ABCD, form=protocol, reading="lenient") == expected


@pytest.mark.parametrize(("protocol", "reply"), [(p, r) for p in MALFORMED for r in MALFORMED[p]])
@pytest.mark.parametrize("reading", ["strict", "standard"])
def test_a_malformed_reply_is_no_ballot(protocol, reply, reading):
    assert read_ballot(reply, ABCD, form=protocol, reading=reading) is None


def test_the_strict_reading_forgives_surrounding_space_only():
    assert read_ballot(" B\n", ABCD, form="simple", reading="strict") == "B"
    assert read_ballot("b", ABCD, form="simple", reading="strict") is None
    assert read_ballot("B,A, D,C", ABCD, form="ranked", reading="strict") is None


def test_a_tied_pair_is_voted_on_with_two_labels():
    assert read_ballot("B,A", ("A", "B"), form="ranked") == ("B", "A")
    assert read_ballot("C", ("A", "B"), form="simple") is None
    assert read_ballot("A=25,B=0", ("A", "B"), form="cumulative") == {"A": 25, "B": 0}


def test_points_must_sum_to_the_budget_of_the_study():
    assert read_ballot("A=6,B=4", ("A", "B"), form="cumulative", budget=10) is not None
    assert read_ballot("A=6,B=4", ("A", "B"), form="cumulative") is None


@pytest.mark.parametrize("reply", CONTRADICTIONS)
def test_no_reading_takes_a_rich_ballot_that_contradicts_itself(reply):
    assert read_ballot(reply, ABCD, form="rich", reading="lenient") is None


@pytest.mark.parametrize("protocol", BALLOT_FORMATS)
@pytest.mark.parametrize("count", range(2, 9))
def test_the_example_in_the_prompt_is_a_ballot(protocol, count):
    labels = tuple(LABELS[:count])
    for budget in (1, 2, 3, 7, 8, 25, 36, 100, 999_983, 1_000_000):
        example = RULES[protocol].example(labels, budget)
        read = read_ballot(example, labels, form=protocol, budget=budget, reading="strict")
        assert read is not None


REPAIRS = {
    # 24 points: shares 25/24 x (10, 5, 5, 4) = 10.42 5.21 5.21 4.17; floors 10 5 5 4 leave one,
    # which goes to the largest remainder, A.
    "A=10,B=5,C=5,D=4": {"A": 11, "B": 5, "C": 5, "D": 4},
    # 30 points: 25/30 x (15, 5, 5, 5) = 12.5 4.17 4.17 4.17; floors 24, one left for A (.5).
    "A=15,B=5,C=5,D=5": {"A": 13, "B": 4, "C": 4, "D": 4},
    # 100 points: quarters exactly.
    "A=40,B=20,C=20,D=20": {"A": 10, "B": 5, "C": 5, "D": 5},
    # 4 points: 6.25 each; floors 24, equal remainders: one to the first label.
    "A=1,B=1,C=1,D=1": {"A": 7, "B": 6, "C": 6, "D": 6},
    # 3 points, D left out: 8.33 each, one left to the first label.
    "A=1,B=1,C=1": {"A": 9, "B": 8, "C": 8, "D": 0},
    # 7 points: 25/7 x (0, 2, 2, 3) = 0 7.14 7.14 10.71; floors 24, one to D.
    "A=0,B=2,C=2,D=3": {"A": 0, "B": 7, "C": 7, "D": 11},
    # 6 points: 25/6 x (1, 1, 1, 3) = 4.17 4.17 4.17 12.5; floors 24, one to D.
    "D=3, C=1, B=1, A=1": {"A": 4, "B": 4, "C": 4, "D": 13},
}


@pytest.mark.parametrize(("reply", "expected"), REPAIRS.items())
def test_points_are_rescaled_by_largest_remainder(reply, expected):
    assert repair_ballot(reply, ABCD, form="cumulative") == expected


@pytest.mark.parametrize("reply", ["", "A=0,B=0,C=0,D=0", "A=-1,B=26", "B", "A=1,E=5", "A=1,A=2"])
def test_what_holds_no_points_is_not_repaired(reply):
    assert repair_ballot(reply, ABCD, form="cumulative") is None


@given(
    st.lists(st.integers(0, 10**9 - 1), min_size=2, max_size=8).filter(any), st.integers(1, 1000)
)
def test_a_repair_sums_to_the_budget_and_keeps_the_order(points, budget):
    labels = LABELS[: len(points)]
    reply = ",".join(f"{label}={n}" for label, n in zip(labels, points, strict=True))
    repaired = repair_ballot(reply, tuple(labels), form="cumulative", budget=budget)
    assert sum(repaired.values()) == budget
    total = sum(points)
    for label, given_points in zip(labels, points, strict=True):
        assert abs(repaired[label] * total - given_points * budget) < total
    if total == budget:
        assert list(repaired.values()) == points


RICH_REPAIRS = {
    # 24 points: 25/24 x (10, 8, 4, 2) = 10.42 8.33 4.17 2.08; floors 24, one to B.
    "B=10,A=8|D=4,C=2": rich(2, B=11, A=8, D=4, C=2),
    # Twice the budget: halves exactly.
    "B=20,A=16|D=8,C=6": BADC,
    # 3 points: 8.33 each; floors 24, and equal remainders go to the first in the order written.
    "D=1,B=1,A=1|C=0": rich(3, D=9, B=8, A=8, C=0),
    # 109 points: 9.17 6.88 4.59 4.36; floors 23, one to A and one to D, who stay above C.
    "B=40,A=30,D=20|C=19": rich(3, B=9, A=7, D=5, C=4),
}


@pytest.mark.parametrize(("reply", "expected"), RICH_REPAIRS.items())
def test_a_rich_ballot_with_another_sum_is_rescaled_and_keeps_order_and_bar(reply, expected):
    assert read_ballot(reply, ABCD, form="rich") is None
    assert repair_ballot(reply, ABCD, form="rich") == expected


@pytest.mark.parametrize(
    "reply",
    [
        # 25/1000 x (500, 499, 1, 0) = 12.5 12.48 0.03 0: 13 12 0 0, and the bar tells none apart.
        "B=500,A=499,D=1|C=0",
        "B=0,A=0,D=0,C=0|",
        "B=0,A=0|D=0,C=0",
        "A=8,B=11|D=4,C=3",
        "B=9|A=9,D=4,C=4",
        "B=10,A=9|D=5",
        "B=10,A=8,D=4,C=4",
        "B",
        "",
    ],
)
def test_a_rich_ballot_is_not_repaired_where_that_would_be_a_guess(reply):
    assert repair_ballot(reply, ABCD, form="rich") is None


@given(
    st.lists(st.integers(0, 10**6), min_size=2, max_size=8).filter(any),
    st.integers(0, 7),
    st.integers(1, 1000),
)
def test_a_repaired_rich_ballot_keeps_its_order_and_tells_the_same_apart_at_the_bar(
    points, bar, budget
):
    order = LABELS[: len(points)][::-1]
    given_points = dict(zip(order, sorted(points, reverse=True), strict=True))
    bar = 1 + bar % len(points)
    parts = [f"{label}={n}" for label, n in given_points.items()]
    reply = f"{','.join(parts[:bar])}|{','.join(parts[bar:])}"
    found = repair_ballot(reply, tuple(sorted(order)), form="rich", budget=budget)
    if found is None:
        return
    total = sum(points)
    assert (found.order, found.approved) == (tuple(order), tuple(order[:bar]))
    assert sum(found.points.values()) == budget
    assert all(abs(found.points[x] * total - n * budget) < total for x, n in given_points.items())


ballotish = st.text(alphabet="ABCDEabnoe=,.:;>1250 \n\t*`\"'|()-", max_size=40) | st.from_regex(
    r"[ABCD] ?[:=] ?1?[0-9](, ?[ABCD]=[0-9]){0,2} ?\|? ?([ABCD]=[0-9],?){0,3}", fullmatch=True
)
anything = st.text(st.characters(exclude_categories=()), max_size=60)
"""All of Unicode, lone surrogates among it."""


@pytest.mark.parametrize("protocol", BALLOT_FORMATS)
@given(ballotish | anything)
@example("ranked: A,B,C,D\n*B,A,C,D*")
@example("`\nB\n`")
def test_a_stricter_reading_never_reads_another_ballot_than_a_more_lenient_one(protocol, reply):
    strict, standard, lenient = (
        read_ballot(reply, ABCD, form=protocol, reading=reading) for reading in READINGS
    )
    if strict is not None:
        assert standard == strict
    if standard is not None:
        assert lenient == standard


@pytest.mark.parametrize("protocol", BALLOT_FORMATS)
@given(reply=ballotish | anything)
def test_whatever_is_read_is_a_ballot_over_the_labels_shown(protocol, reply):
    choice = read_ballot(reply, ABCD, form=protocol, reading="lenient")
    if protocol == "cumulative" and choice is not None:
        assert set(choice) == set(ABCD)
        assert sum(choice.values()) == 25
        assert min(choice.values()) >= 0
    elif protocol == "rich" and choice is not None:
        assert sorted(choice.order) == sorted(choice.points) == list(ABCD)
    elif choice is not None:
        assert set(choice) <= set(ABCD)
        assert len(set(choice)) == len(choice)
        assert protocol != "ranked" or len(choice) == 4
    repair_ballot(reply, ABCD, form=protocol)


@pytest.mark.parametrize(
    "filling", [" ", "\t", "A", ",", "=", "A,", "1", "\n", "*", "A=1,", "(", ";"]
)
@pytest.mark.parametrize("reading", READINGS)
def test_a_huge_reply_is_read_to_its_end(filling, reading):
    """A pattern that backtracks would not come back."""
    reply = "A" + filling * 10_000 + "B"
    for protocol in BALLOT_FORMATS:
        choice = read_ballot(reply, ABCD, form=protocol, reading=reading)
        named = choice or ()
        named = named.order if isinstance(named, RichBallot) else named
        assert set(named) <= set(ABCD)


# --- Decisions, with hand tallies -----------------------------------------------------------------

S, M, V, C = DEFAULT_ROLES


def cast(protocol, *choices, among=DEFAULT_ROLES):
    return [masses_of(choice, among, protocol=protocol) for choice in choices]


def test_the_largest_sum_wins():
    # m 2, v 1, c 1
    decision = decide(cast("simple", M, M, V, C), DEFAULT_ROLES, order=DEFAULT_ROLES)
    assert decision.tallies == {S: 0, M: 2, V: 1, C: 1}
    assert (decision.winner, decision.decided_by, decision.tied_set) == (M, "vote", ())
    assert [step.step for step in decision.steps] == ["vote_final"]
    assert decision.undecided == (M,)


def test_borda_points_count_down_to_zero():
    # s: 3+0+1+2 = 6, m: 2+3+0+3 = 8, v: 1+2+3+1 = 7, c: 0+1+2+0 = 3
    ballots = cast("ranked", (S, M, V, C), (M, V, C, S), (V, C, S, M), (M, S, V, C))
    decision = decide(ballots, DEFAULT_ROLES, order=DEFAULT_ROLES)
    assert decision.tallies == {S: 6, M: 8, V: 7, C: 3}
    assert decision.winner == M


def test_points_and_approvals_add_up():
    points = [{S: 10, M: 5, V: 5, C: 5}, {S: 0, M: 0, V: 25, C: 0}, {S: 6, M: 6, V: 6, C: 7}]
    decision = decide(points, DEFAULT_ROLES, order=DEFAULT_ROLES)
    assert decision.tallies == {S: 16, M: 11, V: 36, C: 12}
    approved = cast("approval", (S, C), (), (C,), (M, S, C))
    assert decide(approved, DEFAULT_ROLES, order=DEFAULT_ROLES).tallies == {S: 2, M: 1, V: 0, C: 3}


def test_a_tie_round_that_resolves_decides():
    final = cast("simple", S, S, V, V)
    tie = cast("simple", V, V, S, V, among=(S, V))  # v 3, s 1
    decision = decide(final, DEFAULT_ROLES, order=DEFAULT_ROLES, tie_round=tie)
    assert (decision.winner, decision.decided_by, decision.tied_set) == (V, "tie_round", (S, V))
    values = [(step.step, step.remaining) for step in decision.steps]
    assert values == [("vote_final", (S, V)), ("tie_vote", (V,))]
    assert decision.steps[1].tallies == {S: 1, V: 3}
    assert decision.tallies == {S: 2, M: 0, V: 2, C: 0}


def test_a_tie_that_narrows_from_four_to_two_falls_back_among_those_two():
    final = cast("simple", S, M, V, C)
    tie = cast("simple", V, C, V, C)  # v 2, c 2: the order's first two are out
    decision = decide(final, DEFAULT_ROLES, order=DEFAULT_ROLES, tie_round=tie)
    assert decision.tied_in_vote == DEFAULT_ROLES
    assert decision.tied_set == decision.undecided == (V, C)
    assert (decision.winner, decision.decided_by) == (V, "fallback")
    reverse = decide(final, DEFAULT_ROLES, order=(C, V, M, S), tie_round=tie)
    assert reverse.winner == C
    values = reverse.steps[-1].model_dump()
    assert values == {"step": "fallback", "tallies": None, "remaining": (C,)}


def test_a_tie_that_holds_goes_to_the_order():
    final = cast("simple", M, M, C, C)
    tie = cast("simple", C, M, M, C, among=(M, C))
    decision = decide(final, DEFAULT_ROLES, order=(V, C, S, M), tie_round=tie)
    assert (decision.winner, decision.decided_by, decision.undecided) == (C, "fallback", (M, C))


def test_without_a_tie_round_the_order_decides_at_once():
    decision = decide(cast("simple", M, C), DEFAULT_ROLES, order=(C, V, S, M))
    assert (decision.winner, decision.decided_by) == (C, "fallback")
    assert [step.step for step in decision.steps] == ["vote_final", "fallback"]


def test_a_tie_round_is_not_looked_at_when_nothing_was_tied():
    tie = cast("simple", C, among=(M, C))
    decision = decide(cast("simple", M), DEFAULT_ROLES, order=DEFAULT_ROLES, tie_round=tie)
    assert (decision.winner, decision.decided_by) == (M, "vote")


@pytest.mark.parametrize("ballots", [[], [{}, {}, {}, {}]])
def test_everybody_is_tied_when_all_abstain(ballots):
    decision = decide(ballots, DEFAULT_ROLES, order=(V, C, S, M), tie_round=ballots)
    assert decision.tied_set == decision.undecided == DEFAULT_ROLES
    assert (decision.winner, decision.decided_by) == (V, "fallback")


def choices(protocol):
    one = st.sampled_from(DEFAULT_ROLES)
    points = st.lists(st.integers(0, 25), min_size=3, max_size=3).map(sorted)

    def parted(cut):
        parts = (cut[0], cut[1] - cut[0], cut[2] - cut[1], 25 - cut[2])
        return dict(zip(DEFAULT_ROLES, parts, strict=True))

    return {
        "simple": one,
        "ranked": st.permutations(DEFAULT_ROLES).map(tuple),
        "approval": st.sets(one).map(lambda chosen: tuple(sorted(chosen))),
        "cumulative": points.map(parted),
    }[protocol]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
def test_the_winner_leads_and_voters_are_interchangeable(protocol, data):
    ballots = cast(protocol, *data.draw(st.lists(choices(protocol) | st.none(), max_size=6)))
    tie = cast(protocol, *data.draw(st.lists(choices(protocol), max_size=6)))
    order = data.draw(st.permutations(DEFAULT_ROLES))
    decision = decide(ballots, DEFAULT_ROLES, order=order, tie_round=tie)
    standing = leaders(tally(ballots, DEFAULT_ROLES))
    assert decision.winner in standing
    assert decision.winner in decision.undecided
    assert set(decision.undecided) <= set(standing)
    assert (decision.decided_by == "vote") == (len(standing) == 1)
    if decision.decided_by == "fallback":
        assert decision.winner == first_in_order(decision.undecided, order)
        assert len(decision.undecided) > 1
    shuffled = data.draw(st.permutations(ballots))
    assert decide(shuffled, DEFAULT_ROLES, order=order, tie_round=tie[::-1]) == decision


@given(st.permutations(DEFAULT_ROLES), st.lists(st.sampled_from(DEFAULT_ROLES), max_size=5))
def test_the_order_of_candidates_changes_no_winner(candidates, named):
    ballots = cast("simple", *named)
    one = decide(ballots, DEFAULT_ROLES, order=DEFAULT_ROLES)
    other = decide(ballots, candidates, order=DEFAULT_ROLES)
    values = (one.winner, one.tallies, set(one.tied_set))
    assert values == (other.winner, other.tallies, set(other.tied_set))


# --- Sums and ties --------------------------------------------------------------------------------

ROLES = ("s", "m", "v", "c")
votes = st.lists(st.dictionaries(st.sampled_from(ROLES), st.integers(0, 25)), max_size=8)


def test_masses_add_up_and_absent_candidates_stay_at_zero():
    assert tally([{"m": 2, "v": 1}, {}, {"m": 1}], ROLES) == {"s": 0, "m": 3, "v": 1, "c": 0}


def test_mass_for_somebody_who_does_not_stand_is_not_counted():
    assert tally([{"s": 3, "v": 1}], ("v", "c")) == {"v": 1, "c": 0}


def test_no_ballots_leave_everybody_leading():
    assert leaders(tally([], ROLES)) == ROLES


def test_leaders_are_all_with_the_largest_total():
    assert leaders({"s": 2, "m": 3, "v": 3, "c": 0}) == ("m", "v")


@given(votes, st.randoms(use_true_random=False))
def test_the_order_of_ballots_does_not_matter(ballots, random):
    shuffled = list(ballots)
    random.shuffle(shuffled)
    assert tally(shuffled, ROLES) == tally(ballots, ROLES)


def test_the_first_of_the_tied_in_the_order_is_taken():
    assert first_in_order(("s", "v"), ("c", "v", "m", "s")) == "v"


def test_an_order_without_the_tied_is_an_error_and_no_silent_pick():
    with pytest.raises(ValueError, match="no candidate"):
        first_in_order(("s",), ("m", "v"))
