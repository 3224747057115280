import asyncio

import pytest
from virtual import on_virtual_time

from metaloop.simulation.loop import START_SECONDS, NothingLeft, VirtualLoop, owner


def test_a_day_passes_at_once():
    async def sleep() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert on_virtual_time(sleep()) == START_SECONDS + 86_400


def test_tasks_wake_in_the_order_of_their_time():
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            for seconds in (3.0, 1.0, 2.0):
                tasks.create_task(sleep(seconds))

    on_virtual_time(main())

    assert woken == [1.0, 2.0, 3.0]


def test_a_time_out_expires_when_it_is_due():
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(6)
        return asyncio.get_running_loop().time()

    assert on_virtual_time(main()) == START_SECONDS + 5


def test_waiting_for_what_never_happens_is_noticed():
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NothingLeft):
        on_virtual_time(main())


def test_a_stalled_process_runs_nothing_until_it_goes_on():
    async def beat(beats: list[float]) -> None:
        while True:
            beats.append(asyncio.get_running_loop().time() - START_SECONDS)
            await asyncio.sleep(1)

    async def main() -> list[float]:
        loop, beats = asyncio.get_running_loop(), list[float]()
        assert isinstance(loop, VirtualLoop)
        token = owner.set("process")
        beating = loop.create_task(beat(beats))
        owner.reset(token)
        await asyncio.sleep(1.5)
        loop.stall("process")
        await asyncio.sleep(3)
        loop.resume("process")
        await asyncio.sleep(1)
        beating.cancel()
        return beats

    assert on_virtual_time(main()) == [0.0, 1.0, 4.5]


def test_tasks_of_a_group_are_cancelled_in_the_order_in_which_they_began():
    cancelled: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            cancelled.append(number)

    async def main() -> None:
        async with asyncio.timeout(1), asyncio.TaskGroup() as tasks:
            for number in range(50):
                tasks.create_task(wait(number))

    with pytest.raises(TimeoutError):
        on_virtual_time(main())

    assert cancelled == [*range(50)]


def test_timers_of_one_moment_fire_in_the_order_in_which_they_were_made():
    async def main() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(5):
            loop.call_at(loop.time() + 1, fired.append, number)
        await asyncio.sleep(2)
        return fired

    assert on_virtual_time(main()) == [0, 1, 2, 3, 4]
