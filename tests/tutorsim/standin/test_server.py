import asyncio
import threading
import time

import anthropic
import pytest

from tutorsim.errors import UsageError
from tutorsim.standin import Endpoint, StandIn, serve

pytestmark = pytest.mark.loopback


def client(server, **settings):
    return anthropic.Anthropic(base_url=server.url, api_key="none", **settings)


def create(opened, body, name):
    return opened.messages.create(**body, extra_headers={"x-tutorsim-call": name})


def test_the_stock_client_gets_a_message(body):
    with StandIn(seed=2) as server, client(server) as opened:
        message = create(opened, body(), "one")
        assert message.content[0].text in set("ABCD")
        assert server.requests == 1


@pytest.mark.costly
@pytest.mark.parametrize("fault", ["429:1:0.01", "529:1", "drop:1", "cut:1"])
def test_the_clients_own_retry_gets_what_an_undisturbed_server_gives(body, fault):
    with StandIn(seed=2) as server, client(server) as opened:
        undisturbed = create(opened, body(), "one")
    with StandIn(seed=2, faults=[fault]) as server, client(server, max_retries=1) as opened:
        assert create(opened, body(), "one") == undisturbed
        assert server.requests == 2


def test_a_fault_that_persists_outlasts_every_retry(body):
    with (
        StandIn(faults=["429:1:0.01:persist"]) as server,
        client(server, max_retries=2) as opened,
    ):
        with pytest.raises(anthropic.RateLimitError) as caught:
            create(opened, body(), "one")
        assert caught.value.request_id.startswith("req_")
        assert server.requests == 3


def test_errors_reach_the_client_as_its_own_kinds(body):
    with StandIn() as server, client(server) as opened:
        with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
            create(opened, body(max_tokens=0), "one")
        with pytest.raises(anthropic.NotFoundError):
            opened.models.list()


@pytest.mark.costly
def test_sixty_four_calls_in_flight_get_the_replies_of_one_after_the_other(body):
    names = [f"call {i}" for i in range(64)]

    async def all_at_once(url):
        async with anthropic.AsyncAnthropic(base_url=url, api_key="none") as opened:
            return await asyncio.gather(*(create(opened, body(), name) for name in names))

    with StandIn(seed=9) as server:
        together = asyncio.run(all_at_once(server.url))
    with StandIn(seed=9) as server, client(server) as opened:
        assert [create(opened, body(), name) for name in names] == together


def test_nothing_is_left_running_and_the_port_is_free_again():
    before = threading.active_count()
    with StandIn() as server:
        url = server.url
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    with pytest.raises(anthropic.APIConnectionError):
        anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).models.list()


def test_a_server_ends_while_a_reply_still_waits(body):
    with StandIn(faults=["slow:1:60"]) as server:
        opened = client(server, max_retries=0)
        failures = []

        def call():
            try:
                create(opened, body(), "one")
            except anthropic.APIConnectionError as error:
                failures.append(error)

        waiting = threading.Thread(target=call)
        waiting.start()
        while server.requests == 0:
            time.sleep(0.01)
    waiting.join(60)
    assert len(failures) == 1
    opened.close()


def test_an_error_in_the_block_is_not_hidden():
    with pytest.raises(ValueError, match="mine"), StandIn():
        raise ValueError("mine")


def test_a_fault_that_cannot_be_read_is_refused_before_the_server_starts():
    with pytest.raises(UsageError):
        StandIn(faults=["oops"])


def test_a_port_in_use_is_named():
    async def two():
        stop = asyncio.Event()
        urls = []
        first = asyncio.create_task(
            serve(Endpoint(seed=0), host="127.0.0.1", port=0, ready=urls.append, stop=stop)
        )
        while not urls:
            await asyncio.sleep(0.01)
        port = int(urls[0].rsplit(":", 1)[1])
        try:
            await serve(Endpoint(seed=0), host="127.0.0.1", port=port, ready=urls.append, stop=stop)
        finally:
            stop.set()
            await first

    with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1 port"):
        asyncio.run(two())
