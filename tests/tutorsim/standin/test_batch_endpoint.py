import json
import time

import anthropic
import pytest

from tutorsim.model.batch import CustomId
from tutorsim.standin import StandIn
from tutorsim.standin.endpoint import Endpoint
from tutorsim.standin.responses_and_faults import Fault

BATCHES = "/v1/messages/batches"
NAMES = [f"episode/1/vote_final/agent{place}/1" for place in range(40)]


def entry(body, name, mark="f" * 14):
    return {"custom_id": str(CustomId.of(name, json.dumps(body), mark)), "params": body}


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


def test_an_entry_gets_the_reply_of_the_direct_call_whatever_its_batch(body):
    endpoint = Endpoint(seed=3)
    for names, mark in ((NAMES, "a" * 14), (NAMES[7:9], "b" * 14)):
        found = sent(endpoint, [entry(body(), name, mark) for name in names])
        answers = results(endpoint, found["id"])
        for name in names:
            result = answers[entry(body(), name, mark)["custom_id"]]
            whole = json.loads(direct(Endpoint(seed=3), body(), name).body)
            assert result == {"type": "succeeded", "message": whole}


def test_an_id_of_another_form_names_the_call_itself(body):
    endpoint = Endpoint(seed=3)
    found = sent(endpoint, [{"custom_id": "my-request", "params": body()}])
    [result] = results(endpoint, found["id"]).values()
    assert result["message"] == json.loads(direct(endpoint, body(), "my-request").body)


def test_replies_that_are_faults_are_those_of_direct_calls(body):
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
def test_a_batch_is_shown_as_the_stock_client_expects_it(body):
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
def test_an_entry_that_fails_is_answered_when_it_is_sent_again(body, kind):
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


def test_faults_of_entries_leave_direct_calls_alone(body):
    faults = [Fault("expired", share=1.0), Fault("errored", share=1.0), Fault("pending", share=1.0)]
    assert direct(Endpoint(seed=1, faults=faults), body(), "one") == direct(
        Endpoint(seed=1), body(), "one"
    )


def test_requests_about_batches_meet_the_faults_of_requests(body):
    endpoint = Endpoint(seed=0, faults=[Fault("500", share=1.0)])
    requests = [entry(body(), NAMES[0])]
    assert send(endpoint, requests).status == 500
    assert send(endpoint, requests).status == 200


def test_a_cancelled_batch_keeps_what_was_answered(body):
    endpoint = Endpoint(seed=0, faults=[Fault("pending", share=1.0, seconds=60)])
    requests = [entry(body(), name) for name in NAMES[:5]]
    batch = sent(endpoint, requests)
    ended = json.loads(get(endpoint, f"/{batch['id']}/cancel", "POST").body)
    assert ended["processing_status"] == "ended"
    found = [results(endpoint, batch["id"])[one["custom_id"]]["type"] for one in requests]
    assert found == ["succeeded"] * 2 + ["canceled"] * 3
    assert ended["request_counts"]["canceled"] == 3


def test_batches_are_listed_newest_first_and_page_by_page(body):
    endpoint = Endpoint(seed=0)
    ids = [sent(endpoint, [entry(body(), name)])["id"] for name in NAMES[:5]]
    assert len(set(ids)) == 5
    found, after = [], ""
    while True:
        page = json.loads(get(endpoint, f"?limit=2{after}").body)
        found += [one["id"] for one in page["data"]]
        after = f"&after_id={page['last_id']}"
        if not page["has_more"]:
            break
    assert found == ids[::-1]


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
    assert get(endpoint, "?limit=0").status == 400
