"""The debate recount equals what each protocol decides when it is run live."""

import random
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.reference.debates import Draws, make_context, play
from tutorsim.analysis.identify.possible_winners import Possible
from tutorsim.analysis.systems.debate import outcomes_under_every_protocol as module
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    RULES,
    Changes,
    Debate,
    Told,
    contrasts,
    possible_outcomes,
)
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import CONSENSUS_RULES
from tutorsim.vocabularies import PROTOCOLS

DEBATES = 200


def random_settings(draw):
    """Settings of a random debate; every paradigm, drafting, rule for the undecided and size."""
    max_turns = draw.randint(1, 5)
    paradigm = draw.choice(["memory", "relay", "report", "debate", "collective"])
    return {
        "agents": draw.choice([1, 2, 2, 3, 3, 3, 4, 5, 7, 10]),
        "max_turns": max_turns,
        "vote_from": draw.randint(1, max_turns),
        "paradigm": paradigm,
        "visible_turns": draw.choice([0, 1, 2, "all"]),
        "drafting": draw.choice(["none", "none", "first", "every"]),
        "generator": draw.choice(["simple", "free", "critical", "reasoning"]),
        "undecided": draw.choice(["first_agent", "leader", "none"]),
        "majority": draw.choice(["more_than_half", "at_least_half"]),
        "agreement_reading": draw.choice(["tag", "lenient"]),
        "merge_identical": draw.random() < 0.4,
        "blinding": draw.choice(["per_reader", "shared", "listed"]),
        "confidence": draw.random() < 0.3,
    }


def live_ballots(record):
    """Turn → who chose what, of every vote that was held."""
    held = {turn.turn: turn.held_ballots for turn in record.turns if turn.held is not None}
    decided = {turn.turn: turn.ballots_final for turn in record.turns if turn.ballots_final}
    return {turn: cast(ballots) for turn, ballots in (held | decided).items()}


def cast(ballots):
    return [
        (one.voter, one.labels, one.raw, one.parsed, one.mass, one.ballot_status) for one in ballots
    ]


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(number, marks=pytest.mark.costly) for number in (1, 2, 3))]
)
def test_every_protocol_run_live_is_what_the_full_recording_says(block):
    seen = {"ties": 0, "limits": 0, "consensus": 0}
    for number in range(block * DEBATES // 4, (block + 1) * DEBATES // 4):
        draw = random.Random(number)
        settings = random_settings(draw)
        replies = Draws(number, agreeable=draw.choice([0.5, 0.7, 0.9]), answers=draw.randint(1, 4))
        full = play(make_context("full", **settings), replies.of("full"))
        rules = (*PROTOCOLS, *CONSENSUS_RULES)
        if settings["paradigm"] == "collective":
            assert Debate(full).recounted("majority").certainty == "not_applicable"
            rules = PROTOCOLS
        for rule in rules:
            live = play(make_context(rule, **settings), replies.of(rule))
            told = Debate(full).recounted(rule)
            place = (number, rule, settings)
            assert told.certainty == "exact", place
            ended = (live.turns_taken, live.decided, (live.answer,), live.answer_of)
            assert (told.turn, told.decided, told.answers, told.author) == ended, place
            said = [message for turn in live.turns for message in turn.messages]
            logged = [message for turn in full.turns for message in turn.messages]
            assert told.messages == len(said), place
            assert said == logged[: len(said)], place
            voted = live_ballots(live)
            expected = {
                turn.turn: cast(turn.ballots_as[rule])
                for turn in full.turns
                if rule in turn.ballots_as
                and settings["vote_from"] <= turn.turn <= live.turns_taken
            }
            assert voted == expected, place
            ties = sum(turn.held is not None for turn in live.turns)
            assert told.ties in (ties, ties + 1), place
            seen["ties"] += ties > 0
            seen["limits"] += live.ended_by == "limit"
            seen["consensus"] += live.ended_by == "consensus"
    assert min(seen.values()) > 20


@pytest.mark.costly
def test_changed_settings_are_what_a_live_debate_with_them_says():
    """Every first turn of votes, both majorities, every rule for the undecided."""
    for number in range(5):
        replies = Draws(("changed", number), agreeable=0.7, answers=3)
        full = play(make_context("full", agents=4, max_turns=4), replies.of("full"))
        for change in (
            *({"vote_from": turn} for turn in (1, 2, 3, 4)),
            *({"undecided": name} for name in ("first_agent", "leader", "none")),
            *({"majority": name} for name in ("more_than_half", "at_least_half")),
            *({"agreement_reading": name} for name in ("tag",)),
        ):
            for rule in (*PROTOCOLS, *CONSENSUS_RULES):
                live = play(make_context(rule, agents=4, max_turns=4, **change), replies.of(rule))
                told = Debate(full).recounted(rule, Changes(**change))
                values = (told.certainty, told.turn, told.answers)
                assert values == ("exact", live.turns_taken, (live.answer,))


CHANGES = (
    {},
    *({"vote_from": turn} for turn in (1, 2, 3)),
    *({"undecided": name} for name in ("first_agent", "leader", "none")),
    *({"merge_identical": value} for value in (True, False)),
    {"majority": "at_least_half"},
)


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(number, marks=pytest.mark.costly) for number in (1, 2, 3, 4))]
)
def test_a_recount_of_any_recording_holds_the_live_answer_or_says_beyond(block):
    """An outer bound, never narrower than the truth, also under changed settings."""
    counts = Counter()
    for number in range(25 * block, 25 * (block + 1)):
        draw = random.Random(f"outer {number}")
        replies = Draws(("outer", number), agreeable=0.7, answers=3, sincere=True)
        settings = {
            "max_turns": draw.choice([2, 3]),
            "vote_from": draw.choice([1, 2]),
            "agents": draw.choice([2, 3, 4]),
            "paradigm": draw.choice(["memory", "report", "debate"]),
            "drafting": draw.choice(["none", "first"]),
            "merge_identical": draw.random() < 0.5,
            "undecided": draw.choice(["first_agent", "leader", "none"]),
        }
        change = {"vote_from": min(draw.choice(CHANGES).get("vote_from", 2), settings["max_turns"])}
        change = draw.choice([draw.choice(CHANGES[4:]), change, {}])
        rules = (*PROTOCOLS, *CONSENSUS_RULES)
        logged = {rule: play(make_context(rule, **settings), replies.of(rule)) for rule in rules}
        changed = settings | change
        live = {rule: play(make_context(rule, **changed), replies.of(rule)) for rule in rules}
        for record in logged.values():
            for rule, truth in live.items():
                told = Debate(record).recounted(rule, Changes(**change))
                place = (number, rule, change)
                counts[told.certainty] += 1
                if told.certainty != "beyond":
                    assert truth.answer in told.answers, place
                if told.certainty == "exact":
                    known = (told.answers, told.turn, told.decided)
                    assert known == ((truth.answer,), truth.turns_taken, truth.decided), place
                assert told.certainty == "exact" or rule != record.condition or change, place
    assert min(counts[name] for name in ("exact", "open", "beyond")) > 20


def test_a_consensus_in_the_last_turn_leaves_others_unknown():
    """Two of three agree in turn 2 of 2: the third has not spoken, and could have agreed too."""
    said = iter(["first", "[DISAGREE] no", "[DISAGREE] no", "[DISAGREE] no", "[AGREE]"])
    kinds = {"message": lambda: next(said), "extract": lambda: "red"}
    context = make_context("majority", max_turns=2, vote_from=1, personas="none")
    record = play(context, lambda call: kinds[call.key.stage]())
    assert (record.turns_taken, record.ended_by) == (2, "consensus")
    assert Debate(record).recounted("majority").certainty == "exact"
    assert Debate(record).recounted("unanimity").certainty == "beyond"


@pytest.mark.parametrize(("vote_from", "certainty"), [(1, "beyond"), (3, "exact"), (4, "beyond")])
def test_solutions_are_counted_in_the_turn_asked_for_and_in_no_other(vote_from, certainty):
    """Turns 1 and 2 asked for no answers, and the debate was over after turn 3."""
    replies = lambda call: "P" if call.key.stage == "vote_final" else "A"  # noqa: E731
    record = play(make_context("simple", personas="none", blinding="listed"), replies)
    told = Debate(record).recounted("solution_counting", Changes(vote_from=vote_from))
    assert (record.turns_taken, told.certainty) == (3, certainty)
    assert told.turn == (3 if certainty == "exact" else None)


def test_a_vote_over_merged_answers_was_never_held():
    """Two of three answers are equal: with one candidate fewer, other ballots would be cast."""
    texts = {"agent_1": "A", "agent_2": "a.", "agent_3": "B"}
    ballots = {"agent_1": "P", "agent_2": "R", "agent_3": "R"}

    def reply(call):
        of = {"answer": texts, "vote_as_simple": ballots}.get(call.key.stage, {})
        return of.get(call.key.agent, "P")

    settings = {"personas": "none", "max_turns": 1, "vote_from": 1, "blinding": "listed"}
    record = play(make_context("full", **settings), reply)
    told = Debate(record).recounted("simple", Changes(merge_identical=True))
    assert (told.certainty, told.answers) == ("open", ("A", "B"))
    texts["agent_3"] = " A"
    same = play(make_context("full", **settings), reply)
    told = Debate(same).recounted("simple", Changes(merge_identical=True))
    assert (told.certainty, told.answers) == ("exact", ("A",))


def test_a_debate_counts_a_vote_once_however_often_it_is_asked(monkeypatch):
    """Under every rule and first turn; and what it says is what it says when asked alone."""
    full = play(
        make_context("full", max_turns=3, vote_from=2),
        Draws(3, agreeable=0.5, answers=2).of("full"),
    )
    asked = [Changes(vote_from=turn) for turn in (3, 2, 1)] + [Changes(undecided="none")]
    alone = {(rule, one): Debate(full).recounted(rule, one) for rule in RULES for one in asked}
    counted, tally = [], module.tally
    monkeypatch.setattr(module, "tally", lambda *of: counted.append(of) or tally(*of))
    debate = Debate(full)
    assert {(rule, one): debate.recounted(rule, one) for rule, one in alone} == alone
    assert len(counted) <= len(full.turns) * len(PROTOCOLS)


def test_protocols_are_compared_on_debates_that_both_know_exactly():
    """Simple leads ranked by 100 in one debate and by 0 in another; ranked is open in the third."""

    def told(score, certainty="exact"):
        return Told("b.t", certainty, score, score, True, 1, 0)

    open_ = told(0, "open")
    kept = {"simple": (told(100), told(50), told(100)), "ranked": (told(0), told(50), open_)}
    debates = [[kept.get(rule, (open_,) * 3)[place] for rule in RULES] for place in range(3)]
    [one] = [row for row in contrasts(debates, seed=1) if row.name == "simple − ranked"]
    assert (one.difference.value, one.difference.n) == (50, 2)


def test_a_question_that_is_too_costly_leaves_every_candidate(monkeypatch):
    """Ranked ballots say all of a simple vote, unless nobody works it out."""
    ballots = [SimpleNamespace(rule="ranked", mass={"x": 2, "y": 1, "z": 0})] * 2
    assert possible_outcomes(ballots, "xyz", "simple", budget=25) == ("x",)
    monkeypatch.setattr(module, "_searched", module._searched.__wrapped__)
    open_question = SimpleNamespace(possible=lambda **_: Possible((), settled=False))
    monkeypatch.setattr(module, "PanelSearch", lambda query: open_question)
    assert possible_outcomes(ballots, "xyz", "simple", budget=25) == ("x", "y", "z")
