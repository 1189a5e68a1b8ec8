"""The study of a branch: its cursors, its grid, and what is refused."""

from dataclasses import replace

import pytest

from tutorsim.errors import RecordingError, UsageError
from tutorsim.kernel.load import load_study, write_study
from tutorsim.records import Failure, read_episodes
from tutorsim.runner.branching import Alternative
from tutorsim.runner.open_recording import open_recording
from tutorsim.systems.panel.branch import branch_study

ICE, MOON = (f"sciq.{task}.help_avoidant.simple" for task in ("ice", "moon"))
BASELINES = tuple(f"sciq.{task}.help_avoidant.baseline" for task in ("ice", "moon"))
ORDER = Alternative(fallback_order=("motivation", "misconception", "scaffolding", "metacognitive"))


@pytest.fixture(scope="module")
def recording(recorded_once):
    return open_recording(recorded_once.cassettes)


@pytest.fixture(scope="module")
def episodes(recorded_once):
    return tuple(read_episodes(recorded_once.log))


def ids(loaded):
    return [spec.episode_id for spec in loaded.grid()]


def test_a_branch_has_covered_episodes_and_continuations_in_the_parent_s_order(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {MOON: 1}, continuations=2)
    assert ids(loaded) == [BASELINES[0], ICE, BASELINES[1], f"{MOON}.c01", f"{MOON}.c02"]
    parents = [spec.parent_id for spec in loaded.grid()]
    assert parents == [BASELINES[0], ICE, BASELINES[1], MOON, MOON]
    branch = loaded.study.branch
    assert branch.covered == (BASELINES[0], ICE, BASELINES[1])
    [logged] = [one for one in episodes if one.episode_id == MOON]
    assert branch.episodes[MOON].turn == 1
    assert branch.episodes[MOON].winners == tuple(t.decision.winner for t in logged.turns)
    assert branch.parent_recording == recording.manifest.recording_digest()
    assert branch.parent_study == recording.manifest.study_digest
    assert (branch.parent, loaded.study.name) == ("grid", "grid-branch")


def test_episodes_that_are_not_wanted_are_neither_covered_nor_taken_up(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {ICE: 1, MOON: 1}, only={ICE})
    assert ids(loaded) == [BASELINES[0], f"{ICE}.c01", BASELINES[1]]


def test_failed_episodes_are_left_out(recording, episodes):
    failed = {"status": "failed", "failure": Failure(key="1/judge/judge/1", error="HTTP 400")}
    log = [
        one.model_copy(update=failed) if one.episode_id in (ICE, BASELINES[1]) else one
        for one in episodes
    ]
    loaded = branch_study(recording, log, ORDER, {ICE: 1, MOON: 1})
    assert ids(loaded) == [BASELINES[0], f"{MOON}.c01"]


def test_the_study_file_of_a_branch_gives_the_branch_back(recording, episodes, tmp_path):
    """Episode ids have dots in them, which a table of the file must not take for tables."""
    panel = ("motivation", "scaffolding", "misconception")
    changed = Alternative("ranked", ORDER.fallback_order, "no_tie_round", panel, "m")
    for alternative in (ORDER, changed):
        loaded = branch_study(recording, episodes, alternative, {MOON: 1}, continuations=3)
        write_study(loaded, tmp_path)
        read = load_study(tmp_path / "study.toml")
        assert read.study.branch == loaded.study.branch
        assert (read.digest(), ids(read)) == (loaded.digest(), ids(loaded))


def test_a_branch_that_grows_keeps_its_digest_and_any_other_change_gives_another(
    recording, episodes
):
    one = branch_study(recording, episodes, ORDER, {MOON: 1, ICE: 1}, only={MOON})
    more = branch_study(recording, episodes, ORDER, {MOON: 1, ICE: 1}, continuations=5)
    assert one.digest() == more.digest() != recording.loaded.digest()
    others = [
        branch_study(recording, episodes, replace(ORDER, model="m"), {MOON: 1, ICE: 1}),
        branch_study(recording, episodes, Alternative(rule="ranked"), {MOON: 1, ICE: 1}),
        branch_study(recording, episodes, ORDER, {MOON: 1}),
    ]
    assert len({one.digest(), *(other.digest() for other in others)}) == 4


def test_a_long_name_stays_a_name(recording, episodes, tmp_path):
    study = recording.loaded.study.model_copy(update={"name": "n" * 80})
    long = replace(recording, loaded=replace(recording.loaded, study=study))
    write_study(branch_study(long, episodes, ORDER, {MOON: 1}), tmp_path)
    assert load_study(tmp_path / "study.toml").study.name == "n" * 73 + "-branch"


def test_a_branch_of_a_branch_is_refused(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {MOON: 1})
    with pytest.raises(UsageError, match="is a branch itself"):
        branch_study(replace(recording, loaded=loaded), episodes, ORDER, {MOON: 1})


def test_other_prompts_are_refused(recording, episodes):
    with pytest.raises(RecordingError, match="prompts of this tutorsim are not the recorded"):
        branch_study(replace(recording, drifted=True), episodes, ORDER, {MOON: 1})


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        (("scaffolding", "motivation", "x"), "no role 'x'"),
        (("scaffolding", "motivation", "baseline"), "no role 'baseline' for a panel"),
        (("scaffolding",) * 3, "3 to 8 different roles"),
        ((), "3 to 8 different roles"),
    ],
)
def test_a_panel_that_cannot_go_on_is_refused(recording, episodes, roles, why):
    with pytest.raises(UsageError, match=why):
        branch_study(recording, episodes, replace(ORDER, roles=roles), {MOON: 1})
