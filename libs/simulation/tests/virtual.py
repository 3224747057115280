"""Runs a test's body on virtual time, with worlds and processes to play with."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar

from metaloop.common.service import Service
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.history import History
from metaloop.simulation.loop import VirtualLoop
from metaloop.simulation.network import Faults, Network, Port
from metaloop.simulation.processes import Process

Result = TypeVar("Result")


def on_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


def network(faults: Faults | None = None) -> Network:
    return Network(random=Random(1), faults=faults or FaultPlan())


def process(run: Any, *, history: History | None = None) -> Process:
    """A process whose service runs one task."""

    @asynccontextmanager
    async def assemble(service: Service, port: Port) -> AsyncIterator[None]:
        service.run("task", lambda: run(port))
        yield

    return Process("one", assemble, seed="1", history=history or History())
