"""A real headless Chromium, spoken to over its DevTools protocol."""

import itertools
import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


PATIENCE = 90
"""Seconds after which something counts as never coming; a quiet machine needs a second or two."""

AXE = "axe-core@4.14.1"
"""What checks pages for accessibility, as npm names it."""


@cache
def axe_core():
    """The script of axe-core, by npm; the test is skipped where there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm, which brings axe-core")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, AXE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"npm could not bring {AXE}: {done.stdout}{done.stderr}"
        return (Path(folder) / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


class Tab:
    """One tab of the browser."""

    def __init__(self, browser, target):
        self.browser = browser
        self.target = target
        self._ids = itertools.count(1)
        self.requests = []
        """Addresses that the page asked for."""
        self.errors = []
        """What the page's console complained about."""
        found = [one for one in browser.listed() if one["id"] == target]
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(
            connect(found[0]["webSocketDebuggerUrl"], max_size=None)
        )
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.command(f"{domain}.enable")

    def command(self, method, **params):
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._noted(message)

    def _noted(self, message):
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif message.get("method") == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.errors.append(params["entry"]["text"])

    def open(self, url):
        self.command("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def begin_lesson(self, url):
        """Open a lesson's page and leave its first dialog by the keyboard."""
        self.open(url)
        self.until("document.getElementById('start').open")
        self.enter()
        self.until("!document.getElementById('start').open")

    def end_lesson(self):
        """Leave the lesson and say yes to its end."""
        self.run("document.getElementById('leave').click()")
        self.run("document.getElementById('end').click()")
        self.until("state.phase === 'ended'")

    def reload(self):
        """Load the page again; returns once the new one is there."""
        self.run("window.before = true")
        self.command("Page.reload")
        self.until("window.before === undefined && document.readyState === 'complete'")

    def run(self, script):
        """The value of an expression in the page."""
        found = self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", script))
        return found["result"].get("value")

    def until(self, script, seconds=PATIENCE):
        """Wait until an expression holds; its value."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                value = self.run(script)
            except RuntimeError:
                value = None
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError(
            f"never came true: {script}; page: {self.run('document.body.innerText')}"
        )

    def press(self, key, *, code=None, text=None, modifiers=0):
        """A key, as a keyboard sends it."""
        numbers = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "ArrowUp": 38, "ArrowDown": 40}
        names = {"key": key, "code": code or key, "windowsVirtualKeyCode": numbers.get(key, 0)}
        down = {**names, "modifiers": modifiers} | ({"text": text} if text else {})
        self.command("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **down)
        self.command("Input.dispatchKeyEvent", type="keyUp", modifiers=modifiers, **names)

    def enter(self):
        self.press("Enter", text="\r")

    def type(self, text):
        """Text put in where the focus is, as an input method does."""
        self.command("Input.insertText", text=text)

    def say(self, text):
        self.run("document.getElementById('text').focus()")
        self.type(text)
        self.enter()

    def messages(self):
        """Name and text of every message shown, those being sent left out."""
        return self.run(
            "[...document.querySelectorAll('.message:not(.pending)')].map(m => "
            "[m.querySelector('.name').textContent.replace(' (you)', ''), "
            "m.querySelector('.text').textContent])"
        )

    def controls(self, *kinds):
        """The role of each control of these kinds; every one of them has a name."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        found = [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if node.get("role", {}).get("value") in kinds and not node.get("ignored")
        ]
        assert all(name for _, name in found), found
        return {role for role, _ in found}

    def violations(self):
        """What axe-core finds in the page as it is, with everything opened that can be."""
        self.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        self.run(f"{axe_core()};0")
        return self.run(
            "axe.run(document, { resultTypes: ['violations'] }).then((found) => "
            "found.violations.map((one) => [one.id, one.impact, one.nodes.map((n) => n.html)]))"
        )

    def size(self, width, height, *, dark=False):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path):
        import base64

        shot = self.command("Page.captureScreenshot", format="png")
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self._stack.close()


class Browser:
    """Headless Chromium, its profile in a folder of its own, its network held to loopback."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [
                CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-dev-shm-usage", "--disable-background-networking",
                "--disable-component-update", "--remote-debugging-port=0",
                "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
                f"--user-data-dir={folder}", "about:blank",
            ],
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self.port = self._port()
        self._drain = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._drain.start()  # a full pipe would hold the browser up
        self.tabs = []

    def _port(self):
        for line in self._process.stderr:
            found = re.search(r"DevTools listening on ws://[^:]+:(\d+)/", line)
            if found:
                return int(found[1])
        raise RuntimeError("Chromium did not start")

    def _get(self, path, method="GET", *, raw=False):
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path)
        said = connection.getresponse().read()
        value = said if raw else json.loads(said)
        connection.close()
        return value

    def listed(self):
        return self._get("/json/list")

    def tab(self):
        made = Tab(self, self._get("/json/new?about:blank", "PUT")["id"])
        self.tabs.append(made)
        return made

    def end(self, tab):
        """Close a tab as a person does."""
        self.tabs.remove(tab)
        tab.close()
        self._get(f"/json/close/{tab.target}", raw=True)

    def close(self):
        for tab in self.tabs:
            tab.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._drain.join(PATIENCE)
        self._process.stderr.close()
