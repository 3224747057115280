"""Owners that a hook names and that somebody removes from its children, as the garbage collector does."""

from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, config_map, stored
from onechild import OneChild

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references
from metaloop.common.testing.clock import FakeClock
from metaloop.devkit.testbed.eventually import eventually
from metaloop.reconciler.core.model import ApplyChild, CreateChild, RecreateChild, UpdateChild
from metaloop.reconciler.errors import OwnerRemoved
from metaloop.reconciler.removed_owners import RemovedOwners
from metaloop.reconciler.schemas import Schemas

PARENT: JsonObject = {"apiVersion": "v1", "kind": "Thing", "name": "p", "uid": "uid-of-parent", "controller": True}
GONE: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "uid-of-nobody"}
Action = UpdateChild | ApplyChild | RecreateChild


def child(*owners: JsonObject, data: str = "x") -> JsonObject:
    """A child with these owners."""
    obj = stored(config_map("a", data={"key": data}))
    return {**obj, "metadata": {**unstructured.metadata(obj), "ownerReferences": [*owners]}}


COLLECTED = child(PARENT)
"""The child after the garbage collector removed the owner that does not exist."""
DESIRED = child(PARENT, GONE)


def update(obj: JsonObject = DESIRED, *, observed: JsonObject = COLLECTED) -> UpdateChild:
    return UpdateChild(info=CONFIG_MAPS, obj=obj, reason="", observed=observed)


CREATION = CreateChild(info=CONFIG_MAPS, obj=DESIRED, reason="")
ACTIONS: dict[str, Action] = {
    "update": update(),
    "server-side apply": ApplyChild(info=CONFIG_MAPS, obj=DESIRED, reason="", observed=COLLECTED),
    "recreation": RecreateChild(info=CONFIG_MAPS, obj=DESIRED, desired=DESIRED, reason="", observed=COLLECTED, is_applied=False),
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def owners(clock: FakeClock) -> RemovedOwners:
    return RemovedOwners(clock=clock)


def write_twice(owners: RemovedOwners) -> None:
    """Creates the child with the owner, and adds it once more after it was removed."""
    owners.learn(CREATION, DESIRED)
    owners.check(update())
    owners.learn(update(), DESIRED)


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
def test_owner_that_was_removed_twice_is_not_written_again(owners: RemovedOwners, action: Action):
    write_twice(owners)

    with pytest.raises(OwnerRemoved, match=r"ConfigMap gone \(uid-of-nobody\); does it exist\?"):
        owners.check(action)


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
def test_write_that_changes_something_else_is_done(owners: RemovedOwners, action: Action):
    write_twice(owners)

    owners.check(replace(action, obj=child(PARENT, GONE, data="new")))


def test_writes_to_a_child_that_keeps_its_owners_do_not_count(owners: RemovedOwners):
    owners.learn(CREATION, DESIRED)
    for _ in range(5):
        new = child(PARENT, GONE, data="new")
        owners.learn(update(new, observed=DESIRED), new)

    owners.check(update())


def test_owner_is_tried_again_after_a_while(owners: RemovedOwners, clock: FakeClock):
    write_twice(owners)
    clock.advance(600.0)

    owners.check(update())


def test_other_children_keep_their_own_count(owners: RemovedOwners):
    write_twice(owners)
    other = {**DESIRED, "metadata": {**unstructured.metadata(DESIRED), "name": "b"}}

    owners.check(update(other))


def test_child_that_is_recreated_for_its_owner_is_given_up_too(owners: RemovedOwners):
    owners.learn(CREATION, DESIRED)
    owners.learn(CREATION, {**DESIRED, "metadata": {**unstructured.metadata(DESIRED), "uid": "uid-of-the-next"}})

    with pytest.raises(OwnerRemoved):
        owners.check(ACTIONS["recreation"])


@pytest.mark.e2e
@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_garbage_collector_is_not_fought_for_ever(kube: KubeClient, schemas: Schemas, parent: JsonObject, strategy: str):
    one = OneChild(kube=kube, schemas=schemas, parent=parent, info=CONFIG_MAPS, name="a", strategy=strategy)
    nobody = {**GONE, "uid": "00000000-0000-0000-0000-000000000000"}
    desired = config_map("a", namespace=one.namespace, data={"key": "x"})
    desired["metadata"] = {**unstructured.metadata(desired), "ownerReferences": [nobody]}

    async def collected() -> None:
        assert len(owner_references(await one.existing())) == 1

    for _ in range(2):
        assert (await one.sync(desired)).failures == ()
        await eventually(collected)
    effects = await one.sync(desired)

    assert [type(failure.error) for failure in effects.failures] == [OwnerRemoved]
    assert effects.done == ()
