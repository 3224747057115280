"""DecoratorControllers before a real API server: objects of any kind are selected and deselected as they change."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metaloop.common.api.decorator import KIND
from metaloop.common.api.kinds import KINDS
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject, JsonValue, loads
from metaloop.common.objects import unstructured
from metaloop.common.observation import CachedObservation
from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.manifests import config_map
from metaloop.watcher.core.instance import Instance

from .scenes import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

_NAMESPACES: JsonObject = {"apiVersion": "v1", "resource": "namespaces"}
_CONFIG_MAPS: JsonObject = {"apiVersion": "v1", "resource": "configmaps"}

DECORATORS = KINDS[KIND].resource


class Decorating:
    """A scene with a DecoratorController of tagged ConfigMaps in it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.id = ControllerId("DecoratorController", scene.name)
        self._namespace = scene.namespace

    @property
    def cluster(self) -> Cluster:
        return self.scene.cluster

    @property
    def running(self) -> Instance | None:
        return self.scene.watcher.routing.running.get(self.id)

    async def install(self, **spec: JsonValue) -> None:
        tagged: JsonObject = {**_CONFIG_MAPS, "annotationSelector": {"matchAnnotations": {"scene": self.scene.name}}}
        manifest: JsonObject = {
            "apiVersion": DECORATORS.api_version,
            "kind": DECORATORS.kind,
            "metadata": {"name": self.scene.name},
            "spec": {
                "resources": [tagged],
                "attachments": [{"apiVersion": "v1", "resource": "serviceaccounts"}],
                "hooks": {"sync": {"webhook": {"url": "http://127.0.0.1:1/"}}},
                **spec,
            },
        }
        await self.cluster.create(DECORATORS, manifest)

    async def runs(self) -> None:
        await eventually(lambda: self.running is not None)

    async def create(self, name: str) -> None:
        await self.cluster.create(CONFIG_MAPS, config_map(name, namespace=self._namespace), namespace=self._namespace)

    async def tag(self, name: str, tag: str | None = "") -> None:
        """Annotate a ConfigMap as ours, or not any more."""
        value = self.scene.name if tag == "" else tag
        await self.cluster.patch(CONFIG_MAPS, self._namespace, name, {"metadata": {"annotations": {"scene": value}}})

    def parents(self) -> int:
        return self.scene.watcher.routing.router.stats[self.id].parents

    def marks(self) -> dict[str, str]:
        return {e.key.name: e.mark.reason for e in self.scene.watcher.routing.queue.entries() if e.mark and e.key.controller == self.id}


@pytest_asyncio.fixture(loop_scope="session")
async def decorating(scene: Scene) -> AsyncIterator[Decorating]:
    decorating = Decorating(scene)
    yield decorating
    await scene.cluster.delete(DECORATORS, "", scene.name)


async def test_an_object_is_a_parent_for_as_long_as_its_annotations_match(decorating: Decorating):
    await decorating.install()
    await decorating.runs()
    await decorating.create("c")

    await decorating.tag("c")
    await eventually(lambda: decorating.marks() == {"c": f"ConfigMap {decorating.scene.namespace}/c changed"})
    assert decorating.parents() == 1
    await decorating.tag("c", None)

    await eventually(lambda: decorating.parents() == 0)


async def test_objects_of_several_resources_are_parents_side_by_side(decorating: Decorating):
    mine: JsonObject = {"labelSelector": {"matchLabels": {"kubernetes.io/metadata.name": decorating.scene.namespace}}}
    await decorating.install(resources=[{**_NAMESPACES, **mine}, _CONFIG_MAPS])
    await decorating.runs()
    await decorating.create("c")

    await eventually(lambda: {"c", decorating.scene.namespace} <= decorating.marks().keys())
    key = JobKey(decorating.id, NAMESPACES.id, "", decorating.scene.namespace)
    seen = decorating.scene.watcher.routing.observer.observe(key)
    assert isinstance(seen, CachedObservation)
    assert unstructured.kind(loads(seen.parent)) == "Namespace"
    assert seen.parent_resource.has_status


async def test_attachments_are_what_the_object_owns_and_orphans_are_none(decorating: Decorating):
    await decorating.install(attachments=[_CONFIG_MAPS])
    await decorating.runs()
    await decorating.create("owner")
    await decorating.create("orphan")
    await decorating.tag("owner")
    owner = await decorating.cluster.get(CONFIG_MAPS, decorating.scene.namespace, "owner")
    reference: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": unstructured.uid(owner), "controller": True}
    owned = config_map("owned", namespace=decorating.scene.namespace)
    unstructured.metadata(owned)["ownerReferences"] = [reference]
    await decorating.cluster.create(CONFIG_MAPS, owned, namespace=decorating.scene.namespace)

    key = JobKey(decorating.id, CONFIG_MAPS.id, decorating.scene.namespace, "owner")

    def attachments() -> list[str]:
        seen = decorating.scene.watcher.routing.observer.observe(key)
        return [unstructured.name(loads(each)) for each in seen.children[0].objects] if isinstance(seen, CachedObservation) else []

    await eventually(lambda: attachments() == ["owned"])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"resources": [_CONFIG_MAPS, _CONFIG_MAPS]}, "is listed twice"),
        (
            {"resources": [{**_CONFIG_MAPS, "annotationSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]},
            "spec.resources[0].annotationSelector.matchExpressions[0].operator",
        ),
        ({"attachments": [{"apiVersion": "v1", "resource": "nonsenses"}]}, "waiting for v1/nonsenses"),
    ],
)
async def test_what_keeps_a_decorator_from_running_is_told(decorating: Decorating, spec: dict[str, JsonValue], words: str):
    await decorating.install(**spec)

    await decorating.scene.told(words)
    assert decorating.running is None


async def test_a_decorator_and_a_composite_of_one_name_are_two(decorating: Decorating):
    await decorating.install()
    await decorating.scene.install_served()

    await decorating.runs()

    assert {type(instance.controller).__name__ for instance in decorating.scene.watcher.routing.running} == {
        "CompositeController",
        "DecoratorController",
    }
