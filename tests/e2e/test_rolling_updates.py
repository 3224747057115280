"""Rolling updates: one child at a time, in the order of the answer, each of them well before the next; whatever happens
in the middle.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import manifests
from metaloop.devkit.testbed.audit import Request, tally
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, install_parent
from metaloop.devkit.testbed.story import Story

from .gadgets import GADGETS, Gadgets, gadgets_of

ALL_V1 = {"a": "v1", "b": "v1", "c": "v1"}
MANY = tuple(f"g{number:02}" for number in range(12))
_CLUSTER_PARENTS = manifests.parent_resource("clusterparents", namespaced=False)
STRATEGY = "metaloop.dev/apply-strategy"
_COLLECTED_SECONDS = 90
_ADMISSION = "admissionregistration.k8s.io/v1"
_POLICIES = ResourceInfo(api_version=_ADMISSION, resource="mutatingadmissionpolicies", kind="MutatingAdmissionPolicy", namespaced=False)
_BINDINGS = ResourceInfo(
    api_version=_ADMISSION, resource="mutatingadmissionpolicybindings", kind="MutatingAdmissionPolicyBinding", namespaced=False
)


@pytest_asyncio.fixture(loop_scope="session")
async def gadgets(story: Story) -> Gadgets:
    await install_parent(story.cluster, GADGETS)
    return Gadgets(story)


@pytest_asyncio.fixture(loop_scope="session")
async def cluster_gadgets(lab: Lab) -> AsyncIterator[Gadgets]:
    """Gadgets of a cluster-scoped parent."""
    await install_parent(lab.cluster, GADGETS)
    await install_parent(lab.cluster, _CLUSTER_PARENTS)
    story = Story(lab=lab, name="cluster-gadgets", parents=_CLUSTER_PARENTS)
    await story.begin()
    yield Gadgets(story)
    await story.cluster.delete(_CLUSTER_PARENTS, "", Gadgets.parent)
    await story.end()


# -- a rollout by itself -----------------------------------------------------------------------------------------------


async def test_children_roll_one_at_a_time_each_well_before_the_next(gadgets: Gadgets) -> None:
    """Readiness as the API server has it: an update raises the generation, and a status of the former one counts for
    nothing.
    """
    await gadgets.create(("b", "a", "c"))

    await gadgets.set_text("v2")

    await gadgets.waits_for("b", "has a status of generation 1, not yet of 2")
    await gadgets.shows({"b": "v2", "a": "v1", "c": "v1"})
    assert await gadgets.revisions() == {"v2": ["b"], "v1": ["a", "c"]}
    await gadgets.set_unready("b")
    await gadgets.waits_for("b", "has condition Ready with status False, not True")
    await gadgets.shows({"b": "v2", "a": "v1", "c": "v1"})
    await gadgets.set_ready("b")
    await gadgets.shows({"b": "v2", "a": "v2", "c": "v1"})
    await gadgets.set_ready("a")
    await gadgets.shows({"b": "v2", "a": "v2", "c": "v2"})
    await gadgets.set_ready("c")
    await gadgets.is_rolled_out(text="v2")


async def test_rollout_without_checks_needs_nobody(gadgets: Gadgets) -> None:
    await gadgets.create(MANY, checks=(), are_ready=False)
    await eventually(gadgets.are_rested)
    mark = gadgets.story.lab.audit.mark()

    await gadgets.set_text("v2")

    await gadgets.is_rolled_out(text="v2")
    requests = await _in(gadgets, mark)
    assert _touched(requests, "update") == [*MANY]
    # Each move is written to both revisions, the last one deletes one of them; the status follows each.
    moves = len(MANY)
    counted = tally(requests)
    assert counted.pop("update things/status") <= 2 * moves
    assert counted == {
        "create controllerrevisions": 1,
        "update controllerrevisions": 2 * moves - 2,
        "delete controllerrevisions": 1,
        "update gadgets": moves,
    }


async def test_rolled_out_parent_is_neither_read_nor_written(gadgets: Gadgets) -> None:
    await gadgets.create()
    await eventually(gadgets.are_rested)
    mark = gadgets.story.lab.audit.mark()

    await _sync(gadgets)

    assert await _in(gadgets, mark) == []


# -- changes in the middle ---------------------------------------------------------------------------------------------


async def test_second_change_asks_about_every_live_revision_and_mends_first(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")
    await gadgets.set_ready("a")
    await gadgets.waits_for("b")
    calls = len(gadgets.story.calls())

    await gadgets.set_text("v3")

    await gadgets.shows({"a": "v2", "b": "v3", "c": "v1"})
    asked = {_template_of(call.parent) for call in gadgets.story.calls()[calls:]}
    assert asked == {"v1", "v2", "v3"}
    assert await gadgets.revisions() == {"v3": ["b"], "v2": ["a"], "v1": ["c"]}
    await _roll(gadgets, "b", "a", "c", text="v3")


# -- accidents ---------------------------------------------------------------------------------------------------------


async def test_latest_revision_that_somebody_deleted_is_made_again(gadgets: Gadgets) -> None:
    await gadgets.create()

    await gadgets.delete_revision("v1")

    await gadgets.is_rolled_out()


async def _kill_both_reconcilers(lab: Lab) -> None:
    for reconciler in lab.stack.reconcilers:
        os.kill(reconciler.pid, signal.SIGKILL)


async def _kill_the_watcher(lab: Lab) -> None:
    os.kill(lab.stack.watcher.pid, signal.SIGKILL)


async def _restart_the_watcher(lab: Lab) -> None:
    await lab.stack.watcher.stop()
    await lab.stack.watcher.start()


ACCIDENTS: Mapping[str, Callable[[Lab], Awaitable[None]]] = {
    "both reconcilers are killed": _kill_both_reconcilers,
    "the watcher is killed": _kill_the_watcher,
    "the watcher is restarted": _restart_the_watcher,
}


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
@pytest.mark.parametrize("accident", ACCIDENTS)
async def test_rollout_goes_on_where_it_stood(gadgets: Gadgets, accident: str, method: str) -> None:
    await gadgets.create(MANY, method=method, checks=(), are_ready=False, hook=_unhurried)
    mark = gadgets.story.lab.audit.mark()
    await gadgets.set_text("v2")
    await eventually(lambda: gadgets.some_have("v2", at_least=3))

    await ACCIDENTS[accident](gadgets.story.lab)

    await gadgets.is_rolled_out(text="v2", within_seconds=60)
    verb = "update" if method == "RollingInPlace" else "delete"
    assert _touched(await _in(gadgets, mark), verb) == [*MANY]


async def test_rollout_that_waits_still_waits_after_everybody_was_killed(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await _kill_the_watcher(gadgets.story.lab)
    await _kill_both_reconcilers(gadgets.story.lab)
    await _sync(gadgets)

    assert await gadgets.texts() == {**ALL_V1, "a": "v2"}
    await _roll(gadgets, "a", "b", "c", text="v2")


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
async def test_rollout_does_not_wait_for_what_admission_never_lets_be(gadgets: Gadgets, method: str) -> None:
    """Admission appends something to what each Gadget is to say, so none is ever as desired.

    With server-side apply only the API server can tell.
    """
    await gadgets.create(method=method, checks=(), are_ready=False)
    await gadgets.story.cluster.patch(COMPOSITES, "", gadgets.story.name, {"metadata": {"annotations": {STRATEGY: "server-side-apply"}}})
    async with _rewriting(gadgets):
        await gadgets.set_text("v2")

        await gadgets.shows(dict.fromkeys(ALL_V1, "v2, rewritten"))
        await gadgets.has_condition("True", "OnLatestRevision")
        mark = gadgets.story.lab.audit.mark()
        await _sync(gadgets)
        assert await gadgets.texts() == dict.fromkeys(ALL_V1, "v2, rewritten")
        assert _touched(await _in(gadgets, mark), "delete", "create") == []


@asynccontextmanager
async def _rewriting(gadgets: Gadgets) -> AsyncIterator[None]:
    """Admission rewrites the text of every Gadget."""
    story = gadgets.story
    changed = 'object.spec.text.endsWith("rewritten") ? object.spec.text : object.spec.text + ", rewritten"'
    rule: JsonObject = {"apiGroups": [GADGETS.group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["gadgets"]}
    policy: JsonObject = {
        "matchConstraints": {"resourceRules": [rule]},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f'[JSONPatch{{op: "replace", path: "/spec/text", value: {changed}}}]'},
            }
        ],
    }
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": story.name}}
    binding: JsonObject = {"policyName": story.name, "matchResources": {"namespaceSelector": selector}}
    for info, spec in ((_POLICIES, policy), (_BINDINGS, binding)):
        await story.cluster.create(
            info, {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": story.name}, "spec": spec}
        )
    try:
        await eventually(lambda: _is_rewriting(gadgets), within_seconds=30)
        yield
    finally:
        for info in (_BINDINGS, _POLICIES):
            await story.cluster.delete(info, "", story.name)


async def _is_rewriting(gadgets: Gadgets) -> None:
    """Raises AssertionError until the API server has learnt of the policy."""
    probe: JsonObject = {
        "apiVersion": GADGETS.api_version,
        "kind": GADGETS.kind,
        "metadata": {"name": "probe"},
        "spec": {"text": "probe"},
    }
    path = GADGETS.collection_path(gadgets.story.name)
    tried = loads(await gadgets.story.cluster.request("POST", path, body=dumps(probe), params={"dryRun": "All"}))
    expect(tried["spec"] == {"text": "probe, rewritten"}, "admission rewrites nothing yet")


# -- parents of all sorts ----------------------------------------------------------------------------------------------


async def test_cluster_scoped_parent_rolls_too(cluster_gadgets: Gadgets) -> None:
    await cluster_gadgets.create()

    await cluster_gadgets.set_text("v2")

    await _roll(cluster_gadgets, "a", "b", "c", text="v2")


async def test_children_that_are_applied_server_side_roll_too(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.story.cluster.patch(COMPOSITES, "", gadgets.story.name, {"metadata": {"annotations": {STRATEGY: "server-side-apply"}}})

    await gadgets.set_text("v2")

    await gadgets.shows({**ALL_V1, "a": "v2"})
    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_parent_that_is_deleted_in_the_middle_is_finalized(gadgets: Gadgets) -> None:
    def going(request: JsonObject) -> JsonObject:
        observed = unstructured.child_object(unstructured.child_object(request, "children"), f"{GADGETS.kind}.{GADGETS.api_version}")
        return {"children": [], "finalized": not observed}

    story = gadgets.story
    hooks = {"sync": story.hook("sync", gadgets_of), "finalize": story.hook("finalize", going)}
    await gadgets.create(hooks=hooks)
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await story.cluster.delete(story.parents, story.name, gadgets.parent)

    async def is_gone() -> None:
        expect(await story.cluster.find(story.parents, story.name, gadgets.parent) is None, "the parent is still there")

    await eventually(is_gone)
    assert await gadgets.texts() == {}
    await eventually(gadgets.has_no_revisions, within_seconds=_COLLECTED_SECONDS)


# -- words -------------------------------------------------------------------------------------------------------------


async def _roll(gadgets: Gadgets, *names: str, text: str) -> None:
    """The rollout goes on to its end, child by child; each is waited for before it gets well."""
    for name in names:
        await gadgets.has_text(name, text)
        await gadgets.set_ready(name)
    await gadgets.is_rolled_out(text=text)


async def _sync(gadgets: Gadgets) -> None:
    """The parent was synced anew, from the hook's call to the last write: the next sync asks only when this one is
    over.
    """
    for number in ("first", "second"):
        calls = len(gadgets.story.calls())
        await gadgets.story.relabel(gadgets.parent, {"touched": number})
        await eventually(lambda calls=calls: gadgets.story.called(calls + 1), within_seconds=60)


async def _unhurried(request: JsonObject) -> JsonObject:
    """Slow enough that somebody is in the middle of something when it dies."""
    await asyncio.sleep(0.05)
    return gadgets_of(request)


async def _in(gadgets: Gadgets, mark: int) -> list[Request]:
    """The services' requests in the namespace of the Gadgets."""
    return [request for request in await gadgets.story.lab.audit.ours_since(mark) if request.namespace == gadgets.story.name]


def _touched(requests: list[Request], *verbs: str) -> list[str]:
    """The Gadgets that were written so with success, in order."""
    return [each.name for each in requests if each.resource == "gadgets" and each.verb in verbs and each.code < 400]


def _template_of(parent: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(unstructured.child_object(parent, "spec"), "template"), "text")
