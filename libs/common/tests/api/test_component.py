"""ComponentController specs: their values, the field that an error names, and what components say themselves."""

import re
from collections.abc import Callable

import pytest

from metaloop.common.api.component import (
    ComponentController,
    Intervals,
    ParentFields,
    TypePattern,
    is_suspended,
    parse_component,
    stated_intervals,
    stated_namespace,
    stated_policies,
    stated_user,
    value_at,
)
from metaloop.common.api.policies import Policies
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceId

WEBHOOK: JsonObject = {"webhook": {"url": "http://hook.example/generate"}}
APPS: JsonObject = {"apiVersion": "ex.io/v1", "resource": "apps"}


def component_controller(**spec: object) -> JsonObject:
    """A ComponentController of apps."""
    whole: dict[str, object] = {"prefix": "op.example.com", "parentResource": APPS, "generator": WEBHOOK, **spec}
    return {"metadata": {"name": "c", "uid": "u"}, "spec": whole}  # type: ignore[dict-item]


def test_least_spec_has_all_defaults():
    parsed = parse_component(component_controller())

    assert [rule.resource for rule in parsed.parents] == [ResourceId("ex.io/v1", "apps")]
    assert parsed.policies == Policies()
    assert parsed.intervals == Intervals(requeue=600, retry=600, timeout=600, reapply=3600)
    assert (parsed.references, parsed.lifecycle_hooks) == ((), {})
    assert (parsed.children, parsed.managed_types, parsed.parent_fields) == ((), (), ParentFields())
    assert (parsed.generate.name, parsed.generate.version) == ("generate", "v1")


def test_names_are_made_of_the_prefix():
    parsed = parse_component(component_controller())

    assert (parsed.finalizer, parsed.watched) == ("op.example.com/finalizer", "op.example.com/owner-id")


def test_status_changes_of_components_are_no_news():
    assert parse_component(component_controller()).parents[0].ignore_status_changes


def test_policies_and_durations_are_read():
    policies = {
        "adoption": "Never",
        "reconcile": "Once",
        "update": "SsaMerge",
        "delete": "OrphanOnDelete",
        "missingNamespaces": "DoNotCreate",
        "driftDetection": "Digest",
        "overriddenManagers": ["kubectl", "helm"],
    }
    intervals = {"requeueInterval": "1m", "retryInterval": "5s", "timeout": "1h30m", "reapplyInterval": "10m"}

    parsed = parse_component(component_controller(policies=policies, **intervals))

    assert parsed.policies == Policies(
        adoption="Never",
        reconcile="Once",
        update="SsaMerge",
        delete="OrphanOnDelete",
        missing_namespaces="DoNotCreate",
        drift_detection="Digest",
        overridden_managers=("kubectl", "helm"),
    )
    assert parsed.intervals == Intervals(requeue=60, retry=5, timeout=5400, reapply=600)


def test_retry_and_timeout_are_as_long_as_the_requeue_interval_by_default():
    parsed = parse_component(component_controller(requeueInterval="1m", timeout="0s"))

    assert (parsed.intervals.retry, parsed.intervals.timeout) == (60, 60)


def test_hooks_are_read_by_their_names():
    hooks = {"postRead": WEBHOOK, "preDelete": {**WEBHOOK, "version": "v2"}}

    parsed = parse_component(component_controller(hooks=hooks)).lifecycle_hooks

    assert {name: (hook.name, hook.version, hook.strict) for name, hook in parsed.items()} == {
        "postRead": ("postRead", "v1", False),
        "preDelete": ("preDelete", "v2", True),
    }


def test_additional_managed_types_are_read():
    types = [{"group": "*.example.com", "kind": "*"}, {"group": "*", "kind": "Widget"}, {"group": "a.b", "kind": "C"}]

    assert parse_component(component_controller(additionalManagedTypes=types)).managed_types == (
        TypePattern("*.example.com", "*"),
        TypePattern("*", "Widget"),
        TypePattern("a.b", "C"),
    )


@pytest.mark.parametrize(
    ("group", "kind", "is_covered"),
    [
        ("", "Thing", True),
        ("other", "Thing", False),
        ("a.example.com", "Any", True),
        ("example.com", "Any", False),
        ("b.io", "Pipe", True),
        ("b.io", "Line", False),
    ],
)
def test_status_hook_is_asked_about_its_kinds(group: str, kind: str, *, is_covered: bool):
    kinds = [{"group": "", "kind": "Thing"}, {"group": "*.example.com", "kind": "*"}, {"group": "b.io", "kind": "Pipe"}]
    hook = parse_component(component_controller(hooks={"status": {**WEBHOOK, "kinds": kinds}})).status_hook

    assert hook is not None
    assert (hook.hook.name, hook.covers(group, kind)) == ("status", is_covered)


INVALID: list[tuple[dict[str, object], str]] = [
    ({"prefix": ""}, "spec.prefix: must be a non-empty string"),
    ({"prefix": "Op.example.com"}, "spec.prefix: must be a DNS name"),
    ({"prefix": "op_example"}, "spec.prefix: must be a DNS name"),
    ({"prefix": "op/x"}, "spec.prefix: must be a DNS name"),
    ({"prefix": ".".join(["a" * 60] * 5)}, "spec.prefix: must be a DNS name"),
    ({"parentResource": None}, "spec.parentResource: is missing"),
    ({"parentResource": {**APPS, "namespace": "n"}}, "spec.parentResource.namespace: is unknown"),
    ({"parentResource": {"apiVersion": "v1"}}, "spec.parentResource.resource: must be"),
    ({"generator": None}, "spec.generator: is missing"),
    ({"generator": {}}, "spec.generator.webhook: is missing"),
    ({"generator": {"helm": {}}}, "spec.generator.helm: is unknown"),
    ({"generator": {"webhook": {}}}, "spec.generator.webhook: needs a url"),
    ({"generator": {**WEBHOOK, "version": "v3"}}, "spec.generator.version: must be one of"),
    ({"policies": []}, "spec.policies: must be an object"),
    ({"policies": {"adopt": "Never"}}, "spec.policies.adopt: is unknown"),
    ({"policies": {"adoption": "never"}}, "spec.policies.adoption: must be one of IfUnowned, Never, Always"),
    ({"policies": {"update": "Patch"}}, "spec.policies.update: must be one of Replace, SsaMerge, SsaOverride, Recreate"),
    ({"policies": {"overriddenManagers": "kubectl"}}, "spec.policies.overriddenManagers: must be a list of strings"),
    ({"requeueInterval": 10}, "spec.requeueInterval: must be a duration"),
    ({"retryInterval": "10"}, "spec.retryInterval: must be a duration"),
    ({"timeout": "-1s"}, "spec.timeout: must be a duration"),
    ({"reapplyInterval": "soon"}, "spec.reapplyInterval: must be a duration"),
    ({"additionalManagedTypes": [{"group": "a"}]}, "spec.additionalManagedTypes[0].kind: must be"),
    ({"additionalManagedTypes": [{"group": "a.*", "kind": "*"}]}, "spec.additionalManagedTypes[0].group: must be a group"),
    ({"additionalManagedTypes": [{"group": "*.*.a", "kind": "*"}]}, "spec.additionalManagedTypes[0].group: must be a group"),
    ({"additionalManagedTypes": [{"group": "a", "kind": "W*"}]}, "spec.additionalManagedTypes[0].kind: must be a kind"),
    ({"parentFields": {"name": ".spec.name"}}, "spec.parentFields.name: is unknown"),
    ({"parentFields": {"namespace": "spec.namespace"}}, "spec.parentFields.namespace: must be a path"),
    ({"parentFields": {"suspend": ".spec.items[0]"}}, "spec.parentFields.suspend: must be a path"),
    ({"parentFields": {"policies": 1}}, "spec.parentFields.policies: must be a path"),
    ({"childResources": []}, "spec.childResources: is unknown"),
    ({"hooks": {"sync": WEBHOOK}}, "spec.hooks.sync: is unknown"),
    ({"hooks": {"postRead": {}}}, "spec.hooks.postRead.webhook: is missing"),
    ({"hooks": {"preDelete": {"webhook": {}}}}, "spec.hooks.preDelete.webhook: needs a url"),
    ({"hooks": {"preDelete": {**WEBHOOK, "timeout": "1s"}}}, "spec.hooks.preDelete.timeout: is unknown"),
    ({"hooks": {"status": WEBHOOK}}, "spec.hooks.status.kinds: is missing"),
    ({"hooks": {"status": {"kinds": [{"group": "", "kind": "Pod"}]}}}, "spec.hooks.status.webhook: is missing"),
    ({"hooks": {"status": {**WEBHOOK, "kinds": [{"kind": "Pod"}]}}}, "spec.hooks.status.kinds[0].group: must be"),
    ({"references": [{"path": ".spec.a"}]}, "spec.references[0].kind: must be a non-empty string"),
    ({"defaultServiceAccount": "X y"}, "spec.defaultServiceAccount: must be the name of a service account"),
    ({"inventoryStorage": "Secret"}, "spec.inventoryStorage: must be one of"),
]


@pytest.mark.parametrize(("spec", "problem"), INVALID)
def test_invalid_field_is_named(spec: dict[str, object], problem: str):
    with pytest.raises(InvalidSpec, match=f"^{re.escape(problem)}"):
        parse_component(component_controller(**spec))


@pytest.mark.parametrize(("spec", "storage"), [({}, "Status"), ({"inventoryStorage": "ConfigMap"}, "ConfigMap")])
def test_inventory_is_in_the_status_unless_the_controller_says_otherwise(spec: dict[str, object], storage: str):
    assert parse_component(component_controller(**spec)).inventory_storage == storage


# -- what components say themselves ------------------------------------------------------------------------------------

FIELDS = {"namespace": ".spec.target.namespace", "suspend": ".spec.suspend", "policies": ".spec.policies"}
CONTROLLER = parse_component(component_controller(parentFields=FIELDS))


def component(**spec: JsonValue) -> JsonObject:
    """A component with this spec."""
    return {"metadata": {"name": "c", "namespace": "own"}, "spec": spec}


@pytest.mark.parametrize(("path", "value"), [(".spec.a", 1), (".spec.b.c", 2), (".spec.b.d", None), (".spec.a.x", None), (None, None)])
def test_value_is_found_by_its_path(path: str | None, value: JsonValue):
    assert value_at(component(a=1, b={"c": 2}), path) == value


def test_objects_are_in_the_namespace_of_their_component():
    assert stated_namespace(CONTROLLER, component()) == "own"
    assert stated_namespace(parse_component(component_controller()), component(target={"namespace": "x"})) == "own"


def test_component_may_state_another_namespace():
    assert stated_namespace(CONTROLLER, component(target={"namespace": "x"})) == "x"


def test_component_may_suspend_itself():
    assert [is_suspended(CONTROLLER, component(suspend=value)) for value in (True, False, None)] == [True, False, False]


def test_component_may_state_policies():
    assert stated_policies(CONTROLLER, component(policies={"adoption": "Never"})) == {"adoption": "Never"}
    assert stated_policies(CONTROLLER, component()) == {}


@pytest.mark.parametrize(
    ("read", "spec", "problem"),
    [
        (stated_namespace, {"target": {"namespace": 1}}, "spec.target.namespace: must be a string"),
        (is_suspended, {"suspend": "yes"}, "spec.suspend: must be true or false"),
        (stated_policies, {"policies": "none"}, "spec.policies: must be an object"),
    ],
)
def test_what_a_component_states_wrongly_is_its_own_fault(
    read: Callable[[ComponentController, JsonObject], object], spec: JsonObject, problem: str
):
    with pytest.raises(InvalidParent, match=f"^{re.escape(problem)}"):
        read(CONTROLLER, component(**spec))


INTERVALS = {
    "requeueInterval": ".spec.requeueInterval",
    "retryInterval": ".spec.retryInterval",
    "timeout": ".spec.timeout",
    "reapplyInterval": ".spec.reapplyInterval",
}


@pytest.mark.parametrize(
    ("stated", "intervals"),
    [
        ({}, Intervals(requeue=60, retry=60, timeout=60, reapply=3600)),
        ({"requeueInterval": "5m", "timeout": "1h"}, Intervals(requeue=300, retry=60, timeout=3600, reapply=3600)),
        ({"retryInterval": "1s", "reapplyInterval": "2m"}, Intervals(requeue=60, retry=1, timeout=60, reapply=120)),
        ({"requeueInterval": "", "timeout": "0s"}, Intervals(requeue=60, retry=60, timeout=60, reapply=3600)),
    ],
)
def test_intervals_of_a_component_prevail_over_those_of_its_controller(stated: dict[str, JsonValue], intervals: Intervals):
    controller = parse_component(component_controller(requeueInterval="1m", parentFields=INTERVALS))

    assert stated_intervals(controller, component(**stated)) == intervals


@pytest.mark.parametrize("wrong", [5, "soon", "-1s"])
def test_interval_of_a_component_that_is_no_duration_is_named(wrong: JsonValue):
    controller = parse_component(component_controller(parentFields=INTERVALS))

    with pytest.raises(InvalidParent, match=r"^spec.timeout: must be a duration"):
        stated_intervals(controller, component(timeout=wrong))


IDENTITY = {"user": ".spec.user", "serviceAccountName": ".spec.account"}
USERS: dict[str, tuple[str, JsonObject, str]] = {
    # what it shows: (the default service account, the component's spec, the user)
    "nobody's": ("", {}, ""),
    "the default": ("deployer", {}, "system:serviceaccount:team:deployer"),
    "the component's service account": ("deployer", {"account": "own"}, "system:serviceaccount:team:own"),
    "an empty one": ("deployer", {"account": ""}, "system:serviceaccount:team:deployer"),
    "the component's user": ("deployer", {"account": "own", "user": "jane@example.com"}, "jane@example.com"),
}


@pytest.mark.parametrize(("default", "spec", "user"), USERS.values(), ids=USERS.keys())
def test_user_is_stated_by_the_component_or_its_controller(default: str, spec: JsonObject, user: str):
    controller = parse_component(component_controller(parentFields=IDENTITY, defaultServiceAccount=default))

    assert stated_user(controller, {"metadata": {"name": "a", "namespace": "team"}, "spec": spec}) == user


@pytest.mark.parametrize("spec", [{"user": "a\r\nImpersonate-Group: system:masters"}, {"user": 1}, {"account": "a:b"}, {"account": "a/b"}])
def test_user_that_is_none_is_refused(spec: JsonObject):
    controller = parse_component(component_controller(parentFields=IDENTITY))

    with pytest.raises(InvalidParent, match=r"^spec\.(user|account): must be the name of a"):
        stated_user(controller, {"metadata": {"name": "a", "namespace": "team"}, "spec": spec})


def test_component_without_a_namespace_has_no_service_account():
    controller = parse_component(component_controller(defaultServiceAccount="deployer"))

    with pytest.raises(InvalidParent, match="service account deployer has to be in one"):
        stated_user(controller, {"metadata": {"name": "a"}, "spec": {}})
