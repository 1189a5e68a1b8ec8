"""A system of another package, installed for the test alone, and a model that answers it."""

import shutil
from pathlib import Path

import pytest

from tutorsim.standin.messages_api_routes_and_replies import forget_minds

STUDY = """
name = "greetings"
system = "greeting"
seed = 5

[benchmarks.guests]
tasks = "builtin"

[models]
greeter = "claude-haiku-4-5"
"""


@pytest.fixture
def greeting(tmp_path, monkeypatch):
    """A study file of the system, which is found through its entry point."""
    site = tmp_path / "site"
    info = site / "greeting-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("greeting.py"), site / "greeting_system.py")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tutorsim.systems]\ngreeting = greeting_system:GREETING\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    forget_minds()
    study = tmp_path / "greetings.toml"
    study.write_text(STUDY)
    yield study
    forget_minds()


@pytest.fixture
def model(stand_ins, greeting):
    """The stand-in, where the SDK's environment points."""
    return stand_ins(seed=3)
