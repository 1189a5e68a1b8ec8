"""Recording beside the client alone, against a server that answers at once or after a while."""

import asyncio
import itertools
import subprocess
import sys
import time

import anthropic
import orjson
import pytest

from tests.benchmarks.test_replay_speed import calls_of
from tutorsim.model import Call
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import HttpTransport, SdkModel
from tutorsim.replay import read_cassette
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore

IN_FLIGHT = 64
SIDE_BY_SIDE = 16
"""Episodes at a time: the four calls of a round each."""
SERVER = """
import asyncio, sys

AFTER = float(sys.argv[1])
BODY = sys.stdin.buffer.readline().rstrip(b"\\n")
ANSWER = (
    b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%s"
    % (len(BODY), BODY)
)

class Answers(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.kept = transport, b""

    def data_received(self, data):
        self.kept += data
        while (end := self.kept.find(b"\\r\\n\\r\\n")) >= 0:
            head = self.kept[:end].lower()
            length = int(head.split(b"content-length: ")[1].split(b"\\r\\n")[0])
            if len(self.kept) < end + 4 + length:
                return
            self.kept = self.kept[end + 4 + length:]
            asyncio.get_running_loop().call_later(AFTER, self.transport.write, ANSWER)

async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answers, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
Rounds = list[list[Call]]


@pytest.fixture
def server(request, monkeypatch):
    """A server in a process of its own, which answers after some seconds; the client's environment
    points at it."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model",
        "content": [{"type": "text", "text": "word " * 60}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 600, "output_tokens": 60},
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(request.param)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(orjson.dumps(message) + b"\n")
        server.stdin.flush()
        monkeypatch.setenv(
            "ANTHROPIC_BASE_URL", f"http://127.0.0.1:{int(server.stdout.readline())}"
        )
        monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
        yield
        server.kill()


@pytest.fixture(scope="module")
def asked(make_recording):
    """Rounds of calls by episode, as 24 episodes of the published grid made them."""
    made = make_recording(tasks=2)
    names = sorted(path.name.removesuffix(".json") for path in made.folder.glob("*.*.*.*.json"))
    return {name: rounds(made.folder, name) for name in names[::5]}


def rounds(folder, episode_id):
    calls = calls_of(read_cassette(folder, episode_id))
    by_stage = itertools.groupby(calls, lambda call: (call.key.turn, call.key.stage))
    return [list(group) for _, group in by_stage]


async def side_by_side_episodes(asked, play):
    waiting = iter(asked.items())

    async def worker():
        for episode_id, calls in waiting:
            await play(episode_id, calls)

    await asyncio.gather(*(worker() for _ in range(SIDE_BY_SIDE)))


async def alone(asked):
    """The SDK's own client, called as people call it; nothing is kept."""
    free = asyncio.Semaphore(IN_FLIGHT)
    async with anthropic.AsyncAnthropic() as client:

        async def reply(request):
            async with free:
                message = await client.messages.create(
                    model=request.model,
                    system=request.system,
                    messages=[{"role": "user", "content": request.user}],
                    max_tokens=request.max_tokens,
                )
            return message.content[0].text

        async def play(episode_id, rounds):
            for calls in rounds:
                await asyncio.gather(*(reply(call.request) for call in calls))

        await side_by_side_episodes(asked, play)


async def recorded(asked, folder):
    """The same calls on tape; a round is durable before the next one, cassettes are written."""
    store = CassetteStore(folder, study_digest="0" * 64, packages={})
    async with SdkModel(
        transport=store.transport(HttpTransport(IN_FLIGHT)), max_connections=IN_FLIGHT
    ) as model:

        async def play(episode_id, rounds):
            with store.open(episode_id, model) as tape:
                for calls in rounds:
                    await asyncio.gather(*(tape.reply(episode_id, call) for call in calls))
                    await tape.sync()
                await tape.finish([call.key for calls in rounds for call in calls])

        await side_by_side_episodes(asked, play)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("server", "clock", "target"),
    [
        (0, time.perf_counter, "at most 1.3 × its time"),
        (0.05, time.perf_counter, "at most 1.05 × its time"),
        (0.05, time.process_time, "at most 1.05 × its processor time"),
    ],
    ids=["at once", "after 50 ms", "after 50 ms, processor"],
    indirect=["server"],
)
@pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
@pytest.mark.usefixtures("server")
def test_recording(side_by_side, asked, tmp_path, request, clock, target):
    folders = (tmp_path / str(number) for number in itertools.count())
    measured = side_by_side.time(
        lambda: asyncio.run(alone(asked)),
        lambda: asyncio.run(recorded(asked, next(folders))),
        rounds=8,
        clock=clock,
    )
    side_by_side.note(
        what=f"recording, {IN_FLIGHT} calls in flight, answered {request.node.callspec.id}",
        reference="AsyncAnthropic().messages.create alone, same calls and server",
        target=target,
        ratio=measured.candidate / measured.reference,
        unit="× its time",
    )
