"""Starts the webhook's process and talks to it."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from metaloop.common.json import dumps, loads
from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Daemon, Program, group, start_on_free_port

_PROGRAM = Path(__file__).with_name("hook.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the hook."""

    at: float
    """On the clock of `time.monotonic`."""
    parent: str
    """The name of the parent, or of the input that is mapped."""
    generation: int
    observed: int
    """How many children the request showed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookProcess:
    """The running webhook."""

    daemon: Daemon
    url: str
    session: aiohttp.ClientSession

    @staticmethod
    @asynccontextmanager
    async def start(folder: Path) -> AsyncIterator["HookProcess"]:
        """The webhook, serving for as long as the block lasts."""

        def program(port: int) -> Program:
            ready = probes.http_ok(f"http://{LOOPBACK}:{port}/calls")
            return Program(name="hook", argv=(sys.executable, str(_PROGRAM), str(port)), ready=ready, folder=folder)

        async with group() as daemons, aiohttp.ClientSession() as session:
            daemon, port = await start_on_free_port(daemons, program)
            yield HookProcess(daemon=daemon, url=f"http://{LOOPBACK}:{port}", session=session)

    @property
    def sync_url(self) -> str:
        """The URL for controllers."""
        return f"{self.url}/sync"

    @property
    def map_url(self) -> str:
        """The URL for map controllers."""
        return f"{self.url}/map"

    @property
    def generate_url(self) -> str:
        """The URL for component controllers."""
        return f"{self.url}/generate"

    async def calls(self) -> list[Call]:
        """All calls since the last reset."""
        async with self.session.get(f"{self.url}/calls") as response:
            rows = loads(await response.read())
        return [Call(at=at, parent=parent, generation=generation, observed=observed) for at, parent, generation, observed in rows]

    async def delay(self, seconds: float) -> None:
        """Let each answer take so long from now on."""
        await self._control({"delay": seconds})

    async def forget_calls(self) -> None:
        """Forget the calls so far."""
        await self._control({"reset": True})

    async def _control(self, command: dict[str, object]) -> None:
        async with self.session.post(f"{self.url}/control", data=dumps(command)) as response:
            response.raise_for_status()
