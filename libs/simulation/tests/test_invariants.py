"""Each invariant notices what violates it."""

import asyncio

import pytest
from virtual import now, on_virtual_time

from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.transport import Request
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import reference_to
from metaloop.common.report import SyncReport, Write
from metaloop.common.testing.builders import job_key
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.invariants import Invariants
from metaloop.simulation.resources import CONFIG_MAPS, NAMESPACE, THINGS
from metaloop.simulation.webhooks import HookCall
from metaloop.simulation.world import World

CONTROLLER: JsonObject = {"metadata": {"name": job_key().controller.name}}
PARENT: JsonObject = {"metadata": {"name": "parent", "namespace": NAMESPACE, "uid": "p", "resourceVersion": "1"}, "spec": {}}


class Scene:
    """A world whose services do nothing, and what a test has them do."""

    def __init__(self) -> None:
        self.world = World(seed="1", plan=FaultPlan())
        self.invariants = Invariants(world=self.world)
        self.invariants.watch()
        self.world.start()

    @property
    def violations(self) -> list[str]:
        return self.world.history.violations

    def begin(self, caller: str, *, observed: JsonObject | None = None, spec: JsonObject | None = None) -> HookCall:
        """A call that a webhook begins to work on."""
        parent: JsonObject = {**PARENT, "spec": spec or {}}
        children: JsonObject = {"ConfigMap.v1": observed or {}}
        call = HookCall(
            path="/sets/sync",
            parent=parent,
            request={"controller": CONTROLLER, "parent": parent, "children": children},
            caller=f"{caller}#1",
            began=now(),
        )
        for listener in self.world.webhooks.on_begin:
            listener(call)
        self.world.webhooks.live.append(call)
        return call

    def answer(self, call: HookCall, *names: str) -> None:
        """A good answer with these ConfigMaps."""
        self.world.webhooks.live.remove(call)
        children: list[JsonObject] = [{"kind": "ConfigMap", "metadata": {"name": name}} for name in names]
        for listener in self.world.webhooks.on_answer:
            listener(call, {"children": [*children]})

    def child(self, name: str) -> JsonObject:
        """A stored child of the parent."""
        reference = reference_to({**PARENT, "apiVersion": "sim.metaloop.dev/v1", "kind": "Thing"})
        return self.world.create(CONFIG_MAPS, {"metadata": {"name": name, "ownerReferences": [reference]}})

    def delete(self, child: JsonObject, *, by: str) -> None:
        """A process deletes a child."""
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{unstructured.name(child)}"
        self.world.api.act(by, Request(method="DELETE", target=path, body=dumps({})))

    def report(self, child: JsonObject, *, version: str) -> None:
        """The watcher takes a report that names one write to a child."""
        write = Write(
            resource=CONFIG_MAPS.id,
            namespace=NAMESPACE,
            name=unstructured.name(child),
            uid=unstructured.uid(child),
            resource_version=version,
        )
        taken = SyncReport(key=job_key("parent"), lease="lease", result="done", writes=[write])
        for listener in self.world.broker.on_report:
            listener(self.world.watchers[0].port, taken)

    def grant(self, watcher: int = 0) -> None:
        """A watcher grants the parent to a reconciler."""
        for listener in self.world.broker.on_grant:
            listener(self.world.watchers[watcher].port, job_key("parent"))


async def scene() -> Scene:
    made = Scene()
    await asyncio.sleep(2)
    return made


def test_two_live_calls_for_one_parent_are_noticed():
    async def main() -> list[str]:
        made = await scene()
        made.begin("reconciler-1")
        made.begin("reconciler-2")
        return made.violations

    assert on_virtual_time(main()) == ["two live hook calls for parent: by reconciler-1#1 and by reconciler-2#1"]


def test_calls_of_one_sync_for_several_revisions_may_be_live_at_once():
    async def main() -> list[str]:
        made = await scene()
        made.begin("reconciler-1", spec={"text": "old"})
        made.begin("reconciler-1", spec={"text": "new"})
        return made.violations

    assert on_virtual_time(main()) == []


def test_calls_one_after_another_are_fine():
    async def main() -> list[str]:
        made = await scene()
        made.answer(made.begin("reconciler-1"))
        made.answer(made.begin("reconciler-2"))
        return made.violations

    assert on_virtual_time(main()) == []


@pytest.mark.parametrize(
    ("desired", "found"), [(["a"], ["reconciler-1 deleted configmaps a, which its last answer desires"]), (["b"], []), ([], [])]
)
def test_a_reconciler_deletes_only_what_its_last_answer_leaves_out(desired: list[str], found: list[str]):
    async def main() -> list[str]:
        made = await scene()
        child = made.child("a")
        made.answer(made.begin("reconciler-1"), *desired)
        made.delete(child, by="reconciler-1")
        return made.violations

    assert on_virtual_time(main()) == found


def test_nothing_is_deleted_without_a_good_answer():
    async def main() -> list[str]:
        made = await scene()
        made.delete(made.child("a"), by="reconciler-1")
        return made.violations

    assert on_virtual_time(main()) == ["reconciler-1 deleted configmaps a without a good answer"]


def test_users_delete_what_they_like():
    async def main() -> list[str]:
        made = await scene()
        made.child("a")
        made.world.delete(CONFIG_MAPS, "a")
        return made.violations

    assert on_virtual_time(main()) == []


def newer(child: JsonObject) -> str:
    """The version after a child's."""
    return str(int(unstructured.resource_version(child)) + 1)


def test_a_hook_that_is_not_shown_our_own_write_is_noticed():
    async def main() -> list[str]:
        made = await scene()
        child = made.child("a")
        made.report(child, version=newer(child))
        made.grant()
        made.begin("reconciler-1", observed={"a": child})
        return made.violations

    assert on_virtual_time(main()) == ["the hook of parent is not shown our own write to configmaps a"]


def test_a_write_before_the_last_one_counts_too():
    async def main() -> list[str]:
        made = await scene()
        child, other = made.child("a"), made.child("b")
        made.report(child, version=newer(child))
        made.report(other, version=unstructured.resource_version(other))
        made.grant()
        made.begin("reconciler-1", observed={"a": child, "b": other})
        return made.violations

    assert on_virtual_time(main()) == ["the hook of parent is not shown our own write to configmaps a"]


def test_a_hook_that_is_shown_our_own_writes_is_fine():
    async def main() -> list[str]:
        made = await scene()
        child = made.child("a")
        made.report(child, version=unstructured.resource_version(child))
        made.grant()
        made.begin("reconciler-1", observed={"a": child})
        return made.violations

    assert on_virtual_time(main()) == []


def test_a_report_that_comes_after_the_grant_can_not_count():
    async def main() -> list[str]:
        made = await scene()
        child = made.child("a")
        made.grant()
        await asyncio.sleep(0.1)
        made.report(child, version=newer(child))
        made.begin("reconciler-1", observed={"a": child})
        return made.violations

    assert on_virtual_time(main()) == []


def test_a_watcher_is_not_to_know_what_another_was_told():
    async def main() -> list[str]:
        made = await scene()
        child = made.child("a")
        made.report(child, version=newer(child))
        made.grant(watcher=1)
        made.begin("reconciler-1", observed={"a": child})
        return made.violations

    assert on_virtual_time(main()) == []


def test_own_writes_are_waited_for_no_longer_than_two_seconds():
    async def main() -> list[str]:
        made = await scene()
        child = made.child("a")
        made.report(child, version=newer(child))
        await asyncio.sleep(2.5)
        made.grant()
        made.begin("reconciler-1", observed={"a": child})
        return made.violations

    assert on_virtual_time(main()) == []


async def changed(made: Scene, *, waits_seconds: float) -> HookCall:
    """A call for another parent, so long after a user created one."""
    made.world.create(THINGS, {"metadata": {"name": "changed"}, "spec": {}})
    await asyncio.sleep(waits_seconds)
    return made.begin("reconciler-1")


def test_a_parent_that_waits_while_others_are_served_is_noticed():
    async def main() -> list[str]:
        made = await scene()
        await changed(made, waits_seconds=71)
        return made.violations

    assert on_virtual_time(main()) == ["changed waits for its hook while others are served"]


def test_a_parent_may_wait_for_a_while():
    async def main() -> list[str]:
        made = await scene()
        await changed(made, waits_seconds=69)
        return made.violations

    assert on_virtual_time(main()) == []


def test_a_parent_that_is_deleted_waits_for_nothing():
    async def main() -> list[str]:
        made = await scene()
        made.world.create(THINGS, {"metadata": {"name": "changed"}, "spec": {}})
        made.world.delete(THINGS, "changed")
        await asyncio.sleep(71)
        made.begin("reconciler-1")
        return made.violations

    assert on_virtual_time(main()) == []
