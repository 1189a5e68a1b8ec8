"""A recording outlives the program: what changes around it leaves the bundled ones as they were.

Each change is made to a copy of the package, and the command line of that copy verifies and
replays `cassettes/demo`, or every bundled recording.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import tomli_w

from tutorsim.catalog import wordings_text
from tutorsim.kernel.load_and_check_study_file import load_recorded_study, system_named
from tutorsim.replay import read_manifest
from tutorsim.systems.panel.settings_and_members_of_compared_panels import (
    FIRST_FORM_PROMPTS,
    FIRST_TEXTS,
)

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "cassettes" / "demo"
FIRST_TEXTS_DIGESTS = {
    "debate": "34647ed6b4d95460",
    "group": "82fc5da0241cb2a8",
    "oversight": "92d7ffbb79f52db5",
    "panel": "f61dd084a804d75c",
}
WHOLE = "120 of 120 episodes (5,880 calls) give the recorded bytes"
MAIN = "import tutorsim; print(tutorsim.__file__); from tutorsim.cli import main; main()"


class Copy(NamedTuple):
    """A copy of the package."""

    folder: Path

    def replace(self, name: str, old: str, new: str) -> None:
        """Change a text that stands in a file once."""
        path = self.folder / "tutorsim" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name}: {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *args: object) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *map(str, args)],
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        where, _, out = done.stdout.partition("\n")
        assert Path(where).is_relative_to(self.folder)
        return done.returncode, out, done.stderr


@pytest.fixture
def copy(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "analysis", "cassettes")
    shutil.copytree(ROOT / "tutorsim", tmp_path / "tutorsim", ignore=ignored)
    return Copy(tmp_path)


def unused_template(copy):
    added = '\n["rich"]\n'
    copy.replace("systems/panel/prompts.toml", added, f'{added}farewell = "Goodbye, $name."\n')


def defaulted_settings(copy):
    """One of the study, which the log's head has too, and one of its models."""
    panel = "systems/panel/settings_and_members_of_compared_panels.py"
    head = "records/run_head_and_reading_run_folders_and_retests.py"
    models = "kernel/study_file_and_episode_spec.py"
    for name, before, setting in (
        (panel, "max_turns: int = Field(", "patience: int = 3"),
        (models, "max_tokens: int = Field(", "effort: int | None = None"),
        (head, "max_turns: int = 3\n", "patience: int = 3"),
    ):
        copy.replace(name, f"    {before}", f"    {setting}\n    {before}")


def reworded_prompt(copy):
    copy.replace(
        "systems/panel/prompts.toml",
        "Draft the reply that you would send to the student now: 2",
        "Write the reply that you would send to the student now: 2",
    )


def reworded_around_what_was_said(copy):
    copy.replace(
        "systems/panel/prompts.toml", 'notes_on = "On $label:"', 'notes_on = "About $label:"'
    )


def new_system(copy):
    """Another package of the house, with a stage of its own, in the registry."""
    package = copy.folder / "tutorsim" / "systems" / "duel"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from dataclasses import replace\n"
        "from tutorsim.systems.panel import PANEL\n"
        "DUEL = replace(PANEL, name='duel', stages=(*PANEL.stages, 'strike'))\n"
    )
    copy.replace(
        "system_registry.py",
        '    "panel": Shipped(',
        '    "duel": Shipped("tutorsim.systems.duel:DUEL", "", "", ""),\n    "panel": Shipped(',
    )


CHANGES = (
    unused_template, defaulted_settings, reworded_prompt, reworded_around_what_was_said, new_system,
)  # fmt: skip


@pytest.mark.costly
@pytest.mark.parametrize("change", CHANGES)
def test_the_bundled_recording_gives_its_bytes_after(change, copy):
    change(copy)
    code, out, err = copy.run("verify", DEMO)
    assert (code, err) == (0, "")
    assert WHOLE in out


@pytest.fixture
def reworded(copy):
    """A copy that tells models nothing in today's words, whatever the system."""
    shipped = list((copy.folder / "tutorsim").rglob("prompts.toml"))
    assert len(shipped) == 4
    for path in shipped:
        prompts = tomllib.loads(path.read_text(encoding="utf-8"))
        turned = in_other_words(prompts)
        path.write_text(tomli_w.dumps(turned, multiline_strings=True), encoding="utf-8")
    return copy


def in_other_words(prompts):
    """Templates, those under headings too, each in other words."""
    return {
        name: in_other_words(text) if isinstance(text, dict) else f"In other words. {text}"
        for name, text in prompts.items()
    }


@pytest.mark.costly
@pytest.mark.parametrize(
    "folder",
    sorted(m.parent for m in (ROOT / "cassettes").glob("*/manifest.json")),
    ids=lambda f: f.name,
)
def test_every_system_s_recording_gives_its_bytes_when_all_is_reworded(folder, reworded, tmp_path):
    code, out, err = reworded.run("verify", folder)
    assert (code, err) == (0, "")
    made, of = re.findall(r"^([0-9]+) of ([0-9]+) episodes", out, re.MULTILINE)[0]
    assert made == of
    earlier = tmp_path / "earlier"
    shutil.copytree(folder, earlier)
    without_later_templates(earlier)
    assert reworded.run("verify", earlier) == (code, out, err)


def without_later_templates(folder):
    """Make a recording one of those that were made before some templates were."""
    path = folder / "wordings.toml"
    wordings = tomllib.loads(path.read_text(encoding="utf-8"))
    later = load_recorded_study(folder).system.first_texts
    held = {name: text for name, text in wordings["prompts"].items() if name not in later}
    assert len(held) < len(wordings["prompts"])
    path.unlink()  # the link, not the bundled file
    path.write_text(wordings_text({**wordings, "prompts": held}), encoding="utf-8")


def test_words_that_a_recording_does_not_hold_yet_are_added_and_change_no_digest(shell, tmp_path):
    earlier, later = tmp_path / "earlier", tmp_path / "later"
    shutil.copytree(DEMO, earlier)
    without_later_templates(earlier)
    said = shell("cassette", "convert", earlier, "--to", "text", "-o", later)
    assert (said.code, "were added to its wordings" in said.err) == (0, True)
    for path in DEMO.glob("*.*"):
        assert (later / path.name).read_bytes() == path.read_bytes()


def test_words_around_what_was_said_that_were_edited_are_refused(shell, tmp_path):
    folder = tmp_path / "edited"
    shutil.copytree(DEMO, folder)
    path = folder / "wordings.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count('"On $label:"') == 1
    path.unlink()  # the link, not the bundled file
    path.write_text(text.replace('"On $label:"', '"About $label:"'), encoding="utf-8")
    shell("verify", folder).fails(4, "does not hold the recorded wordings")
    converted = tmp_path / "converted"
    assert shell("cassette", "convert", folder, "--to", "text", "-o", converted).code == 0
    assert (converted / "wordings.toml").read_bytes() == path.read_bytes()
    assert shell("verify", converted).code == 4


@pytest.mark.costly
def test_the_head_of_the_log_has_no_setting_that_came_later(copy, shell, tmp_path):
    assert shell("replay", DEMO, "--log-dir", tmp_path / "before").code == 0
    defaulted_settings(copy)
    assert copy.run("replay", DEMO, "--log-dir", tmp_path / "after")[0] == 0
    for name in ("run.json", "episodes.jsonl"):
        before, after = ((tmp_path / log / name).read_bytes() for log in ("before", "after"))
        assert before == after


@pytest.mark.costly
def test_a_reworded_prompt_is_named_with_both_texts(copy):
    reworded_prompt(copy)
    code, out, err = copy.run("verify", DEMO, "--wordings", "current")
    assert code == 1
    said = [line for line in out.splitlines() if line.startswith("prompts.")]
    assert len(said) == 1
    assert said[0].startswith("prompts.propose, line 3: recorded ")
    assert "Draft the reply that you would" in said[0].partition(", today ")[0]
    assert "Write the reply that you would" in said[0].partition(", today ")[2]
    assert "messages[0].content differs" in err
    entries = json.loads((DEMO / "manifest.json").read_bytes())["episodes"]
    never_proposed = sum(not entry["outcome"]["winners"] for entry in entries)
    assert f"{never_proposed} of 120 episodes" in out


@pytest.fixture
def first_form(tmp_path):
    """The bundled recording as it was in the first form, with its wordings in the study file."""
    folder = tmp_path / "first"
    shutil.copytree(DEMO, folder)
    wordings, study = folder / "wordings.toml", folder / "study.toml"
    without_later_templates(folder)
    text = study.read_text(encoding="utf-8") + re.sub(r"(?m)^\[", "[catalog.", wordings.read_text())
    study.unlink()  # the link, not the bundled file
    study.write_text(text, encoding="utf-8")
    wordings.unlink()
    return folder


@pytest.mark.costly
def test_a_recording_of_the_first_form_is_still_read(first_form, reworded, shell):
    said = shell("verify", first_form)
    assert (said.code, said.err) == (0, "")
    assert WHOLE in said.out
    code, out, err = reworded.run("verify", first_form)
    assert (code, err) == (0, "")
    assert WHOLE in out


def test_own_words_in_a_study_of_the_first_form_are_not_those_recorded(first_form, shell, tmp_path):
    study = first_form / "study.toml"
    text = study.read_text(encoding="utf-8")
    assert text.count("[catalog.prompts]\n") == 1
    own = '[catalog.prompts]\nnotes_on = "About $label:"\n'
    study.write_text(text.replace("[catalog.prompts]\n", own), encoding="utf-8")
    assert shell("verify", first_form).code == 3
    said = shell("cassette", "convert", first_form, "--to", "text", "-o", tmp_path / "later")
    assert (said.code, "convert it with the tutorsim that recorded it" in said.err) == (0, True)
    assert shell("verify", tmp_path / "later").code == 3


def test_the_bundled_recording_has_the_wordings_that_its_digest_covers():
    loaded = load_recorded_study(DEMO)
    assert loaded.prompt_digest() == read_manifest(DEMO).prompt_digest
    assert set(loaded.wordings()["prompts"]) == {*FIRST_FORM_PROMPTS, *FIRST_TEXTS}


@pytest.mark.parametrize("name", FIRST_TEXTS_DIGESTS)
def test_the_words_of_recordings_from_before_some_templates_never_change(name):
    """A new template joins them at the end, with a new digest here; the shipped one goes free."""
    system = system_named(name)
    assert system.first_texts.keys() <= system.catalog().prompts.keys()
    written = json.dumps(dict(system.first_texts)).encode()
    assert hashlib.sha256(written).hexdigest()[:16] == FIRST_TEXTS_DIGESTS[name]
