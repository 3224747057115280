"""Runs a service: signals, task group, readiness and drain. All three services have the same life cycle.

    starting    The probes answer; `build` connects and registers tasks, checks, routes and drains.
    serving     The tasks run. `/readyz` succeeds as long as its checks do.
    draining    After SIGTERM or SIGINT: `/readyz` fails, the drains finish what was begun, then the tasks end.
    stopped     What `build` opened is closed; exit status 0.

A task that fails, or ends although nobody asked it to, ends the service with status 1, and `/readyz` fails until then.
The supervisor (Kubernetes, for example) starts a new process, which begins from a known state. The process ends 8
seconds after the signal at the latest, even when its event loop is stuck. A second signal ends it at once.
"""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

import uvloop

from metaloop.common.errors import MetaloopError
from metaloop.common.loop_lag import record_lag
from metaloop.common.probes import CheckFailed, Probes
from metaloop.common.server import App, serving
from metaloop.common.settings import ServiceSettings
from metaloop.common.targets import target_file
from metaloop.common.telemetry import configure_logging, fields, get_logger, metrics
from metaloop.common.telemetry.traces import configure_tracing, flush_traces
from metaloop.common.version import version

DRAIN_SECONDS = 6.0
"""How long all drains may take together, unless a setting says otherwise."""
CLOSE_SECONDS = 1.5
"""So long after the drains the process ends itself, finished or not: Kubernetes and the devkit wait little longer."""
_GC_THRESHOLDS = (20_000, 20, 50)
"""A request allocates a few hundred objects that live for milliseconds. With Python's defaults the collector runs for
every second request, takes 15 % of the hook gateway's time, and finds almost nothing."""

log = get_logger()


class TaskEnded(MetaloopError):
    """A task of a service returned, or was cancelled, although the service goes on."""


class Service:
    """The life of one service, and what `build` registers on it."""

    def __init__(self, name: str, *, drain_seconds: float = DRAIN_SECONDS) -> None:
        self.name = name
        self._drain_seconds = drain_seconds
        self.app = App(f"metaloop {name}")
        """The HTTP application. It serves the probes; `build` may add routes."""
        self.probes = Probes(alive={"tasks": self._check_tasks})
        self.stopping = asyncio.Event()
        """Set by the first signal: start no new work."""
        self._started = False
        self._is_over = False
        """Whether the tasks are cancelled on purpose from now on."""
        self._failed = ""
        """The task that failed first, and with which the service ends."""
        self._mains: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {}
        self._drains: dict[str, Callable[[], Awaitable[object]]] = {}
        self.probes.ready("service", self._check_serving)
        self.probes.mount(self.app)

    def run(self, name: str, main: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `main` as a task once `build` has finished.

        The service ends when it fails, or returns before the drains; it is cancelled after them.
        """
        self._mains[name] = main

    def on_drain(self, name: str, drain: Callable[[], Awaitable[object]]) -> None:
        """Wait for `drain` before the tasks are cancelled. It returns when the work in progress is finished."""
        self._drains[name] = drain

    async def live(self) -> None:
        """Run all tasks until the first signal, then drain, then cancel them.

        Raises the exception group of the tasks that failed.
        """
        tasks: list[asyncio.Task[object]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._lasting(name, main), name=name) for name, main in self._mains.items()]
                self._started = True
                log.info("service.started")
                try:
                    await self.stopping.wait()
                    await self._drain()
                finally:
                    self._is_over = True
                for task in tasks:
                    task.cancel()
        finally:
            for task in tasks:
                if task.done() and not task.cancelled() and (problem := task.exception()):
                    log.error("service.task_failed", **{fields.TASK: task.get_name(), fields.ERROR: str(problem)})

    @property
    def started(self) -> bool:
        """Whether `build` has finished."""
        return self._started

    async def _lasting(self, name: str, main: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `main` until the service ends. Raises what it raises, and TaskEnded where it ends before."""
        try:
            await main()
        except asyncio.CancelledError:
            # Whoever ends the service says so first. Any other cancellation is a mistake that nobody would notice.
            if self._ends:
                raise
        except BaseException:
            self._failed = self._failed or name
            raise
        if not self._ends:
            self._failed = name
            raise TaskEnded(f"the task {name} ended although the service goes on")

    @property
    def _ends(self) -> bool:
        return self.stopping.is_set() or self._is_over or bool(self._failed)

    async def _check_tasks(self) -> None:
        if self._failed:
            raise CheckFailed(f"the task {self._failed} failed")

    async def _check_serving(self) -> None:
        if self._failed:
            raise CheckFailed(f"ending: the task {self._failed} failed")
        if self.stopping.is_set():
            raise CheckFailed("draining")
        if self._is_over:
            raise CheckFailed("ending")
        if not self._started:
            raise CheckFailed("starting")

    async def _drain(self) -> None:
        log.info("service.draining")
        try:
            async with asyncio.timeout(self._drain_seconds), asyncio.TaskGroup() as group:
                for name, drain in self._drains.items():
                    group.create_task(_awaited(drain), name=name)
        except TimeoutError:
            log.warning("service.drain_unfinished", **{fields.SECONDS: self._drain_seconds})


Build: TypeAlias = Callable[[Service], AbstractAsyncContextManager[object]]
"""Opens what the service needs while the block runs, and registers tasks, probes, routes and drains on the service."""


def run_service(name: str, settings: ServiceSettings, build: Build) -> None:
    """Run a service for its whole life; returns after a signal.

    A failure is raised. The interpreter ends with status 1 then, and logs the failure in the service's own format.
    """
    configure_logging(name, level=settings.log_level, form=settings.log_format)
    sys.excepthook = _log_uncaught
    configure_tracing(name, settings.otlp_endpoint)
    metrics.build_info(name, version())
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(name, settings, build))
    finally:
        flush_traces()
    log.info("service.stopped")


def _log_uncaught(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    if isinstance(problem, Exception):
        _log_failure(problem)
    else:
        sys.__excepthook__(kind, problem, trace)


def _log_failure(problem: Exception) -> None:
    """Log one line per cause.

    Our own errors and the system's say what to do; any other is logged with its traceback.
    """
    if isinstance(problem, ExceptionGroup):
        for cause in problem.exceptions:
            _log_failure(cause)
        return
    trace = None if isinstance(problem, MetaloopError | OSError) else problem
    log.error("service.failed", **{fields.ERROR: f"{type(problem).__name__}: {problem}"}, exc_info=trace)


async def _serve(name: str, settings: ServiceSettings, build: Build) -> None:
    service = Service(name, drain_seconds=settings.drain_seconds)
    service.run("event loop lag", partial(record_lag, beat_seconds=settings.loop_beat_seconds))
    with _end_in_time(settings.drain_seconds + CLOSE_SECONDS) as start_clock:
        async with (
            serving(service.app, settings.listener) as address,
            target_file(settings.targets_folder, service=name, address=address),
            asyncio.TaskGroup() as group,
        ):
            log.info("service.starting", **{fields.HOST: address.host, fields.PORT: address.port, fields.VERSION: version()})
            living = group.create_task(_live(service, build, start_clock), name="service")
            _on_signals(service, living, start_clock)


async def _live(service: Service, build: Build, start_clock: Callable[[], None]) -> None:
    gc.set_threshold(*_GC_THRESHOLDS)
    async with build(service):
        gc.freeze()  # these objects live as long as the process: the collector need not visit them again
        try:
            await service.live()
        finally:
            start_clock()  # closing is bounded after a failure, too


def _on_signals(service: Service, living: asyncio.Task[None], start_clock: Callable[[], None]) -> None:
    def on_signal(number: int) -> None:
        if service.stopping.is_set():
            log.warning("service.killed", **{fields.REASON: "second signal"})
            os._exit(1)
        log.info("service.signalled", **{fields.REASON: signal.Signals(number).name})
        service.stopping.set()
        start_clock()
        if not service.started:
            living.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)


@contextmanager
def _end_in_time(seconds: float) -> Iterator[Callable[[], None]]:
    """Yield a function that starts the clock.

    If the block has not ended in time from then on, the process ends, even with its event loop stuck.
    """
    clock = threading.Timer(seconds, _end_now, (seconds,))
    clock.daemon = True

    def start() -> None:
        if clock.ident is None:
            clock.start()

    try:
        yield start
    finally:
        clock.cancel()


def _end_now(seconds: float) -> None:
    log.error("service.killed", **{fields.REASON: f"not over after {seconds:g} s"})
    os._exit(1)


async def _awaited(drain: Callable[[], Awaitable[object]]) -> None:
    await drain()
