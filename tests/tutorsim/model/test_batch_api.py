"""The batch endpoint's answers, as values or as trouble."""

import asyncio
import json
import re

import httpx2
import pytest

from tests.tutorsim.conftest import Scripted
from tutorsim.errors import RecordingRefused, UsageError
from tutorsim.model import Request, batch_api
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import SdkModel

COUNTS = {"processing": 0, "succeeded": 2, "errored": 1, "canceled": 0, "expired": 0}
SHOWN = {"id": "b1", "processing_status": "ended", "request_counts": COUNTS}


class Answers(Scripted):
    """Statuses with a body each, or exceptions."""

    def __init__(self, *answers):
        super().__init__(*map(_response, answers))


def _response(answer):
    if isinstance(answer, Exception):
        return answer
    status, body = answer
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.Response(status, content=data, headers={"x-tutorsim-standin": "7"})


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.0)


def ask(transport, what):
    async def asked():
        endpoint = batch_api.BatchEndpoint(transport, max_retries=2, timeout=5)
        try:
            return await what(endpoint)
        finally:
            await endpoint.aclose()

    return asyncio.run(asked())


def test_a_request_is_written_as_the_sdk_writes_it():
    request = Request("m", 'say "é"\n', "\U0001f600 \u2028", 5, (("temperature", 0.5),))
    transport = Answers((500, {}))

    async def direct():
        async with SdkModel(transport=transport, max_retries=0) as model:
            await model._client.post("/v1/messages", cast_to=httpx2.Response, body=request.body())

    with pytest.raises(Exception, match="500"):
        asyncio.run(direct())
    assert transport.requests[0].content.decode() == batch_api.request_text(request)


def test_a_batch_is_sent_once_and_read_back():
    transport = Answers((200, SHOWN))
    found = ask(
        transport,
        lambda endpoint: endpoint.send([batch_api.Entry("a", "{}"), batch_api.Entry("b", "{}")]),
    )
    assert found == batch_api.Batch("b1", ended=True, entries=3)
    [request] = transport.requests
    assert (request.method, request.url.path) == ("POST", "/v1/messages/batches")
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.content) == {
        "requests": [{"custom_id": "a", "params": {}}, {"custom_id": "b", "params": {}}]
    }


@pytest.mark.parametrize(
    "answer", [(500, {}), (429, {}), (200, b"<html>"), (200, []), (200, {"id": "b1"})]
)
def test_without_a_usable_answer_a_batch_is_not_sent_again_by_itself(answer):
    transport = Answers(answer)
    with pytest.raises(batch_api.BatchTrouble):
        ask(transport, lambda endpoint: endpoint.send([batch_api.Entry("a", "{}")]))
    assert len(transport.requests) == 1


def test_other_requests_are_the_clients_to_repeat():
    transport = Answers((500, {}), httpx2.ConnectError("no"), (200, SHOWN))
    assert ask(transport, lambda endpoint: endpoint.find("b1")).ended
    assert len(transport.requests) == 3


def test_what_is_not_there_is_none_but_a_missing_endpoint_is_told():
    missing = (404, {"type": "error", "error": {"type": "not_found_error", "message": "no"}})
    assert ask(Answers(missing), lambda endpoint: endpoint.find("b1")) is None
    assert ask(Answers(missing), lambda endpoint: endpoint.results("b1")) is None
    for what in (lambda e: e.send([batch_api.Entry("a", "{}")]), lambda e: e.newest()):
        with pytest.raises(UsageError, match="takes no batches"):
            ask(Answers(missing), what)


def test_a_refusal_and_an_error_that_only_passes_through_keep_their_kind():
    with pytest.raises(UsageError, match="refused a request"):
        ask(Answers((400, {})), lambda endpoint: endpoint.send([batch_api.Entry("a", "{}")]))
    with pytest.raises(RecordingRefused, match="mine"):
        ask(Answers(RecordingRefused("mine")), lambda endpoint: endpoint.find("b1"))


def test_all_newer_batches_are_listed_over_pages():
    def page(*ids, more):
        return 200, {"data": [{**SHOWN, "id": one} for one in ids], "has_more": more}

    transport = Answers(page("e", "d", more=True), page("c", "b", more=True))
    found = ask(transport, lambda endpoint: endpoint.since("b"))
    assert [batch.id for batch in found] == ["e", "d", "c"]
    assert transport.requests[1].url.params["after_id"] == "d"
    everything = ask(Answers(page("b", "a", more=False)), lambda endpoint: endpoint.since(None))
    assert [batch.id for batch in everything] == ["b", "a"]


def test_results_become_exchanges_of_direct_calls():
    line = {"custom_id": "x", "result": {"type": "succeeded", "message": {"id": 1, "t": "é"}}}
    transport = Answers((200, json.dumps(line).encode() + b"\n"))
    results: batch_api.BatchResults = ask(transport, lambda endpoint: endpoint.results("b1"))
    message = results.by_id["x"]["message"]
    request, response = results.exchange("episode/0/student/student/1", "{}", message)
    assert str(request.url) == "https://api.anthropic.com/v1/messages"
    assert request.headers["x-tutorsim-call"] == "episode/0/student/student/1"
    assert request.headers["content-type"] == "application/json"
    assert response.headers["x-tutorsim-standin"] == "7"
    assert response.content == '{"id":1,"t":"é"}'.encode()


def test_results_that_are_cut_or_no_results_are_trouble():
    for data in (b'{"custom_id": "x", "resu', b"<html>", b'{"result": {}}'):
        with pytest.raises(batch_api.BatchTrouble, match="cannot be read"):
            ask(Answers((200, data)), lambda endpoint: endpoint.results("b1"))


@pytest.mark.parametrize(
    ("kind", "status", "lasting"),
    [
        ("invalid_request_error", 400, True),
        ("not_found_error", 404, True),
        ("rate_limit_error", 429, False),
        ("overloaded_error", 529, False),
        ("some_new_error", 500, False),
    ],
)
def test_an_entrys_error_has_the_status_of_a_direct_call(kind, status, lasting):
    error = {"type": "error", "error": {"type": kind, "message": "no\nmore"}}
    found = batch_api.EntryError.of({"type": "errored", "error": error})
    assert (found.status, found.lasting) == (status, lasting)
    assert found.said == f", {kind}: no more"
    assert batch_api.EntryError.of({}) == batch_api.EntryError(500, "")


# --- Names of calls in a batch: short, and enough to know them by --------------------------------


LONG = "humaneval." + "x" * 200 + ".help_avoidant.cumulative.r02/12/tie_critique/motivation/2"


def test_an_id_fits_whatever_the_call_and_reads_back():
    for call in ("a", LONG, "\ud800"):
        found = batch_api.CustomId.of(call, '{"model":"m"}', batch_api.new_mark())
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(found))
        assert batch_api.CustomId.parse(str(found)) == found
        assert found.call == batch_api.call_digest(call)


def test_call_request_and_submission_each_change_it():
    ids = {
        str(batch_api.CustomId.of("a", "r", "0" * 14)),
        str(batch_api.CustomId.of("b", "r", "0" * 14)),
        str(batch_api.CustomId.of("a", "s", "0" * 14)),
        str(batch_api.CustomId.of("a", "r", batch_api.new_mark())),
        str(batch_api.CustomId.of("a", "r", batch_api.new_mark())),
    }
    assert len(ids) == 5


def test_another_name_is_not_taken_for_one():
    for text in ("", "my-request-1", "a" * 64, "-" * 64):
        assert batch_api.CustomId.parse(text) is None
