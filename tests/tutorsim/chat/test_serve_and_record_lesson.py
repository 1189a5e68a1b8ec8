"""The command: ports, folders, the cap, the next lesson."""

import asyncio
import itertools
import json
import signal
import time

import pytest

from tests.tutorsim.chat.browser import PATIENCE
from tutorsim.chat import serve_and_record_lesson as module
from tutorsim.errors import TutorsimError
from tutorsim.kernel.flow_drivers_and_call_log import Listen, PersonInput
from tutorsim.model import Call, CallKey, Request
from tutorsim.records.group import CycleRecord, ThoughtRecord
from tutorsim.systems.group import GROUP
from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    Group,
    Progress,
    Timeline,
)
from tutorsim.systems.group.lesson_flow import Board
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import builtin_lessons
from tutorsim.systems.group.what_a_person_in_a_lesson_sees_and_says import LessonPage

# --- Page server ---------------------------------------------------------------------------------

PORT, TOKEN = 8123, "t" * 43
HOST = f"127.0.0.1:{PORT}"
OWN = {"host": HOST, "origin": f"http://{HOST}", "content-type": "application/json"}
ABOUT = {"problem": "How many?", "me": "Tom"}


class Page:
    """A lesson's application, and requests to it."""

    def __init__(self):
        self.group = Group(("bob", "alice"), "Tom")
        self.now = 100.0
        self.session = LessonPage(self.group, ABOUT, shows_thoughts="after", clock=lambda: self.now)
        self.runner = asyncio.Runner()
        self.app = module.chat_app(self.session, token=TOKEN, port=PORT)

    def request(self, method, path, body=b"", *, token=TOKEN, until=None, **headers):
        """Status, headers and body; of a stream what came until it held `until`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()} or {"host": HOST}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "path": f"/{token}/{path}", "raw_path": b"", "query_string": b"", "scheme": "http",
            "headers": [(k.encode(), v.encode()) for k, v in sent.items()],
            "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1), "root_path": "",
        }  # fmt: skip
        content = body.encode() if isinstance(body, str) else body
        answer = {"body": b""}
        asked = [{"type": "http.request", "body": content, "more_body": False}]

        async def run():
            done = asyncio.Event()

            async def receive():
                if asked:
                    return asked.pop()
                await done.wait()
                return {"type": "http.disconnect"}

            async def send(message):
                if message["type"] == "http.response.start":
                    answer["status"] = message["status"]
                    answer["headers"] = {k.decode(): v.decode() for k, v in message["headers"]}
                else:
                    answer["body"] += message.get("body", b"")
                    if until is not None and until in answer["body"]:
                        done.set()

            await asyncio.wait_for(self.app(scope, receive, send), 10)

        self.runner.run(run())
        return answer["status"], answer["headers"], answer["body"]

    def say(self, text, *, name="message-1", **changed):
        headers = {**{k.replace("-", "_"): v for k, v in OWN.items()}, **changed}
        return self.request("POST", "say", json.dumps({"id": name, "text": text}), **headers)[0]

    def post(self, path, body="{}"):
        headers = {k.replace("-", "_"): v for k, v in OWN.items()}
        return self.request("POST", path, body, **headers)[0]


@pytest.fixture
def page():
    made = Page()
    yield made
    made.runner.close()


def test_the_page_and_its_own_host_are_served(page):
    assert page.request("GET", "")[0] == 200
    assert page.request("GET", "", host=f"localhost:{PORT}")[0] == 200
    assert page.post("begin") == 200


@pytest.mark.parametrize(
    "host", [f"evil.example:{PORT}", f"127.0.0.1:{PORT + 1}", "127.0.0.1", "", "127.0.0.1.nip.io"]
)
def test_a_rebound_name_is_refused(page, host):
    for path in ("", "about", "events", "transcript.txt", "why/3"):
        assert page.request("GET", path, host=host)[0] == 421
    assert page.say("hi", host=host) == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", f"https://{HOST}"]
)
def test_another_sites_page_can_neither_post_nor_read(page, origin):
    page.session.begin()
    assert page.say("hi", origin=origin) == 403
    for path in ("about", "events", "transcript.txt"):
        assert page.request("GET", path, host=HOST, origin=origin)[0] == 403
    assert page.session._said == type(page.session._said)()


def test_a_post_needs_origin_and_json(page):
    page.session.begin()
    assert page.say("hi", content_type="text/plain") == 403
    plain = {"host": HOST, "content_type": "application/json"}
    assert page.request("POST", "say", "{}", **plain)[0] == 403
    assert page.request("GET", "about", host=HOST, sec_fetch_site="cross-site")[0] == 403


def test_another_token_finds_nothing(page):
    for token in ("", "x", "x" * 43, TOKEN[:-1]):
        assert page.request("GET", "about", token=token)[0] == 404
        assert page.request("GET", "events", token=token)[0] == 404


def test_headers_keep_the_page_to_itself(page):
    status, headers, body = page.request("GET", "")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert len(body) < 300_000
    assert b"http://" not in body
    assert b"https://" not in body


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "{", '{"id": 1, "text": "a"}', '{"id": "message-1", "text": 5}',
        '{"id": "message-1", "text": "\\ud800"}', '{"id": "../../xyz", "text": "a"}',
        "[" * 60_000, "x" * 100_000, b"\xff\xfe",
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(page, body):
    page.session.begin()
    assert page.post("say", body) == 422


@pytest.mark.parametrize(("size", "status"), [(64_001, 422), (64_000, 202)])
def test_a_request_has_at_most_64_000_bytes(page, size, status):
    page.session.begin()
    assert page.post("say", '{"id": "message-1", "text": "a"}'.ljust(size)) == status


@pytest.mark.parametrize("text", ["", "   \n", "x" * 2001, "x" * 10_000])
def test_empty_and_long_messages_are_refused(page, text):
    page.session.begin()
    assert page.say(text) == 422


def test_messages_come_at_most_every_300_ms(page):
    assert page.say("too early") == 409
    page.session.begin()
    assert page.say("x" * 2000) == 202
    assert page.say("at once", name="message-2") == 429
    assert page.say("x" * 2000) == 202, "a message that was taken is not taken again"
    page.now += 0.31
    assert page.say("later", name="message-2") == 202
    assert [text for _, text in page.session._said] == ["x" * 2000, "later"]


def board(page, *texts, cycles=None, ended=False):
    """Messages of the learner and of Bob in turn, as a lesson shows them."""
    timeline = Timeline(page.group)
    timeline.add("stage", stage=1, text="Understand")
    for number, text in enumerate(texts):
        who = "learner" if number % 2 == 0 else "bob"
        timeline.add("message", stage=1, who=who, text=text)
    if ended:
        timeline.add("end", stage=1)
    progress = Progress(builtin_lessons()[0].stages)
    return Board(tuple(timeline.events), progress, cycles or {}, ended)


def heard(page, *texts):
    """The person hears these messages."""
    page.session._show(board(page, *texts))


def test_a_message_is_shown_with_the_id_under_which_the_page_sent_it(page):
    said = PersonInput("hello", 0, message_id="message-1")
    page.session.kept(Listen(1, "next", 0, board(page)), said)
    heard(page, "hello", "hi", "so?")
    assert [one["message_id"] for one in page.session.entries] == ["", "message-1", "", ""]


def test_the_stream_goes_on_after_the_last_event_that_the_page_has(page):
    heard(page, "hello", "hi\n\nevent: x", "so?")
    _, headers, whole = page.request("GET", "events", until=b"event: state")
    assert headers["content-type"].startswith("text/event-stream")
    assert [line for line in whole.split(b"\n") if line.startswith(b"id: ")] == [
        b"id: 1", b"id: 2", b"id: 3", b"id: 4",
    ]  # fmt: skip
    assert whole.count(b"\nevent: entry") + whole.startswith(b"event: entry") == 4
    own = {"host": HOST, "last_event_id": "3"}
    _, _, rest = page.request("GET", "events", until=b"event: state", **own)
    assert rest.startswith(b"id: 4\n")
    own["last_event_id"] = "9" * 30
    _, _, odd = page.request("GET", "events", until=b"event: state", **own)
    assert odd.startswith(b"id: 1\n")


def test_a_stream_ends_with_the_server(page):
    heard(page, "hello")
    waited_for = page.session.next_change()
    page.session.close()
    assert waited_for.is_set()
    _, _, whole = page.request("GET", "events")
    assert whole.count(b"event: state") == 1


def test_the_transcript_is_plain_text(page):
    heard(page, "<b>hello</b>", "hi")
    _, headers, body = page.request("GET", "transcript.txt")
    assert headers["content-disposition"].startswith("attachment")
    assert body.decode() == "How many?\n\nTom: <b>hello</b>\n\nBob: hi\n"


def test_thoughts_are_refused_before_the_end(page):
    assert page.request("GET", "why/2")[0] == 403


@pytest.mark.parametrize("stage", [x for x in GROUP.stages if not x.startswith(("rate", "judge"))])
def test_whoever_is_asked_is_shown_without_a_name_that_the_person_does_not_know(page, stage):
    page.session.begin()
    who = {"think": "bob", "speak": "bob", "speak_predicted": "bob"}.get(stage, "hidden")
    page.session.asking([Call(CallKey(2, stage, who, 1), Request("m", "s", "u", 9))])
    state = page.session.state()
    shown = state["thinking"] + state["writing"]
    assert shown == (["Bob"] if who == "bob" else ["The group"])
    assert bool(state["writing"]) == stage.startswith("speak")
    page.session.asking(())
    assert not page.session.state()["thinking"]


def test_the_end_and_its_thoughts_are_shown_while_messages_are_still_coded(page):
    """Coding takes as many calls as there are messages, and nobody should wait for it."""
    page.session.begin()
    heard(page, "hello", "hi")
    thought = ThoughtRecord(
        agent="bob", status="valid", stimuli=(), thought="I greet Tom.", action="speak",
        corrects=False, silent=0,
    )  # fmt: skip
    cycle = CycleRecord(thoughts=(thought,), chosen="bob")
    call = Call(CallKey(2, "code", "coder_1", 1), Request("m", "s", "u", 9))
    page.session.asking([call], board(page, "hello", "hi", cycles={2: cycle}, ended=True))
    _, _, shown = page.request("GET", "events", until=b"event: state")
    assert b'"kind": "end"' in shown
    assert b'"phase": "ended"' in shown
    assert b'"thoughts": true' in shown
    assert b"are being coded" in shown
    why = json.loads(page.request("GET", "why/3")[2])
    assert [(one["name"], one["thought"], one["chosen"]) for one in why["thoughts"]] == [
        ("Bob", "I greet Tom.", True)
    ]
    assert why["rule"].startswith("Bob had the highest")
    assert page.say("too late") == 409
    page.session.stop(TutorsimError("The cap is reached."))
    assert page.request("GET", "why/3")[0] == 200, "what was shown stays readable"


# --- Lesson --------------------------------------------------------------------------------------

pytestmark = pytest.mark.loopback


def own(served):
    """Headers of the page itself."""
    host = served.url.split("/")[2]
    return {"host": host, "origin": f"http://{host}", "content_type": "application/json"}


def say(served, text, *, name="message-1", **changed):
    body = json.dumps({"id": name, "text": text})
    return served.request("POST", "say", body, **{**own(served), **changed})


@pytest.mark.costly
def test_a_second_server_and_a_used_port_are_refused(serve):
    served = serve()
    port = served.url.split("/")[2].split(":")[1]
    before = sorted(path.name for path in served.cassettes.iterdir())
    first = served.process
    served.start()
    served.ended().fails(2, "Another run is using")
    served.start("--port", port)
    served.ended().fails(2, f"Port {port} cannot be used.")
    assert sorted(path.name for path in served.cassettes.iterdir()) == before
    served.process = first


@pytest.mark.costly
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
    served.ended().fails(5, "cap")


@pytest.mark.costly
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
    said = served.ended(20)
    assert said.code == (0 if moment == "after the lesson" else 130), said
    address = served.url
    if moment == "while agents think":
        assert served.start() == address, "the same command goes on, at the same address"


def test_a_wait_without_a_signal_ends_with_what_is_waited_for():
    assert asyncio.run(module._until_interrupted(asyncio.sleep(0))) is True


@pytest.mark.costly
def test_a_finished_study_has_no_lesson_left(serve):
    served = serve()
    served.request("POST", "begin", "{}", **own(served))
    served.request("POST", "leave", "{}", **own(served))
    assert served.ended().code == 0
    assert served.record()["learner_name"]
    served.start()
    served.ended().fails(2, "Every lesson of 'talk' with a person is recorded.")


@pytest.mark.parametrize(
    ("said", "port"),
    [
        ({"port": 1}, 1), ({"port": 65_535}, 65_535), ({"port": 65_536}, 0), ({"port": -1}, 0),
        ({"port": "8"}, 0), ({}, 0), ([], 0),
    ],
)  # fmt: skip
def test_of_an_earlier_address_only_a_port_is_taken(tmp_path, said, port):
    assert module._earlier_port(tmp_path) == 0
    (tmp_path / module.ADDRESS_FILE).write_text(json.dumps(said))
    assert module._earlier_port(tmp_path) == port
