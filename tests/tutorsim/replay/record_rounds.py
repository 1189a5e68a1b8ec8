"""Records six episodes of four rounds each; a program of its own, so that it can be killed."""

import asyncio
import sys
from pathlib import Path

from tutorsim.model import Call, CallKey, Request
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import HttpTransport, SdkModel
from tutorsim.replay import FolderLock
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore

EPISODES = [f"sciq.q{n}.help_avoidant.simple" for n in range(6)]
AGENTS = ("a", "b", "c", "d")
ROUNDS = 4


def rounds(episode):
    return [
        [
            Call(
                CallKey(turn, "propose", agent, 1),
                Request("model-1", "You tutor.", f"{episode} {turn} {agent}", 64),
            )
            for agent in AGENTS
        ]
        for turn in range(1, ROUNDS + 1)
    ]


async def record(folder):
    store = CassetteStore(folder, study_digest="0" * 64, packages={"tutorsim": "1"})
    async with SdkModel(transport=store.transport(HttpTransport()), max_connections=8) as live:

        async def one(episode):
            order = []
            with store.open(episode, live) as tape:
                for calls in rounds(episode):
                    await asyncio.gather(*(tape.reply(episode, call) for call in calls))
                    await tape.sync()
                    order += [call.key for call in calls]
                await tape.finish(order)

        await asyncio.gather(*(one(episode) for episode in EPISODES))


if __name__ == "__main__":
    with FolderLock(Path(sys.argv[1])):
        asyncio.run(record(Path(sys.argv[1])))
