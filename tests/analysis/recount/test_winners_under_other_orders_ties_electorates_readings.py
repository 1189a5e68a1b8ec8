"""Every fallback order from counts of tied sets."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import factorial
from random import Random

import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tests.reference.cases import decided, decided_without_each, gather
from tests.reference.turns import read_turns
from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import read_own
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.decided_turns_of_one_format_and_outcome_counts import (
    Ended,
    RecountCounts,
    outcome_tables,
)
from tutorsim.analysis.recount.result_models import Interval
from tutorsim.analysis.recount.tables import listed_orders_table
from tutorsim.analysis.recount.winners_under_other_orders_ties_electorates_readings import (
    order_table,
    read_again,
    sweep_orders,
    tied_sets,
)
from tutorsim.ballot_reading_and_decisions import first_in_order
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import DEFAULT_ROLES

ABC = ("a", "b", "c")


def tied(**counts):
    """`tied(ab=2, c=1)`: two turns tied between a and b, one won by c."""
    return {tuple(names): n for names, n in counts.items()}


def test_a_hand_count_of_all_six_orders():
    # a won 3 alone, b 1; 2 turns tied a b, 4 tied b c.
    table = order_table(tied(a=3, b=1, ab=2, bc=4), order=ABC, protocol=None)
    assert (table.turns, table.decided_by_order, table.orders) == (10, 6, 6)
    assert [(row.order, row.wins, row.changed) for row in table.listed] == [
        (("a", "b", "c"), {"a": 5, "b": 5, "c": 0}, 0),
        (("a", "c", "b"), {"a": 5, "b": 1, "c": 4}, 4),
        (("b", "a", "c"), {"a": 3, "b": 7, "c": 0}, 2),
        (("b", "c", "a"), {"a": 3, "b": 7, "c": 0}, 2),
        (("c", "a", "b"), {"a": 5, "b": 1, "c": 4}, 4),
        (("c", "b", "a"), {"a": 3, "b": 3, "c": 4}, 6),
    ]
    a, b, c = table.candidates
    assert (a.logged, a.least, a.most, a.expected, a.robust, a.by_order) == (
        5, 3, 5, 4, 3, 2,
    )  # fmt: skip
    assert (b.least, b.most, b.expected) == (1, 7, 4)
    assert (c.least, c.most, c.expected, c.robust) == (0, 4, 2, 0)
    assert a.share_by_order == Fraction(2, 5)
    assert c.share_by_order is None
    assert (table.changed_expected, table.changed_most) == (3, 6)


def test_the_sweep_agrees_with_picking_first_in_order_turn_by_turn():
    random = Random(1)
    names = "abcde"
    for _ in range(20):
        sets = ["".join(sorted(random.sample(names, random.randint(1, 5)))) for _ in range(12)]
        counts = tied(**{s: sets.count(s) for s in sets})
        wins, changed = sweep_orders(counts, order=names)
        for order, won in zip(permutations(names), wins.tolist(), strict=True):
            plain = [first_in_order(s, order) for s in sets]
            assert won == [plain.count(c) for c in names]
        table = order_table(counts, order=tuple(names), protocol=None)
        for column, role in enumerate(table.candidates):
            assert role.least == role.robust == wins[:, column].min()
            assert role.most == wins[:, column].max()
            mean = Fraction(int(wins[:, column].sum()), len(wins))
            assert role.expected == mean
        assert table.changed_most == changed.max()


@pytest.mark.costly
def test_eight_candidates_are_swept_and_summarised_but_not_listed():
    names = tuple("abcdefgh")
    table = order_table(tied(abcdefgh=5, h=2), order=names, protocol=None)
    assert (table.orders, table.listed, table.changed_most) == (40_320, (), 5)
    assert table.candidates[-1].most == 7


def test_with_many_candidates_the_extremes_are_still_exact():
    names = tuple("abcdefghijkl")
    table = order_table(tied(ab=3, kl=1, c=2), order=names, protocol=None)
    assert (table.changed_most, table.listed) == (None, ())
    assert len(order_table({}, order=names[:6], protocol=None).listed) == factorial(6)
    by_name = {role.candidate: role for role in table.candidates}
    assert (by_name["b"].logged, by_name["b"].most, by_name["l"].expected) == (0, 3, 1 / 2)


def test_more_orders_than_readers_of_json_hold_are_given_as_a_factorial():
    names = [f"c{i}" for i in range(19)]
    some, many = (order_table({}, order=names[:m], protocol=None) for m in (18, 19))
    assert some.model_dump(mode="json")["orders"] == factorial(18) < 2**53
    assert many.model_dump(mode="json")["orders"] == "19!"
    assert listed_orders_table(many) is None
    assert (some.many, many.many) == ("6,402,373,705,728,000", "19!")


class Compared(str):
    """A name that counts how often it is compared with another."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


def test_counting_takes_steps_per_turn_and_per_candidate_never_for_each_pair_of_them():
    names = [Compared(f"c{i}") for i in range(400)]
    sets = [tuple(names[i : i + 3]) for i in range(398)]
    Compared.times = 0
    table = order_table(dict.fromkeys(sets, 1), order=names, protocol=None)
    counted = outcome_tables([(standing, standing[0], 1) for standing in sets], names)
    assert Compared.times < 10 * 400  # of the 160,000 pairs
    assert [row.most for row in table.candidates[:4]] == [1, 2, 3, 3]
    assert counted.wins["c2"] == Interval(lower=0, point=1, upper=3)


def test_the_cost_of_a_sweep_does_not_depend_on_the_number_of_turns():
    few, many = tied(ab=1, abc=2), tied(ab=10**9, abc=2 * 10**9)
    scaled = sweep_orders(few, order=ABC)[0] * 10**9
    assert (sweep_orders(many, order=ABC)[0] == scaled).all()


def test_no_turns_give_a_table_of_zeros():
    table = order_table({}, order=ABC, protocol=None)
    assert (table.turns, table.changed_most, table.candidates[0].share_by_order) == (0, 0, None)
    assert table.changed_expected == 0


def test_tables_per_protocol_add_up_to_that_of_all():
    ab = ("a", "b")
    ended = {Ended("simple", ab, ab, "a"): 2, Ended("ranked", ab, ab, "a"): 3}
    counts = RecountCounts(ended=Counter(ended))
    both, ranked, simple = (
        order_table(tied_sets(of.ended), order=ABC, protocol=protocol)
        for protocol, of in counts.by_protocol.items()
    )
    assert (simple.turns, ranked.turns, both.turns) == (2, 3, 5)
    assert both.candidates[0].logged == 5


# --- Tie policies and electorates -----------------------------------------------------------------

S, M, V, C = "scaffolding", "misconception", "motivation", "metacognitive"


def panel_votes(*choices):
    """One simple vote per role, in role order."""
    return dict(zip((S, M, V, C), choices, strict=True))


def scenario(result, name, voter=None):
    [row] = [
        r for r in result.electorates if (r.scenario, r.voter, r.protocol) == (name, voter, None)
    ]
    return row


def bounds(row):
    return row.changed.lower, row.changed.point, row.changed.upper


@pytest.fixture
def recounted():
    """Recount one episode of turns under no target."""

    def run(*turns, **settings):
        numbered = [turn.model_copy(update={"turn": i}) for i, turn in enumerate(turns, start=1)]
        scores = [0.1] * (len(turns) + 1)
        return recount(
            panel_source(panel_episode(*numbered, scores=scores), **settings), targets=[]
        )

    return run


def test_tie_policies_by_hand(recounted):
    # Turn 1: m and v tie 2:2, the tie round elects v. Turn 2: the same tie, tied again, m by order.
    tied = panel_votes(M, M, V, V)
    decided = panel_turn("simple", tied, tie=panel_votes(V, V, V, M))
    again = panel_turn("simple", tied, tie=panel_votes(V, V, M, M))
    clear = panel_turn("simple", panel_votes(C, C, C, M))
    result = recounted(decided, again, clear)
    rows = {row.policy: row for row in result.policies if row.protocol is None}
    wins = {name: row.wins for name, row in rows.items()}
    assert wins["logged"] == wins["tie_round"] == {S: 0, M: 1, V: 1, C: 1}
    assert wins["no_tie_round"] == {S: 0, M: 2, V: 0, C: 1}
    assert wins["random"] == {S: 0, M: 1 / 2, V: 3 / 2, C: 1}
    assert wins["random_no_tie_round"] == {S: 0, M: 1, V: 1, C: 1}
    changed = {name: row.changed for name, row in rows.items()}
    assert changed == {
        "logged": 0,
        "tie_round": 0,
        "no_tie_round": 1,
        "random": 1 / 2,
        "random_no_tie_round": 1,
    }


def test_without_deliberation_is_the_first_vote(recounted):
    # First vote for v, final for m: changed for certain.
    flipped = panel_turn("simple", panel_votes(M, M, M, M), initial=panel_votes(V, V, V, M))
    # First vote tied between s and m, never put to a round; the order would pick s.
    open_tie = panel_turn("simple", panel_votes(M, M, M, M), initial=panel_votes(S, S, M, M))
    row = scenario(recounted(flipped, open_tie), "without_deliberation")
    assert (row.turns, row.not_computable, row.open_ties) == (2, 0, 1)
    assert bounds(row) == (1, 2, 2)
    s = row.wins[S]
    assert (s.lower, s.point, s.upper) == (0, 1, 1)
    assert row.wins[V].lower == 1


def test_leaving_a_voter_out_can_open_a_tie_or_change_the_winner(recounted):
    # m 2, s 1, v 1. Without s's vote (for m): m, s, v tie, which nobody voted on; order: s.
    result = recounted(panel_turn("simple", panel_votes(M, M, S, V)))
    assert bounds(scenario(result, "leave_one_out", S)) == (0, 1, 1)
    assert scenario(result, "leave_one_out", S).open_ties == 1
    # Without v's vote (for s) m still leads.
    assert bounds(scenario(result, "leave_one_out", V)) == (0, 0, 0)
    assert bounds(scenario(result, "leave_one_out")) == (0, 1, 1)


def test_a_tie_round_counts_again_without_the_voter(recounted):
    # m and v tie 1:1 with two abstentions; the round elects v 3:1, also without s.
    # Without the abstaining s the tied set is the same, and so is the round without s: v 2:1.
    turn = panel_turn("simple", panel_votes(None, M, V, None), tie=panel_votes(V, M, V, V))
    row = scenario(recounted(turn), "leave_one_out", S)
    assert bounds(row) == (0, 0, 0)
    assert row.open_ties == 0


def test_own_votes_lose_their_mass_and_the_others_keep_theirs(recounted):
    # s and m vote for themselves, v and c for m: m 3. Without own votes m 2, s 0.
    keeps = panel_turn("simple", panel_votes(S, M, M, M))
    # s, m for s; v, c for v and itself: s 2 own 1, v 2 (v own), c votes v. s 1 by m, v 1 by c.
    loses = panel_turn("simple", panel_votes(S, S, V, V), tie=panel_votes(V, V, V, V))
    row = scenario(recounted(keeps, loses), "no_own_votes")
    assert row.turns == 2
    # The second is tied as logged, between s and v; the round without v's own vote still elects v.
    assert bounds(row) == (0, 0, 0)


def test_a_ranking_keeps_its_points_when_the_own_place_is_not_counted(recounted):
    own_first = {S: (S, M, V, C), M: (M, S, V, C), V: (S, M, V, C), C: (S, V, M, C)}
    # s 3+2+3+3 = 11, m 2+3+2+1 = 8. Own mass off: s 8, m 5, v 1+1+0+2 = 4, c 0.
    row = scenario(recounted(panel_turn("ranked", own_first)), "no_own_votes")
    assert row.wins[S].lower == 1
    assert bounds(row) == (0, 0, 0)


def test_votes_weighed_by_stated_confidence(recounted):
    votes = panel_votes(S, S, None, V)
    sure = panel_turn("simple", votes, confidence={S: 10, M: 10, C: 90})
    silent = panel_turn("simple", votes, confidence={S: 10, M: 10, V: 10})
    row = scenario(recounted(sure, silent), "confidence_weighted")
    # 20 for s, 90 for v in the first turn, v abstains; the second lacks c's confidence.
    assert (row.turns, row.not_computable) == (1, 1)
    assert row.wins[V].lower == 1
    assert bounds(row) == (1, 1, 1)


def test_all_confidences_zero_tie_everybody(recounted):
    turn = panel_turn("simple", panel_votes(V, V, V, V), confidence={S: 0, M: 0, V: 0, C: 0})
    row = scenario(recounted(turn), "confidence_weighted")
    assert row.open_ties == 1
    assert bounds(row) == (0, 1, 1)


@pytest.mark.parametrize(("voters", "rows"), [(12, 12), (13, 0)])
def test_up_to_twelve_voters_are_left_out_by_name(voters, rows, tmp_path):
    (tmp_path / "b.csv").write_text("voter,vote\n" + "".join(f"v{i},a\n" for i in range(voters)))
    found = recount(open_source(tmp_path / "b.csv"), targets=[]).electorates
    assert [r.turns for r in found if r.protocol is None and r.voter] == [1] * rows


def test_leaving_each_voter_out_is_leaving_out_one_after_the_other():
    tied = panel_votes(S, M, S, M)
    turns = (
        panel_turn("simple", panel_votes(S, S, M, None)),
        panel_turn("simple", tied, tie=panel_votes(M, M, M, S), turn=2),
        panel_turn("simple", tied, tie=tied, turn=3),
    )
    source = panel_source(panel_episode(*turns, scores=(0.1, 0.2, 0.3, 0.4)))
    cases = gather(read_turns(source.ballots, fallback_order=source.fallback_order))
    assert len(cases) == 3
    for case in cases:
        one_by_one = [
            decided(
                case,
                order=(S, M, V, C),
                change=lambda ballots, out=voter: [pair for pair in ballots if pair[0] != out],  # type: ignore[misc]
            )
            for voter in case.final.voters
        ]
        assert decided_without_each(case, order=(S, M, V, C)) == one_by_one


@pytest.mark.parametrize("said", ["column", "file", "file of votes", "nothing"])
def test_own_votes_go_by_what_the_user_says_is_whose(tmp_path, said):
    """p is a tie of A and B that the order gives to A; without gpt's vote for its A it is B's."""
    rows = ("p,gpt,A,A", "p,bard,A,B", "p,claude,B,C", "p,other,B,", "q,gpt,B,A", "q,bard,B,C")
    file, own = tmp_path / "b.csv", tmp_path / "own.csv"
    file.write_text("\n".join(("poll,voter,choice,mine", *rows, "q,claude,A,B")))
    texts = {
        "file": "voter,candidate\ngpt,A\n",
        "file of votes": "poll,voter,candidate\np,gpt,A\nq,gpt,A\n",
    }
    hints = Hints(own="mine" if said == "column" else None)
    if said in texts:
        own.write_text(texts[said])
        hints = Hints(own_of=read_own(own))
    result = recount(open_source(file, hints=hints), targets=["simple"], order=("A", "B"))
    row = scenario(result, "no_own_votes")
    assert (row.turns, row.open_ties) == ((0, 0) if said == "nothing" else (2, 0))
    assert bounds(row) == ((0, 0, 0) if said == "nothing" else (1, 1, 1))


# --- Replies read again ---------------------------------------------------------------------------

ROLES = DEFAULT_ROLES
LABELS = dict(zip("ABCD", ROLES, strict=True))


def replied(raw, *, first=None, protocol="simple"):
    return BallotRecord(
        voter="v", protocol=protocol, labels=LABELS, raw=raw, parsed=None, mass={},
        ballot_status="abstained", attempts=1 if first is None else 2, raw_first=first,
    )  # fmt: skip


def read(ballot, reading):
    return read_again(ballot, candidates=ROLES, reading=reading, budget=25)


def test_each_reader_forgives_more_than_the_one_before():
    exact, quoted, chatty = replied("B"), replied("**b.**"), replied("I think so.\nVote: B")
    vote = {role: int(role == ROLES[1]) for role in ROLES}
    assert [read(b, "strict") for b in (exact, quoted, chatty)] == [vote, {}, {}]
    assert [read(b, "standard") for b in (exact, quoted, chatty)] == [vote, vote, {}]
    assert [read(b, "lenient") for b in (exact, quoted, chatty)] == [vote, vote, vote]


def test_the_first_reply_that_reads_counts():
    ballot = replied("A", first="Vote: B")
    assert read(ballot, "standard")[ROLES[0]] == 1
    assert read(ballot, "lenient")[ROLES[1]] == 1


def test_points_with_another_sum_are_rescaled_but_never_strictly():
    ballot = replied("A=5,B=5,C=0,D=0", first="none of them", protocol="cumulative")
    assert read(ballot, "strict") == {}
    assert list(read(ballot, "standard").values()) == [13, 12, 0, 0]


def test_a_ballot_counts_again_under_the_protocol_that_a_branch_counted_it_under():
    ranked = replace(replied("B,A,C,D", protocol="ranked"), counted_as="simple")
    assert list(read(ranked, "standard").values()) == [0, 1, 0, 0]
    # The points of A and B are equal: nobody can say whom a simple ballot would have named.
    points = replied("A=10,B=10,C=5,D=0", protocol="cumulative")
    assert read(replace(points, counted_as="simple"), "standard") == {}


def test_winners_that_another_reader_changes():
    s, m, v, c = ROLES
    turn = panel_turn("simple", {s: m, m: m, v: v, c: None})
    raws = {s: "B", m: "b.", v: "C", c: "my vote: C"}
    ballots = tuple(replace(b, raw=raws[b.voter]) for b in turn.ballots_final)
    episode = panel_episode(turn.model_copy(update={"ballots_final": ballots}))
    result = recount(panel_source(episode), targets=[])
    rows = {row.reading: row for row in result.readings if row.protocol is None}
    # Strict: B, C and two abstentions: m and v tie, never put to a round; the order picks m.
    strict = rows["strict"]
    assert (strict.ballots_changed, strict.abstained, strict.open_ties) == (1, 2, 1)
    assert (strict.changed.lower, strict.changed.point, strict.changed.upper) == (0, 0, 1)
    # Standard: as logged.
    assert (rows["standard"].ballots_changed, rows["standard"].changed.upper) == (0, 0)
    # Lenient: m 2, v 2, again open.
    assert (rows["lenient"].abstained, rows["lenient"].open_ties) == (0, 1)


def test_turns_without_replies_are_counted_and_not_guessed():
    turn = panel_turn("simple", dict.fromkeys(ROLES, ROLES[0]))
    silent = tuple(replace(b, raw="A" * (b.voter == ROLES[0])) for b in turn.ballots_final)
    episode = panel_episode(turn.model_copy(update={"ballots_final": silent}))
    [row] = [
        r
        for r in recount(panel_source(episode), targets=[]).readings
        if (r.reading, r.protocol) == ("strict", None)
    ]
    assert (row.turns, row.not_computable, row.ballots) == (0, 1, 0)


def test_a_vote_of_one_voter_is_read_again():
    turn = panel_turn("simple", dict.fromkeys(ROLES, ROLES[1]))
    [one] = [replace(b, raw="B") for b in turn.ballots_final if b.voter == ROLES[0]]
    episode = panel_episode(turn.model_copy(update={"ballots_final": (one,)}))
    rows = recount(panel_source(episode), targets=[]).readings
    assert [row.turns for row in rows if row.protocol is None] == [1, 1, 1]
