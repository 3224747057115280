"""Rolling updates: one child at a time, in the order of the answer, each of them well before the next; whatever happens in the middle."""

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
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
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


# -- a rollout by itself -------------------------------------------------------------------------------------------------------------


async def test_children_roll_one_at_a_time_in_the_order_of_the_answer(gadgets: Gadgets) -> None:
    await gadgets.create(("b", "a", "c"))

    await gadgets.set_text("v2")

    await gadgets.shows({"b": "v2", "a": "v1", "c": "v1"})
    await gadgets.set_ready("b")
    await gadgets.shows({"b": "v2", "a": "v2", "c": "v1"})
    await gadgets.set_ready("a")
    await gadgets.shows({"b": "v2", "a": "v2", "c": "v2"})
    await gadgets.set_ready("c")
    await gadgets.is_rolled_out(text="v2")


async def test_rollout_waits_for_as_long_as_a_check_does_not_pass_and_says_for_what(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a", "has a status of generation 1, not yet of 2")

    await gadgets.set_unready("a")

    await gadgets.waits_for("a", "has condition Ready with status False, not True")
    assert await gadgets.revisions() == {"v2": ["a"], "v1": ["b", "c"]}
    await steadily(lambda: gadgets.shows({**ALL_V1, "a": "v2"}, within_seconds=0))


async def test_rollout_without_checks_needs_nobody(gadgets: Gadgets) -> None:
    await gadgets.create(MANY, checks=(), are_ready=False)
    mark = gadgets.story.lab.audit.mark()

    await gadgets.set_text("v2")

    await gadgets.is_rolled_out(text="v2")
    requests = _in(gadgets, mark)
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


async def test_at_rest_nothing_is_read_or_written(gadgets: Gadgets) -> None:
    await gadgets.create(resyncPeriodSeconds=1)
    mark = gadgets.story.lab.audit.mark()
    calls = len(gadgets.story.calls())

    await eventually(lambda: gadgets.story.called(calls + 3))

    assert _in(gadgets, mark) == []


async def test_recreated_children_are_deleted_and_come_back_one_at_a_time(gadgets: Gadgets) -> None:
    await gadgets.create(method="RollingRecreate")
    mark = gadgets.story.lab.audit.mark()

    await gadgets.set_text("v2")
    for name in ("a", "b", "c"):
        await gadgets.has_text(name, "v2")
        assert list((await gadgets.texts()).values()).count("v2") == "abc".index(name) + 1
        await gadgets.set_ready(name)

    await gadgets.is_rolled_out(text="v2")
    assert _touched(_in(gadgets, mark), "delete", "create") == ["a", "a", "b", "b", "c", "c"]


# -- changes in the middle -----------------------------------------------------------------------------------------------------------


async def test_second_change_in_the_middle_first_mends_the_child_that_the_first_one_left_unwell(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")
    await gadgets.set_ready("a")
    await gadgets.waits_for("b")

    await gadgets.set_text("v3")

    await gadgets.shows({"a": "v2", "b": "v3", "c": "v1"})
    assert await gadgets.revisions() == {"v3": ["b"], "v2": ["a"], "v1": ["c"]}
    await _roll(gadgets, "b", "a", "c", text="v3")


async def test_every_live_revision_is_asked_about(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")
    await gadgets.set_ready("a")
    await gadgets.waits_for("b")
    calls = len(gadgets.story.calls())

    await gadgets.set_text("v3")

    await gadgets.has_text("b", "v3")
    asked = {_template_of(call.parent) for call in gadgets.story.calls()[calls:]}
    assert asked == {"v1", "v2", "v3"}


async def test_rolling_back_in_the_middle_returns_to_the_first_revision(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await gadgets.set_text("v1")

    await gadgets.shows(ALL_V1)
    await gadgets.set_ready("a")
    await gadgets.is_rolled_out(text="v1")


async def test_child_that_is_added_in_the_middle_begins_as_the_latest(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await gadgets.change(names=["a", "b", "c", "d"])

    await gadgets.shows({"a": "v2", "b": "v1", "c": "v1", "d": "v2"})
    await gadgets.set_ready("d")
    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_child_that_is_removed_in_the_middle_goes_at_once_and_is_not_waited_for(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await gadgets.change(names=["b", "c"])

    await gadgets.shows({"b": "v2", "c": "v1"})
    await _roll(gadgets, "b", "c", text="v2")


async def test_field_that_makes_no_revision_changes_at_once_for_all(gadgets: Gadgets) -> None:
    def with_suffix(request: JsonObject) -> JsonObject:
        answer = gadgets_of(request)
        suffix = unstructured.text(unstructured.child_object(unstructured.child_object(request, "parent"), "spec"), "suffix")
        for child in answer["children"]:  # type: ignore[union-attr]
            child["spec"]["text"] += suffix  # type: ignore[index, operator, call-overload]
        return answer

    await gadgets.create(hook=with_suffix)
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await gadgets.change(suffix="!")

    await gadgets.shows({"a": "v2!", "b": "v1!", "c": "v1!"})
    assert await gadgets.revisions() == {"v2": ["a"], "v1": ["b", "c"]}


async def test_whole_spec_rolls_where_no_fields_are_named(gadgets: Gadgets) -> None:
    await gadgets.create(field_paths=())

    await gadgets.change(template={"text": "v2"}, other="field")

    await gadgets.shows({**ALL_V1, "a": "v2"})
    await _roll(gadgets, "a", "b", "c", text="v2")


# -- accidents -----------------------------------------------------------------------------------------------------------------------


async def test_child_that_was_not_updated_yet_comes_back_as_it_was(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await gadgets.delete("c")

    await gadgets.shows({**ALL_V1, "a": "v2"})
    await gadgets.set_ready("c")
    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_revision_that_somebody_deleted_lets_no_child_skip_its_turn(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    await gadgets.delete_revision("v1")

    await steadily(lambda: gadgets.shows({**ALL_V1, "a": "v2"}, within_seconds=0))
    await _roll(gadgets, "a", "b", "c", text="v2")


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
    assert _touched(_in(gadgets, mark), verb) == [*MANY]


async def test_rollout_that_waits_still_waits_after_everybody_was_killed(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")
    calls = len(gadgets.story.calls())

    await _kill_the_watcher(gadgets.story.lab)
    await _kill_both_reconcilers(gadgets.story.lab)
    await eventually(lambda: gadgets.story.called(calls + 1), within_seconds=60)

    await steadily(lambda: gadgets.shows({**ALL_V1, "a": "v2"}, within_seconds=0))
    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_hook_that_fails_for_an_older_revision_stops_the_rollout_until_it_answers(gadgets: Gadgets) -> None:
    def only_v2(request: JsonObject) -> JsonObject:
        return {} if _template_of(unstructured.child_object(request, "parent")) == "v2" else {"children": [None]}

    await gadgets.create()
    await gadgets.set_text("v2")
    await gadgets.waits_for("a")

    gadgets.story.now_answers(lambda request: gadgets_of(request) | only_v2(request))
    await gadgets.set_ready("a")

    await eventually(lambda: gadgets.story.warning(of=gadgets.parent, containing="children[0]"))
    assert await gadgets.texts() == {**ALL_V1, "a": "v2"}
    gadgets.story.now_answers(gadgets_of)
    await _roll(gadgets, "a", "b", "c", text="v2")


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
async def test_rollout_does_not_wait_for_what_admission_never_lets_be(gadgets: Gadgets, method: str, strategy: str) -> None:
    """Admission appends something to what each Gadget is to say, so none is ever as desired."""
    await gadgets.create(method=method, checks=(), are_ready=False)
    await gadgets.story.cluster.patch(COMPOSITES, "", gadgets.story.name, {"metadata": {"annotations": {STRATEGY: strategy}}})
    async with _rewriting(gadgets):
        await gadgets.set_text("v2")

        await gadgets.has_condition("True", "OnLatestRevision")
        await gadgets.shows(dict.fromkeys(ALL_V1, "v2, rewritten"))
        calls, mark = len(gadgets.story.calls()), gadgets.story.lab.audit.mark()
        await gadgets.story.relabel(gadgets.parent, {"touched": "yes"})
        await eventually(lambda: gadgets.story.called(calls + 1))
        await steadily(lambda: gadgets.shows(dict.fromkeys(ALL_V1, "v2, rewritten"), within_seconds=0))
        assert _touched(_in(gadgets, mark), "delete", "create") == []


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


# -- parents of all sorts ------------------------------------------------------------------------------------------------------------


async def test_cluster_scoped_parent_rolls_too(cluster_gadgets: Gadgets) -> None:
    await cluster_gadgets.create()

    await cluster_gadgets.set_text("v2")

    await _roll(cluster_gadgets, "a", "b", "c", text="v2")


async def test_generated_selector_selects_revisions_too(gadgets: Gadgets) -> None:
    await gadgets.create(generateSelector=True)

    await gadgets.set_text("v2")

    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_children_that_are_applied_server_side_roll_too(gadgets: Gadgets) -> None:
    await gadgets.create()
    await gadgets.story.cluster.patch(COMPOSITES, "", gadgets.story.name, {"metadata": {"annotations": {STRATEGY: "server-side-apply"}}})

    await gadgets.set_text("v2")

    await gadgets.shows({**ALL_V1, "a": "v2"})
    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_template_labels_that_the_selector_does_not_match_lose_no_revision(gadgets: Gadgets) -> None:
    await gadgets.create()
    labels: JsonObject = {"labels": {"app": "something-else"}}

    await gadgets.change(template={"text": "v2", "metadata": labels})

    await _roll(gadgets, "a", "b", "c", text="v2")


async def test_condition_replaces_one_that_the_hook_made_up(gadgets: Gadgets) -> None:
    def with_condition(request: JsonObject) -> JsonObject:
        return {
            **gadgets_of(request),
            "status": {"conditions": [{"type": "Updated", "status": "Unknown"}, {"type": "Mine", "status": "True"}]},
        }

    await gadgets.create(hook=with_condition)

    conditions = (await gadgets.story.status(gadgets.parent))["conditions"]
    assert isinstance(conditions, list)
    assert [(each["type"], each["status"]) for each in conditions] == [("Mine", "True"), ("Updated", "True")]  # type: ignore[index, call-overload]


async def test_null_status_has_the_condition_alone(gadgets: Gadgets) -> None:
    await gadgets.create(hook=lambda request: {**gadgets_of(request), "status": None})

    status = await gadgets.story.status(gadgets.parent)

    assert sorted(status) == ["conditions", "observedGeneration"]


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


# -- words ---------------------------------------------------------------------------------------------------------------------------


async def _roll(gadgets: Gadgets, *names: str, text: str) -> None:
    """The rollout goes on to its end, child by child; each is waited for before it gets well."""
    for name in names:
        await gadgets.has_text(name, text)
        await gadgets.set_ready(name)
    await gadgets.is_rolled_out(text=text)


async def _unhurried(request: JsonObject) -> JsonObject:
    """Slow enough that somebody is in the middle of something when it dies."""
    await asyncio.sleep(0.05)
    return gadgets_of(request)


def _in(gadgets: Gadgets, mark: int) -> list[Request]:
    """The services' requests in the namespace of the Gadgets."""
    return [request for request in gadgets.story.lab.audit.ours_since(mark) if request.namespace == gadgets.story.name]


def _touched(requests: list[Request], *verbs: str) -> list[str]:
    """The Gadgets that were written so with success, in order."""
    return [each.name for each in requests if each.resource == "gadgets" and each.verb in verbs and each.code < 400]


def _template_of(parent: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(unstructured.child_object(parent, "spec"), "template"), "text")
