"""The reader as an oracle: replays through the real SDK and vcrpy's own playback.

One client serves all open episodes. Its transport hands each request to the vcrpy cassette that
its call header names; vcrpy's patching of whole processes is not used, so nothing else in the
process is touched, and there is no transport underneath that could open a socket.
"""

import asyncio
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
import pytest
from vcr.cassette import Cassette as VcrCassette
from vcr.errors import CannotOverwriteExistingCassetteException
from vcr.matchers import requests_match
from vcr.record_mode import RecordMode
from vcr.request import Request as VcrRequest
from vcr.serialize import deserialize
from vcr.stubs.httpx_stubs import vcr_handle_async_request

from tutorsim.errors import CallFailed, RecordingError
from tutorsim.model import CALL_HEADER, json_value
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import SdkModel
from tutorsim.replay.cassette_file import (
    Playback,
    parse_cassette,
    read_cassette,
    read_cassette_file,
    unreadable_reply,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    check_episode_id,
    check_same,
    missing,
)


@contextmanager
def through_the_sdk():
    """While the block runs, recordings and retests are played by this reader, in this process."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as opened:

        def reader(folder):
            return _AtOnce(folder, opened.enter_context(asyncio.Runner()))

        for module in ("find_and_check_recording", "play_recorded_episodes_and_retests"):
            patch.setattr(f"tutorsim.runner.{module}.Reader", reader)
        patch.setattr(
            "tutorsim.runner.replay_into_run_folder_in_several_processes.default_workers",
            lambda episodes: 1,
        )
        yield


class SdkReader:
    """Replays the episodes of a folder through one SDK client.

    Args:
        folder: The recording.
    """

    def __init__(self, folder):
        self._folder = folder
        self._transport = _PlayingTransport()
        self._model = SdkModel(
            transport=self._transport,
            max_connections=1,
            max_retries=0,
            placeholder="nothing is sent",
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()

    async def aclose(self):
        """Close the client."""
        await self._model.aclose()

    def cassette(self, episode_id):
        check_episode_id(episode_id)
        return read_cassette(self._folder, episode_id)

    def open(self, episode_id):
        check_episode_id(episode_id)
        data = read_cassette_file(self._folder, episode_id)
        playback = SdkPlayback(self._model, parse_cassette(data, episode_id), data)
        self._transport.open[episode_id] = playback
        return playback


class _AtOnce(SdkReader):
    """The reader where nothing waits: each reply runs an event loop until it is there."""

    def __init__(self, folder, runner):
        super().__init__(folder)
        self._runner = runner

    def open(self, episode_id):
        playback = super().open(episode_id)
        answer = playback.reply

        async def reply(episode_id, call):
            return self._runner.run(answer(episode_id, call))

        playback.reply = reply  # type: ignore[method-assign]
        return playback


class SdkPlayback(Playback):
    """Replays one cassette.

    Args:
        model: The client, bound to the reader's transport.
        cassette: The cassette, for what is said about it.
        data: Its bytes, for vcrpy to load.
    """

    def __init__(self, model, cassette, data):
        super().__init__(cassette)
        self._model = model
        self._tape = _KeyedCassette.load(
            path=cassette.name,
            serializer=_ReadJson,
            persister=_Loaded(data),
            record_mode=RecordMode.NONE,
            match_on=(_call_and_body,),
        )
        self._play = vcr_handle_async_request(self._tape, _no_network, httpx2)

    async def reply(self, episode_id, call):
        key = str(call.key)
        try:
            return await self._model.reply(self.cassette.episode_id, call)
        except _NotPlayed as error:
            held = self.cassette.interactions
            if key in held and key in self.unused():
                check_same(self.cassette.name, held[key], call)
            raise missing(self.cassette.name, key, held=held, played=key in held) from error
        except CallFailed as error:
            raise unreadable_reply(self.cassette.name, key, error) from error

    def unused(self):
        counts = self._tape.play_counts
        keys = self.cassette.interactions
        return tuple(key for index, key in enumerate(keys) if not counts[index])

    async def play(self, request, call):
        """Let vcrpy answer a request of the client.

        Args:
            request: The request.
            call: Its call header.
        """
        asked = _Asked(request.method, request.url, {CALL_HEADER: call}, request.stream)
        try:
            response: httpx2.Response = await self._play(None, asked)
        except CannotOverwriteExistingCassetteException as error:
            raise _NotPlayed(self.cassette.name) from error
        return response


@dataclass
class _Asked:
    """What vcrpy needs of a request, with the one header that is matched on.

    Copying the client's other headers into vcrpy's own mapping would cost more than the match.
    """

    method: str
    url: httpx2.URL
    headers: dict[str, str]
    stream: Any


def _call_and_body(asked, recorded):
    """vcrpy matcher: the same call header, and only then the same JSON value of the body."""
    if asked.headers.get(CALL_HEADER) != recorded.headers.get(CALL_HEADER):
        return False
    return asked.body == recorded.body or bool(json_value(asked.body) == json_value(recorded.body))


class _KeyedCassette(VcrCassette):  # type: ignore[misc]
    """vcrpy's cassette, which tries only the interactions with the request's call header.

    vcrpy holds a request against every interaction in turn, and each call asks twice: whether
    there is a response, and for it. Were this hook ever not called, playback would be slower and
    its answers the same.
    """

    _last: tuple[VcrRequest | None, int | None] = None, None

    def _responses(self, request):
        last, place = self._last
        if last is not request:
            place = self._place(request)
            self._last = request, place
        if place is not None:
            yield place, self.data[place][1]

    def _place(self, request):
        if not hasattr(self, "_places"):
            self._places = {r.headers[CALL_HEADER]: i for i, (r, _) in enumerate(self.data)}
        place: int | None = self._places.get(request.headers.get(CALL_HEADER))
        if place is None or not requests_match(request, self.data[place][0], self._match_on):
            return None
        return place


class _NotPlayed(RecordingError):
    """vcrpy holds no unused interaction that matches."""


class _ReadJson:
    """vcrpy serializer that reads."""

    deserialize = staticmethod(orjson.loads)


class _Loaded:
    """vcrpy persister over bytes that were read already."""

    def __init__(self, data):
        self._data = data

    def load_cassette(self, _path, serializer):
        return deserialize(self._data.decode(), serializer)


class _PlayingTransport(httpx2.AsyncBaseTransport):
    """Hands each request to the episode that its call header names."""

    def __init__(self):
        self.open: dict[str, SdkPlayback] = {}

    async def handle_async_request(self, request):
        call = request.headers[CALL_HEADER]
        episode_id, _, _ = call.partition("/")
        return await self.open[episode_id].play(request, call)


async def _no_network(_transport, request):
    raise AssertionError(f"a replay tried to send {request!r}")
