"""What deploy/kustomize installs: a real API server takes it, its pods may run, and the services can do their work with
the permissions given.
"""

import asyncio
import os
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit import probes
from metaloop.devkit.broker import nats_server
from metaloop.devkit.manifests import crds
from metaloop.devkit.ports import LOOPBACK, free_ports
from metaloop.devkit.processes import Group, Program, group
from metaloop.devkit.stack import Service, Stack
from metaloop.devkit.testbed.account import Account
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder
from metaloop.hookgateway.settings import Settings as GatewaySettings
from metaloop.reconciler.settings import Settings as ReconcilerSettings
from metaloop.watcher.settings import WatcherSettings

DEPLOY = Path(__file__).parents[2] / "deploy" / "kustomize"
NAMESPACE = "metaloop"
SETTINGS = {"watcher": WatcherSettings, "reconciler": ReconcilerSettings, "hookgateway": GatewaySettings}
PODS = {
    "dev": {"nats": 1, "watcher": 1, "reconciler": 1, "hookgateway": 1},
    "ha": {"nats": 3, "watcher": 2, "reconciler": 3, "hookgateway": 2},
}

POD = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True)
LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)
SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
ROLE_BINDINGS = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="rolebindings", kind="RoleBinding", namespaced=True)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl."""

    program: Path

    async def __call__(self, *arguments: str) -> str:
        """What it prints; fails with what it complains about."""
        process = await asyncio.create_subprocess_exec(
            self.program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, complaint = await process.communicate()
        assert process.returncode == 0, complaint.decode()
        return out.decode()

    async def rendered(self, overlay: str) -> list[JsonObject]:
        """The objects of an overlay."""
        return list(yaml.safe_load_all(await self("kustomize", str(DEPLOY / "overlays" / overlay))))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kubectl(assets: Path) -> Kubectl:
    script = await asyncio.create_subprocess_exec(DEPLOY / "tokens" / "tokens.sh")
    assert await script.wait() == 0
    return Kubectl(assets / "kubectl")


@pytest.mark.parametrize("overlay", PODS)
async def test_a_real_cluster_takes_it_and_lets_its_pods_run(assets: Path, kubectl: Kubectl, overlay: str) -> None:
    """No kubelet is there to start them, but whoever must admit them (quotas, pod security, service accounts) does."""
    with run_folder() as folder:
        async with Platform.start(assets, folder) as platform:
            await _install(kubectl, platform, overlay)

            found = await eventually(lambda: _pods(platform.cluster, overlay), within_seconds=60)
            assert found == PODS[overlay]


@pytest.mark.parametrize("overlay", PODS)
async def test_settings_are_those_that_the_services_have(kubectl: Kubectl, overlay: str) -> None:
    for obj in await kubectl.rendered(overlay):
        name = unstructured.name(obj)
        if obj["kind"] != "Deployment":
            continue
        known = {f"METALOOP_{field.upper()}" for field in SETTINGS[name].model_fields}
        assert {setting for setting in _environment(obj) if setting.startswith("METALOOP_")} <= known


async def test_the_kinds_are_those_of_this_version(kubectl: Kubectl) -> None:
    rendered = {unstructured.name(obj): obj["spec"] for obj in await kubectl.rendered("dev") if obj["kind"] == "CustomResourceDefinition"}

    assert rendered == {unstructured.name(crd): crd["spec"] for crd in crds()}


async def test_services_work_with_the_permissions_that_they_are_given(assets: Path, kubectl: Kubectl) -> None:
    with run_folder() as folder:
        async with Platform.start(assets, folder) as platform, Webhook.serve() as webhook:
            await _install(kubectl, platform, "dev")
            await install_parent(platform.cluster, THINGS)
            async with _deployed(platform, folder) as stack:
                story = Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name="deployed")
                await story.begin()
                await story.controller()
                await story.parent("p")
                await eventually(lambda: story.settled("p"))
                assert await platform.cluster.list(LEASES, NAMESPACE), "the watcher leads by a Lease"

                await _needs_a_secret(story)
                await story.parent("q")
                await eventually(lambda: story.warning(of="q", containing="the gateway lacks the permission to list and watch it"))

                await _let_the_gateway_read(platform.cluster, story.name)
                await eventually(lambda: story.settled("q"), within_seconds=40)
                await story.end()


async def test_three_nats_servers_with_that_configuration_keep_each_job(kubectl: Kubectl, tmp_path: Path) -> None:
    config, routes = _nats_of(await kubectl.rendered("ha"))
    ports = free_ports(9)
    clients, monitors, peers = ports[:3], ports[3:6], ports[6:]
    for number, peer in enumerate(peers):
        routes = routes.replace(f"nats-{number}.nats:6222", f"{LOOPBACK}:{peer}")
    async with group() as daemons:
        programs = [_nats(tmp_path / str(n), config, routes, (clients[n], monitors[n], peers[n])) for n in range(3)]
        await daemons.start_all(programs)
        async with connected(",".join(f"nats://{_TOKEN}@{LOOPBACK}:{port}" for port in clients), name="test") as connection:
            await JobStream(connection, StreamSettings(replicas=3)).ensure_at_last()
            stream = loads(await connection.request("$JS.API.STREAM.INFO.JOBS", b"", timeout_seconds=5))

    assert (stream["config"]["num_replicas"], len(stream["cluster"]["replicas"])) == (3, 2)


_TOKEN = "t0ken"


def _nats_of(objects: list[JsonObject]) -> tuple[str, str]:
    """The configuration of the NATS servers, and the option that names their peers."""
    by_kind = {str(obj["kind"]): obj for obj in objects if unstructured.name(obj) == "nats"}
    template = unstructured.child_object(unstructured.child_object(by_kind["StatefulSet"], "spec"), "template")
    [container] = unstructured.child_object(template, "spec")["containers"]  # type: ignore[misc]
    [routes] = [argument for argument in container["args"] if argument.startswith("--routes")]  # type: ignore[index, union-attr]
    return unstructured.text(unstructured.child_object(by_kind["ConfigMap"], "data"), "nats.conf"), routes


def _nats(folder: Path, config: str, routes: str, ports: tuple[int, int, int]) -> Program:
    """A server of that cluster on this machine."""
    folder.mkdir()
    for setting, port in zip(("port: 4222", "http_port: 8222", "port: 6222"), ports, strict=True):
        config = config.replace(setting, f"{setting.partition(' ')[0]} {port}")
    (folder / "nats.conf").write_text(config.replace("/data", str(folder / "data")))
    return Program(
        name="nats",
        argv=(str(nats_server()), "--config", str(folder / "nats.conf"), routes.replace("$(NATS_TOKEN)", _TOKEN)),
        env={"NATS_SERVER_NAME": f"nats-{folder.name}", "NATS_TOKEN": _TOKEN},
        ready=probes.tcp_greets(LOOPBACK, ports[0], greeting=b"INFO "),
        folder=folder,
    )


async def _install(kubectl: Kubectl, platform: Platform, overlay: str) -> None:
    """The overlay as a user installs it."""
    apply = ("apply", "--kubeconfig", str(platform.plane.kubeconfig_path), "--server-side", "--force-conflicts", "-k")
    await kubectl(*apply, str(DEPLOY / "overlays" / overlay))


async def _pods(cluster: Cluster, overlay: str) -> dict[str, int]:
    """How many pods there are of each part, once there are as many as there should be."""
    found = [unstructured.labels(pod)["app.kubernetes.io/name"] for pod in await cluster.list(POD, NAMESPACE)]
    expect(len(found) >= sum(PODS[overlay].values()), f"there are only {found}")
    return {name: found.count(name) for name in PODS[overlay]}


def _environment(deployment: JsonObject) -> list[str]:
    template = unstructured.child_object(unstructured.child_object(deployment, "spec"), "template")
    [container] = unstructured.child_object(template, "spec")["containers"]  # type: ignore[misc]
    return [setting["name"] for setting in container["env"]]  # type: ignore[index, union-attr]


@asynccontextmanager
async def _deployed(platform: Platform, folder: Path) -> AsyncIterator[Stack]:
    """The three services, each with the account that it has in the cluster."""
    ports = dict(zip(SETTINGS, free_ports(len(SETTINGS)), strict=True))
    shared = {
        "NATS_URL": platform.broker.url,
        "GATEWAY_URL": f"http://{LOOPBACK}:{ports['hookgateway']}",
        "GATEWAY_TOKEN": "of-this-test",
        "LEADER_ELECTION": "true",
        "LEADER_NAMESPACE": NAMESPACE,
    }
    async with group() as daemons:
        running = {name: await _service(daemons, platform, name, {**shared, "PORT": str(port)}, folder) for name, port in ports.items()}
        yield Stack(watchers=(running["watcher"],), hookgateway=running["hookgateway"], reconcilers=(running["reconciler"],))


async def _service(daemons: Group, platform: Platform, name: str, settings: Mapping[str, str], folder: Path) -> Service:
    account = await Account.existing(platform.plane, platform.cluster, namespace=NAMESPACE, name=name, folder=folder)
    url = f"http://{LOOPBACK}:{settings['PORT']}"
    environment = {f"METALOOP_{key}": value for key, value in {**settings, "KUBECONFIG": str(account.kubeconfig_path)}.items()}
    program = Program(
        name=name,
        argv=(sys.executable, "-m", f"metaloop.{name}"),
        env={**os.environ, **environment},
        ready=probes.http_ok(f"{url}/readyz"),
        folder=folder,
        stop_seconds=8.0,
    )
    return Service(daemon=await daemons.start(program), url=url)


async def _needs_a_secret(story: Story) -> None:
    """From now on the story's hook is called with a token from a Secret."""
    data: JsonObject = {"token": b64encode(b"a token").decode()}
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "data": data}
    await story.cluster.create(SECRETS, secret, namespace=story.name)
    reference: JsonObject = {"name": "hook", "namespace": story.name, "key": "token"}
    await story.edit(hooks={"sync": {"webhook": {"url": story.lab.webhook.url(story.name), "authorization": {"secretRef": reference}}}})


async def _let_the_gateway_read(cluster: Cluster, namespace: str) -> None:
    """Bind the role that is there for this purpose."""
    role: JsonObject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metaloop-hook-credentials"}
    subject: JsonObject = {"kind": "ServiceAccount", "name": "hookgateway", "namespace": NAMESPACE}
    binding: JsonObject = {"metadata": {"name": "metaloop-hooks"}, "roleRef": role, "subjects": [subject]}
    await cluster.create(ROLE_BINDINGS, binding, namespace=namespace)
