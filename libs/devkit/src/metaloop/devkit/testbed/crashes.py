"""A service in this process, whose long-running tasks a test makes crash where they wait."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from metaloop.common.service import Build, Service
from metaloop.devkit.testbed.eventually import eventually, expect

_READY = 200


class RunningService:
    """A service that runs, and its tasks."""

    def __init__(self, service: Service, living: asyncio.Task[None], others: set[asyncio.Task[Any]]) -> None:
        """Watch over the tasks that are not among `others`."""
        self._service = service
        self._living = living
        self._others = others

    @staticmethod
    @asynccontextmanager
    async def start(build: Build) -> AsyncIterator["RunningService"]:
        """A service, ready at first, for as long as the block lasts or until it fails. It serves no port."""
        others = asyncio.all_tasks()
        service = Service("crashing")
        living = asyncio.create_task(_live(service, build))
        running = RunningService(service, living, others)
        try:
            await eventually(running.check_ready)
            yield running
        finally:
            service.stopping.set()
            with suppress(BaseExceptionGroup):
                await living

    async def is_ready(self) -> bool:
        """Whether `/readyz` says so now."""
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._service.app), base_url="http://service") as client:
            return (await client.get("/readyz")).status_code == _READY

    async def check_ready(self) -> None:
        """Return if it is ready. Raises AssertionError otherwise, or the failure of a service that is over."""
        if self._living.done():
            await self._living
        expect(await self.is_ready(), "it is not ready")

    async def failed(self, *, within_seconds: float = 60.0) -> bool:
        """Whether the service is over in time, with a failure."""
        done, _ = await asyncio.wait({self._living}, timeout=within_seconds)
        return bool(done) and self._living.exception() is not None

    def tasks(self) -> dict[str, asyncio.Task[Any]]:
        """The named tasks by the first word of their names, without those that only wait for tasks of their own."""
        mine = asyncio.all_tasks() - self._others - {self._living}
        return {_word(task): task for task in mine if not task.get_name().startswith("Task-") and not _awaits_tasks(task)}

    async def crash(self, word: str, error: Exception) -> asyncio.Task[Any]:
        """Raise `error` in the task whose name begins with `word`, at the place where it waits, and return the task."""
        return await eventually(lambda: self._crashed(word, error))

    async def _crashed(self, word: str, error: Exception) -> asyncio.Task[Any]:
        task = self.tasks().get(word)
        if task is None or not raise_in(task, error):
            raise AssertionError(f"no task {word} waits for anything")
        return task


async def _live(service: Service, build: Build) -> None:
    async with build(service):
        await service.live()


def _word(task: asyncio.Task[Any]) -> str:
    return task.get_name().partition(" ")[0]


def raise_in(task: asyncio.Task[Any], error: Exception) -> bool:
    """Raise `error` in a task at the place where it waits. False if it waits for nothing that can be made to fail."""
    waiter = getattr(task, "_fut_waiter", None)
    if not isinstance(waiter, asyncio.Future) or isinstance(waiter, asyncio.Task) or waiter.done():
        return False
    waiter.set_exception(error)
    return True


def _awaits_tasks(task: asyncio.Task[Any]) -> bool:
    """Whether a task is at the end of a task group, where it waits for what runs in it."""
    coro = task.get_coro()
    while isinstance(coro, Coroutine) and (inner := getattr(coro, "cr_await", None)) is not None:
        if getattr(inner, "cr_code", None) is asyncio.TaskGroup.__aexit__.__code__:
            return True
        coro = inner
    return False
