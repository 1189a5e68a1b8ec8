"""The manifest of a retest: the same bytes each time, and nothing in it leads elsewhere."""

import pytest

from tutorsim.errors import RecordingError
from tutorsim.records import Failure, Provenance
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_folder,
    write_manifest,
)

DIGEST = "0123456789abcdef" * 4


def manifest(*episodes):
    digests = dict.fromkeys(("cassette_sha256", "requests_sha256", "record_sha256"), DIGEST)
    failures = (Failure(key="1/vote_final/x/1/r01", error="é"),)
    return RetestManifest(
        study_name="s",
        study_digest="d",
        recording_digest=DIGEST,
        repeats=2,
        stages=("vote_final",),
        sample=5,
        seed=1,
        provenance=Provenance(kind="relay", name="x"),
        packages={"tutorsim": "0"},
        retest_sha256=DIGEST,
        episodes=tuple(
            RetestEntry(episode_id=name, calls=3, failures=failures, **digests) for name in episodes
        ),
    )


def test_a_manifest_survives_its_file_and_has_an_episode_a_line(tmp_path):
    written = manifest("b.t.p.c", "b.u.p.c")
    write_manifest(tmp_path, written)
    assert read_retest_manifest(tmp_path) == written
    lines = (tmp_path / "retest.manifest.json").read_text().splitlines()
    assert sum('"episode_id"' in line for line in lines) == 2


def test_a_folder_without_a_manifest_holds_no_finished_retest(tmp_path):
    assert read_retest_manifest(tmp_path) is None
    assert read_retest_manifest(retest_folder(tmp_path)) is None


@pytest.mark.parametrize("names", [("../x.t.p.c",), ("b.t.p.c", "b.t.p.c")])
def test_names_that_could_leave_the_folder_or_stand_twice_are_refused(names, tmp_path):
    write_manifest(tmp_path, manifest(*names))
    with pytest.raises(RecordingError):
        read_retest_manifest(tmp_path)
