"""The pytest fixtures, in a test run of their own as other people's projects have it."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import hashlib
import socket
import pytest
from tutorsim.records import to_line

EPISODE = "sciq.ice.help_avoidant.simple"

def test_panel(replayed_study):
    assert len(replayed_study.episodes) == 4
    assert replayed_study.run.study.name == "grid"
    lines = "".join(f"{to_line(one)}\\n" for one in replayed_study.episodes.values())
    assert replayed_study.run.episodes_sha256 == hashlib.sha256(lines.encode()).hexdigest()
    assert replayed_study.episodes[EPISODE].turns_taken == 1

def test_again(replayed_study, request):
    assert replayed_study is request.getfixturevalue("replayed_study")

@pytest.mark.tutorsim(episode=EPISODE)
def test_episode(replayed_episode):
    assert replayed_episode.episode_id == EPISODE

def test_sockets_work_outside_a_replay(replayed_study):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))

def test_sockets_are_blocked_in_a_replay(request, monkeypatch):
    from tutorsim.runner import replay_into_run_folder_in_several_processes as replaying
    def calling(*args, **kwargs):
        socket.create_connection(("127.0.0.1", 9))
        yield
    monkeypatch.setattr(replaying, "replay_each", calling)
    request.applymarker(pytest.mark.tutorsim("./cassettes/../cassettes"))
    with pytest.raises(AssertionError, match="tried to open a connection"):
        request.getfixturevalue("replayed_study")

@pytest.mark.tutorsim("broken")
def test_broken(replayed_study): ...

@pytest.mark.tutorsim("nowhere")
def test_nowhere(replayed_study): ...

def test_no_episode_named(replayed_episode): ...

@pytest.mark.tutorsim(episode="sciq.none")
def test_unknown_episode(replayed_episode): ...
"""


@pytest.mark.costly
def test_a_project_replays_its_recording_and_failures_are_clear(pytester, recorded, monkeypatch):
    import shutil

    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    shutil.copytree(recorded.cassettes, pytester.path / "cassettes")
    shutil.copytree(recorded.cassettes, pytester.path / "broken")
    (pytester.path / "broken" / "sciq.ice.help_avoidant.simple.json").unlink()
    pytester.makeini("[pytest]\ntutorsim_cassettes = cassettes\n")
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers", "-q")
    result.assert_outcomes(passed=5, errors=4)
    text = result.stdout.str()
    assert "Traceback" not in text
    for said in (
        "sciq.ice.help_avoidant.simple.json: the recording has no cassette for this episode.",
        "nowhere is not a recording.",
        'replayed_episode needs @pytest.mark.tutorsim(episode="…")',
        "The recording has no episode 'sciq.none'.",
    ):
        assert said in text


MARKED = """
import pytest

@pytest.mark.tutorsim(folder="there/own.json")
def test_by_keyword(recorded):
    assert recorded.path == __import__("pathlib").Path(__file__).parent / "there" / "own.json"

@pytest.mark.tutorsim(folder="nowhere")
def test_nowhere(replayed_study): ...

@pytest.mark.tutorsim(3)
def test_no_name(recorded): ...

def test_not_recorded(recorded):
    with pytest.raises(Exception, match="in pytest --tutorsim-record says the mode"):
        recorded.__enter__()
"""


def test_a_marker_names_its_file_by_keyword_too_and_an_error_is_told_once(pytester):
    pytester.makepyfile(MARKED)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-q", "-n", "0")
    result.assert_outcomes(passed=2, errors=2)
    text = result.stdout.str()
    assert text.count("It has no manifest.json.") == 1
    assert "another exception" not in text
    assert "@pytest.mark.tutorsim names a file or folder, not 3." in text


@pytest.mark.slow
def test_without_a_recording_named_the_fixture_says_how_to_name_one(pytester):
    pytester.makepyfile("def test_panel(replayed_study): ...")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*No recording is named: set `tutorsim_cassettes`*"])


OWN_PANEL = """
import os
import socket
import pytest

def ask(client, text):
    said = client.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": text}]
    )
    return said.content[0].text

@pytest.mark.parametrize("word", ["a b"])
def test_named_after_the_test(recorded, word):
    with recorded as client:
        assert ask(client, word)

@pytest.mark.tutorsim("kept/by-marker.json")
def test_named_by_the_marker(recorded):
    with recorded as client:
        assert ask(client, "two")
    if recorded.mode == "none":
        with pytest.raises(AssertionError, match="tried to open a connection"):
            socket.create_connection(("127.0.0.1", 9))

def test_of_another_sdk(recorded_http):
    asked = {"model": "m", "messages": [{"role": "user", "content": "three"}]}
    with recorded_http as http:
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/chat/completions"
        assert http.post(url, json=asked).json()["choices"]
    if recorded_http.mode == "none":
        with pytest.raises(AssertionError, match="tried to open a connection"):
            socket.create_connection(("127.0.0.1", 9))
"""


@pytest.mark.costly
@pytest.mark.loopback
def test_an_own_panel_is_recorded_once_and_then_tested_offline(pytester, monkeypatch):
    from tutorsim.standin import StandIn

    for name in ("CI", "TUTORSIM_RECORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    pytester.makepyfile(test_panel=OWN_PANEL)
    run = ("-p", "no:cacheprovider", "--strict-markers", "-q")
    without = pytester.runpytest_subprocess(*run)
    without.assert_outcomes(failed=3)
    without.stdout.fnmatch_lines(["*is not there.*"])
    with StandIn(seed=1) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
        pytester.runpytest_subprocess(*run, "--tutorsim-record", "once").assert_outcomes(passed=3)
        asked = server.requests
    made = {str(p.relative_to(pytester.path)) for p in pytester.path.rglob("*.json")}
    assert made == {
        "cassettes/test_panel.test_named_after_the_test-a_20b.json",
        "cassettes/test_panel.test_of_another_sdk.json",
        "kept/by-marker.json",
    }
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    pytester.runpytest_subprocess(*run).assert_outcomes(passed=3)
    assert asked == 3
    refused = pytester.runpytest_subprocess(*run, "--tutorsim-record", "always")
    refused.stdout.fnmatch_lines(["*There is no record mode 'always'*"])
