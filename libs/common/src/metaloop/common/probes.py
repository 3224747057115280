"""Liveness and readiness probes: named checks that run at each request, and the endpoints that report them.

Liveness is about this process alone: its event loop answers, and its tasks run. Whatever it depends on is a matter of
readiness. To restart all watchers because NATS is away would not bring NATS back; it would have them all list the
whole cluster again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from metaloop.common.errors import MetaloopError
from metaloop.common.telemetry import metrics

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Returns if the check succeeds. Raises a MetaloopError or OSError whose text says what failed. A check that takes too
long fails, too."""

CHECK_SECONDS = 2.0
"""The timeout of a check: less than the usual timeout of a probe."""


class CheckFailed(MetaloopError):
    """Raised by a check that has no more specific exception; its text says what failed."""


class Probes:
    """The checks of one service, by name. Liveness has those of the service alone; its parts add to readiness."""

    def __init__(self, *, alive: Mapping[str, Check]) -> None:
        self._alive = alive
        self._ready: dict[str, Check] = {}

    def ready(self, name: str, check: Check) -> None:
        """Add a check to `/readyz`: the service is ready only while it succeeds."""
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
    current = dict(checks)
    problems = await asyncio.gather(*(_problem(check) for check in current.values()))
    failing = {name: problem for name, problem in zip(current, problems, strict=True) if problem}
    return JSONResponse({"checks": list(current), "failing": failing}, status_code=503 if failing else 200)


async def _problem(check: Check) -> str:
    """Why the check failed; empty if it succeeded."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await check()
    except TimeoutError:
        return f"no answer within {CHECK_SECONDS:g} s"
    except (MetaloopError, OSError) as problem:
        return str(problem) or type(problem).__name__
    return ""
