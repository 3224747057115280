"""Servers and kubeconfigs for the tests in this folder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from metaloop.common.json import dumps


class ScriptedServer:
    """A server on loopback that answers each connection with the next bytes of its script, and closes it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.url = ""
        self.holds_on = False
        """Whether connections stay open until the client closes them."""
        self.script: list[bytes] = []
        self.requests: list[bytes] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.script.pop(0))
        if self.holds_on:
            await reader.read()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def scripted_server(folder: Path) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(folder / "kubeconfig")
    async with await asyncio.start_server(scripted.answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        scripted.url = f"http://127.0.0.1:{port}"
        scripted.kubeconfig.write_bytes(kubeconfig_bytes({"server": scripted.url}, {}))
        yield scripted


def kubeconfig_bytes(cluster: dict[str, object], user: dict[str, object]) -> bytes:
    return dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )
