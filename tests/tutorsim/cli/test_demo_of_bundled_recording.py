"""`tutorsim demo`: the bundled study, replayed and summarised."""

import pytest

from tutorsim.runner.find_and_check_recording import bundled_recording


def test_the_demo_is_replayed_summarised_and_reported(recorded_once, shell, monkeypatch, tmp_path):
    monkeypatch.setattr("tutorsim.runner.find_and_check_recording.BUNDLED", "x")
    monkeypatch.setattr(
        "tutorsim.cli.demo_of_bundled_recording.bundled_recording",
        lambda *_: recorded_once.cassettes,
    )
    said = shell("demo", "--log-dir", tmp_path / "log", "-o", tmp_path / "out.md")
    assert said.code == 0
    assert "4 episodes replayed in" in said.err
    assert "relay" in said.out
    assert (tmp_path / "out.md").read_text(encoding="utf-8").startswith("# Report of")
    assert "tutorsim show" in said.err


def test_an_installation_without_it_says_so(shell, monkeypatch):
    monkeypatch.setattr("tutorsim.cli.demo_of_bundled_recording.bundled_recording", lambda *_: None)
    shell("demo").fails(4, "The bundled recording 'demo' is not here.")


@pytest.mark.costly
def test_another_recording_is_named_and_its_limits_are_said(shell, tmp_path):
    page = tmp_path / "claude.md"
    said = shell("demo", "--recording", "claude", "--log-dir", tmp_path / "log", "-o", page)
    assert said.code == 0
    assert "30 episodes replayed in" in said.err
    assert "Bundled recordings:\n  claude (relay: claude)\n" in said.err
    assert "demo (stand-in: tutorsim stand-in 2)" in said.err
    assert "Answered by: relay (claude)" in said.out
    limit = "The calls were not independent: five conversations wrote all students"
    assert limit in said.out
    assert limit in page.read_text(encoding="utf-8")
    shell("demo", "--recording", "gpt").fails(4, "Bundled are")


def test_the_recording_in_real_language_gives_its_bytes_and_is_small(shell):
    folder = bundled_recording("claude")
    assert folder is not None
    said = shell("verify", folder)
    assert said.out.startswith("30 of 30 episodes (1,324 calls) give the recorded bytes.")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 500_000
    limits = (folder / "README.md").read_text(encoding="utf-8")
    assert "It measures nothing" in limits
