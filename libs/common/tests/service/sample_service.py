"""A service that the tests in this folder start; its argument selects a behaviour."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from metaloop.common.errors import Unavailable
from metaloop.common.service import Service, run_service
from metaloop.common.settings import ServiceSettings, load_settings


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


async def fail_when_told() -> None:
    await asyncio.to_thread(sys.stdin.readline)
    raise RuntimeError("told to fail")


async def return_when_told() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def be_cancelled_when_told() -> None:
    """A stray cancellation: nobody ends the service."""
    await asyncio.to_thread(sys.stdin.readline)
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def endless() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        say("cancelled")


async def end_slowly() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        say("cancelled")
        await asyncio.to_thread(sys.stdin.readline)


async def stuck() -> None:
    say("stuck")
    time.sleep(60)  # noqa: ASYNC251 - that is what it is here for


async def finish(service: Service, work: asyncio.Event) -> None:
    say(f"draining, stopping={service.stopping.is_set()}")
    await asyncio.to_thread(sys.stdin.readline)
    work.set()
    say("drained")


@asynccontextmanager
async def build(service: Service, behaviour: str) -> AsyncIterator[None]:
    if behaviour == "cannot-connect":
        raise Unavailable("the bus is away")
    if behaviour == "connects-for-ever":
        say("connecting")
        await asyncio.Event().wait()
    service.app.add_api_route("/own", lambda: "own")
    service.run("endless", endless)
    match behaviour:
        case "fails":
            service.run("failing", fail_when_told)
        case "fails-and-ends-slowly":
            service.run("failing", fail_when_told)
            service.run("slow", end_slowly)
        case "returns":
            service.run("returning", return_when_told)
        case "is-cancelled":
            service.run("cancelled", be_cancelled_when_told)
        case "drains":
            service.on_drain("work", partial(finish, service, asyncio.Event()))
        case "drains-for-ever":
            service.on_drain("work", endless)
        case "gets-stuck":
            service.on_drain("work", stuck)
    yield
    say("closed")


if __name__ == "__main__":
    run_service("sample", load_settings(ServiceSettings), partial(build, behaviour=sys.argv[1]))
