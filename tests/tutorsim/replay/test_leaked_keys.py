"""No key gets into a recording, and one that is there is found."""

import json
import tomllib
from hashlib import sha256

import pytest
import tomli_w

from tests.reference.replay_through_sdk import through_the_sdk
from tutorsim.errors import RecordingRefused
from tutorsim.replay.durable_files_and_key_leaks import (
    key_shaped,
    redacted,
    refuse_keys,
    without_secrets,
)

KEY = "sk-ant-test-0123456789-credential"
OTHER = "sk-ant-api03-" + "Ab3_" * 10
EPISODE = "sciq.ice.help_avoidant.simple"


def escaped(text):
    return "".join(f"\\u{ord(char):04x}" for char in text)


@pytest.mark.parametrize(
    "text",
    [
        OTHER,
        "sk-" + "a1B2" * 12,
        "ghp_" + "a" * 36,
        "AKIA" + "A1" * 8,
        "AIza" + "x" * 35,
        "xoxb-" + "1234567890-" * 3,
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_key_is_known_by_its_shape_and_never_shown_whole(text):
    [shown] = key_shaped(f"before {text} behind")
    assert text.startswith(shown.removesuffix("…"))
    assert len(shown) < len(text)
    assert key_shaped(json.dumps({"a": escaped(text)}))


@pytest.mark.parametrize(
    "text", ["sk-ant-", "ask-and-answer", "sk-learn is a library", "0" * 64, "task-ant-hill", ""]
)
def test_ordinary_text_is_no_key(text):
    assert key_shaped(text) == []


def test_the_place_of_a_key_is_named():
    with pytest.raises(RecordingRefused, match=r"Its tasks\.sciq\[1\]\.question contains the cred"):
        refuse_keys({"Its tasks": {"sciq": [{"question": "x"}, {"question": f"a {KEY}"}]}}, [KEY])
    with pytest.raises(RecordingRefused, match="a string like a key, sk-ant-a…"):
        refuse_keys({"--relay": OTHER}, [])
    refuse_keys({"The study": {"name": "n", "seed": 3, "roles": ["a"]}}, [KEY])


def test_a_body_keeps_its_text_unless_it_hides_a_credential():
    plain = '{"a" : "b\\n", "n": 1e3}'
    assert redacted(plain, [KEY]) == plain
    hidden = f'{{"a": "x {escaped(KEY)}", "{escaped(KEY)}": [1]}}'
    assert json.loads(redacted(hidden, [KEY])) == {"a": "x [credential]", "[credential]": [1]}
    assert redacted(hidden, []) == hidden


def test_headers_are_redacted():
    found = without_secrets({"content-type": f"text/{KEY}", "a": "b"}, [KEY])
    assert found == {"content-type": "text/[credential]", "a": "b"}


# --- Recording ----------------------------------------------------------------------------------


def in_task(study):
    path = study.with_name("questions.jsonl")
    path.write_text(path.read_text().replace("because of ice", f"because of {KEY}"))


def in_setting(**settings):
    return lambda study: study.write_text(study.read_text() + tomli_w.dumps(settings))


HIDDEN = {
    "a task": in_task,
    "a prompt": in_setting(catalog={"prompts": {"judge_reminder": f"Use {KEY}."}}),
    "an unused role": in_setting(
        catalog={"roles": {"spy": {"title": "t", "objective": OTHER, "means": "m"}}}
    ),
}


@pytest.mark.loopback
@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN)
def test_a_study_with_a_key_is_refused_before_anything_is_written_or_sent(
    hide, endpoint, write_grid, shell, tmp_path
):
    study = write_grid()
    hide(study)
    said = shell("run", study, "--log-dir", tmp_path / "l", "--cassette-dir", tmp_path / "c")
    assert said.code == 2
    assert "must not be recorded" in said.err
    assert KEY not in said.err
    assert OTHER not in said.err
    assert endpoint.sent == []
    assert not (tmp_path / "l").exists()
    assert not (tmp_path / "c").exists()


@pytest.mark.loopback
@pytest.mark.parametrize(
    "options",
    [("--relay", f"my {KEY}"), ("--set", f'vote_criterion="{KEY}"')],
    ids=["name", "setting"],
)
def test_a_key_in_an_option_is_refused(options, endpoint, write_grid, shell, tmp_path):
    folders = ("--log-dir", tmp_path / "l", "--cassette-dir", tmp_path / "c")
    said = shell("run", write_grid(), *folders, *options)
    assert said.code == 2
    assert "must not be recorded" in said.err
    assert not (tmp_path / "c").exists()
    assert endpoint.sent == []


@pytest.mark.parametrize("key", [OTHER, "a relay's own password"])
@pytest.mark.parametrize(
    "setting", [{"name": "@ !"}, {"@": 1}, {"personas": ["@"]}, {"benchmarks": {"@": {}}}]
)
def test_what_is_wrong_with_a_study_is_told_without_the_keys_in_it(
    setting, key, write_grid, shell, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a relay's own password")
    study = write_grid()
    table = tomllib.loads(study.read_text())
    study.write_text(tomli_w.dumps(table | json.loads(json.dumps(setting).replace("@", key))))
    said = shell("run", study, "--dry-run")
    assert said.code == 2
    assert key not in said.err
    assert "sk-ant-a…" in said.err or "[credential]" in said.err


@pytest.mark.loopback
def test_an_echo_in_a_header_or_behind_escapes_is_redacted(endpoint, write_grid, shell, tmp_path):
    def echo(call, data):
        hidden = f"I think it is {escaped(KEY)}".encode()
        return data.replace(b"I think it is", hidden) if "/student/" in call else data

    endpoint.rewrite = echo
    endpoint.headers = {"content-type": f"application/json; boundary={KEY}"}
    log, cassettes = tmp_path / "l", tmp_path / "c"
    assert shell("run", write_grid(), "--log-dir", log, "--cassette-dir", cassettes).code == 0
    for path in (*log.rglob("*"), *cassettes.rglob("*")):
        data = path.read_text()
        assert KEY not in data, path
        assert escaped(KEY) not in data, path
    assert "I think it is [credential]" in (log / "episodes.jsonl").read_text()
    assert "boundary=[credential]" in (cassettes / f"{EPISODE}.json").read_text()
    assert shell("verify", cassettes).code == 0
    with through_the_sdk():
        assert shell("verify", cassettes).code == 0


# --- A recording that is there -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "compressed"])
def test_a_check_of_the_files_finds_a_key_that_is_not_in_use(form, recorded, shell, tmp_path):
    assert shell("cassette", "verify", recorded.cassettes).code == 0
    path = recorded.cassettes / f"{EPISODE}.json"
    path.write_text(path.read_text().replace("I think", f"I {OTHER} think", 1))
    manifest = recorded.cassettes / "manifest.json"
    found = json.loads(manifest.read_bytes())
    for entry in found["episodes"]:
        if entry["episode_id"] == EPISODE:
            entry["cassette_sha256"] = sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(found))
    folder = recorded.cassettes
    if form == "compressed":
        folder = tmp_path / "packed"
        args = ("--to", "compressed", "-o", folder)
        assert shell("cassette", "convert", recorded.cassettes, *args).code == 0
    said = shell("cassette", "verify", folder)
    assert said.code == 1
    assert f"{EPISODE}.json" in said.err
    assert "in the shape of a key, sk-ant-a…" in said.err.replace("\n", " ")
    assert OTHER not in said.err


@pytest.mark.parametrize("name", ["study.toml", "wordings.toml", "tasks.sciq.jsonl"])
def test_every_file_of_a_recording_is_looked_at(name, recorded, shell):
    path = recorded.cassettes / name
    path.write_text(path.read_text() + f"# {OTHER}\n")
    said = shell("cassette", "verify", recorded.cassettes)
    assert said.code == 1
    assert f"{name}: it holds a string" in said.err
