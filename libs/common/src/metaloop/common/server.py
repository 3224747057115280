"""The HTTP server of this process: a FastAPI application behind uvicorn, for as long as a block lasts."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from metaloop.common.keepalive import KeepAlive, enable_keep_alive
from metaloop.common.settings import Listener

_BACKLOG = 2048
_CLOSE_SECONDS = 1
_KEEP_ALIVE_SECONDS = 75
_CALLERS_KEEP_ALIVE = KeepAlive(idle_seconds=2, interval_seconds=1, probes=2)
"""Detects within four seconds that a caller's machine is gone. That is before the caller's lease ends, so its work
stops before another caller asks for the same."""


class Address(NamedTuple):
    """Where a server accepts connections."""

    host: str
    port: int


class App(FastAPI):
    """An application, without documentation pages and schema, that may serve some routes without its machinery."""

    def __init__(self, title: str) -> None:
        super().__init__(title=title, docs_url=None, redoc_url=None, openapi_url=None)
        self._direct: dict[tuple[str, str], ASGIApp] = {}

    def serve_directly(self, method: str, path: str, app: ASGIApp) -> None:
        """Have `app` answer these requests, ahead of all routes and middleware: they cost more than a short call."""
        self._direct[method, path] = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        direct = self._direct.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        await (super().__call__ if direct is None else direct)(scope, receive, send)


@asynccontextmanager
async def serving(app: FastAPI, listener: Listener) -> AsyncIterator[Address]:
    """Serve `app` while the block runs, and yield the bound address; raises OSError at once when the port is taken.

    At the end, requests in progress get one second to finish.
    """
    listening = _listening(listener)
    server = _server(app, listener)
    async with asyncio.TaskGroup() as group:
        http = group.create_task(server.serve(sockets=[listening]), name="http")
        try:
            yield Address(*listening.getsockname()[:2])
        finally:
            server.should_exit = True
            await asyncio.wait({http})


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers: the service has its own."""
        yield


def _server(app: FastAPI, listener: Listener) -> _Server:
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
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
    """A listening socket. It is bound before anything else happens, so that a port in use ends the service at once."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    listening = socket.create_server((listener.host, listener.port), family=family, backlog=_BACKLOG, reuse_port=listener.reuse_port)
    enable_keep_alive(listening, _CALLERS_KEEP_ALIVE)
    return listening
