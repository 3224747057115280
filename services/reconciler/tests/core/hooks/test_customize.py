"""The rules of customize hooks: what each form selects, and how contradictions are reported."""

from dataclasses import replace

import pytest
from builders import CLUSTER_THINGS, CONFIG_MAPS, NAMESPACES, a_parent, group, observed

from metaloop.common.api.hook import HookVersion
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import EVERYTHING, Requirement, Selector
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery, Where
from metaloop.reconciler.core.hooks.customize import check_scopes, fingerprint_of, queries_in, visible_namespace
from metaloop.reconciler.core.model import Observed

NAMESPACED, CLUSTERED = observed(group()), observed(group(), info=CLUSTER_THINGS, parent=a_parent(CLUSTER_THINGS))
BY_LABEL: JsonObject = {"matchLabels": {"app": "a"}}
APP = Selector((Requirement("app", "In", ("a",)),))


def queries(rule: JsonObject, *, parent: Observed = NAMESPACED, version: HookVersion = "v1") -> tuple[RelatedQuery, ...]:
    """The query of one rule."""
    answer: JsonObject = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", **rule}]}
    return queries_in(dumps(answer), parent, version=version, is_strict=False)


FORMS: dict[str, tuple[JsonObject, Where, Where, Selector, frozenset[str]]] = {
    # form: (rule, scope in v1, scope in v2, labels, names)
    "nothing": ({}, InNamespace("default"), ANYWHERE, EVERYTHING, frozenset()),
    "empty labels": ({"labelSelector": {}}, InNamespace("default"), ANYWHERE, EVERYTHING, frozenset()),
    "labels": ({"labelSelector": BY_LABEL}, InNamespace("default"), ANYWHERE, APP, frozenset()),
    "labels, own namespace": (
        {"labelSelector": BY_LABEL, "namespace": "default"},
        InNamespace("default"),
        InNamespace("default"),
        APP,
        frozenset(),
    ),
    "names": ({"names": ["a", "b"]}, InNamespace("default"), ANYWHERE, EVERYTHING, frozenset({"a", "b"})),
    "nulls": (
        {"names": None, "labelSelector": None, "namespaceSelector": None, "namespace": None},
        InNamespace("default"),
        ANYWHERE,
        EVERYTHING,
        frozenset(),
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_each_form_looks_where_its_version_may(form: tuple[JsonObject, Where, Where, Selector, frozenset[str]]):
    rule, in_v1, in_v2, labels, names = form
    expected = RelatedQuery(resource=CONFIG_MAPS.id, labels=labels, names=names)

    assert queries(rule) == (replace(expected, where=in_v1),)
    assert queries(rule, version="v2") == (replace(expected, where=in_v2),)


def test_cluster_scoped_parent_looks_everywhere_in_either_version():
    for version in ("v1", "v2"):
        [query] = queries({"labelSelector": BY_LABEL}, parent=CLUSTERED, version=version)
        assert query.where == ANYWHERE
        [query] = queries({"namespaceSelector": BY_LABEL}, parent=CLUSTERED, version=version)
        assert query.where == InNamespacesWith(APP)


CONTRADICTIONS: dict[str, tuple[JsonObject, str]] = {
    "names and labels": ({"names": ["a"], "labelSelector": BY_LABEL}, "relatedResources[0].names"),
    "names and namespaces": ({"names": ["a"], "namespaceSelector": BY_LABEL}, "relatedResources[0].names"),
    "namespace and namespaces": ({"namespace": "a", "namespaceSelector": BY_LABEL}, "relatedResources[0].namespace"),
    "no resource": ({"resource": ""}, "relatedResources[0].resource"),
    "no apiVersion": ({"apiVersion": None}, "relatedResources[0].apiVersion"),
    "names of a wrong type": ({"names": "a"}, "relatedResources[0].names"),
    "namespace of a wrong type": ({"namespace": 1}, "relatedResources[0].namespace"),
    "labels that do not parse": (
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        "relatedResources[0].labelSelector.matchExpressions[0].operator",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_contradictory_rules_are_named(*, case: tuple[JsonObject, str], version: HookVersion):
    rule, field = case

    with pytest.raises(InvalidAnswer) as caught:
        queries(rule, version=version)

    assert caught.value.field == field


def test_v1_of_a_namespaced_parent_selects_no_namespaces():
    with pytest.raises(InvalidAnswer, match="v2"):
        queries({"namespaceSelector": BY_LABEL})


def reach(rule: JsonObject, *, version: HookVersion = "v1", info: ResourceInfo = CONFIG_MAPS) -> None:
    """Checks a rule against the scope of its resource."""
    found = queries({**rule, "resource": info.resource, "apiVersion": info.api_version}, version=version)
    check_scopes(found, [info], only_namespace=visible_namespace(NAMESPACED, version))


def test_v1_of_a_namespaced_parent_names_only_its_own_namespace():
    with pytest.raises(InvalidAnswer) as caught:
        reach({"namespace": "other"})

    assert caught.value.field == "relatedResources[0].namespace"
    reach({"namespace": "other"}, version="v2")


def test_namespace_means_nothing_to_a_cluster_scoped_resource():
    reach({"namespace": "other"}, info=NAMESPACES)


def test_namespace_selector_makes_no_sense_of_a_cluster_scoped_resource():
    with pytest.raises(InvalidAnswer, match="cluster-scoped"):
        reach({"namespaceSelector": BY_LABEL}, version="v2", info=NAMESPACES)


def test_unknown_key_in_place_of_the_rules_is_refused():
    with pytest.raises(InvalidAnswer, match="lacks relatedResources: nothing would be related") as caught:
        queries_in(b'{"relatedResource": []}', NAMESPACED, version="v1", is_strict=False)

    assert caught.value.field == "relatedResource"


def test_strictly_read_a_misspelt_field_is_no_rule():
    answer: JsonObject = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "labelselector": BY_LABEL}]}

    with pytest.raises(InvalidAnswer) as caught:
        queries_in(dumps(answer), NAMESPACED, version="v2", is_strict=True)

    assert caught.value.field == "relatedResources[0].labelselector"


def test_fingerprint_follows_what_the_hook_is_shown_and_nothing_else():
    def print_of(**metadata: JsonValue) -> str:
        parent = a_parent()
        unstructured.metadata(parent).update(metadata)
        return fingerprint_of(replace(NAMESPACED, parent=parent))

    assert print_of() == print_of(resourceVersion="99", managedFields=[{}])
    assert len({print_of(), print_of(labels={"a": "b"}), print_of(annotations={"a": "b"}), print_of(generation=9), print_of(uid="x")}) == 5
