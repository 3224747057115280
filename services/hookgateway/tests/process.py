"""The gateway as a process of its own, and a way to call it over HTTP."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from in_process import target

from metaloop.common.hooks.call import (
    LEASED_PATH,
    PARENT_HEADER,
    PATH,
    TARGET_HEADER,
    VERDICT_HEADER,
    Verdict,
    frames_of,
    renewed_to_wire,
    verdict_from_wire,
)
from metaloop.common.http.answer import Answer
from metaloop.common.http.body import OpenBody
from metaloop.common.http.peer import Peer, header_lines
from metaloop.common.json import JsonObject
from metaloop.devkit.ports import free_port


class LeasedBody:
    """The body of a call under a lease, which a test renews."""

    def __init__(self, body: bytes, *, seconds: float) -> None:
        self.body = OpenBody(frames_of(body), self._follow)
        self._seconds = seconds
        self._sends: list[Callable[[bytes], None]] = []

    @contextmanager
    def _follow(self, send: Callable[[bytes], None]) -> Iterator[None]:
        self._sends.append(send)
        self.renew(self._seconds)
        yield

    def renew(self, seconds: float) -> None:
        """The lease lasts for so long from now on."""
        for send in self._sends:
            send(renewed_to_wire(seconds))


@dataclass(slots=True)
class GatewayProcess:
    """A running gateway process."""

    process: asyncio.subprocess.Process
    client: httpx.AsyncClient
    log_file: Path
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    async def post(self, webhook: JsonObject | str, *, body: bytes | AsyncIterator[bytes] = b"{}", **headers: str) -> httpx.Response:
        """The gateway's response to one call."""
        raw: JsonObject = {"url": webhook} if isinstance(webhook, str) else webhook
        return await self.client.post(
            PATH, content=body, headers={TARGET_HEADER: target(raw), PARENT_HEADER: "parent-1", **self.headers, **headers}
        )

    @contextmanager
    def peer(self) -> Iterator[Peer]:
        """A way to it as a reconciler's."""
        with closing(Peer(str(self.client.base_url).rstrip("/"))) as peer:
            yield peer

    async def ask_leased(self, peer: Peer, url: str, body: LeasedBody) -> Answer:
        """Its answer to one call under a lease."""
        headers = {TARGET_HEADER: target({"url": url}), PARENT_HEADER: "parent-1"}
        return await peer.ask("POST", LEASED_PATH, header_lines(headers), body.body)

    async def call(self, webhook: JsonObject | str) -> Verdict:
        """The verdict on one call."""
        response = await self.post(webhook)
        assert response.status_code == 200, response.text
        return verdict_from_wire(response.headers[VERDICT_HEADER], response.content)

    async def stopped(self) -> int:
        """Its exit status after a SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_file.read_text()


@asynccontextmanager
async def gateway_process(
    port: int = 0, *, tls: httpx.AsyncClient | None = None, run_by: Sequence[str] = (), address: str = "localhost", **settings: str
) -> AsyncIterator[GatewayProcess]:
    """A gateway process with these settings, until the scope ends.

    `run_by` is a command that runs it, `address` where it is reached.
    """
    port = port or free_port()
    environment = {"KUBECONFIG": "/nowhere", "METALOOP_PORT": str(port)} | {
        f"METALOOP_{name.upper()}": value for name, value in settings.items()
    }
    client = tls or httpx.AsyncClient(trust_env=False)
    client.base_url = httpx.URL(f"{'http' if tls is None else 'https'}://{address}:{port}")
    client.timeout = httpx.Timeout(60)
    with tempfile.NamedTemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *run_by, sys.executable, "-m", "metaloop.hookgateway", stderr=log, env=os.environ | environment
        )
        try:
            async with client:
                await _until_started(process, Path(log.name))
                yield GatewayProcess(process, client, Path(log.name))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _until_started(process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(60):
        while not _has_started(log):
            assert process.returncode is None, f"ended with status {process.returncode}"
            await asyncio.sleep(0.05)


def _has_started(log: Path) -> bool:
    return "service.started" in log.read_text()
