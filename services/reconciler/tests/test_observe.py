"""How observations are read. Each version of a controller is parsed once."""

import pytest
from builders import CONFIG_MAPS, DEPLOYMENTS, THINGS, a_controller, config_map, granted, stored

from metaloop.common.api.kinds import KINDS
from metaloop.common.errors import InvalidSpec, Unavailable
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.version_cache import VersionCache


def test_candidates_stand_under_the_rule_they_belong_to():
    child = stored(config_map())
    seen = Observer(KINDS).observed(granted(child, controller=a_controller(method="Recreate")).observation)

    [group] = seen.groups
    assert (group.info, group.method, group.objects) == (CONFIG_MAPS, "Recreate", (child,))


def test_key_names_controller_and_parent():
    assert key_of(granted().observation) == JobKey(ControllerId("CompositeController", "things"), THINGS.id, "default", "parent")


def test_declared_resource_that_was_not_observed_is_no_empty_group():
    controller = a_controller(children=(CONFIG_MAPS, DEPLOYMENTS))

    with pytest.raises(Unavailable, match="apps/v1/deployments"):
        Observer(KINDS).observed(granted(controller=controller).observation)


def test_controller_that_can_not_be_served_is_its_authors_fault():
    with pytest.raises(InvalidSpec):
        Observer(KINDS).observed(granted(controller={**a_controller(), "spec": {}}).observation)


def version(number: str, *, uid: str = "a") -> JsonObject:
    """One version of an object."""
    return {"metadata": {"uid": uid, "resourceVersion": number}}


def test_one_version_is_made_something_of_once():
    made: list[JsonObject] = []
    cache = VersionCache(lambda obj: made.append(obj) or len(made))

    results = [
        cache.of(version("1")),
        cache.of(version("1")),
        cache.of(version("2")),
        cache.of(version("1", uid="b")),
        cache.of(version("2")),
    ]

    assert results == [1, 1, 2, 3, 2]


def test_failure_to_make_something_is_not_remembered():
    tries: list[JsonObject] = []

    def make(obj: JsonObject) -> int:
        tries.append(obj)
        if len(tries) == 1:
            raise InvalidSpec("spec", "is wrong")
        return len(tries)

    cache = VersionCache(make)
    with pytest.raises(InvalidSpec):
        cache.of(version("1"))

    assert cache.of(version("1")) == 2
