"""DecoratorController specs: their values, and the field that an error names."""

import pytest

from metaloop.common.api.decorator import parse_decorator
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId

HOOKS: JsonObject = {"sync": {"webhook": {"url": "http://hook.example/sync"}}}
PODS: JsonObject = {"apiVersion": "v1", "resource": "pods"}


def decorator(**spec: object) -> JsonObject:
    """A DecoratorController of Pods."""
    return {"metadata": {"name": "tags", "uid": "u"}, "spec": {"resources": [PODS], "hooks": HOOKS, **spec}}  # type: ignore[dict-item]


def test_parent_is_selected_by_labels_and_annotations_together():
    rule = {**PODS, "labelSelector": {"matchLabels": {"app": "a"}}, "annotationSelector": {"matchAnnotations": {"tag": "yes"}}}

    [target] = parse_decorator(decorator(resources=[rule])).parents

    assert target.selects(labels={"app": "a"}, annotations={"tag": "yes"})
    assert not target.selects(labels={"app": "a"}, annotations={})
    assert not target.selects(labels={}, annotations={"tag": "yes"})


def test_rule_without_selectors_selects_everything():
    [target] = parse_decorator(decorator()).parents

    assert target.selects(labels={}, annotations={})


def test_annotation_expressions_are_read():
    rule = {**PODS, "annotationSelector": {"matchExpressions": [{"key": "tag", "operator": "Exists"}]}}

    [target] = parse_decorator(decorator(resources=[rule])).parents

    assert target.selects(labels={}, annotations={"tag": ""})
    assert not target.selects(labels={}, annotations={})


def test_finalizer_has_metacontrollers_name():
    assert parse_decorator(decorator()).finalizer == "metacontroller.io/decoratorcontroller-tags"


def test_parent_rule_is_found_in_any_version():
    controller = parse_decorator(decorator(resources=[{"apiVersion": "apps/v1", "resource": "deployments"}]))

    assert controller.parent_rule(ResourceId("apps/v1beta1", "deployments")) is controller.parents[0]
    assert controller.parent_rule(ResourceId("v1", "deployments")) is None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": []}, "spec.resources"),
        ({"resources": [{"apiVersion": "v1"}]}, "spec.resources[0].resource"),
        ({"resources": [PODS, PODS]}, "spec.resources[1]"),
        ({"resources": [{**PODS, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]}, "labelSelector"),
        ({"resources": [{**PODS, "annotationSelector": {"matchAnnotations": {"a": 1}}}]}, "annotationSelector.matchAnnotations"),
        ({"attachments": [PODS, PODS]}, "spec.attachments[1]"),
        ({"attachments": [{**PODS, "updateStrategy": {"method": "Sometimes"}}]}, "spec.attachments[0].updateStrategy.method"),
        ({"hooks": {}}, "spec.hooks"),
    ],
)
def test_invalid_field_is_named_by_its_path(spec: dict[str, object], field: str):
    with pytest.raises(InvalidSpec) as caught:
        parse_decorator(decorator(**spec))

    assert field in caught.value.field


def test_two_versions_of_one_resource_are_listed_twice():
    rules = [{"apiVersion": "apps/v1", "resource": "deployments"}, {"apiVersion": "apps/v1beta1", "resource": "deployments"}]

    with pytest.raises(InvalidSpec, match="listed twice"):
        parse_decorator(decorator(resources=rules))


def test_name_too_long_for_a_finalizer_is_refused_with_a_finalize_hook():
    """The API server would refuse the finalizer on every parent."""
    hooks: JsonObject = {**HOOKS, "finalize": {"webhook": {"url": "http://hook.example/finalize"}}}
    longest, longer = ({"metadata": {"name": "n" * length}, "spec": decorator(hooks=hooks)["spec"]} for length in (43, 44))

    assert len(parse_decorator(longest).finalizer.partition("/")[2]) == 63
    with pytest.raises(InvalidSpec, match=r"^metadata\.name"):
        parse_decorator(longer)
