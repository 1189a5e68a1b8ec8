"""Requests, replies and call keys."""

import json

import pytest

from tutorsim.model import CallKey, Reply, Request


def body(**changes):
    return {
        "type": "message",
        "model": "m",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
        **changes,
    }


@pytest.mark.parametrize(
    "text", ["2/vote_final/motivation/1", "0/student/student/2", "99/tie_vote/my-role_8/1"]
)
def test_a_key_survives_its_text(text):
    assert str(CallKey.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "1/Vote/x/1", "1/judge/judge", "-1/judge/judge/1", "x/judge/judge/1", "/judge/j/1"]
)
def test_what_is_no_key_is_refused(text):
    with pytest.raises(ValueError):
        CallKey.parse(text)


def test_a_request_s_body_has_its_extra_fields():
    request = Request("m", "sys", "user", 5, (("temperature", 0.5),))
    assert request.body() == {
        "model": "m",
        "system": "sys",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "user"}],
        "temperature": 0.5,
    }


@pytest.mark.parametrize("spelling", [{}, {"separators": (",", ":")}, {"indent": 1}])
def test_a_request_is_read_back_from_its_body_with_its_bytes(spelling):
    request = Request("m", "sys", "Hé \U0001f600", 5, (("temperature", 0.5), ("top_k", 3)))
    text = json.dumps(request.body(), **spelling)
    found = Request.from_text(text)
    assert found == request._replace(text=text)
    again = found.followed_by("Please.")
    assert (again.user, again.text) == ("Hé \U0001f600\n\nPlease.", None)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"model":"m","system":"s","max_tokens":1,"messages":[]}',
        '{"model":"m","system":"s","max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}',
        '{"model":"m","system":"s","max_tokens":1,"messages":[{"role":"user","content":[]}]}',
    ],
)  # fmt: skip
def test_a_body_of_another_shape_is_not_read_back(text):
    with pytest.raises(ValueError):
        Request.from_text(text)


@pytest.mark.parametrize("text", ["2/vote_final/motivation/1/r01", "1/vote_initial/x/2/r100"])
def test_the_key_of_a_repeat_survives_its_text(text):
    key = CallKey.parse(text)
    assert str(key) == text
    assert str(key._replace(repeat=0)) == text.rpartition("/")[0]


def test_text_blocks_are_joined_and_others_left_out():
    content = [
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "1"},
        {"type": "text", "text": "b"},
    ]
    assert Reply.from_body(body(content=content)) == Reply("ab", "m", "end_turn", 3, 4)


def test_a_refusal_without_text_is_an_empty_reply():
    reply = Reply.from_body(body(content=[], stop_reason="refusal"))
    assert (reply.text, reply.stop_reason) == ("", "refusal")


def test_cached_input_counts_as_input():
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": None,
        "output_tokens": 2,
    }
    assert Reply.from_body(body(usage=usage)).input_tokens == 11


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (r'"\ud800x"', "\ufffdx"),
        (r'"x\udc00"', "x\ufffd"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\udc00\ud800"', "\ufffd\ufffd"),
        (r'"\ufeffx"', "\ufeffx"),
    ],
)
def test_lone_surrogates_are_replaced(raw, text):
    content = [{"type": "text", "text": json.loads(raw)}]
    reply = Reply.from_body(body(content=content, model=json.loads(raw)))
    assert reply.text == reply.model == text
    reply.text.encode()


def test_a_surrogate_pair_in_two_blocks_is_one_character():
    content = [{"type": "text", "text": half} for half in ("\ud83d", "\ude00")]
    assert Reply.from_body(body(content=content)).text == "😀"


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "error"}, {"content": None}, {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": 5}]}, {"content": ["text"]}, {"usage": {}},
        {"usage": {"input_tokens": 1, "output_tokens": "many"}},
        {"usage": {"input_tokens": 1, "output_tokens": float("inf")}}, {"model": 7},
        {"stop_reason": 7},
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(changes):
    with pytest.raises(ValueError):
        Reply.from_body(body(**changes))


def test_a_body_that_is_no_object_is_refused():
    with pytest.raises(ValueError, match="not a message"):
        Reply.from_body(["message"])
