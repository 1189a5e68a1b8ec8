import json
import time
from datetime import datetime, timedelta

import anthropic
import pytest

from tests.tutorsim.standin.conftest import body
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.model import Reply
from tutorsim.model.batch_api import CustomId
from tutorsim.standin import StandIn, messages_api_routes_and_replies
from tutorsim.standin.http_responses_and_faults import Fault
from tutorsim.standin.messages_api_routes_and_replies import Endpoint, read_request, think, tokens
from tutorsim.standin.server import LARGEST_BODY
from tutorsim.system_registry import load

# --- Mind ----------------------------------------------------------------------------------------


def test_what_is_none_of_its_parts_is_said_so():
    asked = body(system="", messages=[{"role": "user", "content": "What is the time?"}])
    assert think(asked, Chance(1)).text.startswith("I play tutors, students and judges")


def test_minds_that_ask_least_of_a_prompt_are_asked_last():
    minds = messages_api_routes_and_replies._recognisers()
    general = load("panel", "system").standin
    assert len(minds) > len(general) > 0
    assert minds[-len(general) :] == general


@pytest.mark.parametrize(("length", "reason"), [(21, "max_tokens"), (20, "end_turn")])
def test_a_reply_ends_where_max_tokens_ends(length, reason, monkeypatch):
    monkeypatch.setattr(messages_api_routes_and_replies, "NOBODY", "x" * length)
    asked = body(max_tokens=5, system="", messages=[{"role": "user", "content": "Hello?"}])
    thought = think(asked, Chance(1))
    assert (len(thought.text), thought.output_tokens, thought.stop_reason) == (20, 5, reason)


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


def test_each_prompt_that_no_system_knows_is_told_once_and_every_reply_to_it_counted():
    told = []
    endpoint = Endpoint(seed=1, on_unknown=told.append)
    for system in ("You greet guests\nin English.", "", "You greet guests\nin English."):
        post(endpoint, body(system=system, messages=[{"role": "user", "content": "Greet Otto."}]))
    post(endpoint, body())
    assert told == ["You greet guests in English.", "Greet Otto."]
    assert endpoint.unknown == {"You greet guests in English.": 2, "Greet Otto.": 1}
    for length in (60, 61):
        asked = [{"role": "user", "content": "Greet Otto."}]
        post(endpoint, body(system="x" * length, messages=asked))
    assert told[2:] == ["x" * 60, "x" * 59 + "…"]


def error(response):
    value = json.loads(response.body)
    assert value["type"] == "error"
    assert value["request_id"] == response.request_id
    return value["error"]["type"], value["error"]["message"]


def test_a_reply_is_a_message_of_the_api():
    response = post(Endpoint(seed=1), body(model="any-name"))
    message = json.loads(response.body)
    assert response.status == 200
    values = (message["type"], message["role"], message["model"])
    assert values == ("message", "assistant", "any-name")
    reply = Reply.from_body(message)
    assert (reply.stop_reason, reply.text in set("ABCD")) == ("end_turn", True)
    assert reply.output_tokens == 1


def test_the_same_request_gets_the_same_bytes_from_any_server_of_the_seed():
    first = Endpoint(seed=3)
    response = post(first, body())
    post(first, body(model="other"))
    assert post(first, body()) == response
    assert post(Endpoint(seed=3), body()) == response


def test_seed_and_call_and_body_each_change_the_reply():
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


def test_without_a_call_name_the_times_of_asking_are_counted():
    endpoint, other = Endpoint(seed=3), Endpoint(seed=3)
    first, second = post(endpoint, body(), {}), post(endpoint, body(), {})
    assert first.body != second.body
    assert [post(other, body(), {}), post(other, body(), {})] == [first, second]


def test_the_order_of_fields_does_not_matter():
    fields = body()
    turned = dict(reversed(fields.items()))
    assert list(turned) != list(fields)
    assert post(Endpoint(seed=3), turned) == post(Endpoint(seed=3), fields)


def test_fields_that_say_nothing_of_the_prompt_are_let_through():
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
def test_a_wrong_field_is_refused_by_name(field, value):
    response = post(Endpoint(seed=0), body(**{field: value}))
    kind, message = error(response)
    assert (response.status, kind) == (400, "invalid_request_error")
    assert message.startswith(field)


def test_a_missing_field_is_refused_by_name():
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
    missing = (404, "not_found_error")
    assert found == [missing, (405, "invalid_request_error"), missing]


def test_a_query_is_part_of_the_path_that_does_not_matter():
    content = json.dumps(body()).encode()
    assert Endpoint(seed=0).answer("POST", "/v1/messages?beta=true", {}, content).status == 200


def test_requests_are_counted_with_those_refused():
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
def test_an_error_fault_has_the_api_shape_and_passes(kind, status, name):
    first, second = struck(kind, body())
    assert (first.status, error(first)[0]) == (status, name)
    assert second.body == post(Endpoint(seed=0), body()).body


def test_a_rate_limit_says_when_to_come_back():
    assert struck("429", body(), seconds=0.25)[0].headers == (("retry-after", "0.25"),)
    assert struck("429", body(), seconds=3.0)[0].headers == (("retry-after", "3"),)


def test_a_slow_reply_is_the_reply_with_a_delay():
    first, second = struck("slow", body(), seconds=0.5)
    assert (first.delay, second.delay) == (0.5, 0.0)
    assert first.body == second.body


def test_broken_replies_are_sent_in_part_or_not_at_all():
    assert struck("drop", body())[0].kept == 0.0
    cut, whole = struck("cut", body())
    assert (cut.kept, cut.body) == (0.5, whole.body)


def test_a_garbage_body_is_not_json():
    first, second = struck("garbage", body())
    assert first.status == 200
    with pytest.raises(ValueError):
        json.loads(first.body)
    json.loads(second.body)


def test_a_refusal_is_a_reply_without_text_whenever_it_is_asked_for():
    first, second = (Reply.from_body(json.loads(r.body)) for r in struck("refusal", body()))
    assert (first.text, first.stop_reason) == ("", "refusal")
    assert first == second


def test_a_truncated_reply_is_the_first_half():
    system = "You grade. SCORE: x"
    whole = Reply.from_body(json.loads(post(Endpoint(seed=0), body(system=system)).body))
    [half, _] = (
        Reply.from_body(json.loads(r.body)) for r in struck("truncated", body(system=system))
    )
    assert half.stop_reason == "max_tokens"
    assert half.text == whole.text[: len(whole.text) // 2] != ""


def test_a_message_as_a_stream_says_what_the_whole_one_does():
    asked = body(messages=[{"role": "user", "content": "Hi"}], system="You are a poet.")
    whole = json.loads(post(Endpoint(seed=1), asked).body)
    streamed = post(Endpoint(seed=1), {**asked, "stream": True})
    assert streamed.content_type == "text/event-stream"
    *parts, nothing = streamed.body.split(b"\n\n")
    events = [json.loads(one.partition(b"\ndata: ")[2]) for one in parts]
    assert nothing == b""
    begun = {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 0}}
    assert events[0]["message"] == whole | begun
    empty = {"type": "text", "text": ""}
    assert events[1] == {"type": "content_block_start", "index": 0, "content_block": empty}
    assert events[-3] == {"type": "content_block_stop", "index": 0}
    assert {one["index"] for one in events[2:-3]} == {0}
    assert [f"event: {one['type']}".encode() for one in events] == [
        one.partition(b"\n")[0] for one in parts
    ]
    texts = [one["delta"]["text"] for one in events if one["type"] == "content_block_delta"]
    assert len(texts) > 3
    assert "".join(texts) == whole["content"][0]["text"]
    assert events[-2]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"]
    assert events[-1] == {"type": "message_stop"}


def chat(endpoint, **more):
    """A chat completion of the default conversation, in JSON or as a stream."""
    told = {"role": "system", "content": "You are a tutor."}
    asked = {"role": "user", "content": [{"type": "text", "text": "Which is it?"}]}
    body = {"model": "any-name", "messages": [told, asked], **more}
    return endpoint.answer("POST", "/v1/chat/completions", CALL, json.dumps(body).encode())


def test_a_chat_completion_says_what_the_message_would_whole_or_as_a_stream():
    whole = json.loads(chat(Endpoint(seed=1)).body)
    (choice,) = whole["choices"]
    assert (whole["object"], whole["created"], whole["model"]) == ("chat.completion", 0, "any-name")
    request = {
        "model": "any-name",
        "max_tokens": 4096,
        "system": "You are a tutor.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Which is it?"}]}],
    }
    message = json.loads(post(Endpoint(seed=1), request).body)
    assert whole["id"] == message["id"].replace("msg_", "chatcmpl-")
    reply = Reply.from_body(message)
    usage = whole["usage"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (reply.text, "stop")
    assert usage["prompt_tokens"] == reply.input_tokens
    assert usage["total_tokens"] == reply.input_tokens + reply.output_tokens
    streamed = chat(Endpoint(seed=1), stream=True)
    *events, last, nothing = streamed.body.split(b"\n\n")
    assert (streamed.content_type, last, nothing) == ("text/event-stream", b"data: [DONE]", b"")
    deltas = [json.loads(one.removeprefix(b"data: "))["choices"][0] for one in events]
    assert len(deltas) > 3
    assert {one["index"] for one in (choice, *deltas)} == {0}
    assert "".join(one["delta"].get("content", "") for one in deltas) == reply.text
    assert deltas[-1]["finish_reason"] == "stop"
    assert deltas[0]["delta"] == {"role": "assistant", "content": ""}
    refused = Endpoint(seed=1, faults=[Fault("refusal", share=1.0)])
    assert json.loads(chat(refused).body)["choices"][0]["finish_reason"] == "content_filter"
    (short,) = json.loads(chat(Endpoint(seed=1), max_completion_tokens=1).body)["choices"]
    assert short["finish_reason"] == "length"


@pytest.mark.parametrize(
    "more", [{"messages": []}, {"messages": "x"}, {"messages": [{"role": "system"}]}, {"model": 1}]
)
def test_a_chat_completion_that_asks_nothing_is_refused(more):
    assert chat(Endpoint(seed=1), **more).status == 400


def test_tokens_are_counted_as_a_message_counts_them():
    asked = {name: value for name, value in body().items() if name != "max_tokens"}
    endpoint = Endpoint(seed=1)
    counted = endpoint.answer("POST", "/v1/messages/count_tokens", {}, json.dumps(asked).encode())
    reply = Reply.from_body(json.loads(post(endpoint, body()).body))
    assert json.loads(counted.body) == {"input_tokens": reply.input_tokens}


# --- Batch endpoint -------------------------------------------------------------------------------

BATCHES = "/v1/messages/batches"
NAMES = [f"episode/1/vote_final/agent{place}/1" for place in range(40)]


def entry(body, name, mark="f" * 14):
    return {"custom_id": str(CustomId.of(name, json.dumps(body), mark)), "params": body}


def test_a_batch_is_as_large_as_the_api_allows_and_is_kept_for_a_day():
    assert (messages_api_routes_and_replies.LARGEST_BATCH, LARGEST_BODY) == (256_000_000, 32 << 20)
    requests = [{"custom_id": f"{place:064}", "params": {}} for place in range(100_001)]
    assert send(Endpoint(seed=0), requests).status == 400
    shown = sent(Endpoint(seed=0), requests[1:])
    assert (shown["request_counts"]["processing"], shown["ended_at"]) == (100_000, None)
    created, expires = (
        datetime.fromisoformat(shown[f"{one}_at"]) for one in ("created", "expires")
    )
    assert expires - created == timedelta(days=1)


def send(endpoint, requests):
    content = json.dumps({"requests": requests}).encode()
    return endpoint.answer("POST", BATCHES, {"host": "here:1"}, content)


def get(endpoint, path, method="GET"):
    return endpoint.answer(method, BATCHES + path, {"host": "here:1"}, b"")


def results(endpoint, batch_id):
    lines = get(endpoint, f"/{batch_id}/results").body.splitlines()
    return {one["custom_id"]: one["result"] for one in map(json.loads, lines)}


def sent(endpoint, requests):
    """The batch as it is shown when it is sent."""
    return json.loads(send(endpoint, requests).body)


def direct(endpoint, body, name):
    headers = {"x-tutorsim-call": name}
    return endpoint.answer("POST", "/v1/messages", headers, json.dumps(body).encode())


def test_an_entry_gets_the_reply_of_the_direct_call_whatever_its_batch():
    endpoint = Endpoint(seed=3)
    for names, mark in ((NAMES, "a" * 14), (NAMES[7:9], "b" * 14)):
        found = sent(endpoint, [entry(body(), name, mark) for name in names])
        answers = results(endpoint, found["id"])
        for name in names:
            result = answers[entry(body(), name, mark)["custom_id"]]
            whole = json.loads(direct(Endpoint(seed=3), body(), name).body)
            assert result == {"type": "succeeded", "message": whole}


def test_an_id_of_another_form_names_the_call_itself():
    endpoint = Endpoint(seed=3)
    found = sent(endpoint, [{"custom_id": "my-request", "params": body()}])
    [result] = results(endpoint, found["id"]).values()
    assert result["message"] == json.loads(direct(endpoint, body(), "my-request").body)


def test_replies_that_are_faults_are_those_of_direct_calls():
    faults = [Fault("refusal", share=0.3), Fault("truncated", share=0.3)]
    endpoint, other = Endpoint(seed=3, faults=faults), Endpoint(seed=3, faults=faults)
    long = body(system="You grade. SCORE: x")
    answers = results(endpoint, sent(endpoint, [entry(long, name) for name in NAMES])["id"])
    reasons = set()
    for name in NAMES:
        message = answers[entry(long, name)["custom_id"]]["message"]
        assert message == json.loads(direct(other, long, name).body)
        reasons.add(message["stop_reason"])
    assert reasons == {"end_turn", "refusal", "max_tokens"}


@pytest.mark.loopback
def test_a_batch_is_shown_as_the_stock_client_expects_it():
    with (
        StandIn(seed=2, faults=["pending:1:0.3"]) as server,
        anthropic.Anthropic(base_url=server.url, api_key="none") as client,
    ):
        requests = [entry(body(), name) for name in NAMES[:3]]
        requests.append({"custom_id": "wrong", "params": body(max_tokens=0)})
        batch = client.messages.batches.create(requests=requests)
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 4)
        assert batch.results_url is None
        with pytest.raises(anthropic.NotFoundError):
            client.get(f"{BATCHES}/{batch.id}/results", cast_to=object)
        while batch.processing_status != "ended":
            time.sleep(0.02)
            batch = client.messages.batches.retrieve(batch.id)
        assert batch.results_url == f"{server.url}{BATCHES}/{batch.id}/results"
        counts = batch.request_counts
        assert (counts.processing, counts.succeeded, counts.errored) == (0, 3, 1)
        found = {one.custom_id: one.result for one in client.messages.batches.results(batch.id)}
        assert list(found) != [one["custom_id"] for one in requests]
        wrong = found.pop("wrong")
        assert wrong.type == "errored"
        assert wrong.error.error.type == "invalid_request_error"
        assert wrong.error.error.message.startswith("max_tokens")
        assert {one.type for one in found.values()} == {"succeeded"}
        assert [one.id for one in client.messages.batches.list()] == [batch.id]


@pytest.mark.parametrize("kind", ["expired", "errored"])
def test_an_entry_that_fails_is_answered_when_it_is_sent_again(kind):
    endpoint = Endpoint(seed=0, faults=[Fault(kind, share=0.3)])
    requests = [entry(body(), name) for name in NAMES]
    first = results(endpoint, sent(endpoint, requests)["id"])
    failed = [one for one in requests if first[one["custom_id"]]["type"] == kind]
    assert 3 < len(failed) < 25
    again = results(endpoint, sent(endpoint, failed)["id"])
    assert {one["type"] for one in again.values()} == {"succeeded"}
    lasting = Endpoint(seed=0, faults=[Fault(kind, share=1.0, persist=True)])
    for _ in range(2):
        found = results(lasting, sent(lasting, requests[:2])["id"])
        assert {one["type"] for one in found.values()} == {kind}


def test_faults_of_entries_leave_direct_calls_alone():
    faults = [Fault("expired", share=1.0), Fault("errored", share=1.0), Fault("pending", share=1.0)]
    assert direct(Endpoint(seed=1, faults=faults), body(), "one") == direct(
        Endpoint(seed=1), body(), "one"
    )


def test_requests_about_batches_meet_the_faults_of_requests():
    endpoint = Endpoint(seed=0, faults=[Fault("500", share=1.0)])
    requests = [entry(body(), NAMES[0])]
    assert send(endpoint, requests).status == 500
    assert send(endpoint, requests).status == 200


def test_a_cancelled_batch_keeps_what_was_answered():
    endpoint = Endpoint(seed=0, faults=[Fault("pending", share=1.0, seconds=60)])
    requests = [entry(body(), name) for name in NAMES[:5]]
    batch = sent(endpoint, requests)
    ended = json.loads(get(endpoint, f"/{batch['id']}/cancel", "POST").body)
    assert ended["processing_status"] == "ended"
    found = [results(endpoint, batch["id"])[one["custom_id"]]["type"] for one in requests]
    assert found == ["succeeded"] * 2 + ["canceled"] * 3
    assert ended["request_counts"]["canceled"] == 3
    assert ended["cancel_initiated_at"]


def test_batches_are_listed_newest_first_and_page_by_page():
    endpoint = Endpoint(seed=0)
    ids = [sent(endpoint, [entry(body(), name)])["id"] for name in NAMES[:5]]
    assert len(set(ids)) == 5
    found, after = [], ""
    while True:
        page = json.loads(get(endpoint, f"?limit=2{after}").body)
        assert page["first_id"] == page["data"][0]["id"]
        found += [one["id"] for one in page["data"]]
        after = f"&after_id={page['last_id']}"
        if not page["has_more"]:
            break
    assert found == ids[::-1]
    for _ in range(16):
        sent(endpoint, [entry(body(), "one")])
    assert len(json.loads(get(endpoint, "").body)["data"]) == 20
    assert get(endpoint, "?limit=1000").status == 200


@pytest.mark.parametrize(
    ("requests", "named"),
    [
        ([], "1 to 100000"),
        ([{"custom_id": "a"}], "params"),
        ([{"custom_id": "a b", "params": {}}], "a-zA-Z0-9_-"),
        ([{"custom_id": "a" * 65, "params": {}}], "64"),
        ([{"custom_id": "a", "params": {}}] * 2, "once"),
        ("text", "custom_id"),
        (None, "custom_id"),
    ],
)
def test_what_is_no_batch_is_refused(requests, named):
    response = send(Endpoint(seed=0), requests)
    assert response.status == 400
    assert named in json.loads(response.body)["error"]["message"]


def test_unknown_batches_and_paths_are_not_found():
    endpoint = Endpoint(seed=0)
    for method, path in (("GET", "/none"), ("GET", "/none/results"), ("DELETE", "/none")):
        assert get(endpoint, path, method).status == 404
    assert get(endpoint, "?after_id=none").status == 400
    assert get(endpoint, "?limit=0").status == get(endpoint, "?limit=1001").status == 400
