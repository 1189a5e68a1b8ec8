"""Records `cassettes/group`: simulated lessons, duels, and one lesson typed through the real page.

Run as `python -m tests.tutorsim.chat.type_lesson FOLDER`; the stand-in answers. The person is this
script, which types into headless Chromium, and the recording says so.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tomli_w

from tests.tutorsim.chat.browser import Browser
from tutorsim.standin import StandIn

STUDY = {
    "name": "group", "system": "group", "seed": 7,
    "conditions": ["self_select", "next_speaker"],
    "learners": ["tom_average", "person"],
    "benchmarks": {"lesson": {"tasks": "builtin", "limit": 2}, "scenario": {"tasks": "duels.json"}},
    "group": {"person_lessons": 1, "person_note": "a script that typed through the page",
              "pause_s": 1, "silence_s": 2, "show_thoughts": "after"},
}  # fmt: skip
TYPED = (
    "Hi, I am new here.", "So 40 metres of fence, and one side is the barn.",
    "Alice, do we need fence on the barn side?", "I think it must be a square.",
    "Ah, now I see, I got it!", "And what do we call the sides?", "y and 40 - 2y, right?",
    "I am not sure how to find the largest one.", "Bob, what is next?",
    "Halfway between 0 and 20 is 10.", "Then the long side is 20.",
    "10 + 20 + 10 is 40, so it fits. Thank you all!",
)  # fmt: skip


def type_lesson(folder):
    """Record the study into a folder."""
    with StandIn(seed=7) as standin, tempfile.TemporaryDirectory() as scratch:
        study = Path(scratch) / "group.toml"
        study.write_text(tomli_w.dumps(STUDY))
        _write_duels(Path(scratch) / "duels.json")
        command = [sys.executable, "-m", "tutorsim", "chat", study, "--no-stay"]
        command += ["--cassette-dir", folder, "--log-dir", Path(scratch) / "log"]
        environment = dict(os.environ, ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="unused")
        served = subprocess.Popen(
            [str(part) for part in command], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert served.stdout is not None
        browser = Browser(Path(scratch) / "profile")
        try:
            _type(browser, served.stdout.readline().strip())
        finally:
            browser.close()
        if served.wait(300):
            raise SystemExit(served.returncode)


def _write_duels(path):
    """One scenario of each kind: every other one of the shipped set."""
    from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
        builtin_scenarios,
        tasks_text,
    )

    path.write_text(tasks_text(builtin_scenarios()[::2]), encoding="utf-8")


def _type(browser, url):
    tab = browser.tab()
    tab.begin_lesson(url)
    for count, text in enumerate(TYPED, start=1):
        tab.say(text)
        tab.until(f"document.querySelectorAll('.mine:not(.pending)').length >= {count}")
        time.sleep(2.2)
    tab.end_lesson()


if __name__ == "__main__":
    type_lesson(Path(sys.argv[1]))
