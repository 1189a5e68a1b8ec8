"""Recordings for benchmarks, from the stand-in's own function.

There is no server and no client between, so that a large one is there soon. What is written is
what a recording over HTTP writes, but for the headers that only the client knows. Where a
benchmark needs a run folder and no recording, the log alone is written.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tutorsim.kernel.flow_drivers_and_call_log import CodeRun, drive
from tutorsim.kernel.load_and_check_study_file import load_study, write_study
from tutorsim.kernel.study_file_and_episode_spec import shipped_studies
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import CALL_HEADER
from tutorsim.records import Provenance, RunRecord, to_line
from tutorsim.replay import (
    AnsweredBy,
    Manifest,
    VerdictStore,
    episode_entry,
    make_folder,
    package_versions,
    read_cassette,
    write_manifest,
)
from tutorsim.replay.cassette_file import write_cassette
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import STANDIN_HEADER, Interaction
from tutorsim.runner.write_run_folder_and_timings import LogWriter, fingerprint_text
from tutorsim.sandbox import Sandbox
from tutorsim.standin import STANDIN_VERSION, Endpoint

__all__ = ["Made", "log_stand_in", "published", "record_stand_in"]


class Made(NamedTuple):
    """A recording, and how many episodes and calls it has."""

    folder: Path
    episodes: int
    calls: int


def published(*, tasks, repeats=1):
    """The published study over its first tasks of each benchmark, each episode repeated."""
    settings = {
        "repeats": repeats,
        "benchmarks": {name: {"limit": tasks} for name in ("sciq", "humaneval")},
    }
    return load_study(shipped_studies()["published"], overrides=settings)


def record_stand_in(folder, loaded, sandbox):
    """Record a study, one episode after the other, and write its manifest."""
    make_folder(folder)
    write_study(loaded, folder)
    making = _Making(folder, loaded, sandbox)
    entries = [making.one(spec) for spec in loaded.grid()]
    manifest = Manifest(
        study_name=loaded.study.name, study_digest=loaded.digest(),
        prompt_digest=loaded.prompt_digest(),
        provenance=making.answered_by.provenance(recorded_from="2026-01-01",
                                                 recorded_to="2026-01-01"),
        packages=making.packages, sandbox=making.fingerprint,
        verdicts_sha256=making.verdicts.finish(), log_sha256=making.log.hexdigest(),
        episodes=tuple(entries),
    )  # fmt: skip
    write_manifest(folder, manifest)
    return Made(folder, len(entries), sum(entry.calls for entry in entries))


def log_stand_in(folder, loaded):
    """Write the run folder of a study whose episodes run no code, and no recording."""
    endpoint = Endpoint(seed=8)
    calls = 0

    def answered(effect):
        return tuple(_answered(endpoint, spec.episode_id, call).reply() for call in effect.calls)

    with LogWriter(folder) as log:
        for spec in loaded.grid():
            record = drive(loaded.episode(spec), answered)
            calls += len(record.calls)
            log.add(to_line(record), spec.episode_id, 0.0)
        head = RunRecord(
            study=loaded.settings(),
            study_digest=loaded.digest(),
            episodes_sha256=log.sha256,
            provenance=Provenance(kind="stand-in", name=STANDIN_VERSION),
            episodes=log.count,
        )
        log.finish(head, {})
    return Made(folder, head.episodes, calls)


def _answered(endpoint, episode_id, call):
    sent = orjson.dumps(call.request.body())
    headers = {"content-type": "application/json", CALL_HEADER: f"{episode_id}/{call.key}"}
    response = endpoint.answer("POST", "/v1/messages", headers, sent)
    return Interaction(
        key=str(call.key),
        kind="stand-in",
        status=response.status,
        request_headers=headers,
        request=sent.decode(),
        response_headers={"content-type": "application/json", STANDIN_HEADER: STANDIN_VERSION},
        response=response.body.decode(),
    )


@dataclass
class _Making:
    """Answers the effects of one episode after the other and keeps what a recorder keeps."""

    folder: Path
    loaded: LoadedStudy
    sandbox: Sandbox
    endpoint: Endpoint = field(default_factory=lambda: Endpoint(seed=8))
    answered_by: AnsweredBy = field(default_factory=AnsweredBy)
    log: Any = field(default_factory=hashlib.sha256)

    def __post_init__(self):
        self.digest, self.packages = self.loaded.digest(), package_versions()
        self.fingerprint = fingerprint_text(self.sandbox)
        self.verdicts = VerdictStore(self.folder, fingerprint=self.fingerprint)

    def one(self, spec):
        kept: list[Interaction] = []

        def world(effect):
            if isinstance(effect, CodeRun):
                return self._judged(effect)
            kept.extend(_answered(self.endpoint, spec.episode_id, call) for call in effect.calls)
            return tuple(one.reply() for one in kept[-len(effect.calls) :])

        record = drive(self.loaded.episode(spec), world)
        write_cassette(
            self.folder, spec.episode_id, kept, kind="stand-in", study_digest=self.digest,
            packages=self.packages,
        )  # fmt: skip
        cassette = read_cassette(self.folder, spec.episode_id)
        self.answered_by.note(cassette)
        self.answered_by.models.update(call.model for call in record.calls)
        line = to_line(record)
        self.log.update(f"{line}\n".encode())
        return episode_entry(record, line, cassette, self.loaded.system.outcome(record))

    def _judged(self, run):
        found = self.verdicts.find(run)
        if found is None:
            found = self.sandbox.judge(run)
            self.verdicts.add(run, found, fingerprint=self.fingerprint)
        return found
