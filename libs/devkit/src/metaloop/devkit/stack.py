"""The three services as processes, run against any cluster and any NATS server."""

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK, free_ports
from metaloop.devkit.processes import Daemon, Program, group
from metaloop.devkit.workdir import private_folder

_PREFIX = "METALOOP_"
# A service drains within this time; `metaloop up` as a whole has 10 s to end.
_STOP_SECONDS = 8.0
_START_SECONDS = 180.0
_BYTECODE = "PYTHONPYCACHEPREFIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """Which services to run, and how."""

    kubeconfig: Path
    nats_url: str
    reconcilers: int = 2
    """How many reconcilers run."""
    watchers: Sequence[Mapping[str, str]] = ({},)
    """The settings of each watcher alone, as `{"SHARD": "1/2"}`."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings of all services, by their names without the prefix, as `{"LOG_LEVEL": "debug"}`."""
    programs: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """By name of the service: the arguments to Python that start it, where they are not `-m metaloop.SERVICE`."""
    port_base: int | None = None
    """The first watcher's port; the hookgateway, the reconcilers and the other watchers have the ports after it.

    None: free ports.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One running service: its process, and where it serves probes and metrics."""

    daemon: Daemon
    url: str
    debug_url: str = ""
    """Where a watcher serves its debug views, to this machine alone; empty for the other services."""

    @property
    def name(self) -> str:
        """`watcher`, `hookgateway`, `reconciler-0` and so on."""
        return self.daemon.name

    @property
    def metrics_url(self) -> str:
        """Where Prometheus finds its metrics."""
        return f"{self.url}/metrics"

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.daemon.log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.daemon.pid

    def cpu_seconds(self) -> float:
        """CPU time of its current process."""
        return self.daemon.cpu_seconds()

    def rss_bytes(self) -> int:
        """Its resident memory."""
        return self.daemon.rss_bytes()

    async def kill(self) -> None:
        """End it with SIGKILL; it stays down until `start`."""
        await self.daemon.kill()

    async def stop(self) -> None:
        """Let it drain and end; it stays down until `start`."""
        await self.daemon.stop()

    async def start(self) -> None:
        """Start it again; returns when it is ready."""
        await self.daemon.start()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The running services."""

    watchers: tuple[Service, ...]
    """Watchers of different shards, or standbys of one another."""
    hookgateway: Service
    reconcilers: tuple[Service, ...]

    @property
    def watcher(self) -> Service:
        """The first watcher, often the only one."""
        return self.watchers[0]

    @property
    def services(self) -> tuple[Service, ...]:
        """All services, in the order of their ports."""
        return (self.watcher, self.hookgateway, *self.reconcilers, *self.watchers[1:])

    @staticmethod
    @asynccontextmanager
    async def start(options: StackOptions, workdir: Path) -> AsyncIterator["Stack"]:
        """All services, ready, for as long as the block lasts; their logs are in `workdir`."""
        folder = private_folder(workdir, "services")
        processes = _processes(options)
        async with group() as daemons:
            started = await daemons.start_all([process.program(folder) for process in processes])
            watcher, hookgateway, *others = (process.service(daemon) for process, daemon in zip(processes, started, strict=True))
            reconcilers, watchers = others[: options.reconcilers], others[options.reconcilers :]
            yield Stack(watchers=(watcher, *watchers), hookgateway=hookgateway, reconcilers=tuple(reconcilers))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """How one service is run."""

    name: str
    port: int
    settings: Mapping[str, str]
    arguments: Sequence[str]
    """What Python is started with."""
    debug_port: int = 0
    """0 for services without debug views."""

    def program(self, folder: Path) -> Program:
        """The program to start."""
        settings = {**self.settings, "PORT": str(self.port), "DEBUG_PORT": str(self.debug_port)}
        return Program(
            name=self.name,
            argv=(sys.executable, *self.arguments),
            env={**_keeping_bytecode(os.environ), **{_PREFIX + key: value for key, value in settings.items()}},
            ready=probes.http_ok(f"{_url(self.port)}/readyz"),
            folder=folder,
            start_seconds=_START_SECONDS,
            stop_seconds=_STOP_SECONDS,
        )

    def service(self, daemon: Daemon) -> Service:
        """The service that the started program provides."""
        debug_url = f"{_url(self.debug_port)}/debug" if self.debug_port else ""
        return Service(daemon=daemon, url=_url(self.port), debug_url=debug_url)


def _processes(options: StackOptions) -> list[_Process]:
    """The first watcher, the hookgateway, the reconcilers, the other watchers: in the order of their ports."""
    own = {f"watcher-{index}" if index else "watcher": settings for index, settings in enumerate(options.watchers)}
    debug_ports = dict(zip(own, free_ports(len(own)), strict=True))
    names = ("watcher", "hookgateway", *(f"reconciler-{index}" for index in range(options.reconcilers)), *[*own][1:])
    base = options.port_base
    ports = free_ports(len(names)) if base is None else range(base, base + len(names))
    shared = {**_connections(options, gateway_url=_url(ports[1])), **options.settings}
    return [
        _Process(
            name=name,
            port=port,
            settings={**shared, **own.get(name, {})},
            arguments=_arguments(name.partition("-")[0], options.programs),
            debug_port=debug_ports.get(name, 0),
        )
        for name, port in zip(names, ports, strict=True)
    ]


def _arguments(service: str, programs: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return programs.get(service) or ("-m", f"metaloop.{service}")


def _connections(options: StackOptions, *, gateway_url: str) -> dict[str, str]:
    """The settings by which the services find the cluster and one another, and keep others out."""
    return {
        "HOST": LOOPBACK,
        "KUBECONFIG": str(options.kubeconfig.absolute()),
        "NATS_URL": options.nats_url,
        "GATEWAY_URL": gateway_url,
        "GATEWAY_TOKEN": secrets.token_urlsafe(24),
    }


def _keeping_bytecode(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which Python caches its bytecode, as in an image.

    Without the cache, each start of a service costs another second of CPU.
    """
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "metaloop" / "bytecode"
    return {_BYTECODE: str(cache), **environ, "PYTHONDONTWRITEBYTECODE": ""}


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"
