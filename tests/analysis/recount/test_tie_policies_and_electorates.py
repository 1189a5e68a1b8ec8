"""Tie policies and other electorates, by hand."""

import pytest

from tests.reference.cases import decided, decided_without_each, gather
from tests.reference.turns import read_turns
from tutorsim.analysis.ballots.convert_to_long_format import read_own
from tutorsim.analysis.ballots.reading_options import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.recount import recount

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
def recounted(panel_turn, panel_episode, panel_source):
    """Recount one episode of turns under no target."""

    def run(*turns, **settings):
        numbered = [turn.model_copy(update={"turn": i}) for i, turn in enumerate(turns, start=1)]
        scores = [0.1] * (len(turns) + 1)
        return recount(
            panel_source(panel_episode(*numbered, scores=scores), **settings), targets=[]
        )

    return run


def test_tie_policies_by_hand(panel_turn, recounted):
    # Turn 1: m and v tie 2:2, the tie round elects v. Turn 2: the same tie, tied again, m by order.
    tied = panel_votes(M, M, V, V)
    decided = panel_turn("simple", tied, tie=panel_votes(V, V, V, M))
    again = panel_turn("simple", tied, tie=panel_votes(V, V, M, M))
    clear = panel_turn("simple", panel_votes(C, C, C, M))
    result = recounted(decided, again, clear)
    rows = {row.policy: row for row in result.policies if row.protocol is None}
    wins = {name: {c: x.exact for c, x in row.wins.items()} for name, row in rows.items()}
    assert wins["logged"] == wins["tie_round"] == {S: "0", M: "1", V: "1", C: "1"}
    assert wins["no_tie_round"] == {S: "0", M: "2", V: "0", C: "1"}
    assert wins["random"] == {S: "0", M: "1/2", V: "3/2", C: "1"}
    assert wins["random_no_tie_round"] == {S: "0", M: "1", V: "1", C: "1"}
    changed = {name: row.changed.exact for name, row in rows.items()}
    assert changed == {
        "logged": "0",
        "tie_round": "0",
        "no_tie_round": "1",
        "random": "1/2",
        "random_no_tie_round": "1",
    }


def test_without_deliberation_is_the_first_vote(panel_turn, recounted):
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


def test_leaving_a_voter_out_can_open_a_tie_or_change_the_winner(panel_turn, recounted):
    # m 2, s 1, v 1. Without s's vote (for m): m, s, v tie, which nobody voted on; order: s.
    result = recounted(panel_turn("simple", panel_votes(M, M, S, V)))
    assert bounds(scenario(result, "leave_one_out", S)) == (0, 1, 1)
    assert scenario(result, "leave_one_out", S).open_ties == 1
    # Without v's vote (for s) m still leads.
    assert bounds(scenario(result, "leave_one_out", V)) == (0, 0, 0)
    assert bounds(scenario(result, "leave_one_out")) == (0, 1, 1)


def test_a_tie_round_counts_again_without_the_voter(panel_turn, recounted):
    # m and v tie 1:1 with two abstentions; the round elects v 3:1, also without s.
    # Without the abstaining s the tied set is the same, and so is the round without s: v 2:1.
    turn = panel_turn("simple", panel_votes(None, M, V, None), tie=panel_votes(V, M, V, V))
    row = scenario(recounted(turn), "leave_one_out", S)
    assert bounds(row) == (0, 0, 0)
    assert row.open_ties == 0


def test_own_votes_lose_their_mass_and_the_others_keep_theirs(panel_turn, recounted):
    # s and m vote for themselves, v and c for m: m 3. Without own votes m 2, s 0.
    keeps = panel_turn("simple", panel_votes(S, M, M, M))
    # s, m for s; v, c for v and itself: s 2 own 1, v 2 (v own), c votes v. s 1 by m, v 1 by c.
    loses = panel_turn("simple", panel_votes(S, S, V, V), tie=panel_votes(V, V, V, V))
    row = scenario(recounted(keeps, loses), "no_own_votes")
    assert row.turns == 2
    # The second is tied as logged, between s and v; the round without v's own vote still elects v.
    assert bounds(row) == (0, 0, 0)


def test_a_ranking_keeps_its_points_when_the_own_place_is_not_counted(panel_turn, recounted):
    own_first = {S: (S, M, V, C), M: (M, S, V, C), V: (S, M, V, C), C: (S, V, M, C)}
    # s 3+2+3+3 = 11, m 2+3+2+1 = 8. Own mass off: s 8, m 5, v 1+1+0+2 = 4, c 0.
    row = scenario(recounted(panel_turn("ranked", own_first)), "no_own_votes")
    assert row.wins[S].lower == 1
    assert bounds(row) == (0, 0, 0)


def test_votes_weighed_by_stated_confidence(panel_turn, recounted):
    votes = panel_votes(S, S, S, V)
    sure = panel_turn("simple", votes, confidence={S: 10, M: 10, V: 10, C: 90})
    silent = panel_turn("simple", votes, confidence={S: 10, M: 10, V: 10})
    row = scenario(recounted(sure, silent), "confidence_weighted")
    # 30 for s, 90 for v in the first turn; the second lacks c's confidence.
    assert (row.turns, row.not_computable) == (1, 1)
    assert row.wins[V].lower == 1
    assert bounds(row) == (1, 1, 1)


def test_all_confidences_zero_tie_everybody(panel_turn, recounted):
    turn = panel_turn("simple", panel_votes(V, V, V, V), confidence={S: 0, M: 0, V: 0, C: 0})
    row = scenario(recounted(turn), "confidence_weighted")
    assert row.open_ties == 1
    assert bounds(row) == (0, 1, 1)


def test_leaving_each_voter_out_is_leaving_out_one_after_the_other(
    panel_turn, panel_episode, panel_source
):
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
