"""What a retest of a recording takes: its votes, the calls that are left, and their cost."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tutorsim.drivers import drive
from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import Effect, Round, Sent
from tutorsim.model import Call, Reply
from tutorsim.plan import PriceTable
from tutorsim.records import EpisodeRecord, Failure
from tutorsim.replay import read_cassette
from tutorsim.replay.recording import Deck, Tape
from tutorsim.replay.retest import RetestManifest, retest_folder
from tutorsim.retest import Design, Prompt, Vote, ask_again, askings, votes_of
from tutorsim.runner.opening import Recording, check_drift, open_recording
from tutorsim.runner.replaying import replay_each
from tutorsim.runner.retest_playing import drawn_of, prompts_in
from tutorsim.runner.retest_session import earlier_retest

__all__ = ["RetestPlan", "Survey", "failed_before", "plan_retest", "survey"]


@dataclass(frozen=True)
class Survey:
    """What a retest of a recording asks."""

    recording: Recording
    design: Design
    votes: Mapping[str, tuple[Vote, ...]]
    """Episode → its votes, for episodes that have any, in grid order."""

    @property
    def prompts(self) -> int:
        """Prompts that are asked again."""
        return sum(len(vote.ballots) for votes in self.votes.values() for vote in votes)

    @property
    def turns(self) -> int:
        """Turns that they are of."""
        return sum(len({vote.turn for vote in votes}) for votes in self.votes.values())


def survey(folder: Path, design: Design) -> Survey:
    """Replay a recording and find the votes that a retest asks again.

    Raises:
        UsageError: If there are none.
        ReplayError, RecordingError: If the recording does not replay.
    """
    recording = open_recording(folder)
    drawn = drawn_of(recording, design)
    found: dict[str, tuple[Vote, ...]] = {}
    for one in replay_each(recording, workers=None):
        if one.line is None:
            assert one.error is not None
            raise one.error
        if one.episode_id in drawn:
            record = EpisodeRecord.model_validate_json(one.line)
            found[one.episode_id] = votes_of(record, drawn[one.episode_id], design.stages)
    check_drift(recording)
    if not found:
        raise UsageError(
            f"{folder} holds no vote that could be asked again.",
            why="No complete episode of it has a turn with a vote.",
            hint="Retest a recording of a panel.",
        )
    return Survey(recording, design, found)


@dataclass(frozen=True)
class RetestPlan:
    """What is left to pay for."""

    study: str
    episodes: int
    turns: int
    prompts: int
    repeats: int
    recorded: int
    """Ballots that are on tape, or failed for good and are not asked for again."""
    calls: int
    """Exactly, if every reply can be read."""
    most_calls: int
    """If every prompt had to be asked twice."""
    tokens: dict[str, tuple[int, int]]
    """Model → input and output tokens of `calls`, as the recorded askings took."""
    prices_as_of: str
    cost: float | None
    """US dollars at list prices; `None` when a price is unknown."""
    unknown_prices: tuple[str, ...]


def plan_retest(found: Survey, prices: PriceTable, *, retry_errors: bool) -> RetestPlan:
    """Count the calls that are left, exactly, and estimate tokens and cost by the recorded ones.

    Raises:
        UsageError: If the folder holds what the design does not ask.
        RecordingError: If what it holds is damaged or of another study.
    """
    recording = found.recording
    skip = failed_before(earlier_retest(recording, found.design), retry_errors=retry_errors)
    asked: Counter[str] = Counter()
    given: Counter[str] = Counter()
    calls = second = 0
    for episode_id, votes in found.votes.items():
        cassette = read_cassette(recording.folder, episode_id)
        prompts = prompts_in(recording, cassette, votes)
        held = _held(recording, episode_id)
        for prompt, repeat in askings(prompts, found.design.repeats):
            call = _missing(prompt, repeat, held)
            if call is None or (episode_id, str(call.key)) in skip:
                continue
            calls += 1
            second += call.key.attempt == 1
            usual = cassette.interactions[str(prompt.call.key)].reply()
            asked[call.request.model] += usual.input_tokens
            given[call.request.model] += usual.output_tokens
    tokens = {model: (asked[model], given[model]) for model in sorted(asked)}
    costs = {model: prices.cost(model, *counts) for model, counts in tokens.items()}
    known = [cost for cost in costs.values() if cost is not None]
    return RetestPlan(
        study=recording.manifest.study_name,
        episodes=len(found.votes),
        turns=found.turns,
        prompts=found.prompts,
        repeats=found.design.repeats,
        recorded=found.prompts * found.design.repeats - calls,
        calls=calls,
        most_calls=calls + second,
        tokens=tokens,
        prices_as_of=prices.as_of,
        cost=sum(known) if len(known) == len(costs) else None,
        unknown_prices=tuple(model for model, cost in costs.items() if cost is None),
    )


def failed_before(
    earlier: RetestManifest | None, *, retry_errors: bool
) -> dict[tuple[str, str], Failure]:
    """Calls to leave failed, by episode and key."""
    if earlier is None or retry_errors:
        return {}
    return {(e.episode_id, f.key): f for e in earlier.episodes for f in e.failures}


class _Nobody:
    """A model for tapes that are only looked at."""

    async def reply(self, episode_id: str, call: Call) -> Reply:
        raise AssertionError(f"a plan asked for {call.key}")


def _held(recording: Recording, episode_id: str) -> Tape | None:
    """What is on tape of an episode's retest; `None` where nothing was begun."""
    folder = retest_folder(recording.folder)
    if not folder.is_dir():
        return None
    deck = Deck(folder, study_digest=recording.manifest.study_digest, packages={})
    with deck.open(episode_id, _Nobody()) as tape:
        return tape


class _Missing(Exception):
    """The first call of an asking that a tape does not hold."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


def _missing(prompt: Prompt, repeat: int, held: Tape | None) -> Call | None:
    def world(effect: Effect) -> Sent:
        assert isinstance(effect, Round)
        [call] = effect.calls
        one = held.held(call.key) if held is not None else None
        if one is None:
            raise _Missing(call)
        return (one.reply(),)

    try:
        drive(ask_again(prompt, repeat), world)
    except _Missing as missing:
        return missing.call
    return None
