"""What a manifest says is computed from its cassettes; only the word of a person is taken."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tutorsim.replay.cassette_file import JsonText

EPISODE = "sciq.ice.help_avoidant.simple"


def head(**fields):
    return lambda manifest: manifest.update(fields)


def provenance(**fields):
    return lambda manifest: manifest["provenance"].update(fields)


def entry(**fields):
    def edit(manifest):
        [one] = (e for e in manifest["episodes"] if e["episode_id"] == EPISODE)
        one.update(fields)

    return edit


def outcome(**fields):
    def edit(manifest):
        [one] = (e for e in manifest["episodes"] if e["episode_id"] == EPISODE)
        one["outcome"].update(fields)

    return edit


FALSE = {
    "the API answered": provenance(kind="api", name="Anthropic API"),
    "the stand-in answered": provenance(kind="stand-in", name="tutorsim stand-in 2"),
    "another relay": provenance(name="my proxy"),
    "an earlier day": provenance(recorded_from="2020-01-01"),
    "a later day": provenance(recorded_to="2030-01-01"),
    "another model": provenance(models=["claude-opus-4-5"]),
    "other packages": head(packages={"tutorsim": "9"}),
    "another name": head(study_name="other"),
    "another log": head(log_sha256="0" * 64),
    "a sandbox where no program was judged": head(sandbox="{}"),
    "another success": outcome(success=None),
    "another winner": outcome(winners=["metacognitive"], decided_by=["fallback"]),
    "fewer calls": entry(calls=3),
    "other requests": entry(requests_sha256="0" * 64),
    "a failure": entry(
        status="failed", failure={"key": "0/student/student/1", "error": "HTTP 500"}
    ),
}


@pytest.fixture
def edit_manifest(recorded):
    def edit(change):
        path: Path = recorded.cassettes / "manifest.json"
        manifest = json.loads(path.read_bytes())
        before = json.dumps(manifest)
        change(manifest)
        assert json.dumps(manifest) != before
        path.write_text(json.dumps(manifest))

    return edit


@pytest.mark.parametrize("change", FALSE.values(), ids=FALSE)
def test_a_false_manifest_is_refused(change, edit_manifest, recorded, shell):
    edit_manifest(change)
    said = shell("verify", recorded.cassettes)
    assert said.code == 4
    assert "manifest.json does not say what" in said.err
    assert "the manifest says " in said.err
    assert "Recorded from" not in said.out


def test_a_replay_writes_no_log_that_names_another_who_answered(
    reader, edit_manifest, recorded, shell, tmp_path
):
    edit_manifest(FALSE["the API answered"])
    into = tmp_path / "again"
    said = shell("replay", recorded.cassettes, "--log-dir", into)
    assert said.code == 4
    assert "provenance" in said.err
    assert not (into / "run.json").exists()


def test_what_cassettes_from_before_do_not_say_rests_on_the_manifest_and_is_named(
    edit_manifest, recorded, shell
):
    assert "Only the manifest says" not in shell("verify", recorded.cassettes).out

    def as_before(manifest):
        manifest["provenance"] |= {"name": "my proxy", "recorded_from": "2020-01-01"}
        for one in manifest["episodes"]:
            path = recorded.cassettes / f"{one['episode_id']}.json"
            cassette = json.loads(path.read_bytes())
            del cassette["metadata"]["tutorsim"]["recorded"]
            path.write_text(JsonText.serialize(cassette))
            one["cassette_sha256"] = sha256(path.read_bytes()).hexdigest()

    edit_manifest(as_before)
    said = shell("verify", recorded.cassettes)
    assert said.code == 0
    assert "relay: my proxy" in said.out
    assert "Only the manifest says the days of recording and the relay's name." in said.out


OTHER = EPISODE.replace("simple", "ranked")
FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "wordings": (lambda r: (r / "wordings.toml").unlink(), "wordings.toml is not there."),
    "retest": (
        lambda r: (r / "retest" / "retest.manifest.json").unlink(),
        "retest.manifest.json is not there.",
    ),
    "more": (
        lambda r: (r / f"{OTHER}.json").write_text("{}"),
        f"{OTHER}.json is not of the recording.",
    ),
    "twice": (
        lambda r: (r / f"{EPISODE}.json.zst").write_bytes(b""),
        f"{EPISODE}.json.zst is not of the recording.",
    ),
    "more of the retest": (
        lambda r: (r / "retest" / f"{OTHER}.json").write_text("{}"),
        f"{OTHER}.json is not of the recording.",
    ),
}


@pytest.mark.parametrize("change", FILES)
def test_files_that_are_gone_or_too_many_are_named(change, retested, shell):
    do, words = FILES[change]
    assert shell("verify", retested).code == 0
    do(retested)
    said = shell("verify", retested)
    assert said.code == 4
    assert words in said.err.replace("\n", " ")


def test_the_requests_of_two_recordings_do_not_mix(recorded, shell):
    """A cassette names the packages that recorded it, as the manifest does."""
    path = recorded.cassettes / f"{EPISODE}.json"
    text = path.read_text()
    manifest = recorded.cassettes / "manifest.json"
    digest = json.loads(manifest.read_bytes())["study_digest"]
    other = text.replace(digest, "1" * 64)
    path.write_text(other)
    held = manifest.read_text().replace(
        sha256(text.encode()).hexdigest(), sha256(other.encode()).hexdigest()
    )
    manifest.write_text(held)
    said = shell("verify", recorded.cassettes)
    assert said.code == 4
    assert "study_digest" in said.err
