"""The hooks of the examples of ComponentControllers: what each renders, and that all of it can be deployed."""

from typing import cast

import pytest
import yaml

from metaloop.common.api.component import parse_component
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.component.identity import Marks
from metaloop.reconciler.core.component.inventory import managed_types_in, scheduled
from metaloop.reconciler.core.component.target import Placement, Target, targets_of
from metaloop.reconciler.core.component.validation import require_consistent
from metaloop.reconciler.core.component.waves import STAGES, waves_of

from .hooks import EXAMPLES, Json, hook_module, names

SPECS: dict[str, Json] = {
    "webapp": {"image": "example.com/app:1", "version": "1", "greeting": "Hello", "replicas": 2},
    "operator-with-crd": {"image": "example.com/operator:1", "color": "green"},
}


class BuiltIn:
    """The kinds that every cluster has: only those without a namespace matter."""

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource of a kind."""
        if api_version.partition("/")[0].endswith("example.com"):
            return None
        namespaced = kind not in {"Namespace", "CustomResourceDefinition"}
        return ResourceInfo(api_version=api_version, resource=f"{kind.lower()}s", kind=kind, namespaced=namespaced)


def answered(example: str, **changed: object) -> Json:
    """What the hook of an example answers."""
    parent = {"metadata": {"name": "shop", "namespace": "team"}, "spec": {**SPECS[example], **changed}}
    return hook_module(example).generate({"name": "shop", "namespace": "team", "parent": parent})


def deployed(example: str, **changed: object) -> dict[str, Target]:
    """The objects of an example as they would be deployed, by kind and name, in order. Raises if they can't be."""
    controller = parse_component(yaml.safe_load((EXAMPLES / example / "controller.yaml").read_text()))
    marks = Marks(prefix=controller.prefix, owner_id="c/team/shop")
    placement = Placement(namespace="team", marks=marks, policies=controller.policies, digest="d")
    children = cast("list[JsonObject]", answered(example, **changed)["children"])
    targets = targets_of(children, placement, kinds=BuiltIn())
    items = scheduled({}, targets)
    require_consistent(items)
    waves = waves_of(targets, managed_types_in(items))
    ordered = [target for wave in waves for stage in STAGES for target in wave.stages[stage]]
    return {f"{target.key.kind} {target.key.name}": target for target in ordered}


ORDERS = {
    "webapp": ["Namespace team-shop", "ConfigMap settings", "Job migrate", "Deployment shop", "Service shop", "Job check"],
    "operator-with-crd": [
        "CustomResourceDefinition beacons.beacons.example.com",
        "ServiceAccount beacon-operator",
        "Deployment beacon-operator",
        "Beacon main",
    ],
}


@pytest.mark.parametrize("example", SPECS)
def test_objects_are_deployed_in_their_order(example: str) -> None:
    assert list(deployed(example)) == ORDERS[example]


def test_everything_of_a_web_application_is_in_its_namespace() -> None:
    rendered = answered("webapp")

    for kind in ("ConfigMap", "Job", "Deployment", "Service"):
        assert all(name.startswith("team-shop/") for name in names(rendered["children"], kind))
    assert rendered["status"] == {"url": "http://shop.team-shop"}


CHANGES: dict[str, tuple[Json, set[str]]] = {
    # what changes: (the spec, what is applied again)
    "the version": ({"version": "2"}, {"ConfigMap settings", "Job migrate", "Deployment shop", "Job check"}),
    "the greeting": ({"greeting": "Hi"}, {"ConfigMap settings", "Deployment shop"}),
    "the replicas": ({"replicas": 5}, {"Deployment shop"}),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES.keys())
def test_change_of_a_web_application_changes_these_objects(case: tuple[Json, set[str]]) -> None:
    changed, expected = case
    before, after = deployed("webapp"), deployed("webapp", **changed)

    found = {name for name, target in after.items() if target.digest != before[name].digest}

    assert found == expected


def test_jobs_of_a_web_application_are_deleted_after_their_waves() -> None:
    jobs = {name: target.settings for name, target in deployed("webapp").items() if name.startswith("Job")}

    assert {name: (each.apply_order, each.purge_order, each.update) for name, each in jobs.items()} == {
        "Job migrate": (-1, -1, "Recreate"),
        "Job check": (1, 1, "Recreate"),
    }


def test_beacon_has_the_colour_that_the_operator_names() -> None:
    assert unstructured.child_object(deployed("operator-with-crd")["Beacon main"].obj, "spec") == {"color": "green"}
