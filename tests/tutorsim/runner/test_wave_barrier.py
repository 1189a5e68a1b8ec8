"""Everyone waits: exactly when each episode does, or a call in its place."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from tutorsim.runner.batches import Muster


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 5))

    return run


async def complete(muster: Muster) -> bool:
    """Whether nobody is on the way."""
    waiting = asyncio.ensure_future(muster.complete())
    await asyncio.sleep(0)
    return waiting.done() or not waiting.cancel()


@in_a_loop
async def test_all_who_set_out_have_to_arrive() -> None:
    muster = Muster()
    assert await complete(muster)
    muster.moves(2)
    muster.moves(-1)
    assert not await complete(muster)
    muster.moves(-1)
    assert await complete(muster)


@in_a_loop
async def test_what_was_heard_is_not_heard_again_until_somebody_arrives() -> None:
    muster = Muster()
    muster.heard()
    assert not await complete(muster)
    muster.moves(1)
    muster.moves(-1)
    assert await complete(muster)


@in_a_loop
async def test_who_waits_is_not_on_the_way() -> None:
    muster = Muster()
    muster.moves(1)
    with muster.waiting():
        assert await complete(muster)
    assert not await complete(muster)


@in_a_loop
async def test_a_round_is_complete_when_each_of_its_calls_has_come_back_or_waits() -> None:
    muster = Muster()
    muster.moves(1)
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def waits() -> None:
        with muster.waiting():
            await answer

    of_round = muster.round(3)
    calls = [waits(), asyncio.sleep(0), asyncio.sleep(0)]
    together = asyncio.gather(*(of_round.call(call) for call in calls))
    assert not await complete(muster)
    await muster.complete()
    assert not together.done()
    answer.set_result(None)
    await together
    assert not await complete(muster)  # the episode goes on in the place of its last call
