"""A run folder leads to the recording that its log is of."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.tutorsim.conftest import edit
from tutorsim.errors import LogError, RecordingError, UsageError
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.records import TIMINGS_FILE
from tutorsim.replay.cassette_file import JsonText
from tutorsim.runner.find_and_check_recording import (
    bundled_recording,
    check_tied,
    find_recording,
    length_of,
    usual_length,
)
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay


def test_a_recording_is_its_own(recorded_once):
    assert find_recording(recorded_once.cassettes, cassette_dir=None) == recorded_once.cassettes


def test_the_log_of_a_run_and_of_a_replay_say_where_they_come_from(recorded_once, tmp_path):
    replay(recorded_once.cassettes, log_dir=tmp_path / "log")
    for log in (recorded_once.log, tmp_path / "log"):
        assert find_recording(log, cassette_dir=None) == recorded_once.cassettes.resolve()


def test_a_moved_recording_is_found_by_digest_in_the_usual_folder(recorded, tmp_path, monkeypatch):
    home = tmp_path / "home"
    shutil.copytree(recorded.cassettes, home / "cassettes" / "mine")
    (recorded.log / TIMINGS_FILE).unlink()
    with pytest.raises(UsageError, match="not found") as told:
        find_recording(recorded.log, cassette_dir=None)
    assert "--cassette-dir" in told.value.hint
    monkeypatch.chdir(home)
    assert find_recording(recorded.log, cassette_dir=None) == Path("cassettes/mine")


def test_a_folder_that_is_given_is_the_only_place(recorded):
    for given in (recorded.cassettes, recorded.cassettes.parent):
        found = find_recording(recorded.log, cassette_dir=given)
        assert found == recorded.cassettes
    with pytest.raises(UsageError, match="not found"):
        find_recording(recorded.log, cassette_dir=recorded.log)


def test_a_path_that_now_holds_another_recording_is_not_believed(recorded):
    bundled = bundled_recording()
    assert bundled is not None
    lines = (recorded.log / TIMINGS_FILE).read_text().splitlines()
    lines[0] = f'{{"recording": "{bundled}"}}'
    (recorded.log / TIMINGS_FILE).write_text("\n".join(lines))
    with pytest.raises(UsageError, match="not found"):
        find_recording(recorded.log, cassette_dir=None)


def test_a_damaged_log_leads_nowhere(recorded):
    with (recorded.log / "episodes.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(LogError):
        find_recording(recorded.log, cassette_dir=None)


# --- A log says only what its recording says; one without a recording says so ---------------------

EPISODE = "sciq.ice.help_avoidant.simple"
COMMANDS = (
    ("summary",),
    ("show", EPISODE),
    ("report", "-o", "{tmp}/report.html"),
    ("export", "-o", "{tmp}/tables"),
    ("recount",),
    ("diverge", "--rule", "ranked"),
)


def leaves(value, path=()):
    """Every place in a JSON value that holds no further ones."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in inner:
        if isinstance(child, dict | list) and child:
            yield from leaves(child, (*path, key))
        else:
            yield (*path, key)


def altered(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return ["simple"]
        case dict():
            return {"x": "y"}
        case _:
            return "2030-01-01"


def test_no_field_of_the_head_can_be_altered(recorded):
    path = recorded.log / "run.json"
    head = json.loads(path.read_bytes())
    places = list(leaves(head))
    assert len(places) > 30
    passed = []
    for place in places:
        value = json.loads(json.dumps(head))
        inner = value
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = altered(inner[place[-1]])
        path.write_text(json.dumps(value))
        try:
            if check_tied(recorded.log) is None:
                passed.append(place)
        except LogError:
            continue
    assert passed == []


def test_lines_that_the_recording_does_not_give_are_refused(recorded, shell):
    lines, head = recorded.log / "episodes.jsonl", recorded.log / "run.json"
    data = lines.read_bytes()
    edited = data.replace(b"I think", b"I guess", 1)
    assert edited != data
    lines.write_bytes(edited)
    one, other = (sha256(text).hexdigest() for text in (data, edited))
    head.write_text(head.read_text().replace(one, other))
    shell("summary", recorded.log).fails(4, "is not what its recording gives: episodes_sha256")


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_commands_that_read_a_log_hold_it_against_its_recording(command, recorded, shell, tmp_path):
    path = recorded.log / "run.json"
    path.write_text(path.read_text().replace('"kind": "relay"', '"kind": "api"'))
    more = [word.format(tmp=tmp_path) for word in command[1:]]
    shell(command[0], recorded.log, *more).fails(4, "provenance.kind: the log says 'api'")


def test_a_log_whose_recording_is_gone_says_so_and_is_read(recorded, shell, tmp_path):
    assert shell("summary", recorded.log).err == ""
    recorded.cassettes.rename(tmp_path / "elsewhere")
    said = shell("summary", recorded.log)
    assert said.code == 0
    assert "is not tied to a recording, so nothing vouches for what it says" in said.err
    edit(recorded.log / "run.json", lambda head: head.update(recording_digest=""))
    assert "it names no recording" in shell("summary", recorded.log).err


def test_no_field_of_the_head_of_a_retest_can_be_altered(retested, shell):
    """Another digest of the lines is another retest, which is said and not refused."""
    log = retested.with_name("log")
    assert shell("replay", retested, "--log-dir", log).code == 0
    path = log / "retest.json"
    head = json.loads(path.read_bytes())
    for name, value in {"repeats": 3, "stages": ["vote_final"], "sample": 7, "seed": 5}.items():
        path.write_text(json.dumps({**head, name: value}))
        with pytest.raises(LogError, match=f"retest.json is not what its recording gives: {name}"):
            check_tied(log)
    path.write_text(json.dumps(head))
    assert check_tied(log) is None
    shutil.rmtree(retested / "retest")
    assert "is not tied to the retest" in str(check_tied(log))


# --- What a manifest says is computed from its cassettes; only the word of a person is taken ------


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
    said.fails(4, "manifest.json does not say what", "the manifest says ")
    assert "Recorded from" not in said.out


def test_no_replay_names_another_who_answered(reader, edit_manifest, recorded, shell, tmp_path):
    edit_manifest(FALSE["the API answered"])
    into = tmp_path / "again"
    shell("replay", recorded.cassettes, "--log-dir", into).fails(4, "provenance")
    assert not (into / "run.json").exists()


def test_what_old_cassettes_omit_rests_on_the_manifest_and_is_named(edit_manifest, recorded, shell):
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
    shell("verify", recorded.cassettes).tells(
        "relay: my proxy",
        "Nothing checks what the manifest alone says: the days of recording and the relay's name.",
    )


OTHER = EPISODE.replace("simple", "ranked")
FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "wordings": (lambda r: (r / "wordings.toml").unlink(), "wordings.toml is not there."),
    "retest": (lambda r: (r / "retest" / "retest.manifest.json").unlink(),
               "retest.manifest.json is not there."),
    "more": (lambda r: (r / f"{OTHER}.json").write_text("{}"),
             f"{OTHER}.json is not of the recording."),
    "twice": (lambda r: (r / f"{EPISODE}.json.zst").write_bytes(b""),
              f"{EPISODE}.json.zst is not of the recording."),
    "more of the retest": (lambda r: (r / "retest" / f"{OTHER}.json").write_text("{}"),
                           f"{OTHER}.json is not of the recording."),
}  # fmt: skip


@pytest.mark.parametrize("change", FILES)
def test_files_that_are_gone_or_too_many_are_named(change, retested, shell):
    do, words = FILES[change]
    assert shell("verify", retested).code == 0
    do(retested)
    shell("verify", retested).fails(4, words)


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
    shell("verify", recorded.cassettes).fails(4, "study_digest")


# --- Where a recording's calls lie between the fewest and the most that its study could make ------


def test_the_share_is_that_of_the_calls_made():
    folder = bundled_recording("demo")
    assert folder is not None
    found = length_of(folder)
    # 5,880 calls of the study and none of the retest, between 240 and 9,096
    assert found.share == pytest.approx(0.56, abs=0.07)
    assert found.recording == "demo (stand-in: tutorsim stand-in 2)"
    assert usual_length(system_named("panel")) == found


def test_what_is_no_recording_has_no_length(tmp_path):
    with pytest.raises(RecordingError):
        length_of(tmp_path)


def test_the_plan_says_what_it_expects_and_assumes(shell):

    said = shell("run", "demo", "--dry-run").out
    assert "of the way from the shortest to the longest path" in said
    assert "as in the recording demo (stand-in: tutorsim" in said
    found = shell("run", "demo", "--dry-run", "--json").json()
    assert found["least_cost"] < found["expected_cost"] < found["cost"]
    way = (found["expected_cost"] - found["least_cost"]) / (found["cost"] - found["least_cost"])
    assert way == pytest.approx(found["share"])
