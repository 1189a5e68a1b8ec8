"""`tutorsim doctor`: facts, and never a credential."""

import json

import pytest

from tutorsim.errors import SandboxUnavailable
from tutorsim.sandbox import Sandbox

REPORT = {
    "level": "full",
    "workers": 2,
    "layers": {"seccomp": "ok", "landlock": "does not hold: read a file"},
    "proven": {"seccomp": ["read a file", "fork"]},
    "probes": {"net": "stopped"},
}


@pytest.fixture
def working(monkeypatch):
    monkeypatch.setattr(Sandbox, "report", lambda self: REPORT)


def test_what_there_is_is_told_without_the_credential(working, shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-secret")
    monkeypatch.setenv("CI", "1")
    said = shell("doctor")
    value = shell("doctor", "--json")
    assert said.code == value.code == 0
    assert "from ANTHROPIC_API_KEY" in said.out
    assert "refused because CI is set" in said.out
    assert "seccomp: ok (alone it stopped 2 of the probes)" in said.out
    assert "landlock: does not hold: read a file" in said.out
    assert json.loads(value.out)["sandbox"] == REPORT
    assert "sk-ant" not in said.out + said.err + value.out


def test_a_machine_without_a_sandbox_level_gives_exit_code_6(shell, monkeypatch):
    def report(self):
        raise SandboxUnavailable("Too few layers.", hint="Use --sandbox unsafe.")

    monkeypatch.setattr(Sandbox, "report", report)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    said = shell("doctor")
    assert said.code == 6
    assert "Too few layers." in said.out
    assert shell("doctor", "--json").json(6)["sandbox"]["problem"]


def test_an_installation_without_its_analysis_is_named(working, shell, monkeypatch):
    assert shell("doctor", "--json").json()["analysis"] is True
    monkeypatch.setattr("tutorsim.cli.print_guide_pages_and_doctor.find_spec", lambda name: None)
    said = shell("doctor")
    assert said.code == 1
    assert "Analysis     missing" in said.out
