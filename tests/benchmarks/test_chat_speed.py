"""The person's page: how soon it answers, how it scrolls, and whether serving it grows.

Lessons are the scripted stand-in's, which answers at once. What needs a browser is left out where
there is no Chromium.
"""

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import tomli_w
import uvicorn

from tests.benchmarks.test_lesson_speed import long_lesson
from tests.tutorsim.chat.conftest import STUDY, Served, serve  # noqa: F401 - fixtures
from tutorsim.chat.serve_and_record_lesson import chat_app
from tutorsim.standin import StandIn
from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    Group,
    Progress,
    Timeline,
)
from tutorsim.systems.group.lesson_flow import Board
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import builtin_lessons
from tutorsim.systems.group.what_a_person_in_a_lesson_sees_and_says import LessonPage

pytestmark = pytest.mark.loopback

SAID: Final = 12
"""Messages of the person, each when nobody is busy."""
MESSAGES: Final = 500
LESSONS: Final = 20
TOKEN: Final = "t" * 43

WATCHED: Final = """
window.sent = []; window.came = [];
document.getElementById('form').addEventListener('submit', () => sent.push(Date.now()), true);
new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes)
    if (node.classList.contains('message') && !node.classList.contains('mine'))
      came.push(Date.now());
}).observe(document.getElementById('messages'), { childList: true });
"""
SCROLLED: Final = """
new Promise((done) => {
  const box = document.getElementById('scroll'), frames = [];
  let place = 0, last = null;
  const step = (now) => {
    if (last !== null) frames.push(now - last);
    last = now;
    place += 400;
    box.scrollTop = place;
    if (place < box.scrollHeight) requestAnimationFrame(step); else done(frames);
  };
  box.scrollTop = 0;
  requestAnimationFrame(step);
})
"""
STEP: Final = """
new Promise((done) => {
  document.getElementById('scroll').scrollTop = %d;
  requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
})
"""
EMPTY: Final = """
document.getElementById('messages').replaceChildren();
document.getElementById('messages').style.height = '60000px'
"""


def quiet(served):
    """Wait until the lesson waits for the person."""
    calls = -1
    while calls != len(served.model.calls):
        calls = len(served.model.calls)
        time.sleep(1)


def talked(served, tab):
    """Seconds from each message to the first call, and from each reply to the page."""
    wall = time.time() - time.monotonic()
    calls = served.model.calls
    first = []
    for number in range(SAID):
        quiet(served)
        before = len(calls)
        tab.say(f"Message {number}: what do we do next?")
        tab.until(f"document.querySelectorAll('.mine:not(.pending)').length > {number}")
        while len(calls) == before:
            time.sleep(0.01)
        first.append(calls[before].came + wall - tab.run("sent.at(-1)") / 1000)
    quiet(served)
    replied = [call.went + wall for call in calls if "/speak/" in call.name]
    shown = [came / 1000 for came in tab.run("came")]
    assert shown
    return first, [min(came - went for went in replied if went <= came + 0.001) for came in shown]


def test_a_message_reaches_the_agents_and_a_reply_the_page_at_once(
    side_by_side,
    serve,  # noqa: F811
    browser,
):
    served = serve(start=False)
    served.study = long_lesson(
        served.folder, learners=["person"], pause_s=0.2, silence_s=0.2, max_silences=1,
        max_events=400, ipa_codings=0,
    )  # fmt: skip
    served.start()
    tab = browser.tab()
    tab.begin_lesson(served.url)
    tab.run(WATCHED)
    found: list[tuple[list[float], list[float]]] = []
    side_by_side.benchmark.pedantic(lambda: found.append(talked(served, tab)), rounds=1)
    [(first, shown)] = found
    side_by_side.note(
        what=f"from a person's message to the first agent call, median of {len(first)} "
        f"(slowest {1000 * max(first):.0f} ms); from a reply to the page "
        f"{1000 * statistics.median(shown):.0f} ms, median of {len(shown)} "
        f"(slowest {1000 * max(shown):.0f} ms)",
        reference="none",
        target="at most 50 ms, at most 100 ms",
        ratio=1000 * statistics.median(first),
        unit="ms",
    )


@contextmanager
def filled_page(messages):
    """The address of a lesson's page with so many messages."""
    lesson = builtin_lessons()[0]
    group = Group(("bob", "alice", "charlie"), "Tom")
    timeline = Timeline(group)
    timeline.add("stage", stage=1, text="Understand")
    for number in range(messages):
        who = (*group.agents, "learner")[number % 4]
        text = f"Message {number}: " + "so the long side is 40 - 2x metres. " * (1 + number % 5)
        timeline.add("message", stage=1, who=who, text=text)
    stages = [
        {"name": stage.name, "tasks": [one.model_dump() for one in stage.tasks]}
        for stage in lesson.stages
    ]
    about = {
        "task": lesson.id, "problem": lesson.problem, "me": "Tom", "folder": "/rec",
        "people": [{"name": "Bob", "role": "leader"}], "stages": stages,
    }  # fmt: skip
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        port = door.getsockname()[1]
        session = LessonPage(group, about, shows_thoughts="never")
        session.begin()
        session._show(Board(tuple(timeline.events), Progress(lesson.stages), {}, False))
        app = chat_app(session, token=TOKEN, port=port)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        runner = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[door])))
        runner.start()
        try:
            yield f"http://127.0.0.1:{port}/{TOKEN}/"
        finally:
            server.should_exit = server.force_exit = True
            runner.join()


def busy(tab):
    """Milliseconds of processor time that the page's thread takes for each step of a scroll."""
    taken = []
    before = 0.0
    for place in range(0, tab.run("document.getElementById('scroll').scrollHeight"), 400):
        tab.run(STEP % place)
        metrics = tab.command("Performance.getMetrics")["metrics"]
        now = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
        taken.append(1000 * (now - before))
        before = now
    return taken[1:]


def test_five_hundred_messages_scroll(side_by_side, browser):
    """In frames by the clock, which waits for whatever else the machine does, and by its work."""
    with filled_page(MESSAGES) as url:
        tab = browser.tab()
        tab.size(1280, 800)
        tab.open(url)
        tab.until(f"document.querySelectorAll('.message').length === {MESSAGES}")
        tab.command("Performance.enable", timeDomain="threadTicks")
        work = busy(tab)
        worst: list[float] = []
        side_by_side.benchmark.pedantic(lambda: worst.append(max(tab.run(SCROLLED))), rounds=4)
        tab.run(EMPTY)
        alone = min(max(tab.run(SCROLLED)) for _ in range(4))
    side_by_side.note(
        what=f"work of the page's thread for the longest of {len(work)} frames while {MESSAGES} "
        f"messages scroll by; by the clock the longest frame took {min(worst):.0f} ms, best of "
        f"{len(worst)} times",
        reference=f"an empty page of that height, by the clock ({alone:.0f} ms)",
        target="at most 50 ms",
        ratio=max(work),
        unit="ms",
    )


SERVING: Final = """
import http.client, json, os, sys, threading
from pathlib import Path
from urllib.parse import urlsplit
from tutorsim.chat.serve_and_record_lesson import ChatOptions, serve_lesson
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import RecordingOptions
from tutorsim.sandbox import Sandbox
from tutorsim.systems import load_study

folder = Path(sys.argv[1])

def person(url):
    parts = urlsplit(url)
    def post(path, body):
        door = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        door.request("POST", parts.path + path, json.dumps(body), {
            "content-type": "application/json", "origin": f"http://{parts.netloc}"})
        assert door.getresponse().read() is not None
        door.close()
    post("begin", {})
    post("say", {"id": "message-1", "text": "What do we know?"})
    post("leave", {})

def sockets():
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum(os.path.islink(x) and "socket" in os.readlink(x) for x in links)

with Sandbox("auto") as sandbox:
    for number in range(int(sys.argv[2])):
        on_ready = lambda url: threading.Thread(target=person, args=(url,)).start()
        serve_lesson(
            load_study(folder / "talk.toml"), cassette_dir=folder / "rec",
            log_dir=folder / "log", sandbox=sandbox, budget=Budget(load_prices()),
            options=RecordingOptions(), chat=ChatOptions(0, False, on_ready))
        status = Path("/proc/self/status").read_text()
        held = {name: int(status.split(name + ":")[1].split()[0]) for name in ("VmRSS", "Threads")}
        print(json.dumps({"kB": held["VmRSS"], "threads": held["Threads"],
              "files": len(os.listdir("/proc/self/fd")), "sockets": sockets()}), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts in /proc")
def test_lessons_served_one_after_another_do_not_grow(side_by_side, tmp_path, monkeypatch):
    tasks = len(builtin_lessons())
    study = {**STUDY, "repeats": LESSONS // tasks, "benchmarks": {"lesson": {"tasks": "builtin"}}}
    (tmp_path / "talk.toml").write_text(tomli_w.dumps(study), encoding="utf-8")
    held: list[dict[str, int]] = []

    def served():
        command = [sys.executable, "-c", SERVING, str(tmp_path), str(LESSONS)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        held[:] = [json.loads(line) for line in done.stdout.splitlines()]

    with StandIn(seed=3) as standin:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", standin.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
        monkeypatch.delenv("CI", raising=False)
        side_by_side.benchmark.pedantic(served, rounds=1)
    assert len(held) == LESSONS
    early, last = held[LESSONS // 4], held[-1]
    for name in ("files", "sockets", "threads"):
        assert last[name] <= early[name], held
    same = ", ".join(
        f"{name} {early[name]} to {last[name]}" for name in ("files", "sockets", "threads")
    )
    side_by_side.note(
        what=f"memory after {LESSONS} lessons served by one process ({last['kB'] / 1e3:.0f} MB), "
        f"beside that after {LESSONS // 4 + 1}; {same}",
        reference=f"after {LESSONS // 4 + 1} lessons ({early['kB'] / 1e3:.0f} MB)",
        target="no growth",
        ratio=last["kB"] / early["kB"],
        unit="× the memory",
    )
