"""Who sees what: by hand for small rings, and from the prompts for all of them."""

import re

import pytest

from tests.reference.debates import make_context, play
from tutorsim.records.debate import Message
from tutorsim.systems.debate import discussion_challenges_and_reply_reading as discussion
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import read_agreement
from tutorsim.systems.debate.settings import DebateSettings

A, B, C = "agent_1", "agent_2", "agent_3"
RING = discussion.Ring((A, B, C))


def seen(paradigm, reader, turn, messages, visible_turns="all"):
    settings = DebateSettings(paradigm=paradigm, visible_turns=visible_turns)
    shown = discussion.visible(messages, settings, reader=reader, turn=turn, ring=RING)
    return tuple(message.number for _, message in shown)


def said(*places):
    """Messages from (turn, agent), of the last of two rounds, or (turn, agent, round)."""
    silent = {"shown": (), "text": "", "agreement": "none"}
    return [
        (turn, Message(number=i, agent=agent, round=rest[0] if rest else 2, **silent))
        for i, (turn, agent, *rest) in enumerate(places, start=1)
    ]


def test_a_relay_reaches_its_author_and_the_next_in_the_ring():
    messages = said((1, A), (1, B), (1, C))
    assert seen("relay", B, 2, messages) == (1, 2)
    assert seen("relay", A, 2, messages) == (1, 3)


def test_a_report_reaches_the_first_agent():
    messages = said((1, A), (1, B), (1, C))
    assert seen("report", A, 2, messages) == (1, 2, 3)
    assert seen("report", B, 2, messages) == (1, 2)


def test_a_debate_reaches_the_next_debater_and_in_the_last_round_the_first_agent():
    messages = said((1, A), (1, B, 1), (1, C, 1), (1, B), (1, C))
    assert seen("debate", A, 2, messages) == (1, 4, 5)
    assert seen("debate", B, 2, messages) == (1, 2, 3, 4, 5)  # of two debaters, each is next
    assert seen("debate", A, 2, said((1, B, 0), (1, C, 0))) == (1, 2)  # drafts have no rounds


def test_a_collective_turn_shows_the_turn_before_and_no_other():
    messages = said((1, A), (1, B), (2, A), (2, B))
    assert seen("collective", A, 3, messages) == (3, 4)
    assert seen("collective", A, 3, messages, 0) == (3, 4)


def test_earlier_turns_are_shown_as_far_as_they_are_visible():
    messages = said((1, A), (2, A), (3, A), (3, B))
    assert seen("memory", C, 3, messages, 0) == (3, 4)
    assert seen("memory", C, 3, messages, 1) == (2, 3, 4)
    assert seen("memory", C, 3, messages, 2) == (1, 2, 3, 4)


def may_see(paradigm, reader, message, turn, visible_turns, count):
    """The rule of each paradigm in words of its own: author, turn and round of one message."""
    author, said_in, last = message
    if paradigm == "collective":
        return said_in == turn - 1
    if visible_turns != "all" and said_in < turn - visible_turns:
        return False
    if author == reader or paradigm == "memory":
        return True
    if paradigm == "relay":
        return reader == author % count + 1
    if paradigm == "report":
        return author == 1 or reader == 1
    if author == 1:
        return True
    return last if reader == 1 else reader == (author - 1) % (count - 1) + 2


class Marked:
    """Replies that carry marks; notes the marks that each prompt holds.

    A message is marked with its author, turn and round, and its extracted solution with the same.
    """

    def __init__(self, rounds):
        self.rounds, self.held = rounds, []

    def __call__(self, call):
        key, stage = call.key, call.key.stage
        number = int(key.agent.removeprefix("agent_") or 0)
        text = call.request.system + call.request.user
        marks = {tuple(map(int, mark)) for mark in re.findall(r"«(\d+)\.(\d+)\.(\d+)»", text)}
        self.held.append((stage, number, key.turn, marks))
        round_ = int(re.sub(r"\D", "", stage) or 0)
        mark = f"«{number}.{key.turn}.{round_}»"
        if stage == "persona":
            return f'{{"role": "role {number}", "description": "d"}}'
        if stage.startswith("vote"):
            return "P"
        if stage.startswith("extract"):
            return f"solution {mark}"
        if stage == "answer":
            return "final"
        tag = ("[AGREE]", "[DISAGREE]", "")[(number + key.turn + round_) % 3]
        return f"{tag} text {mark}"


@pytest.mark.costly
@pytest.mark.parametrize("paradigm", discussion.PARADIGMS)
@pytest.mark.parametrize("drafting", ["none", "first", "every"])
def test_no_prompt_holds_a_message_outside_the_readers_visibility(paradigm, drafting):
    """All visible turns and sizes, from the prompts and not from what a record says was shown."""
    held_some = 0
    for count in range(1, 11):
        for visible_turns in (0, 1, 2, "all"):
            replies = Marked(rounds=2)
            context = make_context(
                "full", agents=count, max_turns=4, visible_turns=visible_turns, paradigm=paradigm,
                drafting=drafting, generator=("simple", "reasoning")[count % 2],
            )  # fmt: skip
            record = play(context, replies)
            for stage, reader, turn, marks in replies.held:
                if stage in ("message", "debate_1", "debate_2"):
                    held_some += len(marks)
                    places = [(author, said, round_ in (0, 2)) for author, said, round_ in marks]
                    wrong = [
                        place
                        for place in places
                        if not may_see(paradigm, reader, place, turn, visible_turns, count)
                    ]
                    assert wrong == []
                elif stage.startswith("extract"):
                    assert {author for author, _, _ in marks} <= {reader}
                elif stage == "answer":  # its own message, and the solution that it agreed to
                    assert len(marks) <= 2
                elif stage.startswith("vote") or stage == "persona":
                    assert marks == set()
            shown = {m.number: m.shown for t in record.turns for m in t.messages}
            assert all(number < own for own, numbers in shown.items() for number in numbers)
    assert held_some > 100


# --- Replies as read ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tag", "lenient"),
    [
        ("[AGREE] fine", "agree", "agree"),
        ("[ disagree ] no", "disagree", "disagree"),
        ("Well, [Agree] now, though I would [DISAGREE] later", "agree", "disagree"),
        ("I agree with this", "unclear", "agree"),
        ("This is right", "unclear", "disagree"),
        ("[AGREEMENT]", "unclear", "agree"),
    ],
)
def test_agreement_is_the_first_tag_or_the_two_words(text, tag, lenient):
    assert read_agreement(text, "tag") == tag
    assert read_agreement(text, "lenient") == lenient


@pytest.mark.parametrize(
    ("reply", "role"),
    [
        ('{"role": "Chemist", "description": "Knows salts"}', "Chemist"),
        ('Sure: {"note": 1} {"role": " A  b ", "description": "d"}', "A b"),
        ('{"role": "", "description": "d"} {"role": "X", "description": "d"}', "X"),
        ('{"person": {"role": "Inner", "description": "d"}}', "Inner"),
        ('{"role": "CHEF", "description": "d"}', None),  # taken
        ('{"role": "Cook"', None),
        ('{"role": 3, "description": "d"}', None),
        ("no object", None),
    ],
)
def test_a_persona_is_the_first_object_with_role_and_description(reply, role):
    read = discussion.read_persona(reply, ["Chef"])
    assert (read.role if read else None) == role


@pytest.mark.parametrize(
    ("reply", "text", "confidence"),
    [
        ("B\nCONFIDENCE: 70", "B", 70),
        ("**Confidence:** 80%\nB", "B", 80),
        ("B\nCONFIDENCE: 170", "B", None),
        ("B", "B", None),
        ("CONFIDENCE: 70", None, None),
    ],
)
def test_the_line_of_confidence_is_no_part_of_the_answer(reply, text, confidence):
    read = discussion.read_answer(reply, confidence=True)
    assert (read.text if read else None, read.confidence if read else None) == (text, confidence)


def test_without_confidence_the_whole_reply_is_the_answer():
    assert discussion.read_answer("B\nCONFIDENCE: 70", confidence=False).text == "B\nCONFIDENCE: 70"
    assert discussion.read_text("  \n") is None
