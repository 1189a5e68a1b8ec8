"""The reader through the real SDK and vcrpy's playback; its answers are in test_reader."""

import asyncio
from pathlib import Path

import pytest

from tests.reference import replay_through_sdk
from tests.tutorsim.replay.made import EPISODE, call, interaction, message, write
from tutorsim.runner.verify_by_replay_against_digests import verify

CASSETTES = Path(__file__).parents[3] / "cassettes"


def test_episodes_of_one_sdk_reader_do_not_mix(tmp_path):
    names = [f"sciq.q{n}.p.simple" for n in range(10)]
    for name in names:
        write(tmp_path, [interaction(call("same"), message(name), name)], name)

    async def run():
        async with replay_through_sdk.SdkReader(tmp_path) as reader:
            opened = [reader.open(name) for name in names]
            replies = await asyncio.gather(
                *(one.reply(name, call("same")) for one, name in zip(opened, names, strict=True))
            )
            return [reply.text for reply in replies]

    assert asyncio.run(run()) == names


def test_the_sdk_reader_holds_a_call_against_one_entry_only(tmp_path, monkeypatch):
    calls = [call("x", agent=f"a{n}") for n in range(30)]
    write(tmp_path, [interaction(one, message("y")) for one in calls])
    compared: list[str] = []
    matches = replay_through_sdk.requests_match

    def counted(asked, recorded, matchers):
        compared.append(recorded.headers["x-tutorsim-call"])
        return matches(asked, recorded, matchers)

    monkeypatch.setattr(replay_through_sdk, "requests_match", counted)

    async def run():
        async with replay_through_sdk.SdkReader(tmp_path) as reader:
            playback = reader.open(EPISODE)
            for one in calls:
                await playback.reply(EPISODE, one)

    asyncio.run(run())

    assert len(compared) == len(calls)


@pytest.mark.costly
@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in CASSETTES.glob("*/manifest.json"))
)
def test_the_sdk_and_vcrpy_give_the_bytes_of_every_bundled_recording(name):
    with replay_through_sdk.through_the_sdk():
        done = verify(CASSETTES / name)
    assert done.findings == ()
    assert done.same == done.episodes > 0
