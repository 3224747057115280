"""What deploy/kustomize installs, at work: services with their accounts, NATS with its users, a Job's credentials."""

import asyncio
import os
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.api.kinds import parse_controller
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.json import JsonObject, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.provision import missing_from, new_token
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit import probes
from metaloop.devkit.broker import nats_server
from metaloop.devkit.ports import LOOPBACK, free_ports
from metaloop.devkit.processes import Group, Program, group
from metaloop.devkit.rbac.review import Access, may, review
from metaloop.devkit.rbac.rules import Need, needs_of, rules_of
from metaloop.devkit.rbac.rules import Service as RbacService
from metaloop.devkit.stack import Service, Stack
from metaloop.devkit.testbed.account import Account
from metaloop.devkit.testbed.builtin import SECRETS
from metaloop.devkit.testbed.cluster import COMPOSITES, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .manifests import NAMESPACE, OVERLAYS, SERVICES, Kubectl, containers, of_kind

LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)
CLUSTER_ROLES = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="clusterroles", kind="ClusterRole", namespaced=False)
ROLE_BINDINGS = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="rolebindings", kind="RoleBinding", namespaced=True)
CLUSTER_ROLE_BINDINGS = ResourceInfo(
    api_version="rbac.authorization.k8s.io/v1", resource="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False
)
SECRET = "metaloop-credentials"


def _access(account: str, verb: str, resource: str, *, group: str = "", namespace: str = "", name: str = "") -> Access:
    return Access(
        account=f"system:serviceaccount:{NAMESPACE}:{account}", verb=verb, group=group, resource=resource, namespace=namespace, name=name
    )


RBAC = "rbac.authorization.k8s.io"
SHIPPED: Mapping[Access, bool] = {
    _access("watcher", "list", "things", group="testbed.example.com"): True,
    _access("watcher", "watch", "customresourcedefinitions", group="apiextensions.k8s.io"): True,
    _access("watcher", "patch", "compositecontrollers", group="metacontroller.k8s.io"): True,
    _access("watcher", "patch", "componentcontrollers/status", group="metaloop.dev"): True,
    _access("watcher", "create", "events", namespace="default"): True,
    _access("watcher", "update", "leases", group="coordination.k8s.io", namespace=NAMESPACE): True,
    _access("watcher", "update", "leases", group="coordination.k8s.io", namespace="kube-system"): False,
    _access("watcher", "patch", "things", group="testbed.example.com"): False,
    _access("watcher", "create", "configmaps", namespace="default"): False,
    _access("watcher", "delete", "things", group="testbed.example.com"): False,
    _access("reconciler", "create", "configmaps", namespace="default"): True,
    _access("reconciler", "patch", "things/status", group="testbed.example.com"): True,
    _access("reconciler", "update", "things/finalizers", group="testbed.example.com"): True,
    _access("reconciler", "create", "roles", group=RBAC, namespace="default"): True,
    _access("reconciler", "escalate", "clusterroles", group=RBAC): False,
    _access("reconciler", "bind", "clusterroles", group=RBAC): False,
    _access("reconciler", "impersonate", "users"): False,
    _access("reconciler", "impersonate", "serviceaccounts", namespace="kube-system"): False,
    _access("hookgateway", "get", "secrets", namespace=NAMESPACE): False,
    _access("hookgateway", "list", "secrets", namespace="default"): False,
    _access("hookgateway", "get", "pods", namespace="default"): False,
    _access("credentials", "create", "secrets", namespace=NAMESPACE): True,
    _access("credentials", "get", "secrets", namespace=NAMESPACE, name=SECRET): True,
    _access("credentials", "get", "secrets", namespace=NAMESPACE, name="another"): False,
    _access("credentials", "create", "secrets", namespace="default"): False,
    _access("nats", "get", "secrets", namespace=NAMESPACE): False,
}
"""What the accounts of `dev` may do, and what they may not."""
NAMESPACED: Mapping[Access, bool] = {
    _access("watcher", "list", "compositecontrollers", group="metacontroller.k8s.io"): True,
    _access("watcher", "list", "customresourcedefinitions", group="apiextensions.k8s.io"): True,
    _access("watcher", "list", "things", group="testbed.example.com", namespace="narrow"): True,
    _access("watcher", "list", "things", group="testbed.example.com"): False,
    _access("watcher", "list", "secrets", namespace="kube-system"): False,
    _access("watcher", "list", "namespaces"): False,
    _access("watcher", "get", "namespaces", namespace="kube-system", name="kube-system"): True,
    _access("watcher", "create", "configmaps", namespace="narrow"): False,
    _access("reconciler", "create", "configmaps", namespace="narrow"): True,
    _access("reconciler", "create", "configmaps", namespace="kube-system"): False,
    _access("reconciler", "patch", "things/status", group="testbed.example.com"): False,
    _access("reconciler", "create", "clusterroles", group=RBAC): False,
    _access("reconciler", "escalate", "roles", group=RBAC, namespace="narrow"): False,
}
"""The same for `namespaced`, where the namespace `narrow` is served."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bare(assets: Path) -> AsyncIterator[Platform]:
    """A cluster of this file's own, with the parents of stories, where each test installs an overlay."""
    with run_folder() as folder:
        async with Platform.start(assets, folder) as platform:
            await install_parent(platform.cluster, THINGS)
            yield platform


@pytest.fixture(scope="module")
def kubectl(assets: Path) -> Kubectl:
    return Kubectl(assets / "kubectl")


async def test_services_work_with_what_they_are_given(bare: Platform, kubectl: Kubectl) -> None:
    """Their accounts, with no more permissions than `metaloop rbac` computes, and their users of NATS."""
    await _install(kubectl, bare, "dev")
    await eventually(lambda: _allowed_as(bare, SHIPPED))
    await _narrow_roles(bare)
    async with _at_work(bare, kubectl, name="deployed") as story:
        await story.begin()
        await story.controller()
        await story.parent("p")
        await eventually(lambda: story.settled("p"))
        assert await bare.cluster.list(LEASES, NAMESPACE), "the watcher leads by a Lease"

        await _needs_a_secret(story)
        await story.parent("q")
        await eventually(lambda: story.warning(of="q", containing="the gateway lacks the permission to list and watch it"))

        await _let_the_gateway_read(bare.cluster, story.name)
        await eventually(lambda: story.settled("q"), within_seconds=40)
        await story.end()


async def test_services_work_in_some_namespaces_with_rights_in_these_alone(bare: Platform, kubectl: Kubectl) -> None:
    """Each right that is still missing is told on the controller, with the rule that allows it."""
    await bare.cluster.delete(CLUSTER_ROLE_BINDINGS, "", "metaloop-reconciler")  # whose role cannot be changed
    await _install(kubectl, bare, "namespaced")
    async with _at_work(bare, kubectl, name="narrow", NAMESPACES="narrow") as story:
        await story.begin()
        await story.controller()
        missing = '{apiGroups: ["testbed.example.com"], resources: [things], verbs: [get, list, watch]} to a Role in the namespace narrow'
        await eventually(lambda: _told(story, reason="CannotWatch", text=missing), within_seconds=30)

        await _bind(kubectl, bare, "metaloop-watcher", namespace="narrow")
        await story.parent("p")
        await eventually(
            lambda: _told(story, reason="SyncFailing", text="verbs: [create]} to a Role in the namespace narrow"), within_seconds=30
        )

        await _bind(kubectl, bare, "metaloop-reconciler", namespace="narrow")
        await eventually(lambda: story.settled("p"), within_seconds=40)
        await eventually(lambda: _allowed_as(bare, NAMESPACED))
        await story.end()


async def test_three_nats_servers_with_that_configuration_keep_each_job(kubectl: Kubectl, tmp_path: Path) -> None:
    manifest = await _nats_manifest(kubectl, "ha")
    secret = missing_from((), new_token=new_token)
    ports = free_ports(9)
    clients, monitors, peers = ports[:3], ports[3:6], ports[6:]
    async with group() as daemons:
        programs = [_nats(tmp_path / f"nats-{n}", manifest, secret, (clients[n], monitors[n], peers[n]), peers) for n in range(3)]
        await daemons.start_all(programs)
        login = f"{secret['nats-watcher-user']}:{secret['nats-watcher-password']}"
        async with connected(",".join(f"nats://{login}@{LOOPBACK}:{port}" for port in clients), name="metaloop-watcher") as connection:
            await JobStream(connection, StreamSettings(replicas=3)).ensure_at_last()
            stream = loads(await connection.request("$JS.API.STREAM.INFO.JOBS", b"", timeout_seconds=5))

    assert (stream["config"]["num_replicas"], len(stream["cluster"]["replicas"])) == (3, 2)


@asynccontextmanager
async def _at_work(platform: Platform, kubectl: Kubectl, *, name: str, **settings: str) -> AsyncIterator[Story]:
    """A story of the services as the installed overlay has them; `settings` are the watcher's own."""
    with run_folder() as folder:
        credentials = await _provided(platform, folder)
        async with (
            Webhook.serve() as webhook,
            _nats_of_the_overlay(kubectl, credentials, folder) as port,
            _deployed(platform, folder, credentials, port, **settings) as stack,
        ):
            yield Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name=name)


async def _allowed_as(platform: Platform, table: Mapping[Access, bool]) -> None:
    """Raise AssertionError unless the API server allows and forbids what a table says."""
    async with KubeClient.connect(str(platform.plane.kubeconfig_path)) as kube:
        found = {access: await may(kube, access) for access in table}
    different = [f"{access} is {'allowed' if allowed else 'forbidden'}" for access, allowed in found.items() if allowed != table[access]]
    expect(not different, "; ".join(different))


async def _told(story: Story, *, reason: str, text: str) -> None:
    """Raise AssertionError unless the story's controller says why it is not ready, with this text."""
    controller = await story.cluster.get(COMPOSITES, "", story.name)
    conditions = unstructured.child_objects(unstructured.child_object(controller, "status"), "conditions")
    said = {str(each["reason"]): str(each["message"]) for each in conditions if each["type"] == "Ready"}
    expect(text in said.get(reason, ""), f"{story.name} says {said}")


async def _bind(kubectl: Kubectl, platform: Platform, name: str, *, namespace: str) -> None:
    """Create one of the bindings that a namespace needs, as the overlay has it."""
    [binding] = [
        obj
        for obj in of_kind(await kubectl.rendered("namespaced"), "RoleBinding")
        if unstructured.name(obj) == name and unstructured.namespace(obj) == "default"
    ]
    unstructured.metadata(binding)["namespace"] = namespace
    await platform.cluster.create(ROLE_BINDINGS, binding, namespace=namespace)


async def _narrow_roles(platform: Platform) -> None:
    """Replace the rules of the shipped roles by those that the controller needs; a review tells the difference."""
    controller = parse_controller(composite("deployed", parent=THINGS, hook_url="http://127.0.0.1:1/sync", children=[child_rule()]))
    needs = {service: needs_of(service, [controller]) for service in RbacService}
    async with KubeClient.connect(str(platform.plane.kubeconfig_path)) as kube:
        shipped = {str(finding) for finding in await review(kube, needs, namespace=NAMESPACE)}
        assert "reconciler need not, but may list secrets" in shipped
        assert not [finding for finding in shipped if "may not" in finding]

        for service, needed in needs.items():
            rules: JsonObject = {"rules": [*rules_of(needed)]}
            await platform.cluster.patch(CLUSTER_ROLES, "", f"metaloop-{service}", rules)
        await eventually(lambda: _nothing_differs(kube, needs))


async def _nothing_differs(kube: KubeClient, needs: Mapping[RbacService, Sequence[Need]]) -> None:
    """The API server's authorizer follows changed roles a moment later."""
    findings = await review(kube, needs, namespace=NAMESPACE)
    expect(not findings, f"{[str(finding) for finding in findings]}")


async def _nats_manifest(kubectl: Kubectl, overlay: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The configuration files of the NATS servers, and the environment of their container."""
    objects = await kubectl.rendered(overlay)
    [config] = [obj for obj in of_kind(objects, "ConfigMap") if unstructured.name(obj).startswith("nats-")]
    [container] = containers(of_kind(objects, "StatefulSet"))
    return unstructured.strings(config.get("data")), container.environment


def _nats(
    folder: Path,
    manifest: tuple[Mapping[str, str], Mapping[str, str]],
    secret: Mapping[str, str],
    ports: tuple[int, int, int],
    peers: Sequence[int] = (),
) -> Program:
    """A server of that cluster on this machine, with ports of its own for clients, monitoring and peers."""
    files, environment = manifest
    folder.mkdir()
    own: dict[str, str] = dict(zip(("4222", "8222", "6222"), map(str, ports), strict=True))
    for name, text in files.items():
        ported = re.sub(r"(?<=port: )\d+", lambda match: own[match[0]], text)
        (folder / name).write_text(ported.replace("/data", str(folder / "data")))
    return Program(
        name="nats",
        argv=(str(nats_server()), "--config", str(folder / "nats.conf")),
        env={**_resolved(environment, secret, peers), "NATS_SERVER_NAME": folder.name},
        ready=probes.tcp_greets(LOOPBACK, ports[0], greeting=b"INFO "),
        folder=folder,
    )


def _resolved(environment: Mapping[str, str], secret: Mapping[str, str], peers: Sequence[int]) -> dict[str, str]:
    """The variables as the kubelet sets them, with the peers' addresses on this machine."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        text = secret[value.removeprefix(f"{SECRET}/")] if value.startswith(f"{SECRET}/") else value
        for known, known_value in found.items():
            text = text.replace(f"$({known})", known_value)
        for number, port in enumerate(peers):
            text = text.replace(f"nats-{number}.nats:6222", f"{LOOPBACK}:{port}")
        found[name] = text
    return found


@asynccontextmanager
async def _nats_of_the_overlay(kubectl: Kubectl, secret: Mapping[str, str], folder: Path) -> AsyncIterator[int]:
    """The NATS server of `dev`; yields its port."""
    port, monitor = free_ports(2)
    async with group() as daemons:
        await daemons.start(_nats(folder / "nats-0", await _nats_manifest(kubectl, "dev"), secret, (port, monitor, 0)))
        yield port


async def _provided(platform: Platform, folder: Path) -> dict[str, str]:
    """The credentials, made by the Job's program with the Job's account."""
    account = await Account.existing(platform.plane, platform.cluster, namespace=NAMESPACE, name="credentials", folder=folder)
    environment = {**os.environ, "METALOOP_KUBECONFIG": str(account.kubeconfig_path)}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "metaloop.common.kube.provision", env=environment)
    assert await process.wait() == 0
    data = unstructured.child_object(await platform.cluster.get(SECRETS, NAMESPACE, SECRET), "data")
    return {key: b64decode(str(value)).decode() for key, value in data.items()}


async def _install(kubectl: Kubectl, platform: Platform, overlay: str) -> None:
    """The overlay as a user installs it."""
    apply = ("apply", "--kubeconfig", str(platform.plane.kubeconfig_path), "--server-side", "--force-conflicts", "-k")
    await kubectl(*apply, str(OVERLAYS / overlay))


@asynccontextmanager
async def _deployed(platform: Platform, folder: Path, secret: Mapping[str, str], nats_port: int, **of_watcher: str) -> AsyncIterator[Stack]:
    """The three services, each with its account and login in the cluster; further settings of the watcher."""
    ports = dict(zip(SERVICES, free_ports(len(SERVICES)), strict=True))
    shared = {
        "GATEWAY_URL": f"http://{LOOPBACK}:{ports['hookgateway']}",
        "GATEWAY_TOKEN": secret["gateway"],
        "LEADER_ELECTION": "true",
        "LEADER_NAMESPACE": NAMESPACE,
    }
    async with group() as daemons:
        running: dict[str, Service] = {}
        for name, port in ports.items():
            login = f"{secret.get(f'nats-{name}-user', '')}:{secret.get(f'nats-{name}-password', '')}"
            own = of_watcher if name == "watcher" else {}
            settings = {**shared, **own, "PORT": str(port), "NATS_URL": f"nats://{login}@{LOOPBACK}:{nats_port}"}
            running[name] = await _service(daemons, platform, name, settings, folder)
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
