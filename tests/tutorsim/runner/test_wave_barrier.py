"""Everyone waits: exactly when each episode does, or a call in its place."""

import asyncio
from functools import wraps

from tutorsim.runner.submit_and_poll_batches_in_waves import WaveBarrier


def in_a_loop(test):
    @wraps(test)
    def run():
        asyncio.run(asyncio.wait_for(test(), 5))

    return run


async def complete(barrier):
    """Whether nobody is on the way."""
    waiting = asyncio.ensure_future(barrier.complete())
    await asyncio.sleep(0)
    return waiting.done() or not waiting.cancel()


@in_a_loop
async def test_all_who_set_out_have_to_arrive():
    barrier = WaveBarrier()
    assert await complete(barrier)
    barrier.moves(2)
    barrier.moves(-1)
    assert not await complete(barrier)
    barrier.moves(-1)
    assert await complete(barrier)


@in_a_loop
async def test_after_a_reset_the_barrier_waits_for_the_next_arrival():
    barrier = WaveBarrier()
    barrier.reset()
    assert not await complete(barrier)
    barrier.moves(1)
    barrier.moves(-1)
    assert await complete(barrier)


@in_a_loop
async def test_who_waits_is_not_on_the_way():
    barrier = WaveBarrier()
    barrier.moves(1)
    with barrier.waiting():
        assert await complete(barrier)
    assert not await complete(barrier)


@in_a_loop
async def test_a_round_is_complete_when_each_of_its_calls_has_come_back_or_waits():
    barrier = WaveBarrier()
    barrier.moves(1)
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def waits():
        with barrier.waiting():
            await answer

    of_round = barrier.round(3)
    calls = [waits(), asyncio.sleep(0), asyncio.sleep(0)]
    together = asyncio.gather(*(of_round.call(call) for call in calls))
    assert not await complete(barrier)
    await barrier.complete()
    assert not together.done()
    answer.set_result(None)
    await together
    assert not await complete(barrier)  # the episode goes on in the place of its last call
