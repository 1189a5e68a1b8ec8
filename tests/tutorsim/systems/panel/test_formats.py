"""Rich ballots, and diagnostic ballots in further formats, with tallies counted by hand."""

import pytest

from tutorsim.kernel.flow_drivers_and_call_log import Round, drive, scripted
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.vocabularies import BALLOT_FORMATS, CONDITIONS, DEFAULT_ROLES, PROTOCOLS

S, M, V, C = DEFAULT_ROLES

RICH = {
    f"vote_final/{S}": f"{S}=10,{M}=8|{V}=4,{C}=3",
    f"vote_final/{M}": f"{M}=12,{V}=7,{S}=6|{C}=0",
    f"vote_final/{V}": f"{V}=25|{S}=0,{M}=0,{C}=0",
    f"vote_final/{C}": f"{S}=9,{C}=8,{V}=4,{M}=4|",
}
TALLIES = {
    # First in the order: s of two, m and v of one.
    "simple": {S: 2, M: 1, V: 1, C: 0},
    # 3 to 0 along the orders: s 3+1+2+3, m 2+3+1+0, v 1+2+3+1, c 0+0+0+2.
    "ranked": {S: 9, M: 6, V: 7, C: 2},
    # s 10+6+0+9, m 8+12+0+4, v 4+7+25+4, c 3+0+0+8.
    "cumulative": {S: 25, M: 24, V: 40, C: 11},
    # {s m}, {m v s}, {v}, all.
    "approval": {S: 3, M: 3, V: 3, C: 1},
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rich_vote_is_counted_under_the_protocol_of_the_study(first_turn, protocol):
    tie = {"tie_vote": f"{V}=15|{M}=10,{S}=0", f"tie_vote/{M}": f"{M}=25|{V}=0,{S}=0"}
    turn, _ = first_turn({**RICH, **tie}, "rich", rich_protocol=protocol)
    assert turn.decision.tallies == TALLIES[protocol]
    for ballot in turn.ballots_final:
        assert (ballot.protocol, ballot.counted_as, ballot.rule) == ("rich", protocol, protocol)
    winner, by = {
        "simple": (S, "vote"),
        "ranked": (S, "vote"),
        "cumulative": (V, "vote"),
        "approval": (V, "tie_round"),
    }[protocol]
    assert (turn.decision.winner, turn.decision.decided_by) == (winner, by)


def test_a_tie_of_rich_ballots_is_voted_on_in_rich_ballots_among_the_tied(first_turn):
    # Approvals among s m v: v of three, m of one.
    tie = {"tie_vote": f"{V}=15|{M}=10,{S}=0", f"tie_vote/{M}": f"{M}=25|{V}=0,{S}=0"}
    turn, _ = first_turn({**RICH, **tie}, "rich", rich_protocol="approval")
    assert turn.tie_round.candidates == (S, M, V)
    assert turn.decision.steps[1].tallies == {S: 0, M: 1, V: 3}
    assert {ballot.protocol for ballot in turn.tie_round.ballots} == {"rich"}


def test_the_parsed_rich_ballot_is_in_roles(first_turn):
    turn, played = first_turn(RICH, "rich")
    ballot = turn.ballots_final[1]
    assert ballot.parsed.points == ballot.mass == {M: 12, V: 7, S: 6, C: 0}
    assert (ballot.parsed.order, ballot.parsed.approved) == ((M, V, S, C), (M, V, S))
    assert "exactly 25 points" in played.prompt(f"1/vote_final/{S}/1")


def test_a_rich_ballot_that_contradicts_itself_is_asked_for_again(first_turn):
    against = f"{S}=8,{M}=10|{V}=4,{C}=3"
    votes = {**RICH, f"vote_final/{S}/1": against, f"vote_final/{S}/2": RICH[f"vote_final/{S}"]}
    turn, played = first_turn(votes, "rich")
    ballot = turn.ballots_final[0]
    assert (ballot.ballot_status, ballot.attempts) == ("valid", 2)
    assert turn.decision.tallies == TALLIES["cumulative"]
    assert f"1/vote_final/{S}/2" in played.keys


@pytest.mark.parametrize(
    "reply",
    [
        f"{S}=8,{M}=10|{V}=4,{C}=3",
        f"{S}=9|{M}=9,{V}=4,{C}=3",
        f"{S}=10,{M}=8,{V}=4,{C}=3",
        f"{S}=20,{M}=8|{V}=9,{C}=3",
    ],
)
def test_a_voter_that_contradicts_itself_twice_abstains(first_turn, reply):
    turn, _ = first_turn({**RICH, f"vote_final/{S}": reply}, "rich")
    ballot = turn.ballots_final[0]
    assert (ballot.parsed, ballot.ballot_status, ballot.attempts) == (None, "abstained", 2)
    assert turn.decision.tallies == {S: 15, M: 16, V: 36, C: 8}


def test_rich_points_with_another_sum_are_rescaled_after_the_second_asking(first_turn):
    doubled = f"{S}=20,{M}=16|{V}=8,{C}=6"
    turn, _ = first_turn({**RICH, f"vote_final/{S}": doubled}, "rich")
    ballot = turn.ballots_final[0]
    assert (ballot.ballot_status, ballot.attempts) == ("repaired", 2)
    assert turn.decision.tallies == TALLIES["cumulative"]


PLAIN = {
    "vote_final": M,
    "vote_as_ranked": f"{C},{V},{S},{M}",
    "vote_as_cumulative": f"{V}=25,{S}=0,{M}=0,{C}=0",
    "vote_as_approval": "none",
    "vote_as_rich": f"{S}=15|{V}=10,{M}=0,{C}=0",
    "vote_as_score": f"{S}: 7\n{M}: 3\n{V}: 10\n{C}: 0",
}


def test_further_formats_are_asked_in_one_round_right_after_the_final_vote(make_scene, script):
    rounds = []
    answer = scripted(script(PLAIN))

    def world(effect):
        if isinstance(effect, Round):
            rounds.append([str(call.key) for call in effect.calls])
        return answer(effect)

    drive(episode(make_scene(max_turns=1, vote_formats=list(BALLOT_FORMATS))), world)
    place = rounds.index([f"1/vote_final/{role}/1" for role in DEFAULT_ROLES])
    assert rounds[place + 1] == [
        f"1/vote_as_{form}/{role}/1"
        for form in ("ranked", "cumulative", "approval", "rich", "score")
        for role in DEFAULT_ROLES
    ]
    assert rounds[place + 2] == ["1/student/student/1"]


def test_further_formats_show_the_final_vote_s_proposals_under_its_labels(first_turn):
    turn, played = first_turn(PLAIN, vote_formats=list(BALLOT_FORMATS))
    for ballot in turn.ballots_final:
        final = played.prompt(f"1/vote_final/{ballot.voter}/1")
        shown, _, _ = final.partition("Vote for the one best reply.")
        for form in BALLOT_FORMATS[1:]:
            asked = played.prompt(f"1/vote_as_{form}/{ballot.voter}/1")
            assert asked.startswith(shown)
            [other] = [one for one in turn.ballots_as[form] if one.voter == ballot.voter]
            assert other.labels == ballot.labels


def test_further_ballots_are_logged_and_never_decide(first_turn):
    without, _ = first_turn(PLAIN)
    turn, _ = first_turn(PLAIN, vote_formats=list(BALLOT_FORMATS))
    assert turn.decision == without.decision
    assert turn.decision.winner == M
    assert turn.model_copy(update={"ballots_as": {}}) == without
    assert list(turn.ballots_as) == ["ranked", "cumulative", "approval", "rich", "score"]
    assert turn.ballots_as["ranked"][0].mass == {S: 1, M: 0, V: 2, C: 3}
    assert turn.ballots_as["approval"][0].parsed == ()
    rich = turn.ballots_as["rich"][0]
    assert (rich.counted_as, rich.mass) == ("cumulative", {S: 15, M: 0, V: 10, C: 0})
    assert turn.ballots_as["score"][0].mass == {S: 7, M: 3, V: 10, C: 0}


def test_a_further_ballot_is_asked_for_again_and_then_an_abstention(first_turn):
    votes = {**PLAIN, f"vote_as_ranked/{V}": "the first one"}
    turn, played = first_turn(votes, vote_formats=["ranked", "approval"])
    ballot = turn.ballots_as["ranked"][2]
    assert (ballot.ballot_status, ballot.attempts, ballot.mass) == ("abstained", 2, {})
    assert f"1/vote_as_ranked/{V}/2" in played.keys


def test_the_condition_s_own_format_is_not_asked_for_twice(first_turn):
    turn, played = first_turn({"vote_final": M}, vote_formats=["simple"])
    assert turn.ballots_as == {}
    assert not any("vote_as" in key for key in played.keys)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("formats", [[], ["rich", "simple"], list(BALLOT_FORMATS)])
def test_the_range_of_calls_covers_further_formats(make_scene, script, condition, formats):
    scene = make_scene(conditions=[condition], vote_formats=formats, max_turns=2)
    calls = scene.loaded.call_range(scene.spec)
    everybody = {"vote_final": "?", "tie_vote": "?"}  # all abstain, so that all are tied
    played = script(everybody)
    played.play(scene)
    again = sum(key.endswith("/2") for key in played.keys)
    assert len(played.keys) - again == calls.most
    unread = dict.fromkeys(
        ("propose", "revise", "critique", "tie_critique", "student", "judge", "vote_initial"), ""
    ) | {f"vote_as_{form}": "?" for form in BALLOT_FORMATS}
    played = script(everybody | unread)
    played.play(scene)
    assert len(played.keys) == calls.ceiling
    played = script({"judge": "SCORE: 1"})
    played.play(scene)
    assert len(played.keys) == calls.least
