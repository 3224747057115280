"""The effects of actions: which writes are reported, which children were adopted, and which writes were no-ops."""

from typing import get_args

import pytest
from builders import CONFIG_MAPS, DEPLOYMENTS, config_map, stored

from metaloop.common.errors import Conflict
from metaloop.common.objects import unstructured
from metaloop.common.report import Write
from metaloop.reconciler.core.effects import VERBS, Done, Effects, write_of
from metaloop.reconciler.core.model import Action, Adopt, CreateChild, DeleteChild, Release, UpdateChild
from metaloop.reconciler.errors import Failure

A = stored(config_map("a"), metadata={"resourceVersion": "7"})
CREATE = CreateChild(info=CONFIG_MAPS, obj=A, reason="missing")
DELETE = DeleteChild(info=CONFIG_MAPS, obj=A, reason="no longer desired")
ADOPT = Adopt(info=CONFIG_MAPS, obj=A, reason="an orphan")


def test_write_is_reported_with_the_version_that_the_watcher_has_to_see():
    assert write_of(CONFIG_MAPS, A, is_deletion=False) == Write(
        resource=CONFIG_MAPS.id, namespace="default", name="a", uid="uid-of-a", resource_version="7"
    )


def test_deletion_is_reported_without_a_version():
    write = write_of(CONFIG_MAPS, A, is_deletion=True)

    assert write.is_deletion
    assert write.uid == "uid-of-a"


def test_writes_are_those_that_left_something_to_look_out_for():
    released = Done(action=Release(info=CONFIG_MAPS, obj=A, reason=""), written=None)

    effects = Effects(done=(Done(action=CREATE, written=A), released, Done(action=DELETE, written=A)))

    assert [write.is_deletion for write in effects.writes] == [False, True]


def test_uncertain_writes_are_reported_after_those_that_were_acknowledged():
    uncertain = write_of(CONFIG_MAPS, stored(config_map("b")), is_deletion=False)
    lost = Failure(what="create b", error=Conflict("?"), uncertain=uncertain)
    refused = Failure(what="create c", error=Conflict("no"))

    effects = Effects(done=(Done(action=CREATE, written=A),), failures=(lost, refused))

    assert [write.name for write in effects.writes] == ["a", "b"]


@pytest.mark.parametrize(("noops", "expected"), [((), False), ((False,), False), ((False, True), True)])
def test_noops_are_found_among_all_that_was_done(*, noops: tuple[bool, ...], expected: bool):
    update = UpdateChild(info=CONFIG_MAPS, obj=A, reason="")

    assert Effects(done=tuple([Done(action=update, written=A, is_noop=each) for each in noops])).has_noops is expected


def test_adopted_children_are_as_a_watcher_would_show_them():
    written = stored(config_map("a"), metadata={"managedFields": [{"manager": "metaloop"}]})

    [adopted] = Effects(done=(Done(action=ADOPT, written=written),)).adopted[CONFIG_MAPS.id]

    assert "managedFields" not in unstructured.metadata(adopted)
    assert unstructured.name(adopted) == "a"


def test_adopted_children_stand_by_resource_in_their_order():
    b = stored(config_map("b"))
    others = Adopt(info=DEPLOYMENTS, obj=b, reason="")

    adopted = Effects(done=(Done(action=ADOPT, written=A), Done(action=others, written=b), Done(action=ADOPT, written=b))).adopted

    assert {str(key): [unstructured.name(obj) for obj in objects] for key, objects in adopted.items()} == {
        str(CONFIG_MAPS.id): ["a", "b"],
        str(DEPLOYMENTS.id): ["b"],
    }


def test_nothing_but_adoptions_is_adopted():
    assert Effects(done=(Done(action=CREATE, written=A), Done(action=ADOPT, written=None))).adopted == {}


def test_every_action_has_a_verb_of_its_own():
    assert {*VERBS} == {*get_args(Action)}
    assert len({*VERBS.values()}) == len(VERBS)
