import json

import pytest

from tutorsim.kernel.system import Chance
from tutorsim.model import Reply
from tutorsim.standin.endpoint import Endpoint, read_request, think, tokens
from tutorsim.standin.responses_and_faults import Fault

# --- Mind ----------------------------------------------------------------------------------------


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


# --- Endpoint ------------------------------------------------------------------------------------

CALL = {"x-tutorsim-call": "episode/1/vote_final/motivation/1"}


def post(endpoint, body, headers=CALL):
    return endpoint.answer("POST", "/v1/messages", headers, json.dumps(body).encode())


def error(response):
    value = json.loads(response.body)
    assert value["type"] == "error"
    assert value["request_id"] == response.request_id
    return value["error"]["type"], value["error"]["message"]


def test_a_reply_is_a_message_of_the_api(body):
    response = post(Endpoint(seed=1), body(model="any-name"))
    message = json.loads(response.body)
    assert response.status == 200
    assert (message["type"], message["role"], message["model"]) == (
        "message",
        "assistant",
        "any-name",
    )
    reply = Reply.from_body(message)
    assert (reply.stop_reason, reply.text in set("ABCD")) == ("end_turn", True)
    assert reply.output_tokens == 1


def test_the_same_request_gets_the_same_bytes_from_any_server_of_the_seed(body):
    first = Endpoint(seed=3)
    response = post(first, body())
    post(first, body(model="other"))
    assert post(first, body()) == response
    assert post(Endpoint(seed=3), body()) == response


def test_seed_and_call_and_body_each_change_the_reply(body):
    answers = {
        json.loads(response.body)["id"]
        for response in (
            post(Endpoint(seed=3), body()),
            post(Endpoint(seed=4), body()),
            post(Endpoint(seed=3), body(), {"x-tutorsim-call": "another"}),
            post(Endpoint(seed=3), body(max_tokens=99)),
        )
    }
    assert len(answers) == 4


def test_without_a_call_name_the_times_of_asking_are_counted(body):
    endpoint, other = Endpoint(seed=3), Endpoint(seed=3)
    first, second = post(endpoint, body(), {}), post(endpoint, body(), {})
    assert first.body != second.body
    assert [post(other, body(), {}), post(other, body(), {})] == [first, second]


def test_the_order_of_fields_does_not_matter(body):
    fields = body()
    turned = dict(reversed(fields.items()))
    assert list(turned) != list(fields)
    assert post(Endpoint(seed=3), turned) == post(Endpoint(seed=3), fields)


def test_fields_that_say_nothing_of_the_prompt_are_let_through(body):
    response = post(Endpoint(seed=3), body(temperature=1.0, metadata={"user_id": "x"}))
    assert response.status == 200


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"model": NaN}', "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"[]", "object"),
        (b"{}", "model"),
    ],
)
def test_a_body_that_is_no_request_is_refused(content, named):
    kind, message = error(Endpoint(seed=0).answer("POST", "/v1/messages", {}, content))
    assert kind == "invalid_request_error"
    assert named in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("model", 4),
        ("max_tokens", 0),
        ("max_tokens", True),
        ("max_tokens", "9"),
        ("stream", True),
        ("system", 7),
        ("system", [{"type": "image"}]),
        ("messages", []),
        ("messages", None),
        ("messages", ["text"]),
        ("messages", [{"role": "system", "content": "x"}]),
        ("messages", [{"role": "user", "content": ""}]),
        ("messages", [{"role": "user", "content": [{"type": "text"}]}]),
        ("messages", [{"role": "user", "content": [{"type": "text", "text": 1}]}]),
    ],
)
def test_a_wrong_field_is_refused_by_name(body, field, value):
    response = post(Endpoint(seed=0), body(**{field: value}))
    kind, message = error(response)
    assert (response.status, kind) == (400, "invalid_request_error")
    assert message.startswith(field)


def test_a_missing_field_is_refused_by_name(body):
    for field in ("model", "max_tokens", "messages"):
        fields = body()
        del fields[field]
        assert error(post(Endpoint(seed=0), fields))[1].startswith(field)


def test_other_paths_and_methods_are_refused():
    endpoint = Endpoint(seed=0)
    found = [
        (response.status, error(response)[0])
        for response in (
            endpoint.answer("POST", "/v1/complete", {}, b"{}"),
            endpoint.answer("GET", "/v1/messages", {}, b""),
            endpoint.answer("GET", "/\xff", {}, b""),
        )
    ]
    assert found == [
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (404, "not_found_error"),
    ]


def test_a_query_is_part_of_the_path_that_does_not_matter(body):
    content = json.dumps(body()).encode()
    assert Endpoint(seed=0).answer("POST", "/v1/messages?beta=true", {}, content).status == 200


def test_requests_are_counted_with_those_refused(body):
    endpoint = Endpoint(seed=0)
    post(endpoint, body())
    post(endpoint, {})
    assert endpoint.requests == 2


# --- Faults -------------------------------------------------------------------------------------


def struck(kind, body, **more):
    endpoint = Endpoint(seed=0, faults=[Fault(kind, share=1.0, **more)])
    return [post(endpoint, body), post(endpoint, body)]


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [("429", 429, "rate_limit_error"), ("529", 529, "overloaded_error"), ("500", 500, "api_error")],
)
def test_an_error_fault_has_the_api_shape_and_passes(body, kind, status, name):
    first, second = struck(kind, body())
    assert (first.status, error(first)[0]) == (status, name)
    assert second.body == post(Endpoint(seed=0), body()).body


def test_a_rate_limit_says_when_to_come_back(body):
    assert struck("429", body(), seconds=0.25)[0].headers == (("retry-after", "0.25"),)
    assert struck("429", body(), seconds=3.0)[0].headers == (("retry-after", "3"),)


def test_a_slow_reply_is_the_reply_with_a_delay(body):
    first, second = struck("slow", body(), seconds=0.5)
    assert (first.delay, second.delay) == (0.5, 0.0)
    assert first.body == second.body


def test_broken_replies_are_sent_in_part_or_not_at_all(body):
    assert struck("drop", body())[0].kept == 0.0
    cut, whole = struck("cut", body())
    assert (cut.kept, cut.body) == (0.5, whole.body)


def test_a_garbage_body_is_not_json(body):
    first, second = struck("garbage", body())
    assert first.status == 200
    with pytest.raises(ValueError):
        json.loads(first.body)
    json.loads(second.body)


def test_a_refusal_is_a_reply_without_text_whenever_it_is_asked_for(body):
    first, second = (Reply.from_body(json.loads(r.body)) for r in struck("refusal", body()))
    assert (first.text, first.stop_reason) == ("", "refusal")
    assert first == second


def test_a_truncated_reply_is_the_first_half(body):
    system = "You grade. SCORE: x"
    whole = Reply.from_body(json.loads(post(Endpoint(seed=0), body(system=system)).body))
    [half, _] = (
        Reply.from_body(json.loads(r.body)) for r in struck("truncated", body(system=system))
    )
    assert half.stop_reason == "max_tokens"
    assert half.text == whole.text[: len(whole.text) // 2] != ""


def chat(endpoint, **more):
    """A chat completion of the default conversation, in JSON or as a stream."""
    told = {"role": "system", "content": "You are a tutor."}
    asked = {"role": "user", "content": [{"type": "text", "text": "Which is it?"}]}
    body = {"model": "any-name", "messages": [told, asked], **more}
    return endpoint.answer("POST", "/v1/chat/completions", CALL, json.dumps(body).encode())


def test_a_chat_completion_says_what_the_message_would_whole_or_as_a_stream():
    whole = json.loads(chat(Endpoint(seed=1)).body)
    (choice,) = whole["choices"]
    request = {
        "model": "any-name",
        "max_tokens": 4096,
        "system": "You are a tutor.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Which is it?"}]}],
    }
    reply = Reply.from_body(json.loads(post(Endpoint(seed=1), request).body))
    usage = whole["usage"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (reply.text, "stop")
    assert usage["prompt_tokens"] == reply.input_tokens
    assert usage["total_tokens"] == reply.input_tokens + reply.output_tokens
    streamed = chat(Endpoint(seed=1), stream=True)
    *events, last, nothing = streamed.body.split(b"\n\n")
    assert (streamed.content_type, last, nothing) == ("text/event-stream", b"data: [DONE]", b"")
    deltas = [json.loads(one.removeprefix(b"data: "))["choices"][0] for one in events]
    assert len(deltas) > 3
    assert "".join(one["delta"].get("content", "") for one in deltas) == reply.text
    assert deltas[-1]["finish_reason"] == "stop"
    (short,) = json.loads(chat(Endpoint(seed=1), max_completion_tokens=1).body)["choices"]
    assert short["finish_reason"] == "length"


@pytest.mark.parametrize(
    "more", [{"messages": []}, {"messages": "x"}, {"messages": [{"role": "system"}]}, {"model": 1}]
)
def test_a_chat_completion_that_asks_nothing_is_refused(more):
    assert chat(Endpoint(seed=1), **more).status == 400


def test_tokens_are_counted_as_a_message_counts_them(body):
    asked = {name: value for name, value in body().items() if name != "max_tokens"}
    endpoint = Endpoint(seed=1)
    counted = endpoint.answer("POST", "/v1/messages/count_tokens", {}, json.dumps(asked).encode())
    reply = Reply.from_body(json.loads(post(endpoint, body()).body))
    assert json.loads(counted.body) == {"input_tokens": reply.input_tokens}
