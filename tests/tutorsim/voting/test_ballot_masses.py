"""What a ballot says: its masses, the roles behind its labels, and what it determines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.vocabularies import PROTOCOLS
from tutorsim.voting import RichBallot, cast_as, masses_of, read_ballot, resolve

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
    assert resolve({"A": 20, "B": 5, "C": 0}, labels) == {
        "motivation": 20,
        "scaffolding": 5,
        "misconception": 0,
    }
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
