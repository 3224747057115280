"""The load of map controllers: one parent, and the ConfigMaps that it selects as its inputs."""

import time
from collections.abc import Sequence
from typing import Final

from bench.load import counting, in_parallel
from bench.system import NAMESPACE, PARENTS, System
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.unstructured import child_object, integer, text
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.manifests import config_map, parent

PARENT: Final = "large"
_WITHIN_SECONDS = 1_200.0


def inputs(count: int) -> list[str]:
    """The names of so many inputs."""
    return [f"i{number}" for number in range(count)]


async def create_inputs(cluster: Cluster, names: Sequence[str]) -> None:
    """Create inputs with the text `first`."""
    labels = {"input": "yes"}
    manifests = (config_map(name, labels=labels, data={"text": "first"}) for name in names)
    await in_parallel(cluster.create(CONFIG_MAPS, manifest, namespace=NAMESPACE) for manifest in manifests)


async def seconds_to_map(system: System, count: int) -> float:
    """Create the parent; the seconds from then until so many outputs exist. Its status counts them by now, too."""
    manifest = parent(PARENTS, PARENT, namespace=NAMESPACE, spec={"selector": {"matchLabels": {"input": "yes"}}, "text": "first"})
    async with (
        counting(system.cluster, is_output, resource=CONFIG_MAPS) as outputs,
        counting(system.cluster, lambda obj: is_mapped(obj, count)) as parents,
    ):
        start = time.monotonic()
        await system.cluster.create(PARENTS, manifest, namespace=NAMESPACE)
        seconds = await outputs.reach(count, within_seconds=_WITHIN_SECONDS) - start
        await parents.reach(1, within_seconds=_WITHIN_SECONDS)
    return seconds


def is_output(obj: JsonObject) -> bool:
    """Whether a ConfigMap is an output of the parent."""
    return unstructured.labels(obj).get("of") == PARENT


def is_mapped(obj: JsonObject, count: int) -> bool:
    """Whether the status of the parent says that so many inputs are mapped to as many outputs, and that all is well."""
    status = child_object(obj, "status")
    totals = [integer(child_object(child_object(status, key), CONFIG_MAPS.resource), "total") for key in ("inputs", "outputs")]
    ready = [text(each, "status") for each in unstructured.child_objects(status, "conditions") if text(each, "type") == "Ready"]
    return totals == [count, count] and ready == ["True"]


async def bytes_of_a_pair(cluster: Cluster) -> int:
    """The bytes of an input and its output as the watcher keeps them: all are alike."""
    found = [await cluster.get(CONFIG_MAPS, NAMESPACE, name) for name in ("i0", "i0-out")]
    for obj in found:
        unstructured.metadata(obj).pop("managedFields", None)
    return sum(len(dumps(obj)) for obj in found)
