import math
import socket

import pytest

from tutorsim import dask_cluster as engine_module
from tutorsim.dask_cluster import Engine, EngineError, connect, parse_engine, scattered


@pytest.mark.parametrize(
    ("text", "scheduler", "workers"),
    [
        ("dask://10.0.0.7:8786", "tcp://10.0.0.7:8786", 0),
        ("dask://node-1.example:8786/", "tcp://node-1.example:8786", 0),
        ("dask://[::1]:8786", "tcp://[::1]:8786", 0),
        ("dask://local:8786", "tcp://local:8786", 0),
        ("dask://local", None, 2),
        ("dask://local?workers=3", None, 3),
    ],
)
def test_an_address_is_a_scheduler_or_workers_of_this_machine(text, scheduler, workers):
    assert parse_engine(text) == Engine(scheduler, workers)


def test_an_address_reads_back_as_it_is_written():
    for text in ("dask://node:8786", "dask://[::1]:8786", "dask://local?workers=3"):
        assert str(parse_engine(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "dask", "dask://", "dask://:8786", "dask://node", "dask://node:port",
        "dask://node:99999", "dask://node:8786?workers=2", "dask://node:8786/path",
        "dask://local?workers=0", "dask://local?workers=two", "dask://local?workers=1&workers=2",
        "dask://local?threads=2", "dask://local?workers", "tcp://node:8786", "ray://node:8786",
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_the_forms_are_named(text):
    with pytest.raises(EngineError) as found:
        parse_engine(text)
    assert "dask://HOST:PORT or dask://local?workers=N" in found.value.hint


def test_a_password_in_an_address_is_not_repeated():
    with pytest.raises(EngineError) as found:
        parse_engine("dask://me:secret@node:8786")
    assert "secret" not in f"{found.value.what} {found.value.why} {found.value.hint}"


def test_without_the_extra_the_way_to_install_it_is_named(monkeypatch):
    monkeypatch.setattr(engine_module, "find_spec", lambda name: None)
    with (
        pytest.raises(EngineError, match="needs Dask") as found,
        connect(parse_engine("dask://local")),
    ):
        pass
    assert "tutorsim[dask]" in found.value.hint


@pytest.mark.costly
@pytest.mark.loopback
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch, unused_tcp_address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(engine_module, "_PATIENCE", 1)
    engine = parse_engine(f"dask://{unused_tcp_address}")
    with pytest.raises(EngineError, match=unused_tcp_address) as found, connect(engine):
        pass
    assert "dask scheduler" in found.value.hint


@pytest.fixture
def unused_tcp_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and never listening: a connection is refused
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.costly
@pytest.mark.loopback
def test_pieces_run_on_two_workers_and_an_error_of_one_is_raised():
    pytest.importorskip("distributed")
    with connect(parse_engine("dask://local?workers=2")) as client:
        assert len(client.scheduler_info()["workers"]) == 2
        assert sorted(scattered(client, math.factorial, range(20))) == [
            math.factorial(n) for n in range(20)
        ]
        with pytest.raises(ValueError, match="negative"):
            list(scattered(client, math.factorial, [1, -1]))
