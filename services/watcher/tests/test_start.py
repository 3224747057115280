"""A watcher as a process of its own, before it can do anything."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.ports import free_ports
from metaloop.devkit.testbed.eventually import eventually, expect

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_without_nats_it_is_alive_but_not_ready_and_ends_when_told_to(plane: ControlPlane):
    nats_port, port = free_ports(2)
    options = ("--nats-url", f"nats://127.0.0.1:{nats_port}", "--kubeconfig", str(plane.kubeconfig_path), "--port", str(port))
    async with _started(*options) as process:
        await eventually(lambda: _says(f"http://127.0.0.1:{port}/readyz", 503, "not connected to NATS yet"))
        await _says(f"http://127.0.0.1:{port}/healthz", 200, "")

        process.send_signal(signal.SIGTERM)

        async with asyncio.timeout(30):
            assert await process.wait() == 0


@asynccontextmanager
async def _started(*options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "metaloop.watcher", *options, stdout=asyncio.subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _says(url: str, code: int, words: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            answer = await client.get(url)
        except httpx.TransportError as error:
            raise AssertionError("it doesn't answer yet") from error
    expect(answer.status_code == code and words in answer.text, f"{answer.status_code}: {answer.text}")
