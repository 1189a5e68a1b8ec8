"""Builders of small studies, and no network: sockets are blocked unless a test is `loopback`."""

import ipaddress
import json
import os
import re
import socket

import pytest
import tomli_w
from hypothesis import HealthCheck, settings

from tests import rewriting  # noqa: F401 - before the first module of the product
from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.model import Call
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene

settings.register_profile(
    "default",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

SMALL = {
    "name": "small",
    "seed": 11,
    "conditions": ["simple"],
    "personas": ["help_avoidant"],
    "benchmarks": {"sciq": {"tasks": "science.jsonl", "limit": 1}},
}
SCIENCE = [
    {
        "task_id": name, "question": f"Question of {name}?", "correct_answer": f"answer-of-{name}",
        "distractor1": "wrong-1", "distractor2": "wrong-2", "distractor3": "wrong-3",
        "support": f"support-of-{name}",
    }
    for name in ("ice", "moon")
]  # fmt: skip
PROGRAMS = [
    {
        "task_id": f"Set/{name}",
        "prompt": f'def {name}(n):\n    """Doc of {name}."""\n',
        "entry_point": name,
        "canonical_solution": f"    return 'solution-of-{name}'\n",
        "test": f"def check(candidate):\n    assert candidate(1) == 'solution-of-{name}'\n",
    }
    for name in ("double", "halve")
]


def pytest_collection_modifyitems(items):
    """What takes longest starts first: the other process does the rest meanwhile."""
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


def pytest_configure(config):
    config.addinivalue_line("markers", "loopback: the test may connect to this machine itself.")


@pytest.fixture(autouse=True)
def _recording_allowed(monkeypatch):
    """Tests record, also where `CI` is set, which refuses recording; those of that set it."""
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory):
    """A cache folder that this run's processes share, and no later run finds."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield


@pytest.fixture(autouse=True)
def _no_network(request, monkeypatch):
    """Refuse connections; with the marker `loopback`, those that leave the machine only."""
    allowed = request.node.get_closest_marker("loopback") is not None
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def refuse(sock, address):
        if sock.family == socket.AF_UNIX or (allowed and _is_loopback(address)):
            return
        sock.close()
        raise RuntimeError(f"a test opened a connection to {address!r}")

    def guarded(sock, address):
        refuse(sock, address)
        connect(sock, address)

    def guarded_ex(sock, address):
        refuse(sock, address)
        return connect_ex(sock, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)


def _is_loopback(address):
    host = address[0] if isinstance(address, tuple) else ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture
def make_study(tmp_path):
    """Build a study of one science task, one persona and the `simple` condition.

    Keyword arguments are settings that take the place of these; two tasks of each benchmark
    are in `science.jsonl` and `programs.jsonl` beside the study file.
    """
    for name, rows in (("science.jsonl", SCIENCE), ("programs.jsonl", PROGRAMS)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / name).write_text(lines, encoding="utf-8")

    def make(**settings):
        path = tmp_path / "study.toml"
        path.write_text(tomli_w.dumps({**SMALL, **settings}), encoding="utf-8")
        return load_study(path)

    return make


@pytest.fixture
def make_scene(make_study):
    """Build the scene of the first episode of such a study."""

    def make(**settings):
        loaded = make_study(**settings)
        return Scene(loaded, next(loaded.grid()))

    return make


class Script:
    """Canned replies for one episode.

    Every tutor's text carries its role as `«role»`. Ballots are written with role names; the
    script finds each role's mark in the prompt and writes the label that stands before it.

    Args:
        replies: Call key, or its tail without attempt (`vote_final/motivation`), or a stage
            → reply. Ballots without one are the example that the prompt gives.
        marks: Role → further text of its proposals.
    """

    def __init__(self, replies=None, **marks):
        self.replies = replies or {}
        self.marks = marks
        self.calls: list[Call] = []

    def __call__(self, call):
        self.calls.append(call)
        turn, stage, agent, attempt, _ = call.key
        names = (
            str(call.key), f"{turn}/{stage}/{agent}", f"{stage}/{agent}/{attempt}",
            f"{stage}/{agent}", f"{turn}/{stage}", stage,
        )  # fmt: skip
        given = next((self.replies[name] for name in names if name in self.replies), None)
        if "vote" in stage:
            return self._ballot(call.request.user, given)
        return self._usual(call) if given is None else given

    def _ballot(self, user, given):
        if given is None:
            [example] = re.findall(r"for example:\s((?:[A-H]: \d+\n?)+|[A-H0-9=,|]+)", user)
            return str(example)
        labels = {role: label for label, role in self.shown(user).items()}
        return re.sub(r"[a-z_]{3,}", lambda word: labels.get(word[0], word[0]), given)

    def _usual(self, call):
        turn, stage, agent, *_ = call.key
        if stage == "student":
            return f"Attempt {turn}."
        if stage == "judge":
            return "SCORE: 0.1\nMostly wrong."
        if stage in ("critique", "tie_critique"):
            return "\n".join(
                f"{label}:\nSTRENGTH: {agent} likes {role}.\nWEAKNESS: {agent} doubts {role}."
                for label, role in self.shown(call.request.user).items()
            )
        text = f"{stage} «{agent}» {self.marks.get(agent, '')}"
        return f"PROPOSAL: {text}\nRATIONALE: Because.\nCONFIDENCE: 70"

    @staticmethod
    def shown(user):
        """Label → role, as a prompt shows them."""
        return dict(re.findall(r"^([A-H]): [^\n]*?«(\w+)»", user, re.MULTILINE))

    def prompt(self, key):
        """The user message of a call."""
        [user] = [call.request.user for call in self.calls if str(call.key) == key]
        return user

    @property
    def keys(self):
        return [str(call.key) for call in self.calls]

    def play(self, scene):
        """Run the episode of a scene with these replies."""
        return drive(episode(scene), scripted(self))


@pytest.fixture
def script():
    """The class of canned replies."""
    return Script


@pytest.fixture
def first_turn(make_scene, script):
    """Play an episode of one turn: votes by `stage/voter` → ballot in role names."""

    def play(votes, condition="simple", **settings):
        played = script(votes)
        record = played.play(make_scene(conditions=[condition], max_turns=1, **settings))
        [turn] = record.turns
        return turn, played

    return play


@pytest.fixture
def browser(tmp_path):
    from tests.tutorsim.chat.browser import CHROMIUM, Browser

    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    started = Browser(tmp_path / "profile")
    yield started
    started.close()


@pytest.fixture
def tab(browser):
    return browser.tab()
