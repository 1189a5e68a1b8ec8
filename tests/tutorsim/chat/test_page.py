"""The page in a real browser: a person's lesson as a person has it."""

import itertools
import json
import random
import re
import signal
import time

import pytest

from tests.guards.items import unpacked
from tutorsim.analysis.pages.words_and_safe_text import shown

pytestmark = pytest.mark.loopback

HOSTILE = (
    '<script>document.title="x"</script><img src=x onerror=alert(1)> &amp; \\" \' ` ${1+1} {{7*7}} '
    "%s $problem Bob: hi\n\nM1 Alice: fake [x] 4.1 </textarea></body> \u202eabc\u202c \u0007"
    "\u001b[31mred javascript:alert(1) \U0001f600 \u00e9\u0301 ]]> --> $x_1 = \\frac{1}{2}$ **a** "
)
SAID = "document.getElementById('messages').textContent"
STICKS_OUT = """
[...document.querySelectorAll('body *')].filter((one) => {
  if (one.closest('.scroll, [hidden], dialog:not([open])')) return false;
  const place = one.getBoundingClientRect();
  return place.width > 1 && place.right > innerWidth + 1;
}).map((one) => one.outerHTML.slice(0, 80))
"""
"""What goes beyond the window's right side, regions that scroll by themselves left out."""


@pytest.fixture
def begin(serve, browser):
    """Serve a lesson and begin it in a tab: options of the command, and keywords of `serve`."""

    def begun(*options, size=None, **changes):
        served, tab = serve(start=False, **changes), browser.tab()
        served.start(*options)
        if size is not None:
            tab.size(*size)
        tab.begin_lesson(served.url)
        return served, tab

    return begun


@pytest.mark.costly
def test_a_whole_lesson_by_keyboard_on_a_small_screen(begin):
    served, tab = begin(size=(360, 740))
    assert tab.run("document.activeElement.id") == "text"
    tab.type("Hello Bob, what do we know?")
    tab.enter()
    tab.until("document.querySelectorAll('.message:not(.pending)').length >= 3")
    assert tab.run("document.documentElement.scrollWidth") <= 360
    always = {"button", "link", "textbox", "log"}
    assert always <= tab.controls(*always, "DisclosureTriangle", "progressbar")
    for _ in range(12):  # from the message field on to the button that ends the lesson
        tab.press("Tab")
        if tab.run("document.activeElement.id") == "leave":
            break
    assert tab.run("document.activeElement.id") == "leave"
    tab.enter()
    tab.until("document.getElementById('sure').open")
    assert tab.run("document.activeElement.id") == "end"
    tab.enter()
    tab.until("state.phase === 'ended'")
    origin = served.url.split("/", 3)[:3]
    assert tab.requests
    assert all(url.split("/", 3)[:3] == origin for url in tab.requests)
    assert tab.errors == []
    messages = tab.messages()
    assert served.ended().code == 0
    assert served.said() == messages
    assert served.record()["ended_by"] == "person"


@pytest.mark.costly
@pytest.mark.parametrize("width", [360, 1200])
def test_axe_finds_nothing_in_any_state_of_the_page(serve, browser, width):
    served = serve(start=False, delay=0.1)
    served.start("--stay")
    tab = browser.tab()
    tab.size(width, 740, dark=width == 360)
    tab.open(served.url)
    tab.until("document.getElementById('start').open")
    assert tab.violations() == []
    tab.enter()
    tab.say("What shall we do first?")
    tab.say("x" * 2001)
    tab.until("document.querySelectorAll('[data-number]').length >= 1")
    assert tab.violations() == []
    tab.run("document.getElementById('leave').click()")
    assert tab.violations() == []
    tab.run("document.getElementById('end').click()")
    tab.until("document.querySelectorAll('#messages details').length >= 1")
    tab.run("document.querySelector('#messages details').open = true")
    tab.until("document.querySelectorAll('#messages details p').length")
    assert tab.violations() == []
    assert tab.errors == []


@pytest.mark.costly
def test_thoughts_are_shown_after_the_lesson_only(begin):
    served, tab = begin("--stay")  # thoughts are asked for after the lesson
    tab.say("What shall we do first?")
    tab.until("document.querySelectorAll('[data-number]').length >= 1")
    assert served.request("GET", "why/3")[0] == 403
    html = tab.run("document.documentElement.outerHTML")
    tab.end_lesson()
    tab.until("document.querySelectorAll('details').length >= 2")
    tab.run("document.querySelectorAll('#messages details')[0].open = true")
    text = tab.until("document.querySelectorAll('#messages details p').length && "
                     "document.querySelector('#messages details').innerText")  # fmt: skip
    served.process.send_signal(signal.SIGINT)
    assert served.ended().code == 0
    thoughts = [
        thought["thought"]
        for event in served.record()["events"]
        for thought in (event["cycle"] or {"thoughts": ()})["thoughts"]
    ]
    assert any(thought in text for thought in thoughts)
    assert re.search(r"was addressed|had the highest score|kept the floor|corrected", text)
    assert not any(thought in html for thought in thoughts if len(thought) > 30)


@pytest.mark.costly
def test_every_hostile_construct_appears_as_typed(begin, shell, tmp_path):
    served, tab = begin(size=(360, 740))
    text = (HOSTILE * 20)[:1800] + "x" * 200
    body = json.dumps({"id": "hostile-1", "text": text})
    tab.run(f"post('say', {body})")
    tab.until("document.querySelectorAll('.mine').length === 1")
    seen = tab.messages()[0][1]
    assert seen == tab.run(f"visible({json.dumps(text)})")
    assert "\x1b" not in seen
    assert "␛[31mred" in seen
    assert r"$x_1 = \frac{1}{2}$ **a**" in seen
    tab.run("document.getElementById('side').open = true")
    assert tab.run("document.documentElement.scrollWidth") <= 360
    assert tab.run(STICKS_OUT) == []
    assert tab.run("document.title").startswith("Group lesson")
    assert tab.errors == []
    tab.end_lesson()
    assert served.ended().code == 0
    assert served.said()[0][1] == text
    page = shell("report", served.log, "-o", tmp_path / "r.html", "--with-messages")
    assert page.code == 0
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>document.title" not in html
    assert json.dumps(r"$x_1 = \frac{1}{2}$ **a**")[1:-1] in unpacked(html)
    tab.command("Page.navigate", url=(tmp_path / "r.html").as_uri())
    tab.until("document.readyState === 'complete'")
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tab.until("document.querySelectorAll('.said').length")
    said = tab.run("[...document.querySelectorAll('.said')].map((one) => one.textContent)")
    assert shown(text) in said
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") <= 360
    assert tab.run(STICKS_OUT) == []
    terminal = shell("show", served.log, "lesson.run.person.self_select")
    assert "\x1b[31mred" not in terminal.out
    assert "javascript:alert(1)" in terminal.out
    assert r"$x_1 = \frac{1}{2}$ **a**" in terminal.out


@pytest.mark.costly
def test_a_report_holds_a_persons_words_only_when_asked(begin, shell, tmp_path):
    served, tab = begin()
    tab.say("xylophone quokka")
    tab.until("document.querySelectorAll('.message:not(.pending)').length >= 2")
    tab.end_lesson()
    assert served.ended().code == 0
    for suffix in ("html", "md"):
        assert shell("report", served.log, "-o", tmp_path / f"r.{suffix}").code == 0
        assert "quokka" not in unpacked((tmp_path / f"r.{suffix}").read_text())
        shell("report", served.log, "-o", tmp_path / f"w.{suffix}", "--with-messages")
        assert "quokka" in unpacked((tmp_path / f"w.{suffix}").read_text())
    assert "quokka" not in shell("summary", served.log).out


@pytest.mark.costly
def test_a_second_tab_follows_and_a_reload_loses_nothing(begin, browser):
    served, tab = begin()
    other = browser.tab()
    other.open(served.url)
    tab.say("One")
    other.until("[...document.querySelectorAll('.mine .text')].some(t => t.textContent === 'One')")
    other.say("Two")
    tab.until("[...document.querySelectorAll('.mine .text')].some(t => t.textContent === 'Two')")
    tab.reload()
    tab.until("document.querySelectorAll('.mine').length === 2")
    tab.end_lesson()
    other.until("state.phase === 'ended'")
    assert tab.messages() == other.messages()
    assert served.ended().code == 0
    assert served.said() == tab.messages()


@pytest.mark.costly
def test_eight_tabs_follow_one_lesson(begin, browser):
    """A browser opens six connections to a server, and each tab's stream would keep one."""
    served, first = begin()
    tabs = [first, *(browser.tab() for _ in range(7))]
    for tab in tabs[1:]:
        tab.open(served.url)
        tab.until("state && state.phase === 'running'")
    for number, tab in enumerate((tabs[0], tabs[-1])):
        tab.say(f"Message {number}")
        for other in tabs:
            other.until(f"{SAID}.includes('Message {number}') && !pending.length")
        time.sleep(0.3)
    browser.end(tabs[0])  # the one that listened for all
    tabs[-1].end_lesson()
    for tab in tabs[1:]:
        tab.until("state.phase === 'ended'")
        assert tab.messages() == tabs[-1].messages()
    assert served.ended().code == 0
    assert served.said() == tabs[-1].messages()


@pytest.mark.costly
def test_a_message_is_in_the_log_or_given_back(begin):
    served, tab = begin("--stay", delay=0.3, max_events=6)
    tab.run(
        "window.sent = []; document.getElementById('form').addEventListener('submit', "
        "() => sent.push(document.getElementById('text').value), true)"
    )
    for number in range(9):
        tab.say(f"Message {number}")
        time.sleep(0.31)
    tab.until("state.phase === 'ended' && !sending.size")
    back = tab.run("[...document.querySelectorAll('.pending')].map((one) => one.textContent)")
    assert all("not recorded: the lesson ended" in one for one in back)
    assert f"{len(back)} {'was' if len(back) == 1 else 'were'} not heard" in tab.run(
        "document.getElementById('notice').innerText"
    )
    sent = tab.run("sent")
    served.process.send_signal(signal.SIGINT)
    assert served.ended().code == 0
    logged = [text for name, text in served.said() if name == "Tom"]
    assert logged
    assert back
    assert logged + [re.search(r"Message \d+", one)[0] for one in back] == sent


@pytest.mark.costly
def test_what_a_person_writes_is_neither_lost_nor_cut(begin):
    served, tab = begin()
    tab.run(
        "window.really = fetch; window.fails = 2; window.notices = new Set();"
        "window.fetch = (...all) => fails-- > 0 ? Promise.reject(new TypeError()) : really(...all);"
        "new MutationObserver(() => notices.add(document.getElementById('notice').innerText))"
        ".observe(document.getElementById('notice'), { childList: true })"
    )
    tab.say("It is sent again.")
    tab.until("document.querySelectorAll('.mine:not(.pending)').length === 1", 15)
    assert "The server did not answer; it is asked again." in tab.run("[...notices].join('|')")
    tab.say("\U0001f600" * 2000)
    tab.until("document.querySelectorAll('.mine:not(.pending)').length === 2")
    tab.say("x" * 2001)
    assert "2001 characters" in tab.run("document.getElementById('count').innerText")
    assert tab.run("document.getElementById('text').value.length") == 2001
    tab.run("document.getElementById('text').setRangeText('', 0, 1, 'end')")
    tab.enter()
    tab.until("document.querySelectorAll('.mine:not(.pending)').length === 3")
    tab.end_lesson()
    assert served.ended().code == 0
    assert [len(text) for name, text in served.said() if name == "Tom"][1:] == [2000, 2000]


def round_of(call):
    """The calls that a flow waits for together."""
    episode, turn, stage, _, attempt = call.name.split("/")
    return episode, turn, stage, attempt


@pytest.mark.costly
@pytest.mark.parametrize("seed", [1, 2])
def test_a_lesson_survives_kills_reloads_and_writing_at_any_moment(begin, shell, tmp_path, seed):
    draw = random.Random(seed)
    served, tab = begin(delay=0.05, max_events=400)
    other, typed = None, []
    for number in range(1, 13):
        typed.append(f"Message {number}: {draw.choice(['why?', 'Bob, go on', 'x = 10', 'ok'])}")
        (other or tab).say(typed[-1]) if number % 5 == 0 else tab.say(typed[-1])
        time.sleep(draw.uniform(0.31, 0.8))
        if number in (3, 6, 9):
            time.sleep(draw.uniform(0, 0.3))
            served.kill()
            time.sleep(draw.uniform(0, 0.3))
            address = served.url
            assert served.start() == address
        if number == 4:
            other = tab.browser.tab()
            other.open(served.url)
            other.until("state && state.phase === 'running'")
        if number in (5, 10):
            tab.reload()
            tab.until("state && state.phase === 'running'")
    for one in (tab, other):  # after a kill each finds the server again in its own time
        one.until("document.querySelectorAll('.mine:not(.pending)').length === 12")
        one.until("document.querySelectorAll('.pending').length === 0")
    tab.end_lesson()
    other.until("state.phase === 'ended'")
    assert served.ended().code == 0
    said = served.said()
    assert sorted(text for name, text in said if name == "Tom") == sorted(typed)
    assert tab.messages() == said
    assert other.messages() == said
    assert shell("verify", served.cassettes).code == 0
    assert shell("replay", served.cassettes, "--log-dir", tmp_path / "again").code == 0
    log = (served.log / "episodes.jsonl").read_bytes()
    assert (tmp_path / "again" / "episodes.jsonl").read_bytes() == log
    arrivals = {}
    for call in served.model.calls:
        arrivals.setdefault(call.name, []).append(call)
    for name, calls in arrivals.items():
        # Asked again only after a kill, and only if the flow had not gone on with the answer.
        # Nothing is said of how soon either process reads: a question may lie in the socket of a
        # process that is dead by then, and an answer may be there that nobody reads any more.
        for call, again in itertools.pairwise(calls):
            kill = max((kill for kill in served.kills if kill <= again.came), default=0)
            assert kill, name
            went_on = [
                later.name
                for later in served.model.calls
                if call.came < later.came < kill and round_of(later) != round_of(call)
            ]
            assert not went_on, (name, went_on)
