"""The suite's own guard: no test reaches a network by accident."""

import asyncio
import socket

import pytest

ELSEWHERE = ("192.0.2.1", 9)  # an address kept for documentation


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def test_no_connection_is_opened(listening):
    with pytest.raises(RuntimeError, match="opened a connection"):
        socket.create_connection(listening, timeout=1)


def test_no_connection_is_opened_from_an_event_loop_either(listening):
    with pytest.raises(RuntimeError, match="opened a connection"):
        asyncio.run(asyncio.open_connection(*listening))


@pytest.mark.loopback
def test_a_loopback_test_reaches_this_machine_only(listening):
    socket.create_connection(listening, timeout=1).close()
    with pytest.raises(RuntimeError, match="opened a connection"):
        socket.create_connection(ELSEWHERE, timeout=1)
