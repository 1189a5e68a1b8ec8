"""What a manifest says, against what its cassettes and their replay give.

Whatever a manifest holds that can be computed is computed: what answered, which models, packages,
calls, outcomes and digests, and what cassettes say of days and of the name of a user's own server.
Only what is said of its limits rests on its word; of cassettes from before they said it, days and
name too.
"""

import hashlib
from pathlib import Path
from typing import Any

from tutorsim.errors import FalseManifest, RecordingError
from tutorsim.replay import VERDICTS_FILE, Cassette, Manifest, Witness
from tutorsim.replay.manifest import Digests
from tutorsim.replay.person_inputs import INPUTS_FILE, inputs_digest
from tutorsim.replay.provenance import relay_name
from tutorsim.replay.retest_folder import RetestManifest
from tutorsim.replay.text_or_compressed import cassette_file, cassette_files

__all__ = [
    "check_entry",
    "check_fact",
    "check_files",
    "check_head",
    "check_origin",
    "check_provenance",
    "check_verdicts",
]

Head = Manifest | RetestManifest


def check_origin(manifest: Head, cassette: Cassette, *, parent_study: str | None) -> None:
    """Hold what a cassette says of its own recording against the manifest.

    Args:
        manifest: That of the cassette's folder.
        cassette: One of its cassettes.
        parent_study: Study digest of the recording that a branch continues, whose cassettes may
            stand in the folder; `None` where it continues none.

    Raises:
        FalseManifest: If they disagree.
    """
    if cassette.study_digest == manifest.study_digest:
        check_fact(manifest, "packages", dict(cassette.packages), cassette.name)
    elif cassette.study_digest != parent_study:
        check_fact(manifest, "study_digest", cassette.study_digest, cassette.name)


def check_entry(head: Head, recorded: Digests, computed: Digests) -> None:
    """Hold an episode's entry against what its cassette and its replay give.

    Args:
        head: The manifest that the entry stands in.
        recorded: The entry.
        computed: What it should be.

    Raises:
        FalseManifest: If they disagree in anything but the digest of the record.
    """
    one, other = (e.model_dump(mode="json") for e in (recorded, computed))
    other["record_sha256"] = one["record_sha256"]
    _compare(head.file, recorded.episode_id, one, other, "its cassette")


def check_provenance(manifest: Head, witness: Witness) -> None:
    """Hold what a manifest says of who answered against the replies.

    Raises:
        FalseManifest: If they disagree.
    """
    stated = manifest.provenance
    computed = witness.provenance(
        relay_name=relay_name(stated),
        recorded_from=stated.recorded_from,
        recorded_to=stated.recorded_to,
    ).model_copy(update={"limits": stated.limits})
    both = (stated.model_dump(), computed.model_dump())
    _compare(manifest.file, "provenance", *both, "the cassettes")


def check_files(folder: Path, head: Head) -> None:
    """Refuse cassettes that a head does not name, and a second form of one that it does.

    Args:
        folder: Where the head stands.
        head: The head.

    Raises:
        RecordingError: Naming the first such file.
    """
    named, seen = {entry.episode_id for entry in head.episodes}, set()
    names = sorted(path.name for path in folder.iterdir())
    for episode_id, form in cassette_files(names):
        if episode_id not in named or episode_id in seen:
            path = cassette_file(folder, episode_id, form)
            raise RecordingError(
                f"{path} is not of the recording.",
                why="Its episode has another file in the folder."
                if episode_id in named
                else f"{head.file} names no such episode.",
                hint="Move it away, or restore the folder from version control.",
            )
        seen.add(episode_id)


def check_head(manifest: Manifest, *, study_name: str, programs: int, log_sha256: str) -> None:
    """Hold the other fields of a manifest's head against the recording.

    Args:
        manifest: The recording's.
        study_name: Name in the study file.
        programs: Number of programs with a verdict.
        log_sha256: Digest of the lines that the replay gives.

    Raises:
        FalseManifest: If they disagree.
    """
    check_fact(manifest, "study_name", study_name, "study.toml")
    check_fact(manifest, "log_sha256", log_sha256, "the replay")
    if (manifest.sandbox is None) != (programs == 0):
        check_fact(manifest, "sandbox", f"{programs} verdicts", "verdicts.jsonl")


def check_verdicts(folder: Path, manifest: Manifest) -> None:
    """Hold the files of verdicts and of a person's inputs against the manifest.

    Raises:
        RecordingError: If the verdicts are missing or lead out of the folder, or one was edited.
    """
    path = folder / VERDICTS_FILE
    found = (
        hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file() and not path.is_symlink()
        else None
    )
    inputs = inputs_digest(folder)
    if inputs is not None and inputs != manifest.inputs_sha256:  # a replay misses one that is gone
        raise RecordingError(
            f"{folder / INPUTS_FILE} is not the file of inputs that was recorded.",
            why=f"It was edited, or is not of this recording: its digest is {inputs}.",
            hint="Restore the file from version control.",
        )
    if found != manifest.verdicts_sha256:
        raise RecordingError(
            f"{path} is not the file of verdicts that was recorded.",
            why="It is missing or was edited: its digest is not the manifest's.",
            hint="Restore the file from version control.",
        )


def check_fact(head: Head, field: str, computed: Any, source: str) -> None:
    """Hold one field of a head against what it should be.

    Args:
        head: The head.
        field: Its field.
        computed: What the field should be.
        source: What it was computed from.

    Raises:
        FalseManifest: If they disagree.
    """
    _compare(head.file, field, getattr(head, field), computed, source)


def _compare(file: str, field: str, stated: Any, computed: Any, source: str) -> None:
    if stated != computed:
        raise FalseManifest(
            f"{file} does not say what {source} holds: {field}.",
            why=_difference(field, stated, computed, source),
            hint=f"Restore {file} from version control; it is never edited by hand.",
        )


def _difference(field: str, stated: Any, computed: Any, source: str) -> str:
    if isinstance(stated, dict) and isinstance(computed, dict):
        names = sorted(stated.keys() | computed.keys())
        name = next(name for name in names if stated.get(name) != computed.get(name))
        return _difference(f"{field}.{name}", stated.get(name), computed.get(name), source)
    return f"{field}: the manifest says {stated!r}, {source} {computed!r}."
