"""Parents whose children roll: their revisions are watched, shown with them, and mark them."""

from dataclasses import replace

import pytest

from metaloop.common.api.composite import CompositeController
from metaloop.common.api.revision import REVISIONS
from metaloop.common.job import JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.watch import Watch
from metaloop.watcher.core.watchset import Waiting, instance_of

from .objects import CONFIGMAPS, HELLOS, controller, owned_by, record
from .routing_in_hand import RoutingInHand

WEB = {"selector": {"matchLabels": {"app": "web"}}}
OF_HELLOS = {"metacontroller.k8s.io/apiGroup": "ex.io", "metacontroller.k8s.io/resource": "hellos"}
CLUSTER_HELLOS = replace(HELLOS, namespaced=False)


def rolling(method: str = "RollingInPlace") -> CompositeController:
    """A controller of Hellos whose ConfigMaps are updated so."""
    plain = controller()
    return replace(plain, children=tuple(replace(rule, method=method) for rule in plain.children))  # type: ignore[arg-type]


class World(RoutingInHand):
    """A router for one kind of parents."""

    def __init__(self, parents: ResourceInfo = HELLOS, *, method: str = "RollingInPlace") -> None:
        super().__init__(parents, CONFIGMAPS, REVISIONS)
        self.parents = parents
        found = instance_of(rolling(method), self.served.resources)
        assert isinstance(found, Instance)
        self.start(found)

    def revisions_of(self, name: str, *, namespace: str = "n") -> list[str]:
        seen = self.observe(JobKey(controller().id, self.parents.id, namespace, name))
        return sorted(loads(item)["metadata"]["name"] for item in seen.revisions)


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
def test_revisions_are_watched_where_children_roll(method: str):
    found = instance_of(rolling(method), {info.id: info for info in (HELLOS, CONFIGMAPS, REVISIONS)})

    assert isinstance(found, Instance)
    assert found.watches == (Watch(HELLOS), Watch(CONFIGMAPS), Watch(REVISIONS))
    assert [group.watch for group in found.children] == [Watch(CONFIGMAPS)]


def test_revisions_are_not_watched_where_nothing_rolls():
    found = instance_of(rolling("InPlace"), {info.id: info for info in (HELLOS, CONFIGMAPS, REVISIONS)})

    assert isinstance(found, Instance)
    assert found.watches == (Watch(HELLOS), Watch(CONFIGMAPS))


def test_rolling_controller_waits_for_the_kind_of_its_revisions():
    assert instance_of(rolling(), {HELLOS.id: HELLOS, CONFIGMAPS.id: CONFIGMAPS}) == Waiting((REVISIONS.id,))


def test_parent_is_shown_with_its_own_revisions_and_the_orphans_that_may_be():
    world = World()
    world.see(HELLOS, record("p", spec=WEB))
    world.see(REVISIONS, record("own", ownerReferences=owned_by("p")))
    world.see(REVISIONS, record("orphan", labels={"app": "web", **OF_HELLOS}))
    world.see(REVISIONS, record("of-another-resource", labels={"app": "web", **OF_HELLOS, "metacontroller.k8s.io/resource": "others"}))
    world.see(REVISIONS, record("of-another-selector", labels={"app": "db", **OF_HELLOS}))
    world.see(REVISIONS, record("elsewhere", namespace="m", labels={"app": "web", **OF_HELLOS}))
    world.see(REVISIONS, record("anothers", ownerReferences=owned_by("q")))

    assert world.revisions_of("p") == ["orphan", "own"]


def test_cluster_scoped_parent_has_its_revisions_in_the_default_namespace():
    world = World(CLUSTER_HELLOS)
    world.see(CLUSTER_HELLOS, record("p", namespace="", uid="uid-p", spec=WEB))
    world.see(REVISIONS, record("own", namespace="default", ownerReferences=owned_by("p", uid="uid-p")))
    world.see(REVISIONS, record("orphan", namespace="default", labels={"app": "web", **OF_HELLOS}))
    world.see(REVISIONS, record("elsewhere", namespace="n", ownerReferences=owned_by("p", uid="uid-p")))

    assert world.revisions_of("p", namespace="") == ["orphan", "own"]


def test_parent_is_shown_without_revisions_where_nothing_rolls():
    world = World(method="InPlace")
    world.see(HELLOS, record("p", spec=WEB))
    world.see(REVISIONS, record("own", ownerReferences=owned_by("p")))

    assert world.revisions_of("p") == []


def test_change_of_a_revision_marks_its_parent():
    world = World()
    world.see(HELLOS, record("p", spec=WEB))
    world.take_marks()

    world.see(REVISIONS, record("own", ownerReferences=owned_by("p")))

    assert [key.name for key in world.marks()] == ["p"]
