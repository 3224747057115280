"""The controllers that run: which units of work there are, and why there is none of a key."""

import pytest

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import Gone
from metaloop.watcher.core.running import FoundUnit, RunningControllers
from metaloop.watcher.core.watch import WatchId

from ..objects import CONFIGMAPS, HELLOS, caches_of, instance, record

CONTROLLER = ControllerId("CompositeController", "hello")
HELLO = record("a", labels={"served": "yes"})


def key(name: str = "a", *, controller: ControllerId = CONTROLLER, resource: ResourceId = HELLOS.id) -> JobKey:
    """The key of a Hello."""
    return JobKey(controller, resource, "n", name)


def running(**options: object) -> RunningControllers:
    """One controller over a cluster with one Hello."""
    controllers = RunningControllers(caches_of({HELLOS: [HELLO], CONFIGMAPS: []}))
    controllers.start(instance(**options))  # type: ignore[arg-type]
    return controllers


def test_unit_of_work_is_found_with_its_parent_and_instance():
    controllers = running()

    found = controllers.find(key())

    assert isinstance(found, FoundUnit)
    assert (found.instance, found.unit.parent) == (controllers.get(CONTROLLER), HELLO)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (key(controller=ControllerId("CompositeController", "other")), "CompositeController/other is not running"),
        (key(resource=CONFIGMAPS.id), "CompositeController/hello is not about v1/configmaps"),
        (key("b"), "the parent is gone"),
    ],
)
def test_key_without_a_unit_of_work_says_why(wanted: JobKey, reason: str):
    assert running().find(wanted) == Gone(reason=reason)


def test_parent_that_is_not_selected_is_no_unit_of_work():
    assert running(match={"served": "no"}).find(key()) == Gone(reason="the parent is not selected")
    assert isinstance(running(match={"served": "yes"}).find(key()), FoundUnit)


def test_started_controller_returns_the_units_of_all_its_parents():
    controllers = RunningControllers(caches_of({HELLOS: [record("a"), record("b")], CONFIGMAPS: []}))

    assert sorted(each.name for each in controllers.start(instance())) == ["a", "b"]


def test_later_instance_takes_the_place_of_the_former():
    controllers, later = running(), instance()

    controllers.start(later)

    assert list(controllers) == [later]
    assert all(rule in later.rules for rule in controllers.rules_of(WatchId(HELLOS.id)))


def test_stopped_controller_listens_to_nothing_and_serves_nobody():
    controllers = running()

    stopped, again = controllers.stop(CONTROLLER), controllers.stop(CONTROLLER)

    assert (stopped, again) == (True, False)
    assert controllers.rules_of(WatchId(HELLOS.id)) == ()
    assert controllers.find(key()) == Gone(reason="CompositeController/hello is not running")


def test_observation_is_made_from_the_watches_of_its_parent_and_of_what_it_shows():
    assert running().watches_of(key()) == (WatchId(HELLOS.id), WatchId(CONFIGMAPS.id))


@pytest.mark.parametrize("wanted", [key(controller=ControllerId("CompositeController", "other")), key(resource=CONFIGMAPS.id)])
def test_nothing_is_observed_for_a_key_that_no_controller_is_about(wanted: JobKey):
    assert running().watches_of(wanted) == ()


def test_stopped_controller_observes_nothing():
    controllers = running()

    controllers.stop(CONTROLLER)

    assert controllers.watches_of(key()) == ()


def test_rules_are_found_by_each_watch_that_they_listen_to():
    controllers = running()

    assert controllers.rules_of(WatchId(HELLOS.id))
    assert controllers.rules_of(WatchId(CONFIGMAPS.id))
    assert controllers.rules_of(WatchId(ResourceId("v1", "nothings"))) == ()


def test_hooks_are_shown_the_controller_as_it_is_and_nothing_once_it_stopped():
    controllers = running()
    before = controllers.raw(CONTROLLER)

    controllers.show(CONTROLLER, b'{"metadata":{}}')
    shown = controllers.raw(CONTROLLER)
    controllers.stop(CONTROLLER)

    assert (before, shown, controllers.raw(CONTROLLER)) == (b"{}", b'{"metadata":{}}', b"{}")
