from tutorsim.kernel.scripted_mind import Chance
from tutorsim.standin.mind import read_request, think, tokens


def test_what_is_none_of_its_parts_is_said_so(body):
    asked = body(system="", messages=[{"role": "user", "content": "What is the time?"}])
    assert think(asked, Chance(1)).text.startswith("I play tutors, students and judges")


def test_a_reply_ends_where_max_tokens_ends(body):
    asked = body(max_tokens=5, system="", messages=[{"role": "user", "content": "Hello?"}])
    thought = think(asked, Chance(1))
    assert (len(thought.text), thought.output_tokens, thought.stop_reason) == (20, 5, "max_tokens")


def test_four_characters_are_a_token():
    assert [tokens("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_block_content_reads_as_text():
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    read = read_request({"system": blocks, "messages": [{"role": "user", "content": blocks}]})
    assert (read.system, read.user) == ("one\ntwo", "one\ntwo")
