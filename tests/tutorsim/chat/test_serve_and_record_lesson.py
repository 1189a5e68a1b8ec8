"""The command: ports, folders, the cap, the next lesson."""

import itertools
import json
import signal
import time

import pytest

from tests.tutorsim.chat.browser import PATIENCE

pytestmark = [pytest.mark.loopback, pytest.mark.costly]


def own(served):
    """Headers of the page itself."""
    host = served.url.split("/")[2]
    return {"host": host, "origin": f"http://{host}", "content_type": "application/json"}


def say(served, text, *, name="message-1", **changed):
    body = json.dumps({"id": name, "text": text})
    return served.request("POST", "say", body, **{**own(served), **changed})


def test_a_second_server_and_a_used_port_are_refused(serve, tmp_path):
    served = serve()
    port = served.url.split("/")[2].split(":")[1]
    before = sorted(path.name for path in served.cassettes.iterdir())
    first = served.process
    served.start()
    code, said = served.ended()
    assert code == 2
    assert "Another run is using" in said
    served.start("--port", port)
    code, said = served.ended()
    assert code == 2
    assert f"Port {port} cannot be used." in said
    assert sorted(path.name for path in served.cassettes.iterdir()) == before
    served.process = first


def test_the_cap_ends_the_lesson_and_the_page_stays_readable(serve):
    served = serve(start=False)
    served.start("--max-usd", "0.004", "--stay")
    served.request("POST", "begin", "{}", **own(served))
    deadline = time.monotonic() + PATIENCE
    for number in itertools.count():
        if say(served, f"message {number}", name=f"message-{number}")[0] == 409:
            break
        assert time.monotonic() < deadline, "the cap was never reached"
        time.sleep(0.35)
    assert served.request("GET", "")[0] == 200
    status, _, text = served.request("GET", "transcript.txt")
    assert status == 200
    assert b"message 0" in text
    served.process.send_signal(2)
    code, said = served.ended()
    assert code == 5
    assert "cap" in said


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("moment", ["before the start", "while agents think", "after the lesson"])
def test_one_signal_ends_the_command(serve, name, moment):
    served = serve(start=False, delay=0.2)
    served.start("--stay")
    if moment != "before the start":
        served.request("POST", "begin", "{}", **own(served))
    if moment == "while agents think":
        served.model.until_called()
    if moment == "after the lesson":
        served.request("POST", "leave", "{}", **own(served))
        served.until_shown(b'"phase": "ended"')
    served.process.send_signal(getattr(signal, name))
    code, said = served.ended(20)
    expected = 0 if moment == "after the lesson" else 130
    assert code == expected, said
    address = served.url
    if moment == "while agents think":
        assert served.start() == address, "the same command goes on, at the same address"


def test_a_finished_study_has_no_lesson_left(serve):
    served = serve()
    served.request("POST", "begin", "{}", **own(served))
    served.request("POST", "leave", "{}", **own(served))
    assert served.ended()[0] == 0
    served.start()
    code, said = served.ended()
    assert code == 2
    assert "Every lesson of 'talk' with a person is recorded." in said
