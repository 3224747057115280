"""A change of one object, as the reasons of marks name it."""

import pytest

from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watch import ALL, Scope, Watch, WatchId

from ..objects import CONFIGMAPS, HELLOS, change, record

OLD, NEW = record("a", version=1), record("a", version=2)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)


@pytest.mark.parametrize(("old", "new", "verb"), [(None, NEW, "added"), (OLD, NEW, "changed"), (OLD, None, "deleted")])
def test_change_is_named_by_what_there_was_before_and_is_after(old: Record | None, new: Record | None, verb: str):
    assert change(HELLOS, old, new).verb == verb
    assert str(change(HELLOS, old, new)) == f"Hello n/a {verb}"


def test_change_of_a_cluster_scoped_object_names_no_namespace():
    node = record("a", namespace="")

    assert str(Change(Watch(NODES), ("", "a"), None, node)) == "Node a added"


def test_resource_of_a_change_is_that_of_its_watch():
    assert change(CONFIGMAPS, None, NEW).resource is CONFIGMAPS


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (ALL, "v1/configmaps"),
        (Scope(namespace="n"), "v1/configmaps (in n)"),
        (Scope(labels="a=b"), "v1/configmaps (a=b)"),
        (Scope(namespace="n", labels="a=b"), "v1/configmaps (in n, a=b)"),
    ],
)
def test_watch_is_named_by_its_resource_and_scope(scope: Scope, text: str):
    assert str(WatchId(CONFIGMAPS.id, scope)) == text


def test_watches_of_one_resource_in_two_scopes_are_two_watches():
    assert Watch(CONFIGMAPS).id != Watch(CONFIGMAPS, Scope(namespace="n")).id
    assert Watch(CONFIGMAPS).id == Watch(CONFIGMAPS, ALL).id
