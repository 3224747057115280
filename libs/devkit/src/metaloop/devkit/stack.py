"""The three services as processes of their own, run against any cluster and any NATS server."""

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK, free_ports
from metaloop.devkit.processes import Daemon, Program, group
from metaloop.devkit.workdir import private_folder

_PREFIX = "METALOOP_"
# A service drains within this time by itself; the whole of us has 10 s to end.
_STOP_SECONDS = 8.0
_START_SECONDS = 180.0
_BYTECODE = "PYTHONPYCACHEPREFIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One running service: its process, and where it answers probes and shows its metrics."""

    daemon: Daemon
    url: str
    debug_url: str = ""
    """Where a watcher shows its debug views, to this machine alone; empty for the others."""

    @property
    def name(self) -> str:
        """`watcher`, `hookgateway`, or `reconciler-0` and so on."""
        return self.daemon.name

    @property
    def metrics_url(self) -> str:
        """Where Prometheus finds its metrics."""
        return f"{self.url}/metrics"

    @property
    def log(self) -> Path:
        """The file that holds its log."""
        return self.daemon.log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.daemon.pid

    def cpu_seconds(self) -> float:
        """CPU time of its present life."""
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
        """Start it again, until it serves."""
        await self.daemon.start()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The running services, each by its name."""

    watchers: tuple[Service, ...]
    """Each of another share, or standing by for another."""
    hookgateway: Service
    reconcilers: tuple[Service, ...]

    @property
    def watcher(self) -> Service:
        """The first watcher, mostly the only one."""
        return self.watchers[0]

    @property
    def services(self) -> tuple[Service, ...]:
        """All services, in the order in which they take their ports."""
        return (self.watcher, self.hookgateway, *self.reconcilers, *self.watchers[1:])

    @staticmethod
    @asynccontextmanager
    async def start(  # noqa: PLR0913 - keywords that each caller names
        *,
        kubeconfig: Path,
        nats_url: str,
        workdir: Path,
        reconcilers: int = 2,
        watchers: Sequence[Mapping[str, str]] = ({},),
        settings: Mapping[str, str] | None = None,
        port_base: int | None = None,
    ) -> AsyncIterator["Stack"]:
        """All services serving, for as long as the block lasts.

        `settings` are service settings by their names without prefix, for all services (`{"LOG_LEVEL": "debug"}`), and `watchers` those of one
        watcher each (`{"SHARD": "1/2"}`). From `port_base` on, the first watcher has the first port, hookgateway the next, then the
        reconcilers and the other watchers; else ports are free-picked.
        """
        workers = [f"reconciler-{index}" for index in range(reconcilers)]
        told = {f"watcher-{index}" if index else "watcher": each for index, each in enumerate(watchers)}
        names = ("watcher", "hookgateway", *workers, *tuple(told)[1:])
        numbers = free_ports(len(names)) if port_base is None else range(port_base, port_base + len(names))
        ports = dict(zip(names, numbers, strict=True))
        views = dict(zip(told, free_ports(len(told)), strict=True))
        meeting_points = _meeting_points(kubeconfig, nats_url=nats_url, gateway_url=_url(ports["hookgateway"]))
        environment = {**meeting_points, **(settings or {})}
        folder = private_folder(workdir, "services")
        async with group() as daemons:
            programs = [
                _program(
                    name,
                    folder,
                    settings={**environment, **told.get(name, {}), "PORT": str(port), "DEBUG_PORT": str(views.get(name, 0))},
                )
                for name, port in ports.items()
            ]
            started = await daemons.start_all(programs)
            watcher, hookgateway, *others = (
                Service(
                    daemon=daemon,
                    url=_url(ports[daemon.name]),
                    debug_url=f"{_url(views[daemon.name])}/debug" if daemon.name in views else "",
                )
                for daemon in started
            )
            yield Stack(watchers=(watcher, *others[reconcilers:]), hookgateway=hookgateway, reconcilers=tuple(others[:reconcilers]))


def _meeting_points(kubeconfig: Path, *, nats_url: str, gateway_url: str) -> dict[str, str]:
    """The settings by which the services find the cluster and each other, and nobody else them."""
    return {
        "HOST": LOOPBACK,
        "KUBECONFIG": str(kubeconfig.absolute()),
        "NATS_URL": nats_url,
        "GATEWAY_URL": gateway_url,
        "GATEWAY_TOKEN": secrets.token_urlsafe(24),
    }


def _program(name: str, folder: Path, *, settings: Mapping[str, str]) -> Program:
    environment = {_PREFIX + key: value for key, value in settings.items()}
    return Program(
        name=name,
        argv=(sys.executable, "-m", f"metaloop.{name.partition('-')[0]}"),
        env={**_keeping_bytecode(os.environ), **environment},
        ready=probes.http_ok(f"{_url(int(settings['PORT']))}/readyz"),
        folder=folder,
        start_seconds=_START_SECONDS,
        stop_seconds=_STOP_SECONDS,
    )


def _keeping_bytecode(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which Python keeps what it compiled, as an image does: else each start of a service costs a second of CPU more."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "metaloop" / "bytecode"
    return {_BYTECODE: str(cache), **environ, "PYTHONDONTWRITEBYTECODE": ""}


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"
