"""The single tutor."""


def test_its_draft_is_delivered_without_a_vote(make_scene, script):
    played = script()
    record = played.play(make_scene(conditions=["baseline"], max_turns=2))
    assert played.keys == [
        "0/student/student/1",
        "0/judge/judge/1",
        "1/propose/baseline/1",
        "1/student/student/1",
        "1/judge/judge/1",
        "2/propose/baseline/1",
        "2/student/student/1",
        "2/judge/judge/1",
    ]
    turn = record.turns[1]
    assert turn.delivered == "propose «baseline»"
    assert turn.proposals_initial == turn.proposals_final
    assert list(turn.proposals_final) == ["baseline"]
    assert (turn.reviews, turn.ballots_initial, turn.ballots_final) == ((), (), ())
    assert turn.tie_round is None
    assert turn.decision is None
    assert "propose «baseline»" in played.prompt("2/student/student/1")


def test_an_empty_draft_is_asked_for_again_and_then_delivered_empty(make_scene, script):
    played = script({"propose": ""})
    record = played.play(make_scene(conditions=["baseline"], max_turns=1))
    assert played.keys[2:4] == ["1/propose/baseline/1", "1/propose/baseline/2"]
    assert record.turns[0].proposals_final["baseline"].status == "missing"
    assert record.turns[0].delivered == ""
    assert record.status == "complete"
