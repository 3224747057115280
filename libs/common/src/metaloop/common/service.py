"""Runs a service: signals, task group, readiness, drain; the same life for all three.

    starting    probes are answered; `build` connects, registers tasks, checks, routes and what to drain
    serving     the tasks run, and `/readyz` says yes as long as its checks do
    draining    after SIGTERM or SIGINT: `/readyz` says no, the drains finish what was begun, then the tasks are cancelled
    stopped     what `build` opened is closed again; exit 0

A task that fails ends the service with status 1: whoever runs it starts it anew, which is a state that we know how to begin from.
Whatever hangs, the process is gone 8 seconds after the signal; a second signal ends it at once.
"""

import asyncio
import gc
import os
import signal
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeAlias

import uvicorn
import uvloop
from fastapi import FastAPI

from metaloop.common.errors import MetaloopError
from metaloop.common.keepalive import Patience, keep_alive
from metaloop.common.probes import Probes, Unwell
from metaloop.common.settings import Listener, ServiceSettings
from metaloop.common.telemetry import configure_logging, fields, get_logger
from metaloop.common.telemetry.traces import configure_tracing, flush_traces

DRAIN_SECONDS = 6.0
"""How long the drains may take together."""
LIFE_AFTER_SIGNAL_SECONDS = 7.5
"""After that the process ends itself, done or not: Kubernetes and our own tools wait little longer."""
_CLOSE_SECONDS = 1
_COLLECTIONS = (20_000, 20, 50)
"""A request makes a few hundred objects that live for milliseconds: by default the collector would run for every second one of them, at 15 % of
the hook gateway's time, and find next to nothing."""
_KEEP_ALIVE_SECONDS = 75
_CALLERS_PATIENCE = Patience(idle_seconds=2, interval_seconds=1, probes=2)
"""A caller whose machine is gone is noticed in four seconds: before its lease is over, so that what it asked for ends before another asks again."""

log = get_logger()


class Service:
    """One service's life: what `build` registers on it, and whether it is over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.app = FastAPI(title=f"metaloop {name}", docs_url=None, redoc_url=None, openapi_url=None)
        """For routes of its own, beside the probes."""
        self.probes = Probes()
        self.stopping = asyncio.Event()
        """Set by the first signal: begin nothing new."""
        self._started = False
        self._mains: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {}
        self._drains: dict[str, Callable[[], Awaitable[object]]] = {}
        self.probes.ready("service", self._serves)
        self.probes.mount(self.app)

    def run(self, name: str, main: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `main` as a task as soon as `build` is through; if it fails, the service ends. It is cancelled after the drains."""
        self._mains[name] = main

    def on_drain(self, name: str, drain: Callable[[], Awaitable[object]]) -> None:
        """Before the tasks are cancelled, wait for `drain`: it returns when what was begun is finished."""
        self._drains[name] = drain

    async def live(self) -> None:
        """Run all tasks until the first signal, drain, and cancel them; raises the group of what failed."""
        tasks: list[asyncio.Task[object]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(main(), name=name) for name, main in self._mains.items()]
                self._started = True
                log.info("service.started")
                await self.stopping.wait()
                await self._drain()
                for task in tasks:
                    task.cancel()
        finally:
            for task in tasks:
                if task.done() and not task.cancelled() and (problem := task.exception()):
                    log.error("service.task_failed", **{fields.TASK: task.get_name(), fields.ERROR: str(problem)})

    @property
    def started(self) -> bool:
        """Whether `build` is through."""
        return self._started

    async def _serves(self) -> None:
        if self.stopping.is_set():
            raise Unwell("draining")
        if not self._started:
            raise Unwell("starting")

    async def _drain(self) -> None:
        log.info("service.draining")
        try:
            async with asyncio.timeout(DRAIN_SECONDS), asyncio.TaskGroup() as group:
                for name, drain in self._drains.items():
                    group.create_task(_awaited(drain), name=name)
        except TimeoutError:
            log.warning("service.drain_unfinished", **{fields.SECONDS: DRAIN_SECONDS})


Build: TypeAlias = Callable[[Service], AbstractAsyncContextManager[object]]
"""Opens what the service needs for as long as the block lasts, and registers on the service what it is made of."""


def run_service(name: str, settings: ServiceSettings, build: Build) -> int:
    """The exit status of a service's whole life: 0 after a signal, 1 after a failure."""
    configure_logging(name, level=settings.log_level, form=settings.log_format)
    configure_tracing(name, settings.otlp_endpoint)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(name, settings.listener, build))
    except Exception as problem:  # noqa: BLE001 - the top of the process: whatever it is ends here, and the log has to say so
        _log_failure(problem)
        return 1
    finally:
        flush_traces()
    log.info("service.stopped")
    return 0


def _log_failure(problem: Exception) -> None:
    """One line for each cause. What we raise on purpose says what to do about it; of anything else, we need to see where it came from."""
    if isinstance(problem, ExceptionGroup):
        for cause in problem.exceptions:
            _log_failure(cause)
        return
    trace = None if isinstance(problem, MetaloopError | OSError) else problem
    log.error("service.failed", **{fields.ERROR: f"{type(problem).__name__}: {problem}"}, exc_info=trace)


async def _serve(name: str, listener: Listener, build: Build) -> None:
    service = Service(name)
    server = _server(service.app, listener)
    listening = _listening(listener)
    host, port = listening.getsockname()[:2]
    log.info("service.starting", **{fields.HOST: host, fields.PORT: port})
    with _end_in_time() as start_clock:
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]), name="http")
            living = group.create_task(_live(service, build, start_clock), name="service")
            _on_signals(service, living, start_clock)
            await asyncio.wait({living})
            server.should_exit = True


async def _live(service: Service, build: Build, start_clock: Callable[[], None]) -> None:
    gc.set_threshold(*_COLLECTIONS)
    async with build(service):
        gc.freeze()  # what is here now stays: no collection needs to look at it again
        try:
            await service.live()
        finally:
            start_clock()  # after a failure, too, closing must not take for ever


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
def _end_in_time() -> Iterator[Callable[[], None]]:
    """Yields what starts the clock: if the block is not over in time from then on, the process ends, even if its loop is stuck."""
    clock = threading.Timer(LIFE_AFTER_SIGNAL_SECONDS, _end_now)
    clock.daemon = True

    def start() -> None:
        if clock.ident is None:
            clock.start()

    try:
        yield start
    finally:
        clock.cancel()


def _end_now() -> None:
    log.error("service.killed", **{fields.REASON: f"not over after {LIFE_AFTER_SIGNAL_SECONDS:g} s"})
    os._exit(1)


async def _awaited(drain: Callable[[], Awaitable[object]]) -> None:
    await drain()


class _Server(uvicorn.Server):
    """uvicorn without its own idea of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the service."""
        yield


def _server(app: FastAPI, listener: Listener) -> _Server:
    config = uvicorn.Config(
        app,
        http="httptools",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
        ssl_certfile=listener.certificate_file or None,
        ssl_keyfile=listener.key_file or None,
        ssl_ca_certs=listener.client_ca_file or None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if listener.client_ca_file else ssl.CERT_NONE,
    )
    return _Server(config)


def _listening(listener: Listener) -> socket.socket:
    """The socket to serve on; taken at the very beginning, so that a port in use ends the service at once."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    listening = socket.create_server((listener.host, listener.port), family=family, backlog=2048, reuse_port=listener.reuse_port)
    keep_alive(listening, _CALLERS_PATIENCE)
    return listening
