"""One episode of a branch: the parent up to the cursor, and what the alternative makes of it."""

from dataclasses import dataclass, field, replace

import pytest

from tutorsim.kernel.flow import Round, drive, scripted
from tutorsim.records import Branch, BranchedEpisode, EpisodeRecord
from tutorsim.systems.panel.scene import Scene
from tutorsim.systems.panel.study import episode
from tutorsim.vocabularies import DEFAULT_ROLES

S, M, V, C = DEFAULT_ROLES
SWAPPED = (M, S, V, C)


@dataclass
class Continued:
    """A parent, one future of it, and the calls that the parent could not answer."""

    parent: EpisodeRecord
    record: EpisodeRecord
    paid: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    """Keys of calls marked as past a left path."""
    played: object = None
    """The script that answered what was paid for."""

    @property
    def stages(self):
        """Turn and stage of what was paid for, each once, in order."""
        return list(dict.fromkeys(tuple(key.split("/")[:2]) for key in self.paid))


@pytest.fixture
def branch(make_scene, script):
    """Play an episode, then a branch of it that may ask it for calls with the same request."""

    def play(replies, *, later=None, turn=1, changed=None, covered=False, **settings):
        scene = make_scene(**{"max_turns": 2, **settings})
        first = script(replies)
        recorded = {}

        def answer(call):
            recorded[call.key] = (call.request, first(call))
            return recorded[call.key][1]

        parent = drive(episode(scene), scripted(answer))
        name = scene.spec.episode_id
        winners = tuple(one.decision.winner for one in parent.turns if one.decision)
        value = Branch(
            parent="p",
            parent_study="0",
            parent_recording="0",
            covered=(name,) if covered else (),
            episodes={} if covered else {name: BranchedEpisode(turn=turn, winners=winners)},
            **changed or {},
        )
        study = scene.study.model_copy(update={"branch": value})
        loaded = replace(scene.loaded, study=study)
        found = Continued(parent, parent, played=script({**replies, **(later or {})}))

        def world(effect):
            if isinstance(effect, Round) and effect.fresh:
                found.fresh += [str(call.key) for call in effect.calls]
            return scripted(lambda call: reply(call, effect.fresh))(effect)

        def reply(call, fresh):
            request, text = recorded.get(call.key, (None, None))
            if not fresh and request == call.request:
                return text
            found.paid.append(str(call.key))
            return found.played(call)

        found.record = drive(episode(Scene(loaded, next(loaded.grid()))), world)
        return found

    return play


def votes(stage, *ballots):
    return {f"{stage}/{role}": one for role, one in zip(DEFAULT_ROLES, ballots, strict=True)}


def all_cast(stage, ballot):
    return votes(stage, *[ballot] * 4)


FALLBACK = {**votes("vote_final", S, M, S, M), **votes("tie_vote", S, M, S, M)}
"""s and m tie twice; the order decides."""


def test_an_order_decides_from_the_cursor_on_and_nothing_before_it_is_asked(branch):
    found = branch(FALLBACK, changed={"fallback_order": SWAPPED})
    assert found.parent.turns[0].decision.winner == S
    turn, second = found.record.turns
    assert (turn.decision.winner, turn.decision.decided_by) == (M, "fallback")
    assert turn.delivered == found.parent.turns[0].proposals_final[M].text
    logged = found.parent.turns[0]
    for part in ("proposals_final", "ballots_final", "tie_round", "ballots_as"):
        assert getattr(turn, part) == getattr(logged, part)
    assert found.paid[:2] == ["1/student/student/1", "1/judge/judge/1"]
    assert found.paid == found.fresh
    assert second.decision.winner == M
    assert found.record.branch.model_dump() == {
        "parent_episode": found.parent.episode_id,
        "turn": 1,
        "continuation": 1,
        "left": 1,
    }
    assert found.record.episode_id == f"{found.parent.episode_id}.c01"


def test_before_the_cursor_the_logged_decisions_stand(branch):
    found = branch(FALLBACK, turn=2, changed={"fallback_order": SWAPPED})
    assert found.record.turns[0] == found.parent.turns[0]
    assert found.record.turns[1].decision.winner == M
    assert found.paid == ["2/student/student/1", "2/judge/judge/1"]
    assert found.record.branch.left == 2


def test_a_covered_episode_is_played_as_it_was_logged(branch):
    found = branch(FALLBACK, covered=True, changed={"fallback_order": SWAPPED})
    assert (found.record, found.paid, found.fresh) == (found.parent, [], [])


def test_without_a_tie_round_the_order_decides_at_once(branch):
    resolved = FALLBACK | votes("tie_vote", M, M, M, S)
    found = branch(resolved, changed={"tie_policy": "no_tie_round"})
    assert found.parent.turns[0].decision.winner == M
    turn, second = found.record.turns
    assert (turn.decision.winner, turn.decision.decided_by, turn.tie_round) == (S, "fallback", None)
    assert turn.decision.tied_in_vote == (S, M)
    assert found.paid[0] == "1/student/student/1"
    assert second.tie_round is None
    assert not any("tie" in key for key in found.paid)


RANKED = votes(
    # First: s s m v. By points: s 3+3+0+0 = 6, m 2+2+3+2 = 9, v 1+0+2+3 = 6, c 0+1+1+1 = 3.
    "vote_final",
    f"{S},{M},{V},{C}",
    f"{S},{M},{C},{V}",
    f"{M},{V},{C},{S}",
    f"{V},{M},{C},{S}",
)


def test_ballots_that_determine_the_rule_s_are_mapped_and_nobody_is_asked(branch):
    found = branch(RANKED, later=all_cast("2/vote_final", V), conditions=["ranked"], changed=SIMPLE)
    assert found.parent.turns[0].decision.winner == M
    turn, second = found.record.turns
    assert turn.decision.tallies == {S: 2, M: 1, V: 1, C: 0}
    assert (turn.decision.winner, found.record.branch.left) == (S, 1)
    assert found.paid[0] == "1/student/student/1"
    assert [(b.protocol, b.counted_as) for b in turn.ballots_final] == [("ranked", "simple")] * 4
    assert turn.ballots_as == {"ranked": found.parent.turns[0].ballots_final}
    assert {ballot.protocol for ballot in second.ballots_final} == {"simple"}
    assert second.decision.tallies == {S: 0, M: 0, V: 4, C: 0}
    assert found.record.condition == "ranked"


SIMPLE = {"rule": "simple"}
AS_RANKED = {"vote_as_ranked": f"{C},{V},{M},{S}", f"vote_as_ranked/{S}": f"{S},{C},{V},{M}"}
"""c 2+3+3+3 = 11, v 1+2+2+2 = 7, s 3, m 0+1+1+1 = 3."""


def test_ballots_that_leave_the_rule_s_open_are_asked_for_on_the_same_proposals(branch):
    plain = votes("vote_final", S, S, M, V)
    later = AS_RANKED | all_cast("2/vote_final", f"{V},{M},{S},{C}")
    found = branch(plain, later=later, changed={"rule": "ranked"})
    turn, second = found.record.turns
    assert found.paid[:4] == [f"1/vote_as_ranked/{role}/1" for role in DEFAULT_ROLES]
    assert found.fresh == found.paid[4:]
    assert turn.decision.tallies == {S: 3, M: 3, V: 7, C: 11}
    assert (turn.decision.winner, found.record.branch.left) == (C, 1)
    logged = found.parent.turns[0].ballots_final
    assert turn.ballots_as == {"simple": logged}
    assert [b.labels for b in turn.ballots_final] == [b.labels for b in logged]
    assert second.ballots_as == {}
    assert second.decision.winner == V


def test_with_the_logged_winner_the_path_stays_the_parent_s(branch):
    plain = votes("vote_final", S, S, M, V)
    later = {"1/vote_as_ranked": f"{S},{C},{V},{M}", "2/vote_as_ranked": f"{V},{C},{S},{M}"}
    found = branch(plain, later=later, changed={"rule": "ranked"})
    assert [turn.decision.winner for turn in found.record.turns] == [S, V]
    assert found.stages == [
        ("1", "vote_as_ranked"),
        ("2", "vote_as_ranked"),
        ("2", "student"),
        ("2", "judge"),
    ]
    assert found.record.branch.left == 2
    assert found.fresh == ["2/student/student/1", "2/judge/judge/1"]
    assert found.record.attempts[1] == found.parent.attempts[1]
    assert found.record.turns[1].proposals_final == found.parent.turns[1].proposals_final


def test_a_path_that_was_never_left_ends_as_the_parent_did(branch):
    later = {"vote_as_ranked": f"{S},{C},{V},{M}"}
    found = branch(votes("vote_final", S, S, M, V), later=later, changed={"rule": "ranked"})
    assert found.record.branch.left is None
    assert found.record.attempts == found.parent.attempts
    assert found.stages == [("1", "vote_as_ranked"), ("2", "vote_as_ranked")]
    assert found.fresh == []


POINTS = votes(
    # s 13+0+13+0 = 26, m 12+13+0+13 = 38, v 0+12+12+12 = 36: m wins; first: s m s m.
    "vote_final",
    f"{S}=13,{M}=12,{V}=0,{C}=0",
    f"{M}=13,{V}=12,{S}=0,{C}=0",
    f"{S}=13,{V}=12,{M}=0,{C}=0",
    f"{M}=13,{V}=12,{S}=0,{C}=0",
)


def test_only_a_missing_tie_round_is_paid_for_and_held_in_the_rule_s_format(branch):
    tie = votes("1/tie_vote", S, S, S, M)
    later = tie | all_cast("2/vote_final", V)
    found = branch(POINTS, later=later, conditions=["cumulative"], changed=SIMPLE)
    turn = found.record.turns[0]
    assert found.stages[:3] == [("1", "tie_critique"), ("1", "tie_vote"), ("1", "student")]
    assert turn.decision.steps[1].tallies == {S: 3, M: 1}
    assert (turn.decision.winner, turn.decision.decided_by) == (S, "tie_round")
    assert {ballot.protocol for ballot in turn.tie_round.ballots} == {"simple"}
    assert "Vote for the one best reply" in found.played.prompt(f"1/tie_vote/{S}/1")


def test_reviews_of_the_same_tied_proposals_are_the_parent_s(branch):
    # By points s and m tie as well: 13+0+13+12 and 12+13+0+13.
    level = POINTS | {f"vote_final/{C}": f"{M}=13,{S}=12,{V}=0,{C}=0"}
    points = {"tie_vote": f"{M}=25,{S}=0"}
    later = {"1/tie_vote": S} | all_cast("2/vote_final", V)
    found = branch(level | points, later=later, conditions=["cumulative"], changed=SIMPLE)
    assert found.parent.turns[0].tie_round.candidates == (S, M)
    assert found.stages[:2] == [("1", "tie_vote"), ("1", "student")]
    assert found.record.turns[0].tie_round.reviews == found.parent.turns[0].tie_round.reviews
    assert found.record.turns[0].decision.winner == S


def test_equal_texts_of_different_winners_do_not_lend_each_other_their_futures(branch):
    same = {
        "propose": "PROPOSAL: The same.",
        "revise": "PROPOSAL: The same.",
        **votes("vote_final", "A", "B", "A", "B"),
        **votes("tie_vote", "A", "B", "A", "B"),
    }
    order = tuple(reversed(DEFAULT_ROLES))
    found = branch(same, blinding="shared", changed={"fallback_order": order})
    logged, turn = found.parent.turns[0], found.record.turns[0]
    assert turn.delivered == logged.delivered == "The same."
    assert turn.decision.winner != logged.decision.winner
    assert found.paid[:2] == ["1/student/student/1", "1/judge/judge/1"]
    assert found.paid == found.fresh


def test_a_parent_with_ballots_in_the_rule_s_format_answers_for_free(branch):
    replies = votes("vote_final", S, S, M, V) | AS_RANKED
    later = all_cast("2/vote_final", f"{V},{M},{S},{C}")
    found = branch(
        replies, later=later, changed={"rule": "ranked"}, vote_formats=["ranked", "approval"]
    )
    logged, turn = found.parent.turns[0], found.record.turns[0]
    assert found.paid[0] == "1/student/student/1"
    assert turn.decision.winner == C
    assert turn.ballots_final == logged.ballots_as["ranked"]
    assert turn.ballots_as == {
        "approval": logged.ballots_as["approval"],
        "simple": logged.ballots_final,
    }
    assert list(found.record.turns[1].ballots_as) == ["approval"]


def test_after_leaving_another_panel_and_model_go_on(branch):
    plain = votes("vote_final", S, S, M, V)
    later = AS_RANKED | all_cast("2/vote_final", f"{V},{C},{M}")
    changed = {"rule": "ranked", "roles": (V, C, M), "model": "other-model"}
    found = branch(plain, later=later, changed=changed)
    turn, second = found.record.turns
    assert list(turn.proposals_final) == list(DEFAULT_ROLES)
    assert list(second.proposals_final) == [V, C, M]
    asked = {str(call.key): call.request.model for call in found.played.calls}
    logged = found.parent.calls[0].model, found.parent.calls[2].model
    assert asked[f"1/vote_as_ranked/{S}/1"] == logged[1]
    assert asked["1/student/student/1"] == asked["2/student/student/1"] == logged[0]
    assert asked[f"2/propose/{V}/1"] == asked[f"2/vote_final/{V}/1"] == "other-model"
    assert asked["2/judge/judge/1"] == found.parent.calls[1].model


def test_the_order_of_another_panel_keeps_the_logged_priorities(branch):
    """Also at the cursor, where the logged panel votes and a role that leaves may win."""
    later = all_cast("2/vote_final", "?") | all_cast("2/tie_vote", "?")
    changed = {"fallback_order": SWAPPED, "roles": (C, V, S)}
    found = branch(FALLBACK, later=later, changed=changed)
    assert found.record.turns[0].decision.winner == M
    assert found.record.turns[1].decision.undecided == (C, V, S)
    assert found.record.turns[1].decision.winner == S


def test_rich_ballots_stay_rich_under_another_rule(branch):
    rich = {
        "vote_final": f"{S}=9,{M}=8|{V}=7,{C}=1",
        f"vote_final/{S}": f"{M}=25|{S}=0,{V}=0,{C}=0",
    }
    found = branch(rich, conditions=["rich"], changed=SIMPLE)
    turn, second = found.record.turns
    assert found.parent.turns[0].decision.tallies == {S: 27, M: 49, V: 21, C: 3}
    assert turn.decision.tallies == second.decision.tallies == {S: 3, M: 1, V: 0, C: 0}
    assert found.paid[0] == "1/student/student/1"
    for ballot in (*turn.ballots_final, *second.ballots_final):
        assert (ballot.protocol, ballot.counted_as) == ("rich", "simple")


def test_an_abstention_stays_one_under_another_rule(branch):
    silent = RANKED | {f"vote_final/{M}": "?"}
    found = branch(silent, later=all_cast("2/vote_final", V), conditions=["ranked"], changed=SIMPLE)
    turn = found.record.turns[0]
    assert turn.decision.tallies == {S: 1, M: 1, V: 1, C: 0}
    assert turn.ballots_final[1].mass == {}
    assert turn.ballots_final[1].ballot_status == "abstained"


def test_continuations_see_the_same_labels_up_to_the_cursor(branch, make_scene, script):
    found = branch(FALLBACK, changed={"fallback_order": SWAPPED, "continuations": 3})
    assert found.record.branch.continuation == 1
    scene = make_scene(max_turns=2)
    value = Branch(
        parent="p",
        parent_study="0",
        parent_recording="0",
        fallback_order=SWAPPED,
        continuations=3,
        episodes={scene.spec.episode_id: BranchedEpisode(turn=1, winners=(S, S))},
    )
    loaded = replace(scene.loaded, study=scene.study.model_copy(update={"branch": value}))
    drawn = [script(FALLBACK).play(Scene(loaded, spec)) for spec in loaded.grid()]
    assert [one.episode_id.rpartition(".")[2] for one in drawn] == ["c01", "c02", "c03"]
    assert [one.branch.continuation for one in drawn] == [1, 2, 3]
    assert drawn[0].turns == drawn[1].turns == drawn[2].turns == found.record.turns
