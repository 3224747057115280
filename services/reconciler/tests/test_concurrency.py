import asyncio

from metaloop.reconciler.concurrency import ConcurrencyLimiter, Slot


def limiter(*, active: int, total: int = 2, told: list[str] | None = None) -> ConcurrencyLimiter:
    """A limiter that appends to `told` when there is room."""
    notes: list[str] = [] if told is None else told
    return ConcurrencyLimiter(active=active, total=total, on_room=lambda: notes.append("room"))


async def test_a_job_that_waits_lends_its_slot():
    limits = limiter(active=1)
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
        tasks.create_task(waiting_job(limits.slot(), gate))
        tasks.create_task(job(limits.slot(), gate))

    assert order == ["first waits", "second works", "second ends", "first goes on"]


async def test_room_counts_jobs_that_work_and_jobs_in_all():
    limits = limiter(active=2, total=3)
    assert [limits.room(jobs) for jobs in (0, 1, 2)] == [2, 1, 0]

    async with limits.slot() as slot, slot.waiting():
        assert [limits.room(jobs) for jobs in (1, 2, 3)] == [2, 1, 0]


async def test_lending_a_slot_tells_of_room():
    told: list[str] = []
    limits = limiter(active=1, told=told)

    async with limits.slot() as slot, slot.waiting():
        assert told == ["room"]


async def test_a_job_cancelled_while_it_waits_leaves_its_slot_free():
    limits = limiter(active=1)

    async def job() -> None:
        async with limits.slot() as slot, slot.waiting():
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(job())
        await asyncio.sleep(0)
        task.cancel()

    async with asyncio.timeout(30), limits.slot():
        assert limits.waiting == 0
