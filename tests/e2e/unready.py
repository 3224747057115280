"""Services that don't become ready, at least for now: what they say of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from metaloop.devkit.ports import LOOPBACK, free_range
from metaloop.devkit.stack import Stack, StackOptions
from metaloop.devkit.testbed.eventually import expect

_MOST_SERVICES = 3


@dataclass(frozen=True, slots=True)
class Unready:
    """A watcher, a gateway and perhaps a reconciler that were started."""

    base: int
    folder: Path
    is_ready: asyncio.Event
    """Set once all of them are ready."""

    @property
    def watcher_url(self) -> str:
        return f"http://{LOOPBACK}:{self.base}"

    @property
    def reconciler_url(self) -> str:
        return f"http://{LOOPBACK}:{self.base + 2}"

    async def reason(self, url: str, check: str, *, containing: str = "") -> str:
        """Why a check of a service fails; raises AssertionError while it doesn't for such a reason."""
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                answer = (await client.get(f"{url}/readyz", timeout=5)).json()
            except httpx.TransportError as error:
                raise AssertionError(f"no answer: {error!r}") from error
        reason = answer["failing"].get(check, "")
        expect(reason and containing in reason, f"readiness says {answer}")
        return reason

    def lines(self, service: str, event: str) -> int:
        """How often a service logged an event."""
        return sum(event in line for log in self.folder.rglob(f"{service}*.log") for line in log.read_text().splitlines())


@asynccontextmanager
async def unready(options: StackOptions, folder: Path) -> AsyncIterator[Unready]:
    """The services of `options`, which are not awaited, for as long as the block lasts."""
    starting = Unready(base=free_range(_MOST_SERVICES), folder=folder, is_ready=asyncio.Event())

    async def run() -> None:
        async with Stack.start(replace(options, port_base=starting.base), folder):
            starting.is_ready.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(run())
    try:
        yield starting
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
