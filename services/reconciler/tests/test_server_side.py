"""Server-side apply with a real API server: which fields are owned, taken over, given up and left alone."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from builders import CONFIG_MAPS, LABELS
from onechild import MANAGER, OneChild, as_watched, entries_of

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.api.rules import UpdateMethod
from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, reference_to
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.kinds import KINDS, manifest, patched
from metaloop.reconciler.core.model import ApplyChild, DeleteChild, UpdateChild
from metaloop.reconciler.errors import NameTaken
from metaloop.reconciler.schemas import Schemas

pytestmark = pytest.mark.e2e

ADMISSION = "admissionregistration.k8s.io/v1"
POLICIES = ResourceInfo(api_version=ADMISSION, resource="mutatingadmissionpolicies", kind="MutatingAdmissionPolicy", namespaced=False)
BINDINGS = ResourceInfo(
    api_version=ADMISSION, resource="mutatingadmissionpolicybindings", kind="MutatingAdmissionPolicyBinding", namespaced=False
)
JOB = KINDS["Job"]


@pytest.fixture
def child(kube: KubeClient, schemas: Schemas, parent: JsonObject) -> OneChild:
    """A ConfigMap that is applied server-side."""
    return OneChild(kube=kube, schemas=schemas, parent=parent, info=CONFIG_MAPS, name="a", strategy="server-side-apply")


@pytest.fixture
def job(kube: KubeClient, schemas: Schemas, parent: JsonObject) -> OneChild:
    """A Job that is recreated if it differs."""
    return OneChild(kube=kube, schemas=schemas, parent=parent, info=JOB.info, name="a", strategy="server-side-apply", method="Recreate")


def desired(child: OneChild, *, labels: JsonObject | None = None, **data: str) -> JsonObject:
    """A desired ConfigMap."""
    metadata: JsonObject = {"name": child.name, "namespace": child.namespace, "labels": {**LABELS, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}


async def data_of(child: OneChild) -> object:
    """The data of the ConfigMap."""
    return (await child.existing()).get("data")


def managers_of(obj: JsonObject) -> set[tuple[object, object]]:
    """The managers of an object's fields, with their operations."""
    return {(entry.get("manager"), entry.get("operation")) for entry in entries_of(obj)}


async def test_child_is_created_by_the_apply_itself(child: OneChild):
    effects = await child.sync(desired(child, ours="1"))

    live = await child.existing()
    assert [type(done.action) for done in effects.done] == [ApplyChild]
    assert managers_of(live) == {(MANAGER, "Apply")}
    assert unstructured.annotations(live) == {}
    owner = controller_ref(live)
    assert owner is not None
    assert owner.uid == unstructured.uid(child.parent)


@pytest.mark.parametrize("labels", [{}, LABELS])
async def test_object_that_is_not_ours_is_never_taken_over(child: OneChild, kube: KubeClient, labels: JsonObject):
    foreign: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": child.namespace, "labels": labels},
    }
    before = await kube.create(CONFIG_MAPS, {**foreign, "data": {"theirs": "1"}})

    effects = await child.sync_seen(desired(child, ours="1"), None)

    assert [type(failure.error) for failure in effects.failures] == [Conflict if labels else NameTaken]
    assert await child.existing() == before


async def test_field_that_is_desired_no_longer_is_removed(child: OneChild):
    await child.sync(desired(child, ours="1", gone="2"))
    await child.patch({"data": {"theirs": "3"}})

    await child.sync(desired(child, ours="1"))

    assert await data_of(child) == {"ours": "1", "theirs": "3"}


async def test_drift_in_labels_and_annotations_is_repaired(child: OneChild):
    labelled = desired(child, labels={"also": "this"}, ours="1")
    await child.sync(labelled)
    await child.patch({"metadata": {"labels": {"also": "that", "theirs": "x"}}})

    await child.sync(labelled)

    assert unstructured.labels(await child.existing()) == {**LABELS, "also": "this", "theirs": "x"}


async def test_field_that_somebody_removed_comes_back(child: OneChild):
    await child.sync(desired(child, ours="", other="2"))
    await child.patch({"data": {"ours": None}})

    await child.sync(desired(child, ours="", other="2"))

    assert await data_of(child) == {"ours": "", "other": "2"}


async def test_field_is_taken_over_from_another_manager_and_that_is_told(child: OneChild):
    await child.sync(desired(child, ours="1"))
    await child.patch({"data": {"ours": "theirs"}}, manager="rival")

    effects = await child.sync(desired(child, ours="1"))

    assert len(effects.done) == 1
    assert await data_of(child) == {"ours": "1"}
    [(kind, reason, message)] = child.recorder.told
    assert (kind, reason) == ("Warning", "ApplyConflict")
    assert "rival" in message
    assert ".data.ours" in message


async def test_value_that_another_manager_owns_alone_is_applied_to_own_it(child: OneChild):
    await child.sync(desired(child, ours="1"))
    await child.patch({"data": {"ours": "2"}})
    await child.patch({"data": {"ours": "1"}})

    first, second = await child.sync(desired(child, ours="1")), await child.sync(desired(child, ours="1"))

    assert (len(first.done), len(second.done)) == (1, 0)


async def test_child_that_was_replaced_by_another_meanwhile_is_left_alone(child: OneChild, kube: KubeClient):
    await child.sync(desired(child, ours="1"))
    seen = await child.existing()
    await kube.delete(CONFIG_MAPS, child.namespace, "a", uid=unstructured.uid(seen))
    other = await kube.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": child.namespace}, "data": {"theirs": "1"}})

    effects = await child.sync_seen(desired(child, ours="2"), seen)

    assert [type(failure.error) for failure in effects.failures] == [Conflict]
    assert unstructured.resource_version(await child.existing()) == unstructured.resource_version(other)


async def test_child_that_is_gone_meanwhile_is_a_conflict(child: OneChild, kube: KubeClient):
    await child.sync(desired(child, ours="1"))
    seen = await child.existing()
    await kube.delete(CONFIG_MAPS, child.namespace, "a", uid=unstructured.uid(seen))

    effects = await child.sync_seen(desired(child, ours="2"), seen)

    assert [type(failure.error) for failure in effects.failures] == [Conflict]
    assert await child.live() is None


# -- from dynamic apply and back ---------------------------------------------------------------------------------------


async def test_child_of_dynamic_apply_is_migrated_without_losing_or_keeping_a_field(child: OneChild):
    child.strategy = "dynamic-apply"
    await child.sync(desired(child, ours="1", gone="2", also_gone="3"))
    await child.sync(desired(child, ours="1", gone="2"))
    await child.patch({"data": {"theirs": "4"}})

    child.strategy = "server-side-apply"
    effects = await child.sync(desired(child, ours="1"))
    again = await child.sync(desired(child, ours="1"))

    live = await child.existing()
    assert (len(effects.done), effects.failures, len(again.done)) == (1, (), 0)
    assert live["data"] == {"ours": "1", "theirs": "4"}
    assert LAST_APPLIED_ANNOTATION not in unstructured.annotations(live)
    assert managers_of(live) == {(MANAGER, "Apply"), ("somebody", "Update")}
    assert child.recorder.told == []


async def test_child_that_is_migrated_as_it_is_keeps_its_identity_and_content(child: OneChild):
    child.strategy = "dynamic-apply"
    await child.sync(desired(child, ours="1"))
    before = await child.existing()

    child.strategy = "server-side-apply"
    await child.sync(desired(child, ours="1"))

    live = await child.existing()
    assert (unstructured.uid(live), live["data"]) == (unstructured.uid(before), before["data"])
    assert controller_ref(live) == controller_ref(before)


async def test_child_of_server_side_apply_goes_back_to_dynamic_apply(child: OneChild):
    await child.sync(desired(child, ours="1", gone="2"))
    await child.patch({"data": {"theirs": "3"}})

    child.strategy = "dynamic-apply"
    first = await child.sync(desired(child, ours="1"))
    second = await child.sync(desired(child, ours="1"))

    live = await child.existing()
    assert ([type(done.action) for done in first.done], len(second.done)) == ([UpdateChild], 0)
    assert live["data"] == {"ours": "1", "theirs": "3"}
    assert LAST_APPLIED_ANNOTATION in unstructured.annotations(live)


async def test_there_and_back_again_nothing_is_fought_over(child: OneChild):
    for strategy, data in (("dynamic-apply", "1"), ("server-side-apply", "2"), ("dynamic-apply", "3"), ("server-side-apply", "4")):
        child.strategy = strategy
        wanted = patched(desired(child, ours=data), {"data": {f"only-{data}": "x"}})
        changed, at_rest = await child.sync(wanted), await child.sync(wanted)

        assert (len(changed.done), len(at_rest.done)) == (1, 0), strategy
        assert await data_of(child) == {"ours": data, f"only-{data}": "x"}
    assert child.recorder.told == []


# -- recreation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_immutable_field_is_changed_by_recreation(job: OneChild, strategy: str):
    job.strategy = strategy
    first = manifest(JOB, "a", namespace=job.namespace)
    second = patched(first, JOB.other)
    await job.sync(first)
    before = await job.existing()

    deleted = await job.sync(second)
    created = await job.sync(second)

    assert [type(done.action) for done in deleted.done] == [DeleteChild]
    assert len(created.done) == 1
    after = await job.existing()
    assert unstructured.uid(after) != unstructured.uid(before)
    assert patched(after, JOB.other) == after


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_what_could_not_be_created_costs_no_child(job: OneChild, strategy: str):
    job.strategy = strategy
    first = manifest(JOB, "a", namespace=job.namespace)
    await job.sync(first)
    before = await job.existing()

    effects = await job.sync(patched(first, {"spec": {"template": {"spec": {"restartPolicy": "Whenever"}}}}))

    assert len(effects.failures) == 1
    assert unstructured.uid(await job.existing()) == unstructured.uid(before)
    assert not unstructured.is_deleting(await job.existing())


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_drift_is_repaired_by_recreation(job: OneChild, strategy: str):
    job.strategy = strategy
    first = manifest(JOB, "a", namespace=job.namespace)
    await job.sync(first)
    await job.patch(JOB.drift)

    effects = await job.sync(first)

    assert [type(done.action) for done in effects.done] == [DeleteChild]


async def test_child_that_only_others_own_is_not_recreated(job: OneChild):
    """Its values are as desired. To own them takes an apply, not a new child."""
    first = manifest(JOB, "a", namespace=job.namespace)
    await job.sync(first)
    await job.patch({"spec": {"suspend": False}})
    await job.patch({"spec": {"suspend": True}})

    effects = await job.sync(first)

    assert [type(done.action) for done in effects.done] == [ApplyChild]


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_adopted_child_is_not_recreated_for_the_defaults_that_it_has(job: OneChild, kube: KubeClient, strategy: str):
    job.strategy = strategy
    first = manifest(JOB, "a", namespace=job.namespace)
    orphan = patched(first, {"metadata": {"ownerReferences": [reference_to(job.parent)], "creationTimestamp": None}})
    before = await kube.create(JOB.info, patched(orphan, {"spec": {"backoffLimit": 0}}))

    await job.sync(first)
    again = await job.sync(first)

    assert unstructured.uid(await job.existing()) == unstructured.uid(before)
    assert len(again.done) == 0


# -- values that an API server rewrites --------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def rewriting(kube: KubeClient, namespace: str) -> AsyncIterator[None]:
    """Admission sets `rewritten` of each ConfigMap to "otherwise", and adds a label."""
    changes: JsonObject = {
        "expression": 'Object{metadata: Object.metadata{labels: {"admitted": "yes"}}, data: {"rewritten": "otherwise"}}',
    }
    spec: JsonObject = {
        "matchConstraints": {
            "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]
        },
        "matchConditions": [{"name": "rewritten", "expression": 'has(object.data) && "rewritten" in object.data'}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": changes}],
    }
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding: JsonObject = {"policyName": namespace, "matchResources": {"namespaceSelector": selector}}
    for info, content in ((POLICIES, spec), (BINDINGS, binding)):
        await kube.create(info, {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": namespace}, "spec": content})
    yield
    for info in (BINDINGS, POLICIES):
        live = await kube.get(info, "", namespace)
        await kube.delete(info, "", namespace, uid=unstructured.uid(live))


@pytest.mark.usefixtures("rewriting")
@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
@pytest.mark.parametrize("method", ["InPlace", "Recreate"])
async def test_value_that_admission_rewrites_is_written_once_and_recreates_nothing(child: OneChild, strategy: str, method: UpdateMethod):
    child.strategy, child.method = strategy, method
    await _admission_rewrites(child)
    await child.sync(desired(child, rewritten="as desired"))
    before = await child.existing()

    syncs = [await child.sync(desired(child, rewritten="as desired")) for _ in range(4)]

    assert [type(done.action) for effects in syncs for done in effects.done if isinstance(done.action, DeleteChild)] == []
    assert sum(len(effects.done) for effects in syncs) <= 1
    assert as_watched(await child.existing()) == as_watched(before)


async def _admission_rewrites(child: OneChild) -> None:
    """Waits until the API server enforces the policy."""
    probe: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "namespace": child.namespace}}
    async with asyncio.timeout(60):
        while True:
            tried = await child.kube.create(CONFIG_MAPS, {**probe, "data": {"rewritten": "x"}}, params={"dryRun": "All"})
            if tried["data"] == {"rewritten": "otherwise"}:
                return
            await asyncio.sleep(0.1)
