"""The debate recount equals what each protocol decides when it is run live."""

import random
from collections import Counter

import pytest

from tests.reference.debates import Draws, make_context, play
from tutorsim.analysis.systems.debate.recount_one_debate import Changes, recounted
from tutorsim.vocabularies import PROTOCOLS
from tutorsim.voting import CONSENSUS_RULES

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
            assert recounted(full, "majority").certainty == "not_applicable"
            rules = PROTOCOLS
        for rule in rules:
            live = play(make_context(rule, **settings), replies.of(rule))
            told = recounted(full, rule)
            place = (number, rule, settings)
            assert told.certainty == "exact", place
            assert (told.turn, told.decided, told.answers, told.author) == (
                live.turns_taken,
                live.decided,
                (live.answer,),
                live.answer_of,
            ), place
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
                told = recounted(full, rule, Changes(**change))
                assert (told.certainty, told.turn, told.answers) == (
                    "exact",
                    live.turns_taken,
                    (live.answer,),
                )


@pytest.mark.costly
def test_a_recount_from_another_recording_holds_the_live_answer_or_says_beyond():
    """An outer bound, never narrower than the truth."""
    counts = Counter()
    for number in range(40):
        replies = Draws(("outer", number), agreeable=0.7, answers=3, sincere=True)
        settings = {"max_turns": 4, "vote_from": 2, "agents": 3}
        live = {
            rule: play(make_context(rule, **settings), replies.of(rule))
            for rule in (*PROTOCOLS, *CONSENSUS_RULES)
        }
        for logged in live.values():
            for rule, truth in live.items():
                told = recounted(logged, rule)
                counts[told.certainty] += 1
                if told.certainty != "beyond":
                    assert truth.answer in told.answers
                if told.certainty == "exact":
                    assert told.answers == (truth.answer,)
                    assert told.turn == truth.turns_taken
                assert told.certainty == "exact" or rule != logged.condition
    assert min(counts[name] for name in ("exact", "open", "beyond")) > 20
