"""What a controller needs to run, and which watches that makes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import ClusterScopedParent, NoStatus
from metaloop.watcher.core.watch import ALL, Scope, Watch
from metaloop.watcher.core.watchset import Waiting, difference, instance_of

from ..objects import CONFIGMAPS, HELLOS, controller

SERVED = {HELLOS.id: HELLOS, CONFIGMAPS.id: CONFIGMAPS}
HELLOS_WATCH = Watch(HELLOS)
RESOURCES = [ResourceInfo(api_version="v1", resource=name, kind=name, namespaced=True, has_status=True) for name in "abcde"]


def test_a_controller_whose_resources_are_served_can_run():
    found = instance_of(controller(), SERVED)

    assert isinstance(found, Instance)
    assert found.watches == (Watch(HELLOS), Watch(CONFIGMAPS))


def test_a_controller_waits_for_each_resource_that_is_missing():
    found = instance_of(controller(), {})

    assert found == Waiting((HELLOS.id, CONFIGMAPS.id))
    assert "ex.io/v1/hellos, v1/configmaps" in str(found)


def test_parents_without_status_subresource_cannot_be_served():
    found = instance_of(controller(), {**SERVED, HELLOS.id: replace(HELLOS, has_status=False)})

    assert found == NoStatus(HELLOS.id)
    assert "does not have subresource 'Status' enabled" in str(found)


def test_cluster_scoped_parents_need_a_watcher_that_sees_all_namespaces():
    wide = replace(HELLOS, namespaced=False)

    found = instance_of(controller(), {**SERVED, HELLOS.id: wide}, namespaces=("a", "b"))

    assert found == ClusterScopedParent(HELLOS.id, ("a", "b"))
    assert "METALOOP_NAMESPACES restricts this watcher to the namespaces a, b" in str(found)
    assert isinstance(instance_of(controller(), SERVED, namespaces=("a", "b")), Instance)


infos = st.sampled_from(RESOURCES).flatmap(lambda info: st.sampled_from([info, replace(info, namespaced=False)]))
watches = st.builds(Watch, infos, st.sampled_from([ALL, Scope(namespace="n"), Scope(labels="a=b")]))


@given(st.lists(watches, unique_by=lambda watch: watch.id), st.lists(watches, unique_by=lambda watch: watch.id))
def test_after_stopping_and_starting_exactly_what_is_needed_is_watched_once(needed: list[Watch], watched: list[Watch]):
    before = {watch.id: watch for watch in watched}

    plan = difference([*needed, *needed], before)

    after = [id_ for id_ in before if id_ not in plan.stop] + [watch.id for watch in plan.start]
    assert sorted(after) == sorted(watch.id for watch in needed)


def test_a_resource_replaced_by_another_kind_is_watched_anew():
    plan = difference([HELLOS_WATCH], {HELLOS_WATCH.id: Watch(replace(HELLOS, namespaced=False))})

    assert plan.stop == (HELLOS_WATCH.id,)
    assert plan.start == (HELLOS_WATCH,)


def test_a_status_subresource_more_or_less_is_no_reason_to_list_anew():
    plan = difference([HELLOS_WATCH], {HELLOS_WATCH.id: Watch(replace(HELLOS, has_status=False))})

    assert (plan.stop, plan.start) == ((), ())
