import pytest

from tutorsim.analysis.systems.panel.episodes import (
    ballot_rows,
    candidates_of,
    choose,
    step_sentence,
)
from tutorsim.errors import UsageError

S, I, O, E = ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")  # noqa: E741


def cast(*choices):
    return dict(zip(ROLES, choices, strict=True))


def test_one_episode_is_chosen_for_each_thing_worth_seeing(rich_source):
    first, second, third, _ = rich_source.episodes
    chosen = choose(rich_source.episodes, flipped=[first.episode_id])
    assert [c.episode for c in chosen if c.why] == [first, second, third]
    assert len(chosen) == len(rich_source.episodes)
    assert chosen[0].why == (
        "the fallback order decided a turn",
        "deliberation changed a winner",
    )
    assert chosen[1].why == ("a tie round broke a tie",)
    assert chosen[2].why == ("a voter abstained",)


def test_a_run_without_anything_special_shows_its_first_tutored_episode(panel_turn, panel_episode):
    plain = panel_episode(panel_turn("simple", cast(S, S, S, S)))
    at_once = panel_episode(scores=(0.9,))
    chosen, other = choose([at_once, plain])
    assert (other.episode, other.why) == (at_once, ())
    assert chosen.episode is plain
    assert "no turn with a tie" in chosen.why[0]


def test_named_episodes_come_in_the_order_named_and_once(rich_source):
    ids = [e.episode_id for e in rich_source.episodes]
    wanted = [ids[2], ids[0], ids[2]]
    assert [c.episode.episode_id for c in choose(rich_source.episodes, wanted)] == [ids[2], ids[0]]


def test_an_unknown_episode_is_refused_with_an_example(rich_source):
    with pytest.raises(UsageError, match="no episode 'nowhere'") as caught:
        choose(rich_source.episodes, ["nowhere"])
    assert rich_source.episodes[0].episode_id in caught.value.why


def test_a_failed_episode_is_never_an_example(panel_turn, panel_episode):
    failed = panel_episode(
        panel_turn("simple", cast(S, S, I, I), tie=cast(S, S, I, I)), status="failed"
    )
    fine = panel_episode(panel_turn("simple", cast(S, S, S, S)), task="t2")
    shown = choose([failed, fine])
    assert [c.episode for c in shown] == [fine, failed]
    assert shown[1].why == ()


def test_labels_are_resolved_for_each_voter(panel_turn):
    """The voter saw misconception as A and scaffolding as B."""
    turn = panel_turn("simple", cast(S, I, O, E), shown={S: (I, S, O, E)})
    rows = ballot_rows(turn.ballots_final, candidates_of(turn))
    assert rows[0].voter == S
    assert rows[0].cells == (("1", "B"), ("0", "A"), ("0", "C"), ("0", "D"))
    assert rows[1].cells == (("0", "A"), ("1", "B"), ("0", "C"), ("0", "D"))


def test_an_abstention_has_dashes_and_no_zeros(panel_turn):
    turn = panel_turn("approval", cast((S,), (), None, (E,)))
    _, nobody, absent, _ = ballot_rows(turn.ballots_final, ROLES)
    assert [mass for mass, _ in nobody.cells] == ["0"] * 4
    assert [mass for mass, _ in absent.cells] == ["–"] * 4
    assert absent.status == "abstained"
    assert absent.attempts == 2


def test_a_decision_is_told_step_by_step(rich_source):
    [turn] = rich_source.episodes[0].turns
    assert [step_sentence(step) for step in turn.decision.steps] == [
        "Final vote: scaffolding 2, misconception 2, motivation 0, metacognitive 0 — "
        "tied: scaffolding, misconception.",
        "Tie round: scaffolding 2, misconception 2 — tied: scaffolding, misconception.",
        "Fallback order: the first of the tied candidates is scaffolding.",
    ]
