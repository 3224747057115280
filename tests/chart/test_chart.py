"""The Helm chart: it renders the same objects as deploy/kustomize, and puts its values where they belong."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.assets import ensure, ensure_helm
from metaloop.devkit.assets.programs import kubernetes_version
from metaloop.devkit.controlplane import ControlPlane
from release.chart import package_chart

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
OVERLAYS = ROOT / "deploy" / "kustomize" / "overlays"
COMPONENTS = ROOT / "deploy" / "kustomize" / "components"
OF_HELM = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"}
NOT_RENDERED: Mapping[str, str] = {"Namespace": "--create-namespace makes it", "CustomResourceDefinition": "in the folder crds"}
"""Kinds that the chart does not render, and why."""


class Helm:
    """The real helm."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever that is."""
        return subprocess.run([self._program, *arguments], capture_output=True, text=True, check=False)

    def rendered(self, *options: str) -> list[JsonObject]:
        """The chart's objects; fails with what helm complains about."""
        version = ("--kube-version", kubernetes_version())
        done = self("template", "metaloop", str(CHART), "--namespace", "metaloop", *version, *options)
        assert done.returncode == 0, done.stderr
        return [obj for obj in yaml.safe_load_all(done.stdout) if obj]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def helm() -> Helm:
    return Helm(await ensure_helm())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kubectl() -> Path:
    return await ensure() / "kubectl"


Kustomized = Callable[..., list[JsonObject]]


@pytest.fixture
def kustomized(kubectl: Path, tmp_path: Path) -> Kustomized:
    """The objects of the base with some components."""

    def render(*components: str) -> list[JsonObject]:
        overlay: JsonObject = {
            "resources": [_relative(ROOT / "deploy/kustomize/base", tmp_path)],
            "components": [_relative(COMPONENTS / name, tmp_path) for name in components],
        }
        (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))
        done = subprocess.run([kubectl, "kustomize", tmp_path], capture_output=True, text=True, check=True)
        return list(yaml.safe_load_all(done.stdout))

    return render


@pytest.mark.parametrize(
    ("options", "components"),
    [
        ((), ("credentials",)),
        (("--set", "highAvailability=true"), ("credentials", "ha")),
        (("--set", "credentials.create=false"), ()),
        (("--set", "logLevel=debug", "--set-string", "watcher.env.METALOOP_DEBUG_PORT=8091"), ("credentials", "debug")),
        (("--set", "reconciler.applyStrategy=server-side-apply"), ("credentials", "ssa")),
        (("--set", "rbac.releaseFinalizers=true,rbac.escalate=true"), ("credentials", "release-finalizers", "escalate")),
        (("--set", "tls.enabled=true"), ("credentials", "tls")),
        (("--set", "tls.enabled=true,highAvailability=true"), ("credentials", "ha", "tls")),
    ],
    ids=[
        "default",
        "highAvailability",
        "own credentials",
        "debug",
        "server-side apply",
        "further rights",
        "TLS",
        "TLS with highAvailability",
    ],
)
def test_chart_renders_what_kustomize_renders(helm: Helm, kustomized: Kustomized, options: tuple[str, ...], components: tuple[str, ...]):
    expected = by_name(kustomized(*components))

    found = by_name(helm.rendered(*options))

    assert found.keys() == expected.keys()
    for name, obj in expected.items():
        assert found[name] == obj, name


def test_chart_for_some_namespaces_renders_what_the_overlay_does(helm: Helm, kubectl: Path):
    options = ("watcher.replicas=1", "reconciler.replicas=1", "hookgateway.replicas=1", "image.tag=dev", "namespaces={default}")
    done = subprocess.run([kubectl, "kustomize", OVERLAYS / "namespaced"], capture_output=True, text=True, check=True)

    found = by_name(helm.rendered(*(word for option in options for word in ("--set", option))))

    assert found == by_name(list(yaml.safe_load_all(done.stdout)))


def test_each_namespace_has_bindings_of_its_own(helm: Helm):
    objects = helm.rendered("--set", "namespaces={shop,stock}")

    bound = {
        unstructured.namespace(obj) for obj in objects if obj["kind"] == "RoleBinding" and unstructured.name(obj) == "metaloop-reconciler"
    }
    assert bound == {"shop", "stock"}


def test_the_api_server_may_have_other_ports(helm: Helm):
    objects = by_name(helm.rendered("--set", "networkPolicy.apiServerPorts={16443}"))

    for name in ("watcher", "reconciler"):
        policy = objects[f"NetworkPolicy/metaloop/{name}"]
        assert is_object(policy)
        open_to_all = unstructured.child_objects(unstructured.child_object(policy, "spec"), "egress")[0]
        assert [entry["port"] for entry in unstructured.child_objects(open_to_all, "ports")] == [53, 53, 4318, 16443]


def test_crds_are_those_that_kustomize_installs(kustomized: Kustomized):
    in_chart = [yaml.safe_load(file.read_text()) for file in sorted((CHART / "crds").iterdir())]

    installed = [obj for obj in kustomized() if obj["kind"] == "CustomResourceDefinition"]

    assert {unstructured.name(crd): crd["spec"] for crd in in_chart} == {unstructured.name(crd): crd["spec"] for crd in installed}


def test_chart_passes_lint(helm: Helm):
    done = helm("lint", "--strict", str(CHART), "--kube-version", kubernetes_version())

    assert done.returncode == 0, done.stdout


def test_packaged_chart_renders_the_same(helm: Helm, tmp_path: Path):
    """The files that are links in the repository are in the package."""
    assert helm("package", str(CHART), "--destination", str(tmp_path)).returncode == 0
    [package] = tmp_path.glob("metaloop-*.tgz")

    done = helm("template", "metaloop", str(package), "--namespace", "metaloop", "--kube-version", kubernetes_version())

    assert [obj for obj in yaml.safe_load_all(done.stdout) if obj] == helm.rendered()


def test_published_chart_renders_the_same(helm: Helm, tmp_path: Path):
    package_chart(CHART, tmp_path / "chart.tgz")

    done = helm("template", "metaloop", str(tmp_path / "chart.tgz"), "--namespace", "metaloop", "--kube-version", kubernetes_version())

    assert [obj for obj in yaml.safe_load_all(done.stdout) if obj] == helm.rendered()


@pytest.mark.parametrize(
    "values",
    [
        {"image": {"repositry": "x"}},
        {"logLevel": "loud"},
        {"watcher": {"replicas": "two"}},
        {"watcher": {"env": {"METALOOP_DEBUG_PORT": 8091}}},
        {"reconcilers": {}},
    ],
    ids=["misspelt", "no such level", "no number", "a number as a setting", "no such part"],
)
def test_values_that_mean_nothing_are_refused(helm: Helm, tmp_path: Path, values: JsonObject):
    (tmp_path / "values.yaml").write_text(json.dumps(values))

    done = helm("template", "metaloop", str(CHART), "--kube-version", kubernetes_version(), "--values", str(tmp_path / "values.yaml"))

    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr


def test_values_reach_the_pods(helm: Helm):
    options = ("image.repository=registry.example.com/metaloop", "image.tag=v2", "priorityClassName=high", "nodeSelector.disk=ssd")
    objects = helm.rendered(*(word for option in options for word in ("--set", option)), "--set", "imagePullSecrets[0].name=pull")

    for workload in (obj for obj in objects if obj["kind"] in ("Deployment", "Job")):
        pod = unstructured.child_object(unstructured.child_object(unstructured.child_object(workload, "spec"), "template"), "spec")
        [container] = unstructured.child_objects(pod, "containers")
        assert container["image"] == "registry.example.com/metaloop:v2"
        assert (pod["priorityClassName"], pod["nodeSelector"], pod["imagePullSecrets"]) == ("high", {"disk": "ssd"}, [{"name": "pull"}])


def test_an_autoscaler_may_own_the_replicas(helm: Helm):
    objects = by_name(helm.rendered("--set", "reconciler.replicas=null"))

    reconciler = objects["Deployment/metaloop/reconciler"]
    assert is_object(reconciler)
    assert "replicas" not in unstructured.child_object(reconciler, "spec")


def test_rules_of_a_role_can_be_narrowed(helm: Helm):
    rules = [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}]

    objects = helm.rendered("--set-json", f"clusterRole.reconciler={json.dumps(rules)}")

    found = {unstructured.name(obj): obj["rules"] for obj in objects if obj["kind"] == "ClusterRole"}
    assert found["metaloop-reconciler"] == rules
    assert found["metaloop-watcher"] != rules


def test_everything_is_in_the_namespace_of_the_release(helm: Helm):
    objects = helm.rendered("--namespace", "elsewhere")

    for obj in objects:
        assert unstructured.namespace(obj) == ("" if str(obj["kind"]).startswith("Cluster") else "elsewhere")
        assert {str(subject.get("namespace")) for subject in unstructured.child_objects(obj, "subjects")} <= {"elsewhere"}


@pytest.mark.parametrize(
    ("option", "kinds"), [("nats.enabled=false", {"StatefulSet", "ConfigMap"}), ("networkPolicy.enabled=false", {"NetworkPolicy"})]
)
def test_a_part_can_be_left_out(helm: Helm, option: str, kinds: set[str]):
    assert {str(obj["kind"]) for obj in helm.rendered("--set", option)} & kinds == set()


def test_a_real_api_server_takes_the_chart(helm: Helm, kubectl: Path, shared_plane: ControlPlane):
    """Rendered as for an upgrade with all that there is, in a namespace that admits restricted pods only."""
    kubeconfig = ("--kubeconfig", str(shared_plane.kubeconfig_path))
    labels: JsonObject = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "charted", "labels": labels}}
    subprocess.run([kubectl, *kubeconfig, "create", "-f", "-"], input=json.dumps(namespace), text=True, check=True, capture_output=True)
    objects = helm.rendered("--namespace", "charted", "--set", "highAvailability=true", "--include-crds")

    dry_run = [kubectl, *kubeconfig, "apply", "--server-side", "--dry-run=server", "-f", "-"]
    done = subprocess.run(dry_run, input=yaml.safe_dump_all(objects), capture_output=True, text=True, check=False)

    assert (done.returncode, len(done.stdout.splitlines())) == (0, len(objects)), done.stderr
    assert "Warning" not in done.stderr


def by_name(objects: Iterable[JsonObject]) -> dict[str, JsonValue]:
    """Objects by kind and name, without what only Helm or only kustomize adds."""
    found: dict[str, JsonValue] = {}
    hashed = next((unstructured.name(obj) for obj in objects if obj["kind"] == "ConfigMap"), "no ConfigMap")
    for obj in objects:
        if obj["kind"] in NOT_RENDERED:
            continue
        plain = json.loads(json.dumps(obj).replace(hashed, "nats-hashed"))
        plain["metadata"].pop("annotations", None)
        plain["metadata"]["labels"] = {key: value for key, value in unstructured.labels(obj).items() if key not in OF_HELM}
        plain.get("spec", {}).pop("ttlSecondsAfterFinished", None)
        found[f"{obj['kind']}/{plain['metadata'].get('namespace', '')}/{plain['metadata']['name']}"] = in_order(plain)
    return found


def in_order(value: JsonValue) -> JsonValue:
    """The same value, with lists of named things by their names: merges differ in their order alone."""
    if is_object(value):
        return {key: in_order(entry) for key, entry in value.items()}
    if isinstance(value, list):
        entries = [in_order(entry) for entry in value]
        named = [(str(entry["name"]), entry) for entry in entries if is_object(entry) and "name" in entry]
        return [entry for _, entry in sorted(named, key=lambda pair: pair[0])] if len(named) == len(entries) else entries
    return value


def _relative(path: Path, start: Path) -> str:
    """kustomize takes no absolute paths."""
    return os.path.relpath(path, start.resolve())
