"""A served lesson: the command, a model that counts its calls, and a browser."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import tomli_w

from tests.tutorsim.chat.browser import PATIENCE
from tests.tutorsim.conftest import Said
from tutorsim.standin import StandIn

STUDY = {
    "name": "talk",
    "system": "group",
    "seed": 3,
    "conditions": ["self_select"],
    "learners": ["person"],
    "benchmarks": {"lesson": {"tasks": "builtin", "limit": 1}},
    "group": {"pause_s": 0.2, "silence_s": 0.4, "max_events": 200, "ipa_codings": 0},
}


class Counted:
    """Every call that arrived, with the times at which it arrived and was answered."""

    def __init__(self, url, delay):
        self.calls = []
        self.delay = delay
        counted, target = self, urlsplit(url)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                call = SimpleNamespace(
                    name=self.headers["x-tutorsim-call"], came=time.monotonic(), went=None
                )
                counted.calls.append(call)
                time.sleep(counted.delay)
                connection = http.client.HTTPConnection(
                    target.hostname, target.port, timeout=PATIENCE
                )
                headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
                connection.request("POST", self.path, body, headers)
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
                try:
                    self.send_response(answer.status)
                    own = ("transfer-encoding", "content-length", "connection")
                    for name, value in answer.getheaders():
                        if name.lower() not in own:
                            self.send_header(name, value)
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True
                call.went = time.monotonic()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def until_called(self):
        """Wait for the first call."""
        deadline = time.monotonic() + PATIENCE
        while not self.calls:
            assert time.monotonic() < deadline, "nobody called"
            time.sleep(0.01)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class Served:
    """`tutorsim chat` as a process of its own, and what it writes."""

    def __init__(self, folder, model, changes):
        self.folder = folder
        self.model = model
        study = {**STUDY, "group": {**STUDY["group"], **changes}}
        self.study = folder / "talk.toml"
        self.study.write_text(tomli_w.dumps(study))
        self.cassettes, self.log = folder / "rec", folder / "log"
        self.process = None
        self.kills = []

    def start(self, *options):
        command = [sys.executable, "-m", "tutorsim", "chat", self.study, "--no-stay"]
        command += ["--cassette-dir", self.cassettes, "--log-dir", self.log, *options]
        environment = dict(
            os.environ, ANTHROPIC_BASE_URL=self.model.url, ANTHROPIC_API_KEY="unused"
        )
        environment.pop("CI", None)
        self.process = subprocess.Popen(
            [str(part) for part in command],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.url = self.process.stdout.readline().strip()
        return self.url

    def kill(self):
        """Kill -9; every call that came before this moment came from a process that lived."""
        self.kills.append(time.monotonic())
        self.process.kill()
        self.ended()

    def ended(self, seconds=PATIENCE):
        """What the command said on stderr and how it ended."""
        _, err = self.process.communicate(timeout=seconds)
        return Said(self.process.returncode, "", err)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def request(self, method, path, body=None, **headers):
        """A request past the page; underscores in names of headers stand for hyphens."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, parts.path + path, body, sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def until_shown(self, wanted):
        """Read the page's stream until it holds some bytes."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        connection.request("GET", parts.path + "events")
        answer, came = connection.getresponse(), b""
        while wanted not in came:
            came += answer.read1()
        connection.close()

    def record(self):
        """The lesson's log line."""
        return json.loads((self.log / "episodes.jsonl").read_text())

    def said(self):
        """Name and text of every message in the log."""
        record = self.record()
        names = {"learner": record["learner_name"]}
        return [
            [names.get(event["who"], event["who"].title()), event["text"]]
            for event in record["events"]
            if event["kind"] == "message"
        ]


@pytest.fixture
def serve(tmp_path):
    """Serve a lesson; keyword arguments are settings of `[group]`, `delay` the model's."""
    with StandIn(seed=3) as standin:
        made = []

        def begin(*, delay=0.0, start=True, **changes):
            model = Counted(standin.url, delay)
            served = Served(tmp_path, model, changes)
            made.append(served)
            if start:
                served.start()
            return served

        yield begin
        for served in made:
            served.close()
            served.model.close()
