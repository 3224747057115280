"""Syncs under whatever may happen between and within them: they end with just what the hook asks for, and touch nothing
of others.
"""

import asyncio
from contextlib import suppress

from builders import CONFIG_MAPS, THINGS, a_controller, a_parent, config_map, stored
from fake_api import refused
from fake_hooks import FakeLease
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from syncing import Sync

from metaloop.common.errors import LeaseLost
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref

NAMES, VALUES = ("a", "b", "c", "d"), ("one", "two")
OTHER = a_parent(name="other", uid="uid-of-other")
_MOST_SYNCS = 20

names = st.sampled_from(NAMES)


class Syncs(RuleBasedStateMachine):
    """One parent whose hook changes its mind, and others who change the cluster.

    `foreign`: objects that are not the parent's to touch.
    """

    @initialize(finalizes=st.booleans())
    def begin(self, *, finalizes: bool) -> None:
        self.wanted: dict[str, str] = {}
        self.foreign: dict[str, JsonObject] = {}
        controller = a_controller()
        if finalizes:
            hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
            hooks["finalize"] = {"webhook": {"url": "http://hook.example/finalize"}}
        self.sync = Sync(self._answer, controller=controller)

    @rule(wanted=st.dictionaries(names, st.sampled_from(VALUES)))
    def hook_changes_its_mind(self, wanted: dict[str, str]) -> None:
        self.wanted = wanted

    @rule(name=names, value=st.sampled_from(VALUES))
    def somebody_changes_a_child(self, name: str, value: str) -> None:
        if name in self._children():
            self.sync.api.put(CONFIG_MAPS, {**self._children()[name], "data": {"key": value, "theirs": "kept"}})

    @rule(name=names)
    def somebody_deletes_a_child(self, name: str) -> None:
        if name in self._children():
            del self.sync.api.objects[str(CONFIG_MAPS.id), "default", name]

    @rule(name=names)
    def somebody_relabels_a_child(self, name: str) -> None:
        """It is released, and then it is nobody's."""
        if name in self._children():
            child = self._children()[name]
            self.sync.api.put(CONFIG_MAPS, {**child, "metadata": {**unstructured.metadata(child), "labels": {"app": "other"}}})

    @rule(name=names)
    def an_orphan_appears(self, name: str) -> None:
        if name not in self.sync.children:
            self.sync.api.put(CONFIG_MAPS, stored(config_map(name, data={"key": "orphaned"})))

    @rule(name=names)
    def an_object_of_another_parent_appears(self, name: str) -> None:
        if name not in self.sync.children:
            self.foreign[name] = self.sync.api.put(CONFIG_MAPS, stored(config_map(name), owner=OTHER))

    @precondition(lambda self: self.foreign)
    @rule()
    def the_other_parents_objects_go(self) -> None:
        for name in self.foreign:
            del self.sync.api.objects[str(CONFIG_MAPS.id), "default", name]
        self.foreign = {}

    @rule(verb=st.sampled_from(("create", "replace", "delete")), name=names)
    def one_write_is_refused(self, verb: str, name: str) -> None:
        self.sync.api.failing[verb, name] = Forbidden(refused(403, "Forbidden"))
        self._sync()
        self.sync.api.failing.clear()

    @rule()
    def status_is_refused(self) -> None:
        self.sync.api.failing["replace status", "parent"] = Forbidden(refused(403, "Forbidden"))
        self._sync()
        self.sync.api.failing.clear()

    @rule(requests=st.integers(0, 7))
    def worker_dies_after_some_requests(self, requests: int) -> None:
        self._sync(lease=FakeLease(requests_left=requests))

    @rule()
    def sync_runs(self) -> None:
        self._sync()

    @invariant()
    def nothing_of_others_is_touched(self) -> None:
        if hasattr(self, "sync"):
            assert {name: self.sync.children.get(name) for name in self.foreign} == self.foreign

    def teardown(self) -> None:
        if hasattr(self, "sync"):
            self._settle()
            self._expect_settled()

    def _answer(self, request: JsonObject) -> JsonObject:
        groups = unstructured.child_object(request, "children")
        children = [config_map(name, data={"key": value}) for name, value in self.wanted.items()]
        return {"children": [*children], "status": {"seen": len(unstructured.child_object(groups, "ConfigMap.v1"))}}

    def _children(self) -> dict[str, JsonObject]:
        """What the parent controls."""
        uid = unstructured.uid(self.sync.parent)
        owners = {name: controller_ref(child) for name, child in self.sync.children.items()}
        return {name: self.sync.children[name] for name, owner in owners.items() if owner is not None and owner.uid == uid}

    def _sync(self, *, lease: FakeLease | None = None) -> None:
        with suppress(LeaseLost):
            asyncio.run(self._run(lease))

    async def _run(self, lease: FakeLease | None) -> None:
        await self.sync.run(lease=lease)

    def _settle(self) -> None:
        """Sync until nothing is written any more."""
        for _ in range(_MOST_SYNCS):
            before = self.sync.api.version, sorted(self.sync.children)
            self._sync()
            if before == (self.sync.api.version, sorted(self.sync.children)):
                return
        raise AssertionError("the parent does not come to rest")

    def _expect_settled(self) -> None:
        taken = {name for name in self.sync.children if name not in self._children()}
        found = {name: unstructured.child_object(child, "data")["key"] for name, child in self._children().items()}
        assert found == {name: value for name, value in self.wanted.items() if name not in taken}
        assert self.sync.api.all_of(THINGS)[0]["status"] == {"seen": len(found), "observedGeneration": 3}


TestSyncs = Syncs.TestCase
TestSyncs.settings = settings(max_examples=60, stateful_step_count=25)
