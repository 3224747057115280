"""The child rules of a controller: resources, update strategies, and the checks that a rollout waits for."""

import pytest

from metaloop.common.api.rules import UPDATE_METHODS, ChildRule, StatusCheck, UpdateMethod, parse_child_rules
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceId

PODS: JsonObject = {"apiVersion": "v1", "resource": "pods"}


def rules(*raw: JsonValue) -> tuple[ChildRule, ...]:
    """The rules of a controller."""
    return parse_child_rules({"childResources": [*raw]}, "childResources")


def a_rule(**strategy: JsonValue) -> JsonObject:
    """A rule for Pods with an update strategy."""
    return {**PODS, "updateStrategy": dict(strategy)}


def test_rules_keep_their_order():
    parsed = rules(PODS, {"apiVersion": "apps/v1", "resource": "deployments"})

    assert [rule.resource for rule in parsed] == [ResourceId("v1", "pods"), ResourceId("apps/v1", "deployments")]


def test_controller_may_have_no_children():
    assert parse_child_rules({}, "childResources") == ()


@pytest.mark.parametrize("rule", [PODS, {**PODS, "updateStrategy": None}, a_rule(), a_rule(method="")], ids=str)
def test_children_without_a_method_are_left_as_they_are(rule: JsonObject):
    assert rules(rule)[0].method == "OnDelete"


@pytest.mark.parametrize("method", UPDATE_METHODS)
def test_every_update_method_is_known_and_rolls_if_it_says_so(method: UpdateMethod):
    [rule] = rules(a_rule(method=method))

    assert (rule.method, rule.rolls) == (method, method.startswith("Rolling"))


def test_checks_compare_with_anything_that_they_do_not_name():
    checks: JsonObject = {"conditions": [{"type": "Ready"}, {"type": "Ready", "status": "True", "reason": "Fine"}]}

    [rule] = rules(a_rule(method="RollingInPlace", statusChecks=checks))

    assert rule.status_checks == (
        StatusCheck(type="Ready", status=None, reason=None),
        StatusCheck(type="Ready", status="True", reason="Fine"),
    )


BAD: dict[str, tuple[list[JsonValue], str]] = {
    # what it shows: (the rules, the path of what is wrong)
    "a rule that is no object": (["v1/pods"], "spec.childResources[0]"),
    "no resource": ([{"apiVersion": "v1"}], "spec.childResources[0].resource"),
    "no apiVersion": ([PODS, {"resource": "pods"}], "spec.childResources[1].apiVersion"),
    "a resource that is listed twice": ([PODS, PODS], "spec.childResources[1]"),
    "a resource in two versions": (
        [{"apiVersion": "apps/v1", "resource": "deployments"}, {"apiVersion": "apps/v1beta1", "resource": "deployments"}],
        "spec.childResources[1]",
    ),
    "a method that there isn't": ([a_rule(method="Sometimes")], "spec.childResources[0].updateStrategy.method"),
    "a strategy that is no object": ([{**PODS, "updateStrategy": "InPlace"}], "spec.childResources[0].updateStrategy"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_what_is_wrong_with_a_rule_is_named_by_its_path(case: tuple[list[JsonValue], str]):
    raw, path = case

    with pytest.raises(InvalidSpec) as raised:
        rules(*raw)

    assert raised.value.field == path
