"""Random series of desired objects on a real API server: each is applied once, and earlier ones leave no trace."""

from random import Random
from typing import TypeVar

import pytest
from onechild import OneChild

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.kinds import KINDS
from metaloop.reconciler.schemas import Schemas

pytestmark = pytest.mark.e2e

T = TypeVar("T")

STRATEGIES = ["dynamic-apply", "server-side-apply"]
_ROUNDS = 15
_ALLOCATED = ("clusterIP", "clusterIPs")


class RandomSpecs:
    """Random specs, which are the same for each seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def strategy(self) -> str:
        """One of the two strategies."""
        return self._random.choice(STRATEGIES)

    def service(self) -> JsonObject:
        """A Service's spec: ports with the same number, defaults stated and left out."""
        ports: list[JsonValue] = [self._port(*each) for each in self._some([(53, "TCP"), (53, "UDP"), (80, None), (81, None)], at_least=1)]
        spec: JsonObject = {"ports": ports, "selector": self._one({}, {"a": "b"}, {"a": "c", "d": "e"})}
        return {**spec, **self._maybe(sessionAffinity=("None", "ClientIP"), publishNotReadyAddresses=(True, False))}

    def deployment(self) -> JsonObject:
        """A Deployment's spec: lists of every type, quantities, empty values."""
        pod: JsonObject = {
            "containers": [self._container(name) for name in self._some(["x", "y", "z"], at_least=1)],
            **self._maybe(
                tolerations=([], [{"key": "a", "operator": "Exists"}]),
                nodeSelector=({}, {"a": "b"}),
                hostNetwork=(False,),
                imagePullSecrets=([], [{"name": "p"}], [{"name": "q"}, {"name": "p"}]),
                volumes=([], [{"name": "v", "emptyDir": {}}], [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]),
            ),
        }
        template: JsonObject = {"metadata": {"labels": {"q": "r", **self._maybe(s=("t", "u"))}}, "spec": pod}
        return {"replicas": 0, "selector": {"matchLabels": {"q": "r"}}, "template": template, **self._maybe(minReadySeconds=(0, 1))}

    def _container(self, name: str) -> JsonObject:
        return {
            "name": name,
            "image": self._one("a", "b"),
            **self._maybe(
                env=([{"name": "A", "value": ""}], [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]),
                resources=({}, {"limits": {"cpu": "1000m"}}, {"limits": {"cpu": 2, "memory": "1024Mi"}}),
                args=([], ["a"], ["a", "b"]),
                ports=([{"containerPort": 1}], [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]),
                livenessProbe=({"httpGet": {"port": 1}}, {"tcpSocket": {"port": "x"}}, {"exec": {"command": ["a"]}, "periodSeconds": 3}),
                tty=(True, False),
            ),
        }

    def _port(self, port: int, protocol: str | None) -> JsonObject:
        said: JsonObject = {"protocol": protocol} if protocol else {}
        return {"port": port, "name": f"n{port}{(protocol or 'TCP').lower()}", **said, **self._maybe(targetPort=(8080, "http"))}

    def _maybe(self, **fields: tuple[JsonValue, ...]) -> JsonObject:
        return {name: self._one(*values) for name, values in fields.items() if self._random.random() < 0.4}

    def _one(self, *values: JsonValue) -> JsonValue:
        return self._random.choice(values)

    def _some(self, values: list[T], *, at_least: int) -> list[T]:
        return self._random.sample(values, self._random.randint(at_least, len(values)))


@pytest.fixture(params=["Service", "Deployment"])
def child(request: pytest.FixtureRequest, kube: KubeClient, schemas: Schemas, parent: JsonObject) -> OneChild:
    """A child of some kind."""
    return OneChild(kube=kube, schemas=schemas, parent=parent, info=KINDS[request.param].info, name="a", strategy="")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strategy", [*STRATEGIES, "in turn"])
async def test_each_desired_object_is_applied_once(child: OneChild, strategy: str, seed: int):
    specs, child.strategy = RandomSpecs(seed), strategy
    for _ in range(_ROUNDS):
        if strategy == "in turn":
            child.strategy = specs.strategy()
        desired = _desired(child, specs.service() if child.info.kind == "Service" else specs.deployment())

        changed, at_rest = await child.sync(desired), await child.sync(desired)

        assert (changed.failures, at_rest.failures, at_rest.done) == ((), (), ()), desired
        assert _without_empties(await _spec(child)) == _without_empties(await _spec_of_a_new_one(child, desired)), desired


async def _spec_of_a_new_one(child: OneChild, desired: JsonObject) -> JsonObject:
    """The spec of a new child for which nothing was desired before."""
    other = OneChild(kube=child.kube, schemas=child.schemas, parent=child.parent, info=child.info, name="b", strategy="dynamic-apply")
    await other.sync({**desired, "metadata": {**unstructured.metadata(desired), "name": "b"}})
    spec = await _spec(other)
    await child.kube.delete(child.info, child.namespace, "b", uid=unstructured.uid(await other.existing()))
    return spec


async def _spec(child: OneChild) -> JsonObject:
    spec = unstructured.child_object(await child.existing(), "spec")
    return {key: value for key, value in spec.items() if key not in _ALLOCATED}


def _desired(child: OneChild, spec: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": child.name, "namespace": child.namespace}
    return {"apiVersion": child.info.api_version, "kind": child.info.kind, "metadata": metadata, "spec": spec}


def _without_empties(value: JsonValue) -> JsonValue:
    """`value` without empty parts, and with list maps in a fixed order."""
    if isinstance(value, dict):
        parts = {key: _without_empties(each) for key, each in value.items()}
        return {key: each for key, each in parts.items() if each not in ({}, [], None)}
    if isinstance(value, list):
        elements = [_without_empties(each) for each in value]
        return sorted(elements, key=repr) if elements and isinstance(elements[0], dict) else elements
    return value
