import asyncio
from itertools import pairwise

from virtual import now, on_virtual_time, process

from metaloop.common import machine
from metaloop.simulation.history import History
from metaloop.simulation.network import API, Port
from metaloop.simulation.processes import Process


async def forever(_: Port) -> None:
    await asyncio.sleep(1e9)


def test_a_process_that_crashed_is_started_again_and_has_another_port():
    async def main() -> list[int]:
        one, numbers = process(forever), list[int]()
        one.start()
        for _ in range(3):
            await asyncio.sleep(20)
            numbers.append(one.port.number)
            one.crash()
        await asyncio.sleep(20)
        one.discard()
        return numbers

    assert on_virtual_time(main()) == [1, 2, 3]


def test_a_crashed_process_reaches_nobody():
    reached: list[bool] = []

    async def linger(port: Port) -> None:
        try:
            await forever(port)
        finally:
            reached.append(port.reaches(API))

    async def main() -> None:
        one = process(linger)
        one.start()
        await asyncio.sleep(1)
        one.crash()
        await asyncio.sleep(0.1)
        one.discard()

    on_virtual_time(main())

    assert reached == [False]


def test_a_process_that_ends_by_itself_is_counted_and_restarted_ever_later():
    starts: list[float] = []

    async def fail(_: Port) -> None:
        starts.append(now())
        await asyncio.sleep(0)
        raise ValueError("broken")

    async def main() -> int:
        history = History()
        one = process(fail, history=history)
        one.start()
        await asyncio.sleep(10)
        one.discard()
        assert any("EXIT: ValueError: broken" in line for line in history.lines)
        return one.exits

    exits = on_virtual_time(main())

    pauses = [round(later - earlier, 1) for earlier, later in pairwise(starts)]
    assert pauses == [0.5, 1.0, 2.0, 4.0]
    assert exits == 5


def test_a_stopped_process_drains_and_stays_away():
    async def main() -> tuple[bool, int]:
        one = process(forever)
        one.start()
        await asyncio.sleep(1)
        await one.stop()
        await asyncio.sleep(60)
        return one.is_running, one.exits

    assert on_virtual_time(main()) == (False, 0)


def test_a_stall_can_begin_between_any_two_awaits():
    steps: list[float] = []

    async def step(_: Port) -> None:
        for _turn in range(10):
            steps.append(now() - 1000)
            await asyncio.sleep(0)

    async def main() -> None:
        one = process(step)
        one.start()
        one.stall_after(6, 5.0)
        await asyncio.sleep(20)
        one.discard()

    on_virtual_time(main())

    assert {0.0, 5.0} == set(steps[:10])


def test_a_process_has_a_machine_of_its_own():
    read: list[float] = []

    async def look(_: Port) -> None:
        read.append(machine.wall_time())
        await asyncio.sleep(1e9)

    async def main() -> Process:
        one = process(look)
        one.machine.set_ahead(3600)
        one.start()
        await asyncio.sleep(1)
        one.discard()
        return one

    on_virtual_time(main())

    assert round(read[0] - 1_767_225_600 - 1000) == 3600
