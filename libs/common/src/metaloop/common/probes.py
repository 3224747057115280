"""Probes: what has to hold for a service to be alive and ready, asked anew each time, and the endpoints that answer for it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from metaloop.common.errors import MetaloopError
from metaloop.common.telemetry import metrics

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Returns if all is well; else raises a MetaloopError or OSError whose text says what isn't, or takes too long."""

CHECK_SECONDS = 2.0
"""How long a check may take: less than the time-outs that people give to probes."""


class Unwell(MetaloopError):
    """What a check raises that has no better exception: its text says what isn't well."""


class Probes:
    """The checks of a service, by name."""

    def __init__(self) -> None:
        self._alive: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def alive(self, name: str, check: Check) -> None:
        """From now on the service is alive only while `check` succeeds."""
        self._alive[name] = check

    def ready(self, name: str, check: Check) -> None:
        """From now on the service is ready only while `check` succeeds."""
        self._ready[name] = check

    def mount(self, app: FastAPI) -> None:
        """Serve `/healthz`, `/readyz` and `/metrics`."""
        app.add_api_route("/healthz", self._healthz)
        app.add_api_route("/readyz", self._readyz)
        app.add_api_route("/metrics", _metrics)

    async def _healthz(self) -> Response:
        return await _answer(self._alive)

    async def _readyz(self) -> Response:
        return await _answer(self._ready)


async def _metrics() -> Response:
    return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)


async def _answer(checks: Mapping[str, Check]) -> Response:
    asked = dict(checks)
    problems = await asyncio.gather(*(_problem(check) for check in asked.values()))
    failing = {name: problem for name, problem in zip(asked, problems, strict=True) if problem}
    return JSONResponse({"checks": list(asked), "failing": failing}, status_code=503 if failing else 200)


async def _problem(check: Check) -> str:
    """What isn't well, or nothing."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await check()
    except TimeoutError:
        return f"no answer within {CHECK_SECONDS:g} s"
    except (MetaloopError, OSError) as problem:
        return str(problem) or type(problem).__name__
    return ""
