"""`metaloop up` from outside: a process, its output, its exit code, against a cluster that it did not start."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.ports import free_port
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, parent
from metaloop.devkit.testbed.story import THINGS, three_config_maps
from metaloop.devkit.testbed.webhook import Webhook

METALOOP = Path(sys.executable).with_name("metaloop")
_READY_SECONDS, _STOP_SECONDS = 90.0, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """A running `metaloop up`."""

    process: asyncio.subprocess.Process
    ready_file: Path
    temp: Path

    async def line(self) -> str:
        """The next line of its stdout; empty at its end."""
        if self.process.stdout is None:
            raise RuntimeError("no pipe to metaloop")
        async with asyncio.timeout(_READY_SECONDS):
            return (await self.process.stdout.readline()).decode().strip()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def foreign(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    """A cluster that knows nothing of Metaloop."""
    async with ControlPlane.start(assets, tmp_path_factory.mktemp("foreign")) as plane:
        yield plane


async def test_serves_a_cluster_that_it_did_not_start_and_ends_cleanly(foreign: ControlPlane, tmp_path: Path) -> None:
    async with _up(tmp_path, "--kubeconfig", str(foreign.kubeconfig_path)) as up:
        assert await up.line() == "metaloop: ready"
        assert up.ready_file.exists()
        assert str(foreign.kubeconfig_path) in up.ready_file.read_text()
        await _serves_a_new_controller(foreign, "served")
        children = _descendants(up)
        assert {os.getpgid(child.pid) for child in children} == {up.process.pid}

        asked = time.monotonic()
        up.process.send_signal(signal.SIGTERM)
        code = await up.process.wait()

        assert (code, time.monotonic() - asked < _STOP_SECONDS) == (0, True)
        assert [child for child in children if child.is_running()] == []
        assert [*up.temp.iterdir()] == []
        assert not up.ready_file.exists()


async def test_kubeconfig_may_name_a_plugin_and_no_authority(foreign: ControlPlane, tmp_path: Path) -> None:
    """As those of cloud providers do. Which other kinds there are stands in the tests of the client."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(foreign, "exec plugin")))

    async with _up(tmp_path, "--kubeconfig", str(kubeconfig), "--reconcilers", "1") as up:
        assert await up.line() == "metaloop: ready"
        await _serves_a_new_controller(foreign, "exec-plugin")


async def test_no_child_outlives_it_even_when_it_is_killed(foreign: ControlPlane, tmp_path: Path) -> None:
    async with _up(tmp_path, "--kubeconfig", str(foreign.kubeconfig_path)) as up:
        assert await up.line() == "metaloop: ready"
        children = _descendants(up)
        assert len(children) >= 5

        up.process.kill()
        await up.process.wait()

        async def gone() -> None:
            expect([child for child in children if _is_alive(child)] == [], "children are left")

        await eventually(gone)


async def test_interrupt_during_the_start_ends_it_as_cleanly(foreign: ControlPlane, tmp_path: Path) -> None:
    async with _up(tmp_path, "--kubeconfig", str(foreign.kubeconfig_path)) as up:

        async def has_children() -> None:
            expect(len(_descendants(up)) >= 2, "nothing is started yet")

        await eventually(has_children, within_seconds=_READY_SECONDS)
        up.process.send_signal(signal.SIGINT)

        async with asyncio.timeout(_STOP_SECONDS):
            assert await up.process.wait() == 0
        assert [*up.temp.iterdir()] == []


async def test_unreachable_cluster_is_a_clear_failure(foreign: ControlPlane, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    nobody = f"127.0.0.1:{free_port()}"
    kubeconfig.write_text(json.dumps(_kubeconfig(foreign, "client certificate")).replace(foreign.server_url, f"https://{nobody}"))

    async with _up(tmp_path, "--kubeconfig", str(kubeconfig)) as up:
        async with asyncio.timeout(_READY_SECONDS):
            _, errors = await up.process.communicate()

        assert up.process.returncode not in {0, None}
        assert nobody in errors.decode()
        assert "Traceback" not in errors.decode()


@asynccontextmanager
async def _up(folder: Path, *options: str) -> AsyncIterator[Up]:
    """`metaloop up` in a process group and a temp folder of its own; killed at the end if it is still there."""
    temp, ready_file = folder / "temp", folder / "ready"
    temp.mkdir()
    process = await asyncio.create_subprocess_exec(
        str(METALOOP), "up", "--ready-file", str(ready_file), *options,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temp)}, process_group=0,
    )  # fmt: skip
    try:
        yield Up(process=process, ready_file=ready_file, temp=temp)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()


async def _serves_a_new_controller(plane: ControlPlane, name: str) -> None:
    """A controller created now is served."""
    async with Cluster.connect(plane) as cluster, Webhook.serve() as webhook:
        await install_parent(cluster, THINGS)
        await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        manifest = composite(name, parent=THINGS, hook_url=webhook.on(name, three_config_maps), children=[child_rule()])
        await cluster.create(COMPOSITES, manifest)
        await cluster.create(THINGS, parent(THINGS, "p", namespace=name), namespace=name)

        async def has_children() -> None:
            expect(len(await cluster.list(CONFIG_MAPS, name, labels="parent=p")) == 3, "no children yet")

        await eventually(has_children, within_seconds=30)
        await cluster.delete(COMPOSITES, "", name)


def _kubeconfig(plane: ControlPlane, credentials: str) -> dict[str, object]:
    """A kubeconfig for the plane's administrator with other credentials than its own file has."""
    config = json.loads(plane.kubeconfig_path.read_text())
    if credentials == "client certificate":
        return config
    config["clusters"][0]["cluster"] = {"server": plane.server_url, "insecure-skip-tls-verify": True}
    config["users"][0]["user"] = {"exec": _exec_plugin(plane.admin_token)}
    return config


def _exec_plugin(token: str) -> dict[str, object]:
    version = "client.authentication.k8s.io/v1"
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}})
    return {"apiVersion": version, "command": "echo", "args": [answer], "interactiveMode": "Never"}


def _descendants(up: Up) -> list[psutil.Process]:
    return psutil.Process(up.process.pid).children(recursive=True)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
