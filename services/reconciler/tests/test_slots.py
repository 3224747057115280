import asyncio

from metaloop.reconciler.slots import Slot, Slots


async def test_a_job_that_waits_lends_its_place():
    slots = Slots(active=1, total=2)
    order: list[str] = []

    async def waiting_job(slot: Slot, may_go_on: asyncio.Event) -> None:
        async with slot:
            async with slot.waiting():
                order.append("first waits")
                await may_go_on.wait()
            order.append("first goes on")

    async def job(slot: Slot, may_go_on: asyncio.Event) -> None:
        async with slot:
            order.append("second works")
            may_go_on.set()
            await asyncio.sleep(0)
            order.append("second ends")

    gate = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waiting_job(slots.new(), gate))
        tasks.create_task(job(slots.new(), gate))

    assert order == ["first waits", "second works", "second ends", "first goes on"]


async def test_room_counts_jobs_that_work_and_jobs_in_all():
    slots = Slots(active=2, total=3)
    assert [slots.room(jobs) for jobs in (0, 1, 2)] == [2, 1, 0]

    async with slots.new() as slot, slot.waiting():
        assert [slots.room(jobs) for jobs in (1, 2, 3)] == [2, 1, 0]


async def test_lending_a_place_tells_of_room():
    slots = Slots(active=1, total=2)
    told: list[None] = []
    slots.on_room = lambda: told.append(None)

    async with slots.new() as slot, slot.waiting():
        assert told


async def test_a_job_cancelled_while_it_waits_leaves_its_place_free():
    slots = Slots(active=1, total=2)

    async def job() -> None:
        async with slots.new() as slot, slot.waiting():
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(job())
        await asyncio.sleep(0)
        task.cancel()

    async with asyncio.timeout(1.0), slots.new():
        assert slots.waiting == 0
