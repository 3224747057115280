"""Rollouts under whatever may happen between and within syncs: they always end right, and never have two children in motion at once."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from fake_api import FakeApi
from fake_hooks import FakeLease
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from rolling import GADGETS, NAMES, READY, claimed, rolling_controller, rolling_parent, wishes, world
from worlds import THINGS

from metaloop.common.api.revision import REVISIONS, claimed_by
from metaloop.common.errors import LeaseLost
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.claim import claims_of
from metaloop.reconciler.core.dynamic import DYNAMIC_APPLY
from metaloop.reconciler.core.model import ChildAction, CreateChild, DeleteChild, Observed
from metaloop.reconciler.core.plan import plan_of
from metaloop.reconciler.core.revision import as_owner_of_revisions, revisions_of
from metaloop.reconciler.core.rollout import rollout_of

METHODS = ("RollingInPlace", "RollingRecreate")
TEXTS = ("v1", "v2", "v3")


class Cluster:
    """One parent, its Gadgets and revisions, as an API server holds them: a Gadget's generation counts the changes of its spec."""

    def __init__(self, method: str) -> None:
        self.api = FakeApi()
        self.controller = rolling_controller(method=method)  # type: ignore[arg-type]
        self.api.put(THINGS, rolling_parent())

    @property
    def parent(self) -> JsonObject:
        return self.api.all_of(THINGS)[0]

    @property
    def gadgets(self) -> dict[str, JsonObject]:
        return {unstructured.name(obj): obj for obj in self.api.all_of(GADGETS)}

    @property
    def revisions(self) -> list[JsonObject]:
        return self.api.all_of(REVISIONS)

    def observe(self) -> Observed:
        seen = world(*self.api.all_of(GADGETS), parent=self.parent, controller=self.controller)
        return replace(seen, revisions=tuple(self.revisions))

    def change(self, **spec: object) -> None:
        parent = self.parent
        self.api.put(THINGS, {**parent, "spec": {**unstructured.child_object(parent, "spec"), **spec}})  # type: ignore[dict-item]

    def set_status(self, name: str, status: JsonObject) -> None:
        self.api.put(GADGETS, {**self.gadgets[name], "status": status})

    def remove(self, obj: JsonObject) -> None:
        info = REVISIONS if unstructured.kind(obj) == REVISIONS.kind else GADGETS
        del self.api.objects[str(info.id), unstructured.namespace(obj), unstructured.name(obj)]

    def sync(self, lease: FakeLease) -> list[ChildAction]:
        """One sync, which dies where the lease does; what it did to children."""
        observed = self.observe()
        owner = as_owner_of_revisions(observed)
        revisions = revisions_of(observed, claims_of(owner).groups[0].objects)
        children = claims_of(observed).groups
        rollout = rollout_of(observed, children, wishes(observed, revisions), spent=revisions.spent, how=DYNAMIC_APPLY)
        plan = plan_of(observed, children, rollout.desired)
        self.condition = rollout.condition
        done: list[ChildAction] = []
        try:
            self._write(rollout.revisions, lease, done=[])
            self._write(tuple(plan), lease, done=done)
        except LeaseLost:
            pass
        return done

    def _write(self, actions: Sequence[ChildAction], lease: FakeLease, *, done: list[ChildAction]) -> None:
        for action in actions:
            lease.check()
            asyncio.run(self._carry_out(action))
            done.append(action)

    async def _carry_out(self, action: ChildAction) -> None:
        obj = action.obj
        match action:
            case CreateChild():
                await self.api.create(action.info, {**obj, "metadata": {**unstructured.metadata(obj), "generation": 1}})
            case DeleteChild():
                await self.api.delete(action.info, unstructured.namespace(obj), unstructured.name(obj), uid=unstructured.uid(obj))
            case _:
                is_child = action.info == GADGETS
                bumped: JsonObject = {"generation": unstructured.generation(obj) + 1} if is_child else {}
                await self.api.replace(action.info, {**obj, "metadata": {**unstructured.metadata(obj), **bumped}})


class Rollouts(RuleBasedStateMachine):
    """`moving`: children that we disturbed and that are not well again. `hurt`: children that somebody else disturbed."""

    @initialize(method=st.sampled_from(METHODS))
    def begin(self, method: str) -> None:
        self.cluster = Cluster(method)
        self.moving: set[str] = set()
        self.hurt: set[str] = set()
        self._settle()

    @rule(text=st.sampled_from(TEXTS))
    def change_the_template(self, text: str) -> None:
        self.cluster.change(template={"text": text})

    @rule(name=st.sampled_from(NAMES))
    def add_or_remove_a_child(self, name: str) -> None:
        wanted = self._wanted()
        self.cluster.change(names=sorted(wanted ^ {name}))
        if name in wanted:
            self.moving.discard(name)
        elif name not in self.cluster.gadgets:
            self.hurt.add(name)

    @rule(name=st.sampled_from(NAMES))
    def delete_a_child(self, name: str) -> None:
        if name in self.cluster.gadgets:
            self.cluster.remove(self.cluster.gadgets[name])
            self.hurt.add(name)

    @rule(name=st.sampled_from(NAMES))
    def break_a_child(self, name: str) -> None:
        if name in self.cluster.gadgets:
            self.cluster.set_status(name, {"conditions": [{"type": "Ready", "status": "False"}]})
            self.hurt.add(name)

    @rule(index=st.integers(0, 2))
    def delete_a_revision(self, index: int) -> None:
        for revision in self.cluster.revisions[index : index + 1]:
            self.cluster.remove(revision)

    @rule(name=st.sampled_from(NAMES))
    def a_child_gets_well(self, name: str) -> None:
        self._heal([name])

    @rule(writes=st.integers(0, 4))
    def sync_that_dies_after_some_writes(self, writes: int) -> None:
        self._sync(FakeLease(checks_left=writes))

    @rule()
    def sync(self) -> None:
        self._sync(FakeLease())

    @rule(steps=st.integers(1, 3))
    def some_steps_of_a_rollout_in_which_all_goes_well(self, steps: int) -> None:
        for _ in range(steps):
            self._sync(FakeLease())
            self._heal(self.cluster.gadgets)
        self._sync(FakeLease())

    @invariant()
    def one_child_is_in_motion_at_most(self) -> None:
        if hasattr(self, "cluster"):
            assert len(self.moving - self.hurt) <= 1, f"{self.moving} are in motion, of which others hurt {self.hurt}"

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self._settle()
            self._expect_settled()

    def _sync(self, lease: FakeLease) -> None:
        there = self.cluster.gadgets
        wanted = self._wanted()
        done = self.cluster.sync(lease)
        disturbed = [unstructured.name(action.obj) for action in done if unstructured.name(action.obj) in there]
        self.moving |= {name for name in disturbed if name in wanted}
        self._notice_who_is_well()

    def _heal(self, names: Iterable[str]) -> None:
        for name in names:
            gadget = self.cluster.gadgets.get(name)
            if gadget is not None:
                self.cluster.set_status(name, {**READY, "observedGeneration": unstructured.generation(gadget)})
        self._notice_who_is_well()

    def _notice_who_is_well(self) -> None:
        well = {name for name, gadget in self.cluster.gadgets.items() if _is_well(gadget)}
        self.moving -= well
        self.hurt -= well

    def _settle(self) -> None:
        for _ in range(4 * len(NAMES) + 20):
            before = self.cluster.api.version
            self._sync(FakeLease())
            self.one_child_is_in_motion_at_most()
            self._heal(self.cluster.gadgets) if self._has_sick() else None
            if self.cluster.api.version == before:
                return
        raise AssertionError("the rollout does not come to rest")

    def _has_sick(self) -> bool:
        return not all(map(_is_well, self.cluster.gadgets.values()))

    def _expect_settled(self) -> None:
        spec = unstructured.child_object(self.cluster.parent, "spec")
        text = unstructured.child_object(spec, "template")["text"]
        assert {name: unstructured.child_object(gadget, "spec")["text"] for name, gadget in self.cluster.gadgets.items()} == dict.fromkeys(
            self._wanted(), text
        )
        [revision] = self.cluster.revisions
        assert revision["parentPatch"] == {"spec": {"template": {"text": text}}}
        assert claimed_by(revision) == claimed(*self._wanted())
        assert (self.cluster.condition["status"], self.cluster.condition["reason"]) == ("True", "OnLatestRevision")

    def _wanted(self) -> set[str]:
        names = unstructured.child_object(self.cluster.parent, "spec")["names"]
        assert isinstance(names, list)
        return {*map(str, names)}


def _is_well(gadget: JsonObject) -> bool:
    status = unstructured.child_object(gadget, "status")
    return status.get("conditions") == READY["conditions"] and status.get("observedGeneration") == unstructured.generation(gadget)


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestRollouts = pytest.mark.timeout(120)(TestRollouts)
