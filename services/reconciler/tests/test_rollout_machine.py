"""Rollouts with random events between and within syncs: they always finish, and never move two children at once."""

import asyncio
from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from rolling import GADGETS, NAMES, READY
from rolling_sync import RollingSync

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

TEXTS = ("v1", "v2", "v3")
NOT_READY: JsonObject = {"conditions": [{"type": "Ready", "status": "False"}]}
FOREVER = 1_000_000
_MOST_SYNCS = 50

names = st.sampled_from(NAMES)


class Rollouts(RuleBasedStateMachine):
    """`moving`: children that we changed and that are not ready yet. `hurt`: children that somebody else changed."""

    @initialize(method=st.sampled_from(("RollingInPlace", "RollingRecreate")))
    def begin(self, method: str) -> None:
        self.cluster = RollingSync(method=method)
        self.moving: set[str] = set()
        self.hurt: set[str] = set()
        self._settle()

    @rule(text=st.sampled_from(TEXTS))
    def change_the_template(self, text: str) -> None:
        self.cluster.say(text)

    @rule(name=names)
    def add_or_remove_a_child(self, name: str) -> None:
        wanted = self._wanted()
        self.cluster.change(names=[*sorted(wanted ^ {name})])
        if name in wanted:
            self.moving.discard(name)
        elif name not in self.cluster.gadgets:
            self.hurt.add(name)

    @rule(name=names)
    def delete_a_child(self, name: str) -> None:
        if name in self.cluster.gadgets:
            self.cluster.remove(GADGETS, [name])
            self.hurt.add(name)

    @rule(name=names)
    def break_a_child(self, name: str) -> None:
        if name in self.cluster.gadgets:
            self.cluster.set_status(name, NOT_READY)
            self.hurt.add(name)

    @rule(text=st.sampled_from(TEXTS))
    def delete_a_revision(self, text: str) -> None:
        self.cluster.remove_revision(text)

    @rule(name=names)
    def a_child_gets_well(self, name: str) -> None:
        self._heal([name])

    @rule(requests=st.integers(0, 7))
    def sync_that_dies_after_some_requests(self, requests: int) -> None:
        self._sync(after_requests=requests)

    @rule()
    def sync(self) -> None:
        self._sync()

    @rule(steps=st.integers(1, 3))
    def some_steps_of_a_rollout_in_which_all_goes_well(self, steps: int) -> None:
        for _ in range(steps):
            self._sync()
            self._heal(NAMES)
        self._sync()

    @invariant()
    def one_child_is_in_motion_at_most(self) -> None:
        if hasattr(self, "cluster"):
            assert len(self.moving - self.hurt) <= 1, f"{self.moving} are in motion, of which others hurt {self.hurt}"

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self._settle()
            self._expect_settled()

    def _sync(self, *, after_requests: int = FOREVER) -> None:
        before, wanted = self.cluster.gadgets, self._wanted()
        asyncio.run(self.cluster.run_until_killed(after_requests=after_requests))
        after = self.cluster.gadgets
        self.moving |= {name for name, gadget in before.items() if name in wanted and _is_disturbed(gadget, after.get(name))}
        self._notice_who_is_well()

    def _heal(self, names: Iterable[str]) -> None:
        self.cluster.heal(*names)
        self._notice_who_is_well()

    def _notice_who_is_well(self) -> None:
        well = {name for name, gadget in self.cluster.gadgets.items() if _is_well(gadget)}
        self.moving -= well
        self.hurt -= well

    def _settle(self) -> None:
        """Sync until nothing is written any more, while every child becomes ready."""
        for _ in range(_MOST_SYNCS):
            before = self.cluster.api.version
            self._sync()
            self.one_child_is_in_motion_at_most()
            self._heal([name for name, gadget in self.cluster.gadgets.items() if not _is_well(gadget)])
            if self.cluster.api.version == before:
                return
        raise AssertionError("the rollout does not come to rest")

    def _expect_settled(self) -> None:
        spec = unstructured.child_object(self.cluster.parent, "spec")
        text = unstructured.text(unstructured.child_object(spec, "template"), "text")
        assert self.cluster.texts == dict.fromkeys(self._wanted(), text)
        assert self.cluster.revisions == {text: sorted(self._wanted())}
        assert self.cluster.condition == ("True", "OnLatestRevision")

    def _wanted(self) -> set[str]:
        wanted = unstructured.child_object(self.cluster.parent, "spec")["names"]
        assert isinstance(wanted, list)
        return {*map(str, wanted)}


def _is_disturbed(before: JsonObject, after: JsonObject | None) -> bool:
    """Whether a child was deleted, or its spec changed."""
    return after is None or unstructured.uid(before) != unstructured.uid(after) or before["spec"] != after["spec"]


def _is_well(gadget: JsonObject) -> bool:
    status = unstructured.child_object(gadget, "status")
    return status.get("conditions") == READY["conditions"] and status.get("observedGeneration") == unstructured.generation(gadget)


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(max_examples=100, stateful_step_count=30)
