"""Retesting a recording: its plan, what its folder holds, and the job that asks prompts again."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from tutorsim.errors import RecordingError, UsageError
from tutorsim.kernel.cost_plan import PriceTable, cost_of
from tutorsim.kernel.retest_flow_and_drawn_turns import AskedTogether, Asking, Design, drawn_turns
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask_each
from tutorsim.model import Call, CallKey, Reply
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import OF_THE_MOMENT
from tutorsim.records import Failure, Provenance, RetestRecord
from tutorsim.replay import check_recordable, make_folder, write_atomic, write_manifest
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    RETEST_SESSION_FILE,
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_folder,
    today,
)
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore, Tape
from tutorsim.runner.begin_or_resume_recording import (
    BaseSession,
    check_as_recorded,
    days_and_packages,
    locked,
)
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
from tutorsim.runner.find_and_check_recording import Recording, check_drift, open_recording
from tutorsim.runner.pieces_of_work_person_heard_event_loop import run_in_loop
from tutorsim.runner.play_recorded_episodes_and_retests import (
    asked_again,
    askings_in,
    recorded_prefix,
    retest_piece,
)
from tutorsim.runner.record import Job, Recorder
from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import (
    RecordingOptions,
    check_credentials,
)
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_each
from tutorsim.runner.write_run_folder_and_timings import RetestLog

# --- Retest session ------------------------------------------------------------------------------

RESTORE: Final = "Restore the file from version control, or move it away to ask its calls again."


class _Begun(BaseModel):
    """The session file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study_digest: str
    repeats: int
    stages: tuple[str, ...]
    sample: int | None
    seed: int
    ask_cut_off_again: bool = False
    started: str
    latest: str
    packages: dict[str, str]


@dataclass(frozen=True)
class RetestSession(BaseSession):
    """What stays the same over all commands that make one retest."""

    file = RETEST_SESSION_FILE

    earlier: RetestManifest | None


class Earlier(NamedTuple):
    """What earlier commands left in a retest's folder, of this study and within a design."""

    design: Design
    """The design; second askings of cut-off replies as they were begun."""
    finished: RetestManifest | None
    begun: _Begun | None


def open_retest_session(recording: Recording, design: Design) -> RetestSession:
    """Begin to retest a recording, or go on with it.

    `UsageError` if the folder holds, or was to hold, what this design does not ask;
    `RecordingError` if what it holds is damaged, edited, compressed or of another study.
    """
    folder, day = retest_folder(recording.folder), today()
    make_folder(folder)
    design, earlier, begun = earlier_retest(recording, design)
    if begun is None and earlier is not None:
        for entry in earlier.episodes:
            check_as_recorded(folder, entry, restore=RESTORE)
    if begun is None:
        kept = days_and_packages(earlier)
    else:
        kept = {name: getattr(begun, name) for name in ("started", "latest", "packages")}
    study = recording.manifest.study_digest
    head = _Begun(study_digest=study, **vars(design), **{**kept, "latest": day})
    write_atomic(folder / RETEST_SESSION_FILE, head.model_dump_json().encode())
    return RetestSession(folder, **kept, today=day, earlier=earlier)


def earlier_retest(recording: Recording, design: Design) -> Earlier:
    """What a design goes on with. It refuses what `open_retest_session` refuses."""
    folder, study = retest_folder(recording.folder), recording.manifest.study_digest
    check_recordable(folder)
    earlier, begun = read_retest_manifest(folder), _begun(folder)
    for one in (earlier, begun):
        if one is not None:
            _check_study(folder, one.study_digest, study)
            _check_design(folder, Design.of(one), design)
    known = begun or earlier
    again = recording.loaded.if_cut_off is not None if known is None else known.ask_cut_off_again
    return Earlier(replace(design, ask_cut_off_again=again), earlier, begun)


def _begun(folder: Path) -> _Begun | None:
    path = folder / RETEST_SESSION_FILE
    try:
        return _Begun.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise RecordingError(
            f"{path} cannot be read.",
            why=str(error).partition("\n")[0],
            hint="Move the folder away to ask everything again, or remove this file to go on.",
        ) from error


def _check_study(folder: Path, held: str, wanted: str) -> None:
    if held != wanted:
        raise RecordingError(
            f"{folder} holds the retest of another study.",
            why="Its study digest is not that of the recording around it.",
            hint="Move the folder away.",
        )


def _check_design(folder: Path, held: Design, wanted: Design) -> None:
    if wanted.covers(held):
        return
    drawn = "all turns" if held.sample is None else f"--sample {held.sample} --seed {held.seed}"
    raise UsageError(
        f"{folder} holds more than this command asks.",
        why=f"It was made with --repeats {held.repeats} --stages {','.join(held.stages)} and "
        f"{drawn}, and what was paid for is kept.",
        hint="Ask for at least as much, or move the folder away.",
    )


# --- Retest cost plan ----------------------------------------------------------------------------

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Survey:
    """What a retest of a recording asks."""

    recording: Recording
    design: Design
    sets: Mapping[str, tuple[AskedTogether[Any], ...]]
    """Episode → what of it is asked again, for episodes with any, in grid order."""

    @property
    def prompts(self) -> int:
        """Prompts that are asked again."""
        return sum(len(one.prompts) for sets in self.sets.values() for one in sets)

    @property
    def turns(self) -> int:
        """How many turns have a prompt that is asked again."""
        return sum(len({one.turn for one in sets}) for sets in self.sets.values())


def survey(
    folder: Path, design: Design, *, on_progress: OnProgress = lambda done, total: None
) -> Survey:
    """Replay a recording and find what a retest asks again.

    A design without stages stands for all that the system can ask again. `UsageError` if there is
    nothing, or an earlier retest asked more.
    """
    recording = open_recording(folder)
    system = recording.loaded.system
    system.check_command("retest")
    design = replace(design, stages=system.check_stages(design.stages))
    design = earlier_retest(recording, design).design
    found: dict[str, list[AskedTogether[Any]]] = {}
    for one in replay_each(recording, workers=None, on_progress=on_progress):
        if one.line is None:
            assert one.error is not None
            raise one.error
        found[one.episode_id] = asked_again(recording, system.record.model_validate_json(one.line))
    check_drift(recording)
    drawn = drawn_turns(((e, one.turn) for e, sets in found.items() for one in sets), design)
    chosen = {
        episode: tuple(s for s in sets if s.stage in design.stages and (episode, s.turn) in drawn)
        for episode, sets in found.items()
    }
    asked = {episode: sets for episode, sets in chosen.items() if sets}
    if not asked:
        raise UsageError(
            f"{folder} holds nothing that could be asked again.",
            why=f"No complete episode of it has a call of stage {' or '.join(design.stages)}.",
            hint="Retest a recording whose episodes vote.",
        )
    return Survey(recording, design, asked)


@dataclass(frozen=True)
class RetestPlan:
    """What is left to pay for."""

    study: str
    episodes: int
    turns: int
    prompts: int
    repeats: int
    recorded: int
    """Askings that are on tape, or failed for good and are not made again."""
    calls: int
    """Exactly, if every reply can be read."""
    most_calls: int
    """Calls if every prompt had to be asked twice."""
    tokens: dict[str, tuple[int, int]]
    """Model → input and output tokens of `calls`, as the recorded askings took."""
    prices_as_of: str
    cost: float | None
    """US dollars of `calls` at list prices; `None` when a price is unknown."""
    expected_cost: float | None
    """Cost if those prompts are asked twice that were when they were recorded."""
    most_cost: float | None
    """US dollars of `most_calls`."""
    unknown_prices: tuple[str, ...]


class _Usage:
    """Tokens by model."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._given: Counter[str] = Counter()

    def add(self, model: str, *replies: Reply) -> None:
        """Count calls like these."""
        for reply in replies:
            self._asked[model] += reply.input_tokens
            self._given[model] += reply.output_tokens

    @property
    def tokens(self) -> dict[str, tuple[int, int]]:
        return {model: (self._asked[model], self._given[model]) for model in sorted(self._asked)}


def plan_retest(
    found: Survey,
    prices: PriceTable,
    *,
    retry_errors: bool,
    on_progress: OnProgress = lambda done, total: None,
) -> RetestPlan:
    """Count the calls that are left, exactly, and estimate tokens and cost by the recorded ones.

    `retry_errors` counts calls that failed, too.
    """
    recording, design = found.recording, found.design
    skip = failed_before(earlier_retest(recording, design).finished, retry_errors=retry_errors)
    least, expected, most = _Usage(), _Usage(), _Usage()
    calls = second = 0
    for done, (episode_id, sets) in enumerate(found.sets.items()):
        on_progress(done, len(found.sets))
        cassette = recording.reader.cassette(episode_id)
        held = _held(recording, episode_id)
        for asking in askings_in(recording, cassette, design, sets):
            call = _missing(asking, held)
            if call is None or (episode_id, str(call.key)) in skip:
                continue
            model, first = call.request.model, asking.prompt.key
            usual = cassette.interactions[str(first)].reply()
            again = cassette.interactions.get(str(first._replace(attempt=2)))
            more = () if again is None else (again.reply(),)
            if call.key.attempt == 2:
                usual, more = (more or (usual,))[0], ()
            else:
                second += 1
                most.add(model, *(more or (usual,)))
            calls += 1
            least.add(model, usual)
            expected.add(model, usual, *more)
            most.add(model, usual)
    tokens = least.tokens
    return RetestPlan(
        study=recording.manifest.study_name,
        episodes=len(found.sets),
        turns=found.turns,
        prompts=found.prompts,
        repeats=design.repeats,
        recorded=found.prompts * design.repeats - calls,
        calls=calls,
        most_calls=calls + second,
        tokens=tokens,
        prices_as_of=prices.as_of,
        cost=cost_of(tokens, prices),
        expected_cost=cost_of(expected.tokens, prices),
        most_cost=cost_of(most.tokens, prices),
        unknown_prices=tuple(model for model in tokens if prices.price(model) is None),
    )


def failed_before(
    earlier: RetestManifest | None, *, retry_errors: bool
) -> dict[tuple[str, str], Failure]:
    """Calls to leave failed, by episode and key: not those that an outage failed."""
    if earlier is None or retry_errors:
        return {}
    return {
        (e.episode_id, f.key): f
        for e in earlier.episodes
        for f in e.failures
        if not f.error.startswith(OF_THE_MOMENT)
    }


def _held(recording: Recording, episode_id: str) -> Tape | None:
    """What is on tape of an episode's retest; `None` where nothing was begun."""
    folder = retest_folder(recording.folder)
    if not folder.is_dir():
        return None
    store = CassetteStore(folder, study_digest=recording.manifest.study_digest, packages={})
    with store.open(episode_id) as tape:
        return tape


def _missing(asking: Asking, held: Tape | None) -> Call | None:
    """The first call of an asking that a tape does not hold; `None` where it holds them all."""

    def recorded(call: Call, fresh: bool) -> Reply | None:
        one = held.held(call.key) if held is not None else None
        return None if one is None else one.reply()

    missing = recorded_prefix(ask_each([asking.question]), recorded).missing
    return missing[0] if missing else None


# --- Retesting -----------------------------------------------------------------------------------


class Retested(NamedTuple):
    """What came of a command."""

    manifest: RetestManifest
    paid: int
    """Calls that this command paid for."""


def retest(
    found: Survey, *, log_dir: Path | None, budget: Budget, options: RecordingOptions
) -> Retested:
    """Ask what is left, and write the retest into its recording and beside a log, if there is one.

    Failed calls are marked in the manifest that it gives, and do not raise. At the cap
    (`BudgetReached`) and after Ctrl-C (`Interrupted`) everything paid for is kept. A folder that
    holds what the design does not ask, what is damaged or of another study, and a recorded call of
    another request are refused.
    """
    recording = found.recording
    budget.check_models(recording.loaded.model_names())
    run_in_loop(check_credentials())
    with locked(recording.folder, log_dir or recording.folder):
        session = open_retest_session(recording, found.design)
        job = _RetestJob(found, session, retry=options.retry_errors)
        recorder = Recorder(job, session, budget, options)
        manifest = run_in_loop(recorder.run(job.log))
        if log_dir is not None:
            job.log.write(log_dir, manifest)
    return Retested(manifest, recorder.paid)


class _RetestJob(Job[RetestRecord, RetestEntry, RetestManifest]):
    """A retest as a job; an earlier one with fewer repeats stands until this one is on tape."""

    stands_until_done = True

    def __init__(self, found: Survey, session: RetestSession, *, retry: bool) -> None:
        self.found = found
        self.study_digest = found.recording.manifest.study_digest
        self.pieces = [
            retest_piece(found.recording, found.design, name, sets)
            for name, sets in found.sets.items()
        ]
        self.session = session
        self.log = RetestLog()
        self._failed = failed_before(session.earlier, retry_errors=retry)

    def failed(self, piece_id: str, key: CallKey) -> Failure | None:
        return self._failed.get((piece_id, str(key)))

    def finish(self, entries: Sequence[RetestEntry], provenance: Provenance) -> RetestManifest:
        recorded = self.found.recording.manifest
        manifest = RetestManifest(
            study_name=recorded.study_name,
            study_digest=recorded.study_digest,
            recording_digest=recorded.recording_digest(),
            **vars(self.found.design),
            provenance=provenance,
            packages=self.session.packages,
            retest_sha256=self.log.sha256,
            episodes=tuple(entries),
        )
        write_manifest(self.session.folder, manifest)
        if not recorded.retested:
            told = recorded.model_copy(update={"retested": True})
            write_manifest(self.found.recording.folder, told)
        return manifest
