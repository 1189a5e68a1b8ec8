"""An episode's further askings as a piece of a retest."""

from collections.abc import Mapping, Sequence
from typing import Any

from tutorsim.mechanisms.flow import Flow
from tutorsim.mechanisms.retest_prompts import AskedTogether
from tutorsim.records import EpisodeLine, RetestRecord
from tutorsim.replay import Cassette
from tutorsim.replay.retest_folder import RetestEntry, retest_entry
from tutorsim.retest_flow import Asking, Design, askings, attempts_together, retest_flow
from tutorsim.runner.job import Piece
from tutorsim.runner.open_recording import Recording

__all__ = ["asked_again", "askings_in", "retest_piece"]


def asked_again(recording: Recording, record: EpisodeLine) -> list[AskedTogether[Any]]:
    """What of an episode can be asked again, in any stage.

    A failed episode has no outcome to compare with, so nothing of it is asked again.
    """
    if record.status != "complete":
        return []
    return list(recording.loaded.asked_again(recording.spec(record.episode_id), record))


def askings_in(
    recording: Recording, cassette: Cassette, design: Design, sets: Sequence[AskedTogether[Any]]
) -> list[Asking]:
    """The askings of an episode, with their prompts as its cassette has them."""
    requests: Mapping[str, str] = {key: one.request for key, one in cassette.interactions.items()}
    more = recording.loaded.if_cut_off if design.ask_cut_off_again else None
    return list(askings(sets, requests, design.repeats, if_cut_off=more))


def retest_piece(
    recording: Recording, design: Design, episode_id: str, sets: Sequence[AskedTogether[Any]]
) -> Piece[RetestRecord, RetestEntry]:
    """The further askings of an episode.

    Args:
        recording: What is asked again.
        design: How often.
        episode_id: The episode.
        sets: What of it is asked again.
    """

    def flow() -> Flow[RetestRecord]:
        cassette = recording.reader.cassette(episode_id)
        asked = askings_in(recording, cassette, design, sets)
        questions = [one.question for one in asked]
        return retest_flow(episode_id, sets, design.repeats, questions)

    return Piece(episode_id, flow, retest_entry, attempts_together)
