"""Turns of the panel, with outcomes counted by hand."""

import pytest

from tutorsim.vocabularies import DEFAULT_ROLES

S, M, V, C = DEFAULT_ROLES


@pytest.fixture
def first_turn(make_scene, script):
    """Play an episode of one turn: votes by `stage/voter` → ballot in role names."""

    def play(condition, votes, **settings):
        played = script(votes)
        record = played.play(make_scene(conditions=[condition], max_turns=1, **settings))
        [turn] = record.turns
        return turn, played

    return play


def votes(stage, *ballots, roles=DEFAULT_ROLES):
    return {f"{stage}/{role}": ballot for role, ballot in zip(roles, ballots, strict=True)}


PANEL = ("propose", "critique", "vote_initial", "revise", "vote_final")
TIE = ("tie_critique", "tie_vote")


def keys(stages, roles=DEFAULT_ROLES):
    return [f"1/{stage}/{role}/1" for stage in stages for role in roles]


@pytest.mark.parametrize("condition", ["simple", "ranked", "cumulative", "approval"])
def test_stages_come_in_order_and_each_is_one_call_per_role(first_turn, condition):
    won = {
        "simple": M,
        "ranked": f"{M},{S},{V},{C}",
        "cumulative": f"{M}=25,{S}=0,{V}=0,{C}=0",
        "approval": M,
    }[condition]
    turn, played = first_turn(condition, {"vote_final": won})
    assert played.keys[2:-2] == keys(PANEL)
    assert (turn.decision.winner, turn.decision.decided_by, turn.tie_round) == (M, "vote", None)
    assert turn.delivered == turn.proposals_final[M].text == f"revise «{M}»"


def test_a_tie_adds_two_stages_for_all_roles(first_turn):
    turn, played = first_turn("simple", votes("vote_final", S, M, M, S))
    assert played.keys[2:-2] == keys(PANEL + TIE)
    assert turn.tie_round.candidates == (S, M)
    assert [ballot.voter for ballot in turn.tie_round.ballots] == list(DEFAULT_ROLES)


def test_a_tie_that_resolves(first_turn):
    tie = votes("tie_vote", V, S, V, V)
    turn, _ = first_turn("simple", votes("vote_final", S, S, V, V) | tie)
    assert (turn.decision.winner, turn.decision.decided_by) == (V, "tie_round")
    assert turn.decision.tallies == {S: 2, M: 0, V: 2, C: 0}
    assert turn.decision.steps[1].tallies == {S: 1, V: 3}
    assert turn.delivered == f"revise «{V}»"


def test_a_tie_that_holds_goes_to_a_non_default_order(first_turn):
    tie = votes("tie_vote", S, C, S, C)
    turn, _ = first_turn(
        "simple", votes("vote_final", S, C, C, S) | tie, fallback_order=[V, C, M, S]
    )
    assert (turn.decision.winner, turn.decision.decided_by) == (C, "fallback")
    assert turn.decision.tied_set == (S, C)
    assert turn.delivered == f"revise «{C}»"


def test_a_tie_that_narrows_from_four_to_two_falls_back_among_the_two(first_turn):
    tie = votes("tie_vote", C, V, C, V)
    turn, _ = first_turn("simple", votes("vote_final", S, M, V, C) | tie)
    assert turn.decision.tied_in_vote == DEFAULT_ROLES
    assert turn.decision.tied_set == turn.decision.undecided == (V, C)
    assert (turn.decision.winner, turn.decision.decided_by) == (V, "fallback")


def test_ranked_ties_count_again_among_the_tied(first_turn):
    # Final: s 3+0+3+0 = 6, m 2+1+2+1 = 6, v 1+2+1+2 = 6, c 0+3+0+3 = 6.
    up, down = f"{S},{M},{V},{C}", f"{C},{V},{M},{S}"
    # Tie: s 3+3+0+0 = 6, m 2+2+3+2 = 9, v 1+0+2+3 = 6, c 0+1+1+1 = 3.
    tie = votes("tie_vote", up, f"{S},{M},{C},{V}", f"{M},{V},{C},{S}", f"{V},{M},{C},{S}")
    turn, _ = first_turn("ranked", votes("vote_final", up, down, up, down) | tie)
    assert turn.decision.tallies == dict.fromkeys(DEFAULT_ROLES, 6)
    assert turn.decision.steps[1].tallies == {S: 6, M: 9, V: 6, C: 3}
    assert (turn.decision.winner, turn.decision.decided_by) == (M, "tie_round")


def test_a_ranked_tie_of_two_gives_one_point_or_none(first_turn):
    # Final: s 3+3+2+2 = 10, m 2+2+3+3 = 10, v 1+1+1+1 = 4, c 0.
    one, two = f"{S},{M},{V},{C}", f"{M},{S},{V},{C}"
    tie = votes("tie_vote", f"{S},{M}", f"{S},{M}", f"{S},{M}", f"{M},{S}")
    turn, _ = first_turn("ranked", votes("vote_final", one, one, two, two) | tie)
    assert turn.decision.steps[1].tallies == {S: 3, M: 1}
    assert turn.tie_round.ballots[3].mass == {S: 0, M: 1}


def test_a_cumulative_tie_spends_the_whole_budget_again(first_turn):
    half = f"{S}=13,{M}=12,{V}=0,{C}=0"
    other = f"{S}=12,{M}=13,{V}=0,{C}=0"
    tie = votes("tie_vote", f"{S}=25,{M}=0", f"{S}=0,{M}=25", f"{S}=1,{M}=24", f"{S}=20,{M}=5")
    turn, _ = first_turn("cumulative", votes("vote_final", half, other, half, other) | tie)
    assert turn.decision.tallies == {S: 50, M: 50, V: 0, C: 0}
    assert turn.decision.steps[1].tallies == {S: 46, M: 54}
    assert turn.decision.winner == M


def test_approving_nobody_is_a_valid_ballot_without_mass(first_turn):
    turn, played = first_turn("approval", votes("vote_final", "none", f"{V},{C}", C, "none"))
    assert [ballot.ballot_status for ballot in turn.ballots_final] == ["valid"] * 4
    assert turn.ballots_final[0].parsed == ()
    assert turn.ballots_final[0].mass == dict.fromkeys(DEFAULT_ROLES, 0)
    assert turn.decision.tallies == {S: 0, M: 0, V: 1, C: 2}
    assert played.keys[2:-2] == keys(PANEL)


def test_the_first_vote_decides_nothing(first_turn):
    turn, _ = first_turn("simple", {"vote_initial": S, "vote_final": C})
    assert [ballot.parsed for ballot in turn.ballots_initial] == [S] * 4
    assert turn.decision.winner == C


def test_a_malformed_ballot_is_asked_for_once_more_with_a_reminder(first_turn):
    final = {"vote_final": M, f"vote_final/{V}/1": "I like B best", f"vote_final/{V}/2": C}
    turn, played = first_turn("simple", final)
    ballot = turn.ballots_final[2]
    assert (ballot.parsed, ballot.ballot_status, ballot.attempts) == (C, "valid", 2)
    assert ballot.raw_first == "I like B best"
    assert ballot.labels[ballot.raw] == C
    assert played.keys[18:24] == [
        *keys(["vote_final"]),
        f"1/vote_final/{V}/2",
        "1/student/student/1",
    ]
    first, second = (played.prompt(f"1/vote_final/{V}/{attempt}") for attempt in (1, 2))
    assert second.startswith(first)
    assert "could not be read as a ballot" in second[len(first) :]


@pytest.mark.parametrize("reply", ["", "B is good", "\ufffd", "A,B,C,D,E,F"])
def test_two_malformed_ballots_are_an_abstention(first_turn, reply):
    turn, _ = first_turn("simple", votes("vote_final", M, reply, M, C))
    ballot = turn.ballots_final[1]
    assert (ballot.parsed, ballot.ballot_status, ballot.mass) == (None, "abstained", {})
    assert (ballot.raw, ballot.raw_first, ballot.attempts) == (reply, reply, 2)
    assert turn.decision.tallies == {S: 0, M: 2, V: 0, C: 1}


def test_everybody_is_tied_when_all_abstain_twice(first_turn):
    turn, played = first_turn("ranked", {"vote_final": "?", "tie_vote": "?"})
    assert turn.decision.tied_set == turn.decision.undecided == DEFAULT_ROLES
    assert (turn.decision.winner, turn.decision.decided_by) == (S, "fallback")
    assert turn.tie_round.candidates == DEFAULT_ROLES
    assert sum("/2" in key for key in played.keys) == 8


def test_points_with_another_sum_are_asked_for_again_and_then_rescaled(first_turn):
    # 30 points, 25/30 x (15, 5, 5, 5) = 12.5 4.17 4.17 4.17: the one left goes to the half.
    wrong = f"{V}=15,{S}=5,{M}=5,{C}=5"
    turn, _ = first_turn("cumulative", {f"vote_final/{S}": wrong})
    ballot = turn.ballots_final[0]
    assert (ballot.ballot_status, ballot.attempts) == ("repaired", 2)
    assert ballot.mass == ballot.parsed == {V: 13, S: 4, M: 4, C: 4}


def test_a_second_ballot_with_the_right_sum_needs_no_repair(first_turn):
    wrong, right = f"{V}=15,{S}=5,{M}=5,{C}=5", f"{V}=10,{S}=5,{M}=5,{C}=5"
    turn, _ = first_turn("cumulative", {f"vote_final/{S}/1": wrong, f"vote_final/{S}/2": right})
    ballot = turn.ballots_final[0]
    assert (ballot.ballot_status, ballot.attempts, ballot.mass[V]) == ("valid", 2, 10)


def test_no_points_at_all_are_an_abstention(first_turn):
    turn, _ = first_turn("cumulative", {f"vote_final/{S}": f"{V}=0,{S}=0,{M}=0,{C}=0"})
    assert turn.ballots_final[0].ballot_status == "abstained"


@pytest.mark.parametrize(
    ("roles", "ballots", "tallies", "winner"),
    [
        # Three roles rank with 2, 1, 0 points: c 2+2+0 = 4, s 1+0+2 = 3, v 0+1+1 = 2.
        ((C, S, V), (f"{C},{S},{V}", f"{C},{V},{S}", f"{S},{V},{C}"), {C: 4, S: 3, V: 2}, C),
        # Five rank with 4 to 0: x 4+4+4+0+0 = 12, s 3+3+3+4+1 = 14, m 2+2+2+3+4 = 13,
        # v 1+1+0+2+3 = 7, c 0+0+1+1+2 = 4.
        (
            (S, M, V, C, "extra"),
            (
                f"extra,{S},{M},{V},{C}",
                f"extra,{S},{M},{V},{C}",
                f"extra,{S},{M},{C},{V}",
                f"{S},{M},{V},{C},extra",
                f"{M},{V},{C},{S},extra",
            ),
            {S: 14, M: 13, V: 7, C: 4, "extra": 12},
            S,
        ),
    ],
)
def test_three_and_five_roles(first_turn, roles, ballots, tallies, winner):
    extra = {"title": "extra tutor", "objective": "help otherwise", "means": "Say more."}
    turn, played = first_turn(
        "ranked",
        votes("vote_final", *ballots, roles=roles),
        roles=list(roles),
        catalog={"roles": {"extra": extra}},
    )
    assert played.keys[2:-2] == keys(PANEL, roles)
    assert turn.decision.tallies == tallies
    assert turn.decision.winner == winner
    assert list(turn.ballots_final[0].labels) == list("ABCDE"[: len(roles)])


def test_eight_roles_sit_on_the_largest_panel(first_turn):
    roles = [f"tutor_{n}" for n in "abcdefgh"]
    extra = {"title": "tutor", "objective": "help", "means": "Say more."}
    turn, played = first_turn(
        "approval",
        {"vote_final": "tutor_g,tutor_h", "vote_final/tutor_a": "tutor_h"},
        roles=roles,
        catalog={"roles": dict.fromkeys(roles, extra)},
    )
    assert played.keys[2:-2] == keys(PANEL, roles)
    assert turn.decision.tallies["tutor_h"] == 8
    assert turn.decision.winner == "tutor_h"


def test_a_missing_draft_stands_as_no_text_and_can_still_be_voted_for(first_turn):
    replies = {f"propose/{S}": "", f"revise/{M}": "Just help."}
    turn, played = first_turn("simple", replies)
    assert turn.proposals_initial[S].model_dump() == {
        "text": "",
        "rationale": None,
        "confidence": None,
        "status": "missing",
        "attempts": 2,
    }
    assert turn.proposals_final[M].text == "Just help."
    assert turn.proposals_final[M].status == "repaired"
    assert ": (no text)" in played.prompt(f"1/vote_initial/{M}/1")
    assert "  (no text)" in played.prompt(f"1/revise/{S}/1")


def test_a_missing_review_leaves_the_others(first_turn):
    turn, played = first_turn("simple", {f"critique/{S}": "nothing"})
    assert (turn.reviews[0].status, turn.reviews[0].notes) == ("missing", {})
    assert turn.reviews[1].status == "valid"
    assert f"{S} likes" not in played.prompt(f"1/revise/{M}/1")
    assert f"{V} likes {M}." in played.prompt(f"1/revise/{M}/1")


def test_notes_that_mention_a_label_reach_the_reviser_in_its_own_labels(make_scene, script):
    class Mentions(script):
        def _usual(self, call):
            if call.key.stage != "critique":
                return super()._usual(call)
            label = {role: label for label, role in self.shown(call.request.user).items()}
            return f"{label[M]}:\nSTRENGTH: Clearer than {label[C]}.\nWEAKNESS: None."

    played = Mentions()
    turn = played.play(make_scene(max_turns=1)).turns[0]
    for review in turn.reviews:
        [letter] = [label for label, role in review.labels.items() if role == C]
        assert review.notes == {M: review.notes[M]}
        assert review.notes[M].strength == f"Clearer than {letter}."
    for reader in (S, M, V):
        prompt = played.prompt(f"1/revise/{reader}/1")
        [letter] = [label for label, role in played.shown(prompt).items() if role == C]
        assert prompt.count(f"Clearer than {letter}.") == 4
        assert prompt.count("Clearer than") == 4


def test_the_study_s_budget_is_what_ballots_spend(first_turn):
    whole, twice = f"{V}=4,{S}=3,{M}=3,{C}=0", f"{V}=8,{S}=6,{M}=6,{C}=0"
    turn, played = first_turn(
        "cumulative", {"vote_final": whole, f"vote_final/{S}": twice}, cumulative_budget=10
    )
    assert [ballot.ballot_status for ballot in turn.ballots_final] == ["repaired", *["valid"] * 3]
    assert turn.decision.tallies == {S: 12, M: 12, V: 16, C: 0}
    assert "exactly 10 points" in played.prompt(f"1/vote_final/{S}/1")


def test_labels_are_drawn_for_each_stage_and_reader_of_the_turn(make_scene, script):
    scene = make_scene(max_turns=2)
    for turn in script().play(scene).turns:
        shown = {("critique", review.reviewer): review.labels for review in turn.reviews} | {
            (stage, ballot.voter): ballot.labels
            for stage, ballots in (
                ("vote_initial", turn.ballots_initial),
                ("vote_final", turn.ballots_final),
            )
            for ballot in ballots
        }
        assert len(shown) == 12
        for (stage, reader), labels in shown.items():
            drawn = scene.labels(DEFAULT_ROLES, turn=turn.turn, stage=stage, readers=[reader])
            assert labels == drawn[reader]


def test_a_tie_vote_comes_after_fresh_reviews_of_the_tied(first_turn):
    turn, played = first_turn("simple", votes("vote_final", S, M, M, S))
    assert [review.reviewer for review in turn.tie_round.reviews] == list(DEFAULT_ROLES)
    assert all(set(review.notes) == {S, M} for review in turn.tie_round.reviews)
    prompt = played.prompt(f"1/tie_vote/{C}/1")
    for reviewer in DEFAULT_ROLES:
        for role in (S, M):
            assert prompt.count(f"- Strength: {reviewer} likes {role}.\n") == 1
