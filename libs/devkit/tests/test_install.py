"""Metaloop's CRDs in a real cluster: installed once, twice, and over CRDs of other field managers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import APPLY_PATCH, KubeClient
from metaloop.common.objects.unstructured import child_object, resource_version
from metaloop.devkit import install, manifests
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.errors import ClusterUnreachable
from metaloop.devkit.ports import LOOPBACK, free_port
from metaloop.devkit.testbed.plane import bare_plane

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

COMPOSITES = "compositecontrollers.metacontroller.k8s.io"
DECORATORS = "decoratorcontrollers.metacontroller.k8s.io"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[ControlPlane]:
    async with bare_plane() as plane:
        yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(plane.kubeconfig_path)) as client:
        yield client


async def crd(client: KubeClient, name: str) -> JsonObject:
    return await client.get(install.CRDS, "", name)


async def test_a_prepared_cluster_serves_our_kinds(plane: ControlPlane, client: KubeClient) -> None:
    await install.prepare(plane.kubeconfig_path, with_crds=True)

    answer = json.loads(await client.request("GET", "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers"))
    assert answer["items"] == []


async def test_installing_again_changes_nothing(plane: ControlPlane, client: KubeClient) -> None:
    await install.prepare(plane.kubeconfig_path, with_crds=True)
    before = resource_version(await crd(client, COMPOSITES))

    await install.prepare(plane.kubeconfig_path, with_crds=True)

    assert resource_version(await crd(client, COMPOSITES)) == before


async def test_a_crd_of_another_field_manager_stays_as_it_is(
    plane: ControlPlane, client: KubeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    await install.prepare(plane.kubeconfig_path, with_crds=True)
    theirs = next(each for each in manifests.crds() if child_object(each, "metadata")["name"] == DECORATORS)
    child_object(child_object(theirs, "spec"), "names")["shortNames"] = ["deco"]
    await client.patch(install.CRDS, "", DECORATORS, dumps(theirs), APPLY_PATCH, {"fieldManager": "somebody", "force": "true"})

    await install.prepare(plane.kubeconfig_path, with_crds=True)

    assert child_object(child_object(await crd(client, DECORATORS), "spec"), "names")["shortNames"] == ["deco"]
    assert f"{DECORATORS} was installed by somebody else" in capsys.readouterr().err


async def test_without_crds_a_cluster_only_has_to_answer(plane: ControlPlane) -> None:
    await install.prepare(plane.kubeconfig_path, with_crds=False)


async def test_a_cluster_that_refuses_us_is_reported_with_its_kubeconfig(plane: ControlPlane, tmp_path: Path) -> None:
    kubeconfig = json.loads(plane.kubeconfig_path.read_text())
    kubeconfig["users"][0]["user"] = {"token": "guessed"}
    stranger = tmp_path / "stranger"
    stranger.write_text(json.dumps(kubeconfig))

    with pytest.raises(ClusterUnreachable, match=r"stranger can't be used: .*Unauthorized"):
        await install.prepare(stranger, with_crds=True)


async def test_an_unreachable_cluster_is_reported_within_seconds(plane: ControlPlane, tmp_path: Path) -> None:
    nobody = f"https://{LOOPBACK}:{free_port()}"
    (tmp_path / "nobody").write_text(plane.kubeconfig_path.read_text().replace(plane.server_url, nobody))

    with pytest.raises(ClusterUnreachable, match=nobody.removeprefix("https://")):
        await install.prepare(tmp_path / "nobody", with_crds=True)
