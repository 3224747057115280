"""The permissions that controllers need: computed from their specs, for each service, and without a wildcard."""

from pathlib import Path

import pytest
import yaml

from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import KINDS, parse_controller
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId
from metaloop.devkit.rbac.manifests import roles
from metaloop.devkit.rbac.rules import Need, Service, generates, needs_of, rules_of, selects_related
from metaloop.watcher.core.kinds.registry import WORLDS

EXAMPLES = Path(__file__).parents[4] / "examples"
WATCHER, RECONCILER = Service.WATCHER, Service.RECONCILER


def composite(*, method: str = "InPlace", annotations: JsonObject | None = None, **hooks: JsonObject) -> Controller:
    spec: JsonObject = {
        "parentResource": {"apiVersion": "example.com/v1", "resource": "things"},
        "childResources": [{"apiVersion": "apps/v1", "resource": "deployments", "updateStrategy": {"method": method}}],
        "hooks": {"sync": {"webhook": {"url": "http://hook.example.com/sync"}}, **hooks},
    }
    return parse_controller(
        {
            "apiVersion": "metacontroller.k8s.io/v1alpha1",
            "kind": "CompositeController",
            "metadata": {"name": "c", "uid": "u", "generation": 1, "resourceVersion": "1", "annotations": annotations or {}},
            "spec": spec,
        }
    )


def verbs(
    service: Service, resource: str, *controllers: Controller, related: tuple[ResourceId, ...] = (), generated: tuple[ResourceId, ...] = ()
) -> set[str]:
    needs = needs_of(service, controllers, related=related, generated=generated)
    found = [need for need in needs if need.resource == resource and not need.names]
    return {verb for need in found for verb in need.verbs}


@pytest.mark.parametrize(
    ("service", "resource", "expected"),
    [
        (WATCHER, "things", {"get", "list", "watch"}),
        (WATCHER, "deployments", {"get", "list", "watch"}),
        (WATCHER, "compositecontrollers/status", {"patch"}),
        (WATCHER, "secrets", set()),
        (WATCHER, "things/status", set()),
        (RECONCILER, "things", {"get", "patch", "update"}),
        (RECONCILER, "things/status", {"patch", "update"}),
        (RECONCILER, "things/finalizers", {"update"}),
        (RECONCILER, "deployments", {"create", "delete", "get", "patch", "update"}),
        (RECONCILER, "controllerrevisions", set()),
        (RECONCILER, "secrets", set()),
        (RECONCILER, "events", {"create", "patch"}),
    ],
)
def test_a_service_needs_for_a_composite_controller(service: Service, resource: str, expected: set[str]):
    assert verbs(service, resource, composite()) == expected


def test_a_rolling_update_needs_revisions():
    assert verbs(RECONCILER, "controllerrevisions", composite(method="RollingInPlace")) >= {"create", "delete", "update"}


def test_the_inputs_of_a_map_are_read_and_not_written():
    controller = parse_controller(yaml.safe_load((EXAMPLES / "snapshot-schedule" / "controller.yaml").read_text()))
    [volumes] = [resource for resource in WORLDS[controller.kind].required(controller) if resource.resource == "persistentvolumeclaims"]

    assert verbs(WATCHER, volumes.resource, controller) == {"get", "list", "watch"}
    assert verbs(RECONCILER, volumes.resource, controller) == set()


def test_service_account_that_a_component_acts_as_is_the_only_one_that_may_be_impersonated():
    manifest = yaml.safe_load((EXAMPLES / "webapp" / "controller.yaml").read_text())
    manifest["spec"]["defaultServiceAccount"] = "deployer"

    needs = [each for each in needs_of(RECONCILER, [parse_controller(manifest)]) if "impersonate" in each.verbs]

    assert [(each.resource, each.names) for each in needs] == [("serviceaccounts", ("deployer",))]


def test_what_a_customize_hook_selects_has_to_be_named():
    controller = composite(customize={"webhook": {"url": "http://hook.example.com/customize"}})

    assert selects_related([controller]) == [controller]
    assert verbs(WATCHER, "secrets", controller) == set()
    assert verbs(WATCHER, "secrets", controller, related=(ResourceId("v1", "secrets"),)) == {"get", "list", "watch"}
    assert verbs(WATCHER, "namespaces", controller) == {"get", "list", "watch"}
    assert verbs(WATCHER, "namespaces", composite()) == set()


def test_what_a_generator_returns_has_to_be_named():
    controller = parse_controller(
        {
            "apiVersion": "metaloop.dev/v1alpha1",
            "kind": "ComponentController",
            "metadata": {"name": "c", "uid": "u", "generation": 1, "resourceVersion": "1"},
            "spec": {
                "prefix": "c.example.com",
                "parentResource": {"apiVersion": "example.com/v1", "resource": "things"},
                "generator": {"webhook": {"url": "http://hook.example.com/generate"}},
            },
        }
    )
    deployments = ResourceId("apps/v1", "deployments")

    assert generates([controller, composite()]) == [controller]
    assert verbs(RECONCILER, "deployments", controller) == set()
    assert verbs(RECONCILER, "deployments", controller, generated=(deployments,)) == {"create", "delete", "get", "patch", "update"}
    assert verbs(WATCHER, "deployments", controller, generated=(deployments,)) == {"get", "list", "watch"}


def test_finalizers_are_taken_off_the_parents_of_annotated_controllers_alone():
    annotated = composite(annotations={"metaloop.dev/on-deletion": "release-finalizers"})

    assert verbs(WATCHER, "things", annotated) == {"get", "list", "patch", "watch"}
    assert verbs(WATCHER, "things", composite()) == {"get", "list", "watch"}


def test_the_uid_of_the_cluster_may_be_read_and_no_other_namespace():
    [need] = [need for need in needs_of(RECONCILER, [composite()]) if need.resource == "namespaces"]

    assert (need.verbs, need.names) == (("get",), ("kube-system",))


def test_two_controllers_of_one_resource_need_it_once():
    needs = needs_of(RECONCILER, [composite(), composite()])

    assert len({(need.group, need.resource, need.names) for need in needs}) == len(needs)


@pytest.mark.parametrize("example", sorted(folder.name for folder in EXAMPLES.iterdir() if (folder / "controller.yaml").exists()))
@pytest.mark.parametrize("service", Service)
def test_no_need_of_an_example_has_a_wildcard(service: Service, example: str):
    documents = list(yaml.safe_load_all((EXAMPLES / example / "controller.yaml").read_text()))
    controllers = [parse_controller(document) for document in documents if document["kind"] in KINDS]

    for rule in rules_of(needs_of(service, controllers)):
        assert "*" not in str(rule)


def test_needs_that_differ_in_nothing_but_the_resource_are_one_rule():
    needs = [Need(group="g", resource="a", verbs=("get",)), Need(group="g", resource="b", verbs=("get",))]

    assert rules_of(needs) == [{"apiGroups": ["g"], "resources": ["a", "b"], "verbs": ["get"]}]


def test_roles_have_the_names_that_the_manifests_install():
    made = roles({service: needs_of(service, [composite()]) for service in Service})

    assert [role["metadata"]["name"] for role in made if isinstance(role["metadata"], dict)] == ["metaloop-watcher", "metaloop-reconciler"]
