"""`tutorsim demo`: the bundled study, replayed and summarised."""

from pathlib import Path
from typing import Any

import pytest


def test_the_bundled_study_is_replayed_summarised_and_reported(
    recorded_once: Any, shell: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tutorsim.bundled.BUNDLED", "x")
    monkeypatch.setattr("tutorsim.cli.demo.bundled_recording", lambda: recorded_once.cassettes)
    said = shell("demo", "--log-dir", tmp_path / "log", "-o", tmp_path / "out.md")
    assert said.code == 0
    assert "4 episodes replayed in" in said.err
    assert "relay" in said.out
    assert (tmp_path / "out.md").read_text(encoding="utf-8").startswith("# Report of")
    assert "tutorsim show" in said.err


def test_an_installation_without_it_says_so(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutorsim.cli.demo.bundled_recording", lambda: None)
    said = shell("demo")
    assert said.code == 4
    assert "The bundled recording is not here." in said.err
