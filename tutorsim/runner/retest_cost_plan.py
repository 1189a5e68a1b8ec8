"""What a retest of a recording takes: its prompts, the calls that are left, and their cost."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tutorsim.cost_plan import PriceTable, cost_of
from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import ask_each
from tutorsim.mechanisms.retest_prompts import AskedTogether
from tutorsim.model import Call, Reply
from tutorsim.model.failure_causes import OF_THE_MOMENT
from tutorsim.records import Failure
from tutorsim.replay.episode_recording import Deck, Tape
from tutorsim.replay.retest_folder import RetestManifest, retest_folder
from tutorsim.retest_flow import Asking, Design, drawn_turns
from tutorsim.runner.open_recording import Recording, check_drift, open_recording
from tutorsim.runner.recorded_prefix import ahead
from tutorsim.runner.replaying import replay_each
from tutorsim.runner.retest_piece import asked_again, askings_in
from tutorsim.runner.retest_session import held_retest

__all__ = ["RetestPlan", "Survey", "failed_before", "plan_retest", "survey"]

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
        """Turns that they are of."""
        return sum(len({one.turn for one in sets}) for sets in self.sets.values())


def survey(
    folder: Path, design: Design, *, on_progress: OnProgress = lambda done, total: None
) -> Survey:
    """Replay a recording and find what a retest asks again.

    Args:
        folder: The recording.
        design: What to ask; no stages stand for all that the system can ask again.
        on_progress: Told after each episode how many of how many are done.

    Raises:
        UsageError: If there is nothing, the recording's system has no such stage, or an earlier
            retest asked more.
        ReplayError, RecordingError: If the recording does not replay.
    """
    recording = open_recording(folder)
    system = recording.loaded.system
    system.check_command("retest")
    design = replace(design, stages=system.check_stages(design.stages))
    design = held_retest(recording, design).design
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
    """If every prompt had to be asked twice."""
    tokens: dict[str, tuple[int, int]]
    """Model → input and output tokens of `calls`, as the recorded askings took."""
    prices_as_of: str
    cost: float | None
    """US dollars of `calls` at list prices; `None` when a price is unknown."""
    expected_cost: float | None
    """If those prompts have to be asked twice that were when they were recorded."""
    most_cost: float | None
    """Of `most_calls`."""
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

    Args:
        found: What is asked.
        prices: By model.
        retry_errors: Make calls again that failed.
        on_progress: Told before each episode how many of how many are done.

    Raises:
        UsageError: If the folder holds what the design does not ask.
        RecordingError: If what it holds is damaged or of another study.
    """
    recording, design = found.recording, found.design
    skip = failed_before(held_retest(recording, design).finished, retry_errors=retry_errors)
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
    deck = Deck(folder, study_digest=recording.manifest.study_digest, packages={})
    with deck.open(episode_id) as tape:
        return tape


def _missing(asking: Asking, held: Tape | None) -> Call | None:
    """The first call of an asking that a tape does not hold; `None` where it holds them all."""

    def recorded(call: Call, fresh: bool) -> Reply | None:
        one = held.held(call.key) if held is not None else None
        return None if one is None else one.reply()

    missing = ahead(ask_each([asking.question]), recorded).missing
    return missing[0] if missing else None
