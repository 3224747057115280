"""Runs a local hook gateway for the time of a plan."""

import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Program, group, start_on_free_port

_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """The URL of a gateway, and the token that it requires."""

    url: str
    token: str


@asynccontextmanager
async def local_gateway(folder: Path, *, kubeconfig: str) -> AsyncIterator[GatewayAddress]:
    """A gateway that reads the webhooks' credentials from the cluster of a kubeconfig."""
    token = secrets.token_urlsafe(24)

    def program(port: int) -> Program:
        environment = {
            "METALOOP_HOST": LOOPBACK,
            "METALOOP_PORT": str(port),
            "METALOOP_GATEWAY_TOKEN": token,
            **({"METALOOP_KUBECONFIG": kubeconfig} if kubeconfig else {}),
        }
        return Program(
            name="hookgateway",
            argv=(sys.executable, "-m", "metaloop.hookgateway"),
            env={**os.environ, **environment},
            ready=probes.http_ok(f"http://{LOOPBACK}:{port}/readyz"),
            folder=folder,
            start_seconds=_START_SECONDS,
            stop_seconds=5.0,
        )

    async with group() as daemons:
        _, port = await start_on_free_port(daemons, program)
        yield GatewayAddress(f"http://{LOOPBACK}:{port}", token)
